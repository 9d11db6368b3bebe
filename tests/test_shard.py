"""mhsa.shard: equal to one process, what is held and sent, and that no process is left when one fails."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from multiprocessing import active_children, get_context
from pathlib import Path
from threading import Thread

import psutil
import pytest
import torch
from helpers import by_hand, rand, randomised, same
from torch import distributed as dist

from mhsa import MultiHeadAttention
from mhsa.shard import ShardReport, Share, _load, run_sharded

ROOT = Path(__file__).parents[1]
GROUPED = dict(d_model=7, num_heads=6, num_kv_heads=2, d_k=5, d_v=3, bias=True)


class DiesInTheMiddle(MultiHeadAttention):
    """In process 1, while process 0 waits for its part of the sum."""

    def forward(self, query):
        if dist.get_rank() == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().forward(query)


class RaisesInTheMiddle(MultiHeadAttention):
    def forward(self, query):
        if dist.get_rank() == 1:
            raise ArithmeticError("no sum today")
        return super().forward(query)


class Waits(MultiHeadAttention):
    def forward(self, query):
        time.sleep(600)


@pytest.fixture(autouse=True)
def without_network(monkeypatch, tmp_path):
    """In every started process, as in the lessons' kernels; and none of them is left at the end.

    The folder for temporary files may have any name.
    """
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "tests" / "offline"))
    odd = tmp_path / "Übung 1 it's 100% #1"
    odd.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(odd))
    yield
    assert active_children() == []


@pytest.mark.parametrize(
    "num_processes, sizes, shares",
    [
        (
            2,
            GROUPED,
            [Share(3, 8 * (3 * 5 * 8 + 1 * 5 * 8 + 1 * 3 * 8 + 7 * 9 + 7), 8 * 2 * 11 * 7, 8 * 2 * 11 * 7)] * 2,
        ),
        (3, dict(d_model=21, num_heads=3), [Share(1, 8 * 4 * 21 * 7, 8 * 2 * 11 * 21, 8 * 2 * 11 * 21)] * 3),
    ],
    ids=["two, grouped, with biases", "three"],
)
def test_output_and_gradients_equal_one_process(num_processes, sizes, shares):
    layer = randomised(MultiHeadAttention(**sizes))
    query = rand(2, 11, layer.d_model)
    report = run_sharded(layer, query, num_processes)
    same(report.out, by_hand(layer, query, query, query)[0])
    query.requires_grad_()
    (layer(query).square().sum() / 2).backward()
    expected = {"query": query.grad} | {name: p.grad for name, p in layer.named_parameters()}
    assert report.gradients.keys() == expected.keys()
    for name, gradient in expected.items():
        same(report.gradients[name], gradient)
    assert {type(result) for result in (report.out, *report.gradients.values())} == {torch.Tensor}
    assert report.shares == shares


def test_the_table_shows_every_figure_of_every_process():
    table = str(ShardReport(torch.zeros(1), {}, [Share(4, 1048576, 77, 88), Share(5, 2345, 99, 111)]))
    assert [line.split() for line in table.splitlines()[1:]] == [
        ["0", "4", "1,048,576", "77", "88"],
        ["1", "5", "2,345", "99", "111"],
    ]


@pytest.mark.parametrize(
    "arguments, message",
    [
        (dict(num_processes=3), r"num_processes=3 does not divide num_heads=4; these do: 1, 2, 4"),
        (
            dict(layer=MultiHeadAttention(8, 8, num_kv_heads=2), num_processes=4),
            r"num_processes=4 does not divide num_kv_heads=2; these do: 1, 2",
        ),
        (dict(num_processes=0), r"num_processes=0 is not a whole number"),
        (dict(num_processes=True), r"num_processes=True is not a whole number"),
        (dict(layer=torch.nn.Linear(8, 8)), r"layer=.* has type Linear; a MultiHeadAttention is needed"),
        (dict(query=torch.zeros(5, 8)), r"query has shape \(5, 8\)"),
        (dict(query=torch.zeros(1, 5, 7)), r"query has width 7"),
        (dict(query=torch.zeros(1, 0, 8)), r"query.numel\(\)=0 is not a whole number \(int\) of at least 1"),
        (dict(query=torch.zeros(0, 5, 8)), r"query.numel\(\)=0"),
        (dict(layer=MultiHeadAttention(8, 4, key_dim=5)), r"key has width 8.* built for 5"),
        (dict(timeout=0), r"timeout=0 is not a whole number"),
    ],
)
def test_refused_before_a_process_starts(arguments, message, monkeypatch):
    monkeypatch.setattr("mhsa.processes.get_context", None)
    with pytest.raises(ValueError, match=message):
        run_sharded(**{"layer": MultiHeadAttention(8, 4), "query": torch.zeros(1, 5, 8)} | arguments)


@pytest.mark.parametrize(
    "hook, words",
    [(lambda *args: None, ".*"), (print, "it holds builtins.print"), (rand, "it holds helpers.rand")],
    ids=["lambda", "built in", "function"],
)
def test_a_layer_with_a_hook_is_refused(hook, words, monkeypatch):
    monkeypatch.setattr("mhsa.shard.run_processes", None)
    layer = MultiHeadAttention(8, 4)
    layer.register_forward_hook(hook)
    with pytest.raises(ValueError, match=f"layer cannot be sent to other processes: {words}; without its hooks it can"):
        run_sharded(layer, torch.zeros(1, 5, 8))


class RunsCode:
    """A pickle of it makes a file when it is read."""

    def __init__(self, file):
        self.file = file

    def __reduce__(self):
        return Path.touch, (self.file,)


def test_code_that_hides_in_what_is_handed_over_does_not_run(tmp_path):
    seen, job = tmp_path / "seen", tmp_path / "job"
    torch.save((RunsCode(seen), torch.zeros(1)), job)
    with pytest.raises(ValueError, match="it holds .*pathlib"):
        _load(job, MultiHeadAttention, torch.nn.Linear)
    assert not seen.exists()
    torch.load(job, weights_only=False)  # what an open door would do
    assert seen.exists()


def test_a_script_without_the_main_guard_is_told_of_it(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import torch\nfrom mhsa import MultiHeadAttention\nfrom mhsa.shard import run_sharded\n"
        "run_sharded(MultiHeadAttention(8, 4), torch.zeros(1, 5, 8))\n"
    )
    run = subprocess.run(
        [sys.executable, script],
        capture_output=True,
        text=True,
        timeout=100,
        env=os.environ | {"PYTHONPATH": f"{ROOT}:{os.environ['PYTHONPATH']}"},
    )
    assert run.returncode == 1
    assert 'It printed nothing. Does the script start it under `if __name__ == "__main__":`?' in run.stderr


def test_one_killed_in_the_middle_ends_the_other():
    with pytest.raises(RuntimeError, match=r"process 1 of 2 was ended by signal 9 \(Killed\)"):
        run_sharded(DiesInTheMiddle(8, 4), torch.zeros(1, 5, 8))


def test_one_killed_from_outside_while_they_start_ends_the_other():
    def kill_first():
        while not (children := [p for p in active_children() if p.name == "process 0 of 2"]):
            time.sleep(0.01)
        os.kill(children[0].pid, signal.SIGKILL)

    Thread(target=kill_first).start()
    with pytest.raises(RuntimeError, match=r"process 0 of 2 was ended by signal 9 \(Killed\)"):
        run_sharded(MultiHeadAttention(8, 4), torch.zeros(1, 5, 8))


def test_an_error_in_one_is_shown_and_ends_the_other():
    with pytest.raises(RuntimeError, match=r"(?s)process 1 of 2 failed:.*ArithmeticError: no sum today"):
        run_sharded(RaisesInTheMiddle(8, 4), torch.zeros(1, 5, 8))


def test_the_time_limit_ends_both():
    with pytest.raises(TimeoutError, match="2 processes were not done after 1 s"):
        run_sharded(Waits(8, 4), torch.zeros(1, 5, 8), timeout=1)


def start_and_wait():
    run_sharded(Waits(8, 4), torch.zeros(1, 5, 8))


def test_both_end_when_the_starting_process_is_killed():
    starter = get_context("spawn").Process(target=start_and_wait)
    starter.start()
    while len(children := psutil.Process(starter.pid).children()) < 2:
        time.sleep(0.01)
    starter.kill()
    starter.join()
    gone_by = time.monotonic() + 30
    while any(child.is_running() and child.status() != psutil.STATUS_ZOMBIE for child in children):
        assert time.monotonic() < gone_by
        time.sleep(0.01)


def test_torchrun_prints_the_table():
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    run = subprocess.run([*torchrun, "-m", "mhsa.shard"], cwd=ROOT, capture_output=True, text=True, timeout=100)
    assert run.returncode == 0, run.stderr
    rows = [line.split() for line in run.stdout.splitlines()]
    held, sent = f"{2 * 512 * 512 * 4:,}", f"{128 * 512 * 4:,}"
    assert rows[2:4] == [["0", "4", held, sent, sent], ["1", "4", held, sent, sent]]
    assert float(rows[4][-1]) < 1e-5
