"""Toy training: many seeds at once against one model trained the plain way, sweeps, and what was recorded."""

import json

import pytest
import torch
from helpers import by_hand, same
from torch import nn
from torch.nn import functional as F

from mhsa import MultiHeadAttention, recording
from mhsa.toys import STORY, lookup, relations, reverse, story
from mhsa.train import Result, Sweep, load_story_runs, model, record, recorded, sweep_heads, train_toy
from mhsa.train.__main__ import main

TASK = lookup(T=5, classes=3)  # vocab 15, m 2
SMALL = dict(d_model=6, steps=2, batch=7)


class Plain(nn.Module):
    """The model of one seed, with the course's own layer and nothing stacked."""

    def __init__(self, w, num_heads):
        super().__init__()
        self.tokens, self.places = nn.Parameter(w["tokens"].clone()), nn.Parameter(w["places"].clone())
        self.layers = nn.ModuleList(MultiHeadAttention(w["w_o"].shape[-1], num_heads) for _ in w["w_o"])
        for layer, w_qkv, w_o in zip(self.layers, w["w_qkv"], w["w_o"]):
            w_q, w_k, w_v = w_qkv.chunk(3)
            layer.load_state_dict({"w_q.weight": w_q, "w_k.weight": w_k, "w_v.weight": w_v, "w_o.weight": w_o})
        self.hidden, self.hidden_bias = (
            nn.Parameter(w[name].clone()) if name in w else None for name in ("hidden", "hidden_bias")
        )
        self.readout = nn.Parameter(w["readout"].clone())

    def forward(self, tokens):
        x = self.tokens[tokens] + self.places
        for layer in self.layers[:-1]:
            x = x + layer(x)
        x = self.layers[-1](x)
        if self.hidden is not None:
            x = F.relu(F.linear(x, self.hidden, self.hidden_bias))
        return F.linear(x, self.readout)


@pytest.mark.parametrize("settings", [{}, dict(hidden=11), dict(num_layers=2)], ids=str)
@pytest.mark.parametrize("num_heads", [1, 3])
def test_all_seeds_at_once_equal_one_model_trained_the_plain_way(num_heads, settings, monkeypatch):
    sizes = {**SMALL, **settings, "lr": 0.02}
    run = train_toy(TASK, num_heads, (2, 5, 11), **sizes)
    generator = torch.Generator().manual_seed(5)
    first = model._first_weights(TASK, 6, settings.get("num_layers", 1), settings.get("hidden", 0), [generator])
    plain = Plain({name: w[0].detach() for name, w in first.items()}, num_heads)
    tokens, targets = TASK.batch(2 * 7, generator)
    optimizer = torch.optim.Adam(plain.parameters(), 0.02)
    for now in (slice(0, 7), slice(7, 14)):
        optimizer.zero_grad()
        F.cross_entropy(plain(tokens[now]).view(-1, 3), targets[now].flatten()).backward()
        optimizer.step()
    trained = Plain({name: w[1] for name, w in run.weights.items()}, num_heads)
    for got, expected in zip(trained.parameters(), plain.parameters(), strict=True):
        same(got, expected, 1e-5)
    tokens, targets = TASK.batch(model.HELD_OUT, generator)
    logits = plain(tokens).view(-1, 5, 2, 3)
    same(run.logits(tokens, 5), logits, 1e-4)
    same(run.accuracy[1], (logits.argmax(-1) == targets).float().mean((0, 1)), 2e-3)  # near ties may fall otherwise


def test_a_trained_layer_is_the_course_s_own():
    run = train_toy(TASK, 3, (7, 4), **SMALL)
    tokens, _ = TASK.batch(11, torch.Generator().manual_seed(0))
    x, layer = run.embed(tokens, 4), run.layer(4)
    same(x, torch.stack([run.weights["tokens"][1, row] for row in tokens]) + run.weights["places"][1])
    out, weights = layer(x, need_weights=True)
    expected, maps = by_hand(layer, x, x, x)
    same(weights, maps, 1e-5)
    same(out, expected, 1e-5)
    same(run.logits(tokens, 4), (out @ run.weights["readout"][1].T).view(11, 5, 2, 3), 1e-5)
    assert not layer.training and layer.num_heads == 3


