"""mhsa.bench: what it runs, how it counts time and memory, what it prints. No test asserts a time."""
import json
import os
from types import SimpleNamespace

import pytest
import torch
from helpers import same
from torch.utils._python_dispatch import TorchDispatchMode

from mhsa import MultiHeadAttention, bench
from mhsa.bench import Cell

SMALL = Cell(B=2, T=5, d_model=21, num_heads=3, backward=False)


@pytest.fixture
def clock(monkeypatch):
    """A clock that only the calls under test move: clock.call(*seconds) takes those seconds, the last one for good."""
    clock = SimpleNamespace(now=0.0, order=[])

    def call(name, *seconds):
        left = list(seconds)

        def run():
            clock.order.append(name)
            clock.now += left.pop(0) if len(left) > 1 else left[0]
        return run
    clock.call = call
    monkeypatch.setattr(bench.time, "perf_counter", lambda: clock.now)
    return clock


def test_the_median_leaves_out_the_warm_up_and_one_slow_moment(clock):
    calls = {"steady": clock.call("steady", 50, 3), "rising": clock.call("rising", 9, 1, 90, 5, 7)}
    assert bench.time_interleaved(calls, repeats=3, warmup=1) == {"steady": 3, "rising": 5}     # rising: 1, 90, 5


def test_each_round_runs_every_call_once_and_orders_differ(clock):
    bench.time_interleaved({name: clock.call(name, 1) for name in "abc"}, repeats=11, warmup=0)
    rounds = [tuple(clock.order[i:i + 3]) for i in range(0, len(clock.order), 3)]
    assert len(rounds) == 11 and {tuple(sorted(r)) for r in rounds} == {("a", "b", "c")} and len(set(rounds)) > 2


def test_cuda_times_are_those_between_two_events_in_seconds(clock, monkeypatch):
    class Event:
        """As torch.cuda.Event, on the fake clock."""
        def __init__(self, enable_timing):
            assert enable_timing

        def record(self):
            self.at = clock.now

        def synchronize(self):
            self.waited = True

        def elapsed_time(self, end):
            assert end.waited
            return 1000 * (end.at - self.at)                           # milliseconds

    monkeypatch.setattr(torch.cuda, "Event", Event)
    assert bench.time_interleaved({"a": clock.call("a", 7)}, repeats=3, device="cuda") == {"a": 7}


def test_contestants_compute_the_same_numbers():
    with torch.no_grad():
        outs = {name: call() for name, call in bench.contestants(SMALL, dtype=torch.float64).items()}
    for name in ("ours, weights", "torch", "torch, weights"):
        same(outs[name], outs["ours"])
    assert not torch.allclose(outs["ours, causal"], outs["ours"])


def test_contestants_compute_the_same_gradients():
    calls = bench.contestants(SMALL._replace(backward=True), dtype=torch.float64)
    grads = {name: call() for name, call in calls.items() if name not in ("floor", "ours, causal")}
    for name, (x, *parameters) in grads.items():
        if name.startswith("ours"):                                    # torch keeps W_Q, W_K and W_V in one block
            *qkv, weight, bias = parameters
            parameters = [torch.cat(qkv[0::2]), torch.cat(qkv[1::2]), weight, bias]
        grads[name] = [x, *parameters]
    for name in ("ours, weights", "torch", "torch, weights"):
        for got, expected in zip(grads[name], grads["ours"], strict=True):
            same(got, expected)


class Operations(TorchDispatchMode):
    """Names of the operations that compute or copy, in order; views cost nothing and are left out."""
    VIEWS = ("t", "view", "_unsafe_view", "transpose", "expand")

    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name = func.overloadpacket.__name__
        if name not in self.VIEWS:
            self.names.append(name)
        return func(*args, **(kwargs or {}))


def operations(call):
    with torch.no_grad(), Operations() as operations:
        call()
    return operations.names


def test_ours_runs_what_the_floor_runs():
    """A split that copies, keys and values expanded to all heads, or a floor with a step left out or added."""
    kernel = "_scaled_dot_product_flash_attention_for_cpu"
    calls, x = bench.contestants(SMALL), torch.randn(2, 5, 21)
    assert operations(calls["floor"]) == ["addmm", "addmm", "addmm", kernel, "addmm"] == operations(calls["ours"])
    grouped = MultiHeadAttention(21, 3, num_kv_heads=1)
    assert operations(lambda: grouped(x)) == ["mm", "mm", "mm", kernel, "mm"]


def test_a_kernel_that_torch_refuses_is_named_with_the_reason():
    with torch.no_grad():
        ours = bench.contestants(SMALL, dtype=torch.float64)["ours"]
        calls, refused = bench.named_kernels(ours)
        assert list(calls) == ["flash", "math"] and list(refused) == ["memory-efficient"]              # on a CPU
        assert "memory-efficient" not in refused["memory-efficient"] and refused["memory-efficient"]
        for call in calls.values():
            same(call(), ours())


