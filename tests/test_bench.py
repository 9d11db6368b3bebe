"""mhsa.bench: what runs, and how time and memory are counted. No test asserts a time."""

import os
import warnings
from types import SimpleNamespace

import pytest
import torch
from helpers import same
from torch.utils._python_dispatch import TorchDispatchMode

from mhsa import MultiHeadAttention
from mhsa.bench import Shape, baselines, fast_attention, measure, speed

SMALL = Shape(B=2, T=5, d_model=21, num_heads=3, backward=False)


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
    monkeypatch.setattr(measure.time, "perf_counter", lambda: clock.now)
    return clock


def test_the_median_leaves_out_the_warm_up_and_one_slow_moment(clock):
    calls = {"steady": clock.call("steady", 50, 3), "rising": clock.call("rising", 9, 1, 90, 5, 7)}
    assert measure.time_interleaved(calls, repeats=3, warmup=1) == {"steady": 3, "rising": 5}  # rising: 1, 90, 5


def test_each_round_runs_every_call_once_and_orders_differ(clock):
    measure.time_interleaved({name: clock.call(name, 1) for name in "abc"}, repeats=11, warmup=0)
    rounds = [tuple(clock.order[i : i + 3]) for i in range(0, len(clock.order), 3)]
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
            return 1000 * (end.at - self.at)  # milliseconds

    class Square:
        """The large product that keeps the GPU busy takes 100 s on the fake clock."""

        def __matmul__(self, other):
            clock.call("busy", 100)()

    monkeypatch.setattr(torch.cuda, "Event", Event)
    monkeypatch.setattr(measure, "_square", Square)
    assert measure.time_interleaved({"a": clock.call("a", 7)}, repeats=3, warmup=0, device="cuda") == {"a": 7}
    assert clock.order == ["busy", "busy", "a"] * 3  # Python asks for all of "a" before the first event comes


def test_a_measurement_draws_none_of_the_session_s_random_numbers():
    torch.manual_seed(3)
    expected = torch.rand(5)
    torch.manual_seed(3)
    baselines.contestants(SMALL._replace(backward=True))
    fast_attention.measure_pass(SMALL, repeats=1)
    assert torch.equal(torch.rand(5), expected)


def test_no_round_is_refused():
    with pytest.raises(ValueError, match="^repeats=0 is not a whole number"):
        measure.time_interleaved({"a": lambda: None}, repeats=0)


def test_contestants_compute_the_same_numbers():
    with torch.no_grad():
        outs = {name: call() for name, call in baselines.contestants(SMALL, dtype=torch.float64).items()}
    for name in ("ours, weights", "looped", "torch", "torch, weights"):
        same(outs[name], outs["ours"])
    assert not torch.allclose(outs["ours, causal"], outs["ours"])


def test_contestants_compute_the_same_gradients():
    calls = baselines.contestants(SMALL._replace(backward=True), dtype=torch.float64)
    grads = {name: call() for name, call in calls.items() if name not in ("floor", "ours, causal")}
    x, *each, weight, bias = grads["looped"]  # a head's weight and bias after the other
    w_q, b_q, w_k, b_k, w_v, b_v = (torch.cat(each[i::6]) for i in range(6))
    grads["ours, looped"] = [x, w_q, b_q, w_k, b_k, w_v, b_v, weight, bias]
    del grads["looped"]
    for name, (x, *parameters) in grads.items():
        if name.startswith("ours"):  # torch keeps W_Q, W_K and W_V in one block
            *qkv, weight, bias = parameters
            parameters = [torch.cat(qkv[0::2]), torch.cat(qkv[1::2]), weight, bias]
        grads[name] = [x, *parameters]
    for name in ("ours, weights", "ours, looped", "torch", "torch, weights"):
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
    calls, x = baselines.contestants(SMALL), torch.randn(2, 5, 21)
    assert operations(calls["floor"]) == ["addmm", "addmm", "addmm", kernel, "addmm"] == operations(calls["ours"])
    grouped = MultiHeadAttention(21, 3, num_kv_heads=1)
    assert operations(lambda: grouped(x)) == ["mm", "mm", "mm", kernel, "mm"]


def test_a_kernel_that_torch_refuses_is_named_with_the_reason():
    with torch.no_grad():
        ours = baselines.contestants(SMALL, dtype=torch.float64)["ours"]
        calls, refused = baselines.named_kernels(ours)
        assert list(calls) == ["flash", "math"] and list(refused) == ["memory-efficient", "cuDNN"]  # on a CPU
        assert "memory-efficient" not in refused["memory-efficient"] and refused["memory-efficient"]
        for call in calls.values():
            same(call(), ours())