def test_the_number_of_parameters_does_not_depend_on_the_heads():
    runs = [train_toy(TASK, h, (0, 1), **SMALL) for h in (1, 2, 3, 6)]
    assert {run.parameters for run in runs} == {15 * 6 + 5 * 6 + 4 * 6 * 6 + 2 * 3 * 6}
    assert train_toy(TASK, 1, (0,), hidden=7, num_layers=2, **SMALL).parameters == (
        20 * 6 + 8 * 6 * 6 + 7 * 6 + 7 + 6 * 7
    )


def test_training_is_deterministic():
    once, again = (train_toy(TASK, 2, (1, 2), **SMALL) for _ in range(2))
    assert all(torch.equal(once.weights[name], again.weights[name]) for name in once.weights)
    assert torch.equal(once.accuracy, again.accuracy)
    assert not torch.equal(once.weights["w_o"][0], once.weights["w_o"][1])


def test_training_under_no_grad_trains():
    with torch.no_grad():
        run = train_toy(TASK, 2, (1,), **SMALL)
    assert torch.equal(run.weights["w_o"], train_toy(TASK, 2, (1,), **SMALL).weights["w_o"])


def test_two_heads_learn_what_one_cannot():
    one, two = (train_toy(relations(2), h, (0, 1)).accuracy.mean() for h in (1, 2))
    assert one < 0.75 and two > 0.95
    assert train_toy(reverse(), 1, (0,)).accuracy.mean() > 0.95


@pytest.mark.parametrize(
    "arguments, says",
    [
        (dict(task="reverse"), "task='reverse' has type str; a Task is needed"),
        (dict(num_heads=5), "num_heads=5 does not divide d_model=6; these do: 1, 2, 3, 6"),
        (dict(num_heads=0), "num_heads=0"),
        (dict(d_model=0), "d_model=0"),
        (dict(steps=0), "steps=0"),
        (dict(batch=1.0), "batch=1.0"),
        (dict(num_layers=0), "num_layers=0"),
        (dict(hidden=-1), "hidden=-1"),
        (dict(lr="0.1"), "lr='0.1' is not a number above 0 and up to 1"),
        (dict(lr=0), "lr=0"),
        (dict(lr=7), "lr=7"),
        (dict(lr=float("inf")), "lr=inf"),
        (dict(lr=float("nan")), "lr=nan"),
        (dict(lr=True), "lr=True"),
        (dict(seeds=5), "seeds=5 has type int; whole numbers are needed, as in range(5)"),
        (dict(seeds=()), "seeds=()"),
        (dict(seeds=(1, 1)), "seeds=(1, 1)"),
        (dict(seeds=(-1,)), "seed=-1"),
        (dict(seeds=(0.5,)), "seed=0.5"),
    ],
)
def test_bad_settings_are_named(arguments, says):
    with pytest.raises(ValueError) as error:
        train_toy(**{"task": TASK, "num_heads": 2, **SMALL, **arguments})
    assert str(error.value).startswith(says)


def test_a_seed_that_was_not_trained_is_named():
    run = train_toy(TASK, 2, (3, 8), **SMALL)
    for ask in (run.layer, lambda seed: run.embed(torch.zeros(1, 5, dtype=torch.int64), seed)):
        with pytest.raises(ValueError, match="^seed=0 was not trained; these were: 3, 8$"):
            ask(0)


# Sweeps


def test_a_sweep_holds_every_run_and_survives_json(capfd):
    tasks = [TASK, reverse(T=5, vocab=3)]
    sweep = sweep_heads(tasks, (1, 3), seeds=(4, 9), **SMALL)
    assert [(result.task, result.num_heads) for result in sweep.results] == [
        ("look-up", 1),
        ("look-up", 3),
        ("reverse", 1),
        ("reverse", 3),
    ]
    result = sweep.result(TASK, 3)
    assert result.accuracy == train_toy(TASK, 3, (4, 9), **SMALL).accuracy.tolist() and len(result.accuracy[0]) == 2
    assert (result.T, result.vocab, result.predicted) == (5, 15, 1.0) and sweep.result("look-up", 1).predicted == 2 / 3
    assert sweep.settings == {"seeds": [4, 9], **SMALL} and sweep.made["torch"] == torch.__version__
    assert Sweep.from_json(json.loads(json.dumps(sweep.to_json()))) == sweep
    assert sweep_heads(TASK, (2,), seeds=(4,), **SMALL).results[0].task == "look-up"
    assert capfd.readouterr().err == ""  # no progress bar where nobody sees one


