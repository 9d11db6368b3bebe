"""Sweeps over tasks and numbers of heads, and what was recorded of them."""

import json

import pytest
import torch
from helpers import same

from mhsa import recording
from mhsa.toys import STORY, lookup, reverse, story
from mhsa.train import Result, Sweep, load_story_runs, record, recorded, sweep_heads, train_toy
from mhsa.train.__main__ import main

TASK = lookup(T=5, classes=3)  # vocab 15, m 2
SMALL = dict(d_model=6, steps=2, batch=7)


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
    assert result.spread == pytest.approx(((0.35**2 + 0.05**2 + 0.3**2) / 2) ** 0.5)


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
    with pytest.raises(ValueError, match="^name='maps' was not recorded; these were: map, lr 0.002 for 300 steps, "):
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
    (tmp_path / "one_vs_many.json").write_text('{"of an older course": {}}')
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
    assert not list(tmp_path.glob("*.part"))


def test_an_interrupt_while_writing_leaves_the_old_file(tmp_path, monkeypatch):
    file = tmp_path / "record.json"
    recording.write_whole(file, "old")
    monkeypatch.setattr(recording.Path, "replace", lambda *paths: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        recording.write_whole(file, "new")
    assert file.read_text() == "old\n"
