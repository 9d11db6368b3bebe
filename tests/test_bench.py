"""mhsa.bench: what runs, how time and memory are counted, what is printed. No test asserts a time."""

import json
import os
import warnings
from types import SimpleNamespace

import pytest
import torch
from helpers import same
from torch.utils._python_dispatch import TorchDispatchMode

from mhsa import MultiHeadAttention, recording
from mhsa.bench import Shape, __main__, baselines, decode, fast_attention, measure, speed

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

    monkeypatch.setattr(torch.cuda, "Event", Event)
    assert measure.time_interleaved({"a": clock.call("a", 7)}, repeats=3, device="cuda") == {"a": 7}


def test_a_measurement_draws_none_of_the_session_s_random_numbers():
    torch.manual_seed(3)
    expected = torch.rand(5)
    torch.manual_seed(3)
    baselines.contestants(SMALL._replace(backward=True))
    fast_attention.measure_pass(SMALL, repeats=1)
    assert torch.equal(torch.rand(5), expected)


def read_only(*args, **options):
    raise OSError(30, "Read-only file system")


@pytest.mark.parametrize(
    "trouble, words",
    [("gone", "No such file or directory"), ("a folder", "Is a directory"), ("read-only", "Read-only file system")],
)
def test_a_file_that_cannot_be_written_is_told_before_minutes_of_work(tmp_path, monkeypatch, trouble, words):
    file = tmp_path / ("gone/x.json" if trouble == "gone" else "x.json")
    if trouble == "a folder":
        file.mkdir()
    if trouble == "read-only":
        monkeypatch.setattr(recording, "TemporaryFile", read_only)
    monkeypatch.setattr(fast_attention, "measure_all", None)
    with pytest.raises(SystemExit, match=rf"x.json cannot be written \({words}\), so nothing was run") as stopped:
        __main__.main(["--lesson", "--json", str(file)])
    assert "\n" not in str(stopped.value)


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


def test_means_of_ratios_are_geometric():
    rows = [{"seconds": dict(zip(measure.SPEED_NAMES, seconds))} for seconds in ([2, 3, 1, 6, 4], [8, 6, 1, 3, 4])]
    assert speed.geometric_means(rows) == pytest.approx(dict(zip(speed.RATIOS, (4, 1, 1))))


def test_the_command_prints_every_shape_and_writes_json(tmp_path, capsys):
    __main__.main(
        ["--B", "1", "--T", "3", "5", "--d-model", "14", "--num-heads", "2", "3", "--repeats", "1", "--json"]
        + [str(tmp_path / "out.json")]
    )
    out, err = capsys.readouterr()
    result = json.loads((tmp_path / "out.json").read_text())
    assert [[row[size] for size in Shape._fields] for row in result["speed"]] == [
        [1, T, 14, 2, backward] for T in (3, 5) for backward in (False, True)
    ]
    assert all(set(row["seconds"]) == set(measure.SPEED_NAMES) for row in result["speed"])
    assert result["torch"] == torch.__version__ and result["device"] and result["date"] and not result["left_out"]
    assert "forward+backward (2 shapes)" in out and "4/4" in err and "4/4" not in out
    assert f"{result['geometric_means']['all']['ours / torch']:.3f}" in out


def test_what_is_left_out_is_said(tmp_path, capsys):
    __main__.main(
        ["--B", "32", "--T", "1024", "--d-model", "12", "--num-heads", "1", "12", "--gflop", "0", "--json"]
        + [str(tmp_path / "out.json")]
    )
    out = capsys.readouterr().out
    assert "forward above 0 GFLOP (B x T x d_model x h): 32x1024x12x1\n" in out
    assert "a score map above 1 GiB (B x T x d_model x h): 32x1024x12x12\n" in out
    result = json.loads((tmp_path / "out.json").read_text())
    assert len(result["left_out"]) == 4 and result["speed"] == []