def test_mean_and_spread():
    result = Result("t", 5, 3, 1, 0.5, 7, 0.1, [[0.1, 0.3], [0.5, 0.7], [0.9, 0.8]])
    assert result.runs == pytest.approx([0.2, 0.6, 0.85]) and result.mean == pytest.approx(0.55)
    assert result.spread == pytest.approx(((0.35**2 + 0.05**2 + 0.3**2) / 3) ** 0.5)


def test_a_result_that_is_not_there_is_named():
    sweep = sweep_heads(TASK, (1, 2), seeds=(0,), **SMALL)
    with pytest.raises(ValueError, match=r"^there is no result \('look-up', 4\); these are: \('look-up', 1\), "):
        sweep.result("look-up", 4)


def test_a_task_of_another_size_is_not_the_one_that_was_trained():
    sweep = sweep_heads(TASK, (1,), seeds=(0,), **SMALL)
    with pytest.raises(ValueError, match="^task='look-up' has T=7, vocab=21; trained was T=5, vocab=15$"):
        sweep.result(lookup(T=7, classes=3), 1)


@pytest.mark.parametrize(
    "tasks, heads, settings, says",
    [
        ([TASK], [1, 5], {}, "num_heads=5 does not divide d_model=6"),
        ([TASK], [1, 3], dict(d_model=16), "num_heads=3"),
        ([TASK, "reverse"], [1], {}, "task='reverse' has type str"),
        ([TASK], [1], dict(lr=2), "lr=2"),
        ([TASK], [1], dict(hidden=-1), "hidden=-1"),
        ([TASK], [1], dict(batch=0), "batch=0"),
        ([TASK], 3, {}, "heads=3 has type int; a Sequence is needed"),
        (5, [1], {}, "tasks=5 has type int"),
        (
            [TASK, lookup(T=7)],
            [1],
            {},
            "tasks=['look-up', 'look-up'] has a name twice; train such tasks in a sweep each",
        ),
    ],
)
def test_a_bad_sweep_is_refused_before_anything_is_trained(tasks, heads, settings, says, monkeypatch):
    monkeypatch.setattr("mhsa.train.sweep.train_toy", None)
    with pytest.raises(ValueError) as error:
        sweep_heads(tasks, heads, seeds=(0,), **{**SMALL, **settings})
    assert str(error.value).startswith(says)


def interrupted_at(task_name, heads):
    """train_toy, and Ctrl-C as soon as that task is trained with that many heads."""

    def train_or_stop(task, num_heads, *args, **settings):
        if (task.name, num_heads) == (task_name, heads):
            raise KeyboardInterrupt
        return train_toy(task, num_heads, *args, **settings)

    return train_or_stop


def test_an_interrupted_sweep_keeps_the_finished_results(monkeypatch, capsys):
    monkeypatch.setattr("mhsa.train.sweep.train_toy", interrupted_at("look-up", 3))
    sweep = sweep_heads(TASK, (1, 2, 3, 6), seeds=(0,), **SMALL)
    assert [result.num_heads for result in sweep.results] == [1, 2]
    assert capsys.readouterr().out == "Interrupted: 2 of 4 settings are finished.\n"


def test_a_sweep_over_models_of_unequal_size_is_refused(monkeypatch):
    monkeypatch.setattr(
        "mhsa.train.sweep.train_toy",
        lambda task, num_heads, *args, **settings: train_toy(
            task, num_heads, *args, **{**settings, "hidden": num_heads}
        ),
    )
    with pytest.raises(AssertionError, match="look-up: the number of parameters depends on the number of heads"):
        sweep_heads(TASK, (1, 2), seeds=(0,), **SMALL)


@pytest.mark.parametrize("place", ["a terminal", "a notebook"])
def test_progress_shows_where_somebody_sees_it(place, monkeypatch, capfd):
    monkeypatch.setenv("JPY_SESSION_NAME", "lesson") if place == "a notebook" else monkeypatch.setattr(
        "sys.stderr.isatty", lambda: True
    )
    sweep_heads(TASK, (1, 2), seeds=(0,), **SMALL)
    assert "0/2" in capfd.readouterr().err


# What is recorded