def test_the_peak_counts_what_lives_at_once():
    kept = []

    def call():
        kept.append(torch.empty(1009))
        for _ in range(3):
            torch.empty(2003)                                          # freed at once
    assert bench.peak_extra_bytes(call) == 4 * (1009 + 2003)
    assert bench.peak_extra_bytes(lambda: kept.clear()) == 0


@pytest.mark.parametrize("backward", [False, True])
def test_memory_grows_with_tokens_and_with_their_square_once_weights_are_asked_for(backward):
    def growth(name):
        sizes = (Cell(1, T, 16, 2, backward) for T in (1024, 2048))    # below, the CPU kernel takes smaller blocks
        small, large = (bench.measure_memory(cell, name) for cell in sizes)
        return large["bytes"] / small["bytes"]
    assert growth("ours") <= 2.2 and growth("ours, causal") <= 2.2 and growth("ours, weights") > 3.5
    assert growth("torch, weights") > 3.5 and (growth("torch") > 3.5) != backward     # its fast path stores the map


def test_a_fresh_process_is_another_process():
    assert bench.in_fresh_process(os.getpid) != os.getpid()


def test_a_cell_is_a_shape_whose_heads_divide_it():
    cells = bench.cells_of(B=(1,), T=(7,), d_model=(9, 10), num_heads=(2, 3))
    assert cells == [(1, 7, 9, 3, False), (1, 7, 9, 3, True), (1, 7, 10, 2, False), (1, 7, 10, 2, True)]
    assert len(bench.cells_of(**bench.GRID)) == 3 * 5 * 9 * 2
    assert Cell(32, 1024, 512, 8, True).map_fits and not Cell(32, 1024, 768, 12, True).map_fits     # 1 and 1.5 GiB
    assert Cell(1, 100, 1000, 10, False).gflop == pytest.approx(0.8 + 0.04 + 5e-4)                 # softmax: 5 a score


def test_means_of_ratios_are_geometric():
    rows = [{"seconds": dict(zip(bench.SPEED_NAMES, seconds))} for seconds in ([2, 3, 1, 6, 4], [8, 6, 1, 3, 4])]
    assert bench.geometric_means(rows) == pytest.approx(dict(zip(bench.RATIOS, (4, 1, 1))))


def test_the_command_prints_every_cell_and_writes_json(tmp_path, capsys):
    bench.main("--B 1 --T 3 5 --d-model 14 --num-heads 2 3 --repeats 1 --json".split() + [str(tmp_path / "out.json")])
    out, err = capsys.readouterr()
    result = json.loads((tmp_path / "out.json").read_text())
    assert [[row[size] for size in Cell._fields] for row in result["cells"]] == [
        [1, T, 14, 2, backward] for T in (3, 5) for backward in (False, True)]
    assert all(set(row["seconds"]) == set(bench.SPEED_NAMES) for row in result["cells"])
    assert result["torch"] == torch.__version__ and result["device"] and result["date"] and not result["left_out"]
    assert "forward+backward (2 cells)" in out and "4/4" in err and "4/4" not in out
    assert f"{result['geometric_means']['all']['ours / torch']:.3f}" in out


def test_what_is_left_out_is_said(tmp_path, capsys):
    bench.main("--B 32 --T 1024 --d-model 12 --num-heads 1 12 --gflop 0 --json".split() + [str(tmp_path / "out.json")])
    out = capsys.readouterr().out
    assert "forward above 0 GFLOP (B x T x d_model x h): 32x1024x12x1\n" in out
    assert "a score map above 1 GiB (B x T x d_model x h): 32x1024x12x12\n" in out
    result = json.loads((tmp_path / "out.json").read_text())
    assert len(result["left_out"]) == 4 and result["cells"] == []


def test_the_memory_command_prints_growth(monkeypatch, capsys):
    fresh = []
    monkeypatch.setattr(bench, "in_fresh_process", lambda f, cell, name, **options: fresh.append((cell, name))
                        or {**cell._asdict(), "name": name, "bytes": 2**20 * cell.T**2})
    monkeypatch.setattr(bench, "LARGEST_MAP", 4 * 2 * 16**2)
    bench.main("--memory --T 16 32 --num-heads 2".split())
    lines = [line.split() for line in capsys.readouterr().out.splitlines() if line.startswith("  1 ")]
    assert len(lines) == 20 and len(set(fresh)) == 15                     # five would store too large a map
    assert lines[0] == "1 16 512 2 f ours 256.0 -".split() and lines[1] == "1 32 512 2 f ours 1024.0 4.00".split()
    assert [line[5] for line in lines if "left" in line] == ["ours,", "torch", "torch,", "ours,", "torch,"]


def test_without_a_gpu_cuda_is_refused_plainly(monkeypatch, capsys):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(SystemExit, match="there is no GPU to measure .* Nothing was run"):
        bench.main(["--device", "cuda"])
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("arguments", ["--T 0", "--repeats 0", "--num-heads -1"])
def test_sizes_below_one_are_refused(arguments, capsys):
    with pytest.raises(SystemExit):
        bench.main(arguments.split())
    assert "at least 1" in capsys.readouterr().err