def test_the_memory_command_prints_growth(monkeypatch, capsys):
    fresh = []
    monkeypatch.setattr(
        speed,
        "in_fresh_process",
        lambda f, shape, name, **options: (
            fresh.append((shape, name)) or {**shape._asdict(), "name": name, "bytes": 2**20 * shape.T**2}
        ),
    )
    monkeypatch.setattr(baselines, "LARGEST_MAP", 4 * 2 * 16**2)
    __main__.main(["--memory", "--T", "16", "32", "--num-heads", "2"])
    lines = [line.split() for line in capsys.readouterr().out.splitlines() if line.startswith("  1 ")]
    assert len(lines) == 24 and len(set(fresh)) == 17  # seven would store too large a map
    assert lines[0] == ["1", "16", "512", "2", "f", "ours", "256.0", "-"] and lines[1] == [
        "1",
        "32",
        "512",
        "2",
        "f",
        "ours",
        "1024.0",
        "4.00",
    ]
    assert [line[5] for line in lines if "left" in line] == [
        "ours,",
        "looped",
        "torch",
        "torch,",
        "ours,",
        "looped",
        "torch,",
    ]


# What lesson 9 measures

TINY = dict(B=[2], T=[3, 5], d_model=[14], num_heads=[1, 7])


@pytest.fixture(autouse=True)
def small_product(monkeypatch):
    monkeypatch.setitem(fast_attention.PRODUCT, "cpu", 17)


def test_a_grid_has_a_row_for_each_shape_and_kind_of_numbers():
    rows = fast_attention.measure_grid(**TINY, numbers=["float32", "bfloat16"], repeats=1)
    assert [(row["numbers"], row["T"], row["num_heads"]) for row in rows] == [
        (numbers, T, h) for numbers in ("float32", "bfloat16") for T in (3, 5) for h in (1, 7)
    ]
    for row in rows:
        assert set(row["seconds"]) == {"explicit", "fused", "product"} and set(row["bytes"]) == {"explicit", "fused"}
        assert row["kernel"] == "flash_attention_for_cpu" and row["refused"] == {}


@pytest.mark.parametrize(
    "settings, says",
    [
        (
            dict(numbers=["float32", "float16"]),
            "numbers='float16' is none of these: float32, float32 in TF32, bfloat16",
        ),
        (dict(numbers="float"), "numbers='float' is none of these"),
        (dict(device="mps"), "device='mps' is none of"),
        (dict(repeats=0), "repeats=0 is not a whole number"),
        (dict(T=16), "T=16 has type int; a Sequence is needed"),
        (dict(num_heads=[0]), "num_heads=0 is not a whole number"),
        (dict(num_heads=[3, 5]), "num_heads=[3, 5] and d_model=[14]: none divides one of these"),
    ],
)
def test_a_bad_grid_is_refused_before_anything_is_measured(settings, says, monkeypatch):
    monkeypatch.setattr(fast_attention, "contestants", None)
    with pytest.raises(ValueError) as error:
        fast_attention.measure_grid(**TINY | settings)
    assert str(error.value).startswith(says)


def test_one_kind_of_numbers_needs_no_list():
    rows = fast_attention.measure_grid(**TINY | {"T": [3], "num_heads": [1]}, numbers="bfloat16", repeats=1)
    assert [row["numbers"] for row in rows] == ["bfloat16"]