def test_the_reason_is_the_warning_about_the_kernel_asked_for():
    """As torch puts it on a GPU: the error says only that no kernel is left."""

    def call():
        for text in (
            "Flash attention kernel not used because:",
            "Math attention has been runtime disabled.",
            "head dim should be at most 256",
        ):
            warnings.warn(text, stacklevel=1)
        raise RuntimeError("No available kernel.")

    calls, refused = baselines.named_kernels(call)
    assert calls == {} and set(refused.values()) == {"head dim should be at most 256"} and len(refused) == 4


def test_a_gpu_without_memory_has_not_refused():
    def call():
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 4.00 GiB")

    calls, reasons = baselines.named_kernels(call)
    assert calls == {} and set(reasons.values()) == {baselines.NO_MEMORY} and len(reasons) == 4
    assert baselines.shown(None, reasons["math"]) == "no memory" and baselines.shown(None, "too wide") == "refused"
    assert baselines.shown(0.0012345, None) == "1.23" and baselines.shown(None, None) == "-"


def test_a_gpu_s_peak_leaves_out_what_the_first_product_reserves(monkeypatch):
    """torch keeps a workspace for cuBLAS in its own memory, from the first product on."""
    gpu = SimpleNamespace(workspace=0, kept=7, peak=0)

    def call():
        gpu.workspace = 8_519_680
        gpu.peak = max(gpu.peak, gpu.kept + gpu.workspace + 1009)

    monkeypatch.setattr(torch.cuda, "memory_allocated", lambda: gpu.kept + gpu.workspace)
    monkeypatch.setattr(torch.cuda, "max_memory_allocated", lambda: gpu.peak)
    monkeypatch.setattr(torch.cuda, "reset_peak_memory_stats", lambda: setattr(gpu, "peak", 0))
    assert measure.peak_extra_bytes(call, device="cuda") == 1009


def test_new_pages_are_counted_and_ready_memory_has_none(monkeypatch):
    pytest.importorskip("resource")
    size = 64 * 2**20  # glibc takes such a block from the operating system, and gives it back
    ready = torch.zeros(size, dtype=torch.uint8)
    few = measure.page_faults(lambda: ready.fill_(1))
    many = measure.page_faults(lambda: torch.zeros(size, dtype=torch.uint8).fill_(1))
    assert few < 100 < many
    monkeypatch.setattr(measure, "resource", None)
    assert measure.page_faults(lambda: 1 / 0) is None  # Windows


def test_the_chosen_kernel_is_named():
    with torch.no_grad():
        calls = baselines.contestants(SMALL)
        chosen = {name: measure.chosen_kernel(calls[name]) for name in ("ours", "ours, weights")}
        assert chosen == {"ours": "flash_attention_for_cpu", "ours, weights": "none"}
        assert measure.chosen_kernel(baselines.named_kernels(calls["ours"])[0]["math"]) == "attention_math"


def test_the_peak_counts_what_lives_at_once():
    kept = []

    def call():
        kept.append(torch.empty(1009))
        for _ in range(3):
            torch.empty(2003)  # freed at once

    assert measure.peak_extra_bytes(call) == 4 * (1009 + 2003)
    assert measure.peak_extra_bytes(lambda: kept.clear()) == 0


@pytest.mark.parametrize("backward", [False, True])
def test_memory_grows_with_tokens_and_with_their_square_once_weights_are_asked_for(backward):
    def growth(name):
        sizes = (Shape(1, T, 16, 2, backward) for T in (1024, 2048))  # below, the CPU kernel takes smaller blocks
        small, large = (measure.measure_memory(shape, name) for shape in sizes)
        return large["bytes"] / small["bytes"]

    assert growth("ours") <= 2.2 and growth("ours, causal") <= 2.2 and growth("ours, weights") > 3.5
    assert growth("torch, weights") > 3.5 and (growth("torch") > 3.5) != backward  # its fast path stores the map


def test_a_loop_over_heads_holds_one_map_and_a_batch_all_of_them():
    looped, batched = (
        measure.measure_memory(Shape(1, 512, 14, 7, False), name)["bytes"] for name in ("looped", "ours, weights")
    )
    one_map = 4 * 512**2
    assert 7 * one_map < batched < 8 * one_map and one_map < looped < 2 * one_map


def test_a_fresh_process_is_another_process():
    assert measure.in_fresh_process(os.getpid) != os.getpid()


def test_a_shape_is_one_whose_heads_divide_it():
    shapes = baselines.shapes_of(B=(1,), T=(7,), d_model=(9, 10), num_heads=(2, 3))
    assert shapes == [(1, 7, 9, 3, False), (1, 7, 9, 3, True), (1, 7, 10, 2, False), (1, 7, 10, 2, True)]
    assert len(baselines.shapes_of(**speed.GRID)) == 3 * 5 * 9 * 2
    assert Shape(32, 1024, 512, 8, True).map_fits and not Shape(32, 1024, 768, 12, True).map_fits  # 1 and 1.5 GiB
    assert Shape(1, 100, 1000, 10, False).gflop == pytest.approx(0.8 + 0.04 + 5e-4)  # softmax: 5 a score