def test_the_recorded_map_shows_both_walls():
    expected = {1: (1.00, 1.00, 1.00, 1.00, 0.97), 2: (0.57, 1.00, 1.00, 1.00, 0.75), 4: (0.40, 0.70, 0.99, 0.97, 0.54)}
    sweep = recorded("map")
    for m, row in expected.items():
        for h, accuracy in zip((1, 2, 4, 8, 16), row):
            assert sweep.result(f"relations, m={m}", h).mean == pytest.approx(accuracy, abs=0.08), (m, h)
    assert sweep.settings["seeds"] == [0, 1, 2, 3, 4] and len(sweep.results) == 15
    with pytest.raises(ValueError, match="^name='maps' was not recorded; these were: map, long, large, tasks, "):
        recorded("maps")


def test_the_recorded_weights_do_what_was_recorded():
    runs = load_story_runs()
    assert list(runs) == [1, 2, 4, 8, 16] and len({run.parameters for run in runs.values()}) == 1
    assert (record.RECORDED / record.WEIGHTS).stat().st_size < 200_000
    tokens, targets = story().batch(400, torch.Generator().manual_seed(1234))
    for run in runs.values():
        right = (run.logits(tokens, 0).argmax(-1) == targets).float().mean((0, 1))
        same(right, run.accuracy[0], 0.05)
    answers = runs[4].logits(torch.arange(8)[None], 0).argmax(-1)[0]
    assert [STORY[word] for word in answers[7]] == ["Tom", "keys", "found"]


def test_the_command_writes_both_files(tmp_path, capsys):
    main(["--folder", str(tmp_path), "--seeds", "1", "--steps", "1"])
    sweeps = json.loads((tmp_path / "one_vs_many.json").read_text())
    assert list(sweeps) == list(record.SWEEPS) and len(sweeps["map"]["results"]) == 15
    printed = capsys.readouterr().out
    assert "relations, m=4   h=16" in printed and printed.isascii()  # a terminal may show no more
    assert len(json.loads((tmp_path / "one_vs_many_weights.json").read_text())["runs"]) == 5
    with pytest.raises(SystemExit):
        main(["--seeds", "0"])


def test_a_folder_that_is_not_there_is_refused_before_anything_is_trained(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("mhsa.train.sweep.train_toy", None)
    with pytest.raises(SystemExit):
        main(["--folder", str(tmp_path / "nope")])
    assert "nope is no folder" in capsys.readouterr().err
    (tmp_path / "one_vs_many.json").mkdir()
    with pytest.raises(SystemExit, match="one_vs_many.json cannot be written .*, so nothing was run"):
        main(["--folder", str(tmp_path)])


FEW = {
    "one": dict(tasks=[TASK], heads=(1, 2), d_model=6),
    "two": dict(tasks=[reverse(T=5, vocab=3)], heads=(1, 2, 3), d_model=6),
}


@pytest.mark.parametrize(
    "task, heads, kept",
    [("look-up", 2, {"one": 1}), ("reverse", 3, {"one": 2, "two": 2}), ("story", 4, {"one": 2, "two": 3})],
)
def test_an_interrupted_command_stops_and_keeps_what_is_finished(task, heads, kept, tmp_path, monkeypatch):
    """Results a sweep: a half sweep is kept where there is none, and never in the place of a complete one."""

    def run(trainer):
        for place in ("sweep", "record"):
            monkeypatch.setattr(f"mhsa.train.{place}.train_toy", trainer)
        main(["--folder", str(tmp_path), "--seeds", "1", "--steps", "1"])

    def results():
        sweeps = json.loads((tmp_path / "one_vs_many.json").read_text())
        return {name: len(sweep["results"]) for name, sweep in sweeps.items()}

    monkeypatch.setattr(record, "SWEEPS", FEW)
    with pytest.raises(SystemExit, match="^Interrupted. .* holds what is finished"):
        run(interrupted_at(task, heads))
    assert results() == kept and not (tmp_path / "one_vs_many_weights.json").exists()
    run(train_toy)
    complete = {"one": 2, "two": 3}
    weights = (tmp_path / "one_vs_many_weights.json").read_text()
    with pytest.raises(SystemExit, match="^Interrupted"):
        run(interrupted_at(task, heads))
    assert results() == complete and (tmp_path / "one_vs_many_weights.json").read_text() == weights
    assert len(list(tmp_path.iterdir())) == 2


def test_an_interrupt_while_writing_leaves_the_old_file(tmp_path, monkeypatch):
    file = tmp_path / "record.json"
    recording.write_whole(file, "old")
    monkeypatch.setattr(recording.Path, "replace", lambda *paths: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        recording.write_whole(file, "new")
    assert file.read_text() == "old\n"