def test_the_code_for_a_gpu_runs_on_a_cpu(monkeypatch, tmp_path, capsys):
    """--lesson with the settings of a GPU in small: kernels by name, TF32, and texts whose map is too large."""
    settings = {
        name: TINY | {key: value for key, value in grid.items() if key in ("numbers", "kernels")}
        for name, grid in fast_attention.GRIDS["cuda"].items()
    }
    monkeypatch.setitem(fast_attention.GRIDS, "cpu", settings)
    monkeypatch.setattr(baselines, "LARGEST_MAP", 4 * 2 * 7 * 3**2)
    monkeypatch.setattr(fast_attention, "RECORDED", tmp_path)
    assert fast_attention.recorded("cpu") is None
    __main__.main(["--lesson"])
    result = fast_attention.recorded("cpu")
    assert result["torch"] == torch.__version__ and result["device"].startswith("CPU") and result["date"]
    assert [row["numbers"] for row in result["numbers"][::4]] == ["float32", "float32 in TF32", "bfloat16"]
    narrow, *_, wide = result["heads"]
    assert set(narrow["seconds"]) == {"explicit", "fused", "flash", "math", "product"}
    assert set(narrow["refused"]) == {"memory-efficient", "cuDNN"}
    assert "explicit" not in wide["seconds"] and "explicit" not in wide["bytes"]  # T = 5, h = 7
    out = capsys.readouterr().out
    assert out.strip() == fast_attention.report(result) and "cuDNN was refused: " in out
    assert fast_attention.table(result["heads"]).splitlines()[-1].split()[:6] == ["2", "5", "7", "2", "bfloat16", "-"]
    assert fast_attention.kernel_table(result["heads"]).splitlines()[-1].split().count("refused") == 2


def test_what_is_recorded_is_what_the_grids_measure_now():
    for device in filter(fast_attention.recorded, fast_attention.GRIDS):
        result = fast_attention.recorded(device)
        assert all(result[name] for name in ("device", "date", "torch", "python"))
        for name, grid in fast_attention.GRIDS[device].items():
            sizes = {size: values for size, values in grid.items() if size in Shape._fields}
            shapes = baselines.shapes_of(**sizes, backward=[False])
            assert [(*(row[size] for size in Shape._fields), row["numbers"]) for row in result[name]] == [
                (*shape, numbers) for numbers in grid.get("numbers", ["float32"]) for shape in shapes
            ]


def test_float32_products_are_set_and_set_back(monkeypatch):
    seen = []
    monkeypatch.setattr(
        fast_attention,
        "time_interleaved",
        lambda *args, **options: seen.append(torch.backends.cuda.matmul.fp32_precision),
    )
    before = torch.backends.cuda.matmul.fp32_precision
    fast_attention.measure_grid(**TINY | {"T": [3], "num_heads": [1]}, numbers=["float32", "float32 in TF32"])
    assert seen == ["ieee", "tf32"] and torch.backends.cuda.matmul.fp32_precision == before


def test_the_share_of_the_speed_is_counted_from_operations():
    row = dict(B=2, T=5, d_model=14, num_heads=7, product=10, seconds={"fused": 4.0, "product": 0.5})
    flops = 8 * 2 * 5 * 14**2 + 4 * 2 * 5**2 * 14 + 5 * 2 * 7 * 5**2
    assert fast_attention.share_of_speed(row, "fused") == pytest.approx(flops / 4 / (2000 / 0.5))


@pytest.mark.parametrize("cached", [True, False])
def test_decoding_equals_one_causal_pass(cached):
    layer, x = MultiHeadAttention(21, 3, num_kv_heads=1).double(), torch.randn(2, 5, 21, dtype=torch.float64)
    same(decode(layer, x, cached=cached), layer(x, is_causal=True))


def test_with_a_cache_each_step_projects_one_token():
    layer, x, seen = MultiHeadAttention(21, 3), torch.randn(2, 5, 21), []
    layer.w_k.register_forward_hook(lambda module, inputs, out: seen.append(out.shape[1]))
    decode(layer, x)
    decode(layer, x, cached=False)
    assert seen == [1, 1, 1, 1, 1, 1, 2, 3, 4, 5]


def test_without_a_gpu_cuda_is_refused_plainly(monkeypatch, capsys):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(SystemExit, match="there is no GPU to measure .* Nothing was run"):
        __main__.main(["--device", "cuda"])
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("arguments", ["--T 0", "--repeats 0", "--num-heads -1"])
def test_sizes_below_one_are_refused(arguments, capsys):
    with pytest.raises(SystemExit):
        __main__.main(arguments.split())
    assert "at least 1" in capsys.readouterr().err
