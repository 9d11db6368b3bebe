"""What lesson 9 measures: grids of passes, what is recorded of them, and decoding with and without a cache."""

from pathlib import Path

import nbformat
import pytest
import torch
from helpers import same
from torch.nn.attention import SDPBackend, sdpa_kernel

from mhsa import MultiHeadAttention
from mhsa.bench import Shape, __main__, baselines, decode, fast_attention

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
        assert set(row["seconds"]) == {"explicit", "fused", "product"}
        assert set(row["bytes"]) == set(row["pages"]) == {"explicit", "fused"}
        assert row["kernel"] == "flash_attention_for_cpu" and row["refused"] == {}


@pytest.mark.parametrize(
    "settings, says",
    [
        (
            dict(numbers=["float32", "float64"]),
            "numbers='float64' is none of these: float32, float32 in TF32, bfloat16, float16",
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
    assert out.strip() == fast_attention.report(result) and "cuDNN did not run: " in out
    assert fast_attention.table(result["heads"]).splitlines()[-1].split()[:6] == ["2", "5", "7", "2", "bfloat16", "-"]
    assert fast_attention.kernel_table(result["heads"]).splitlines()[-1].split().count("refused") == 2


def test_what_is_recorded_is_what_the_grids_measure_now():
    for device in filter(fast_attention.recorded, fast_attention.GRIDS):
        result = fast_attention.recorded(device)
        assert all(result[name] for name in ("device", "date", "torch", "python"))
        for name, grid in fast_attention.GRIDS[device].items():
            sizes = {size: values for size, values in grid.items() if size in Shape._fields}
            shapes = baselines.shapes_of(**sizes, backward=[False])
            kinds = grid.get("numbers", ["float32"])
            if "float16" in {row["numbers"] for row in result[name]}:  # of a GPU before Ampere
                kinds = [kind.replace("bfloat16", "float16") for kind in kinds]
            assert [(*(row[size] for size in Shape._fields), row["numbers"]) for row in result[name]] == [
                (*shape, kind) for kind in kinds for shape in shapes
            ]


@pytest.mark.parametrize(
    "capability, hip, kind",
    [((7, 5), None, "float16"), ((8, 0), None, "bfloat16"), ((9, 0), None, "bfloat16"), ((7, 5), "6.4", "bfloat16")],
    ids=["Turing", "Ampere", "Hopper", "AMD"],
)
def test_the_half_type_is_one_that_the_device_s_kernels_take(capability, hip, kind, monkeypatch):
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda: capability)
    monkeypatch.setattr(torch.version, "hip", hip)
    assert baselines.half_type("cuda") == kind and baselines.half_type("cpu") == "bfloat16"


def test_an_older_gpu_is_measured_in_float16(monkeypatch):
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda: (7, 5))
    monkeypatch.setattr(torch.version, "hip", None)
    monkeypatch.setattr(fast_attention, "environment_info", lambda device: {})
    monkeypatch.setattr(fast_attention, "measure_grid", lambda *, device, numbers, **sizes: numbers)
    assert fast_attention.measure_all("cuda") == {
        "tokens": ["float16"],
        "heads": ["float16"],
        "numbers": ["float32", "float32 in TF32", "float16"],
    }
    assert fast_attention.measure_all("cpu")["numbers"] == ["float32", "bfloat16"]


def test_a_pass_that_torch_does_not_fuse_is_left_out_where_its_map_does_not_fit(monkeypatch):
    """As on a GPU whose kernels refuse the dtype: the explicit steps would run out of memory at 131,072 tokens."""
    monkeypatch.setattr(baselines, "LARGEST_MAP", 4 * 2 * 7 * 3**2)
    with sdpa_kernel(SDPBackend.MATH):
        fits, too_large = (
            fast_attention.measure_pass(Shape(2, T, 14, 7, False), repeats=1, kernels=True) for T in (3, 5)
        )
    assert fits["kernel"] == too_large["kernel"] == "attention_math"
    assert set(fits["bytes"]) == {"explicit", "fused"} and too_large["bytes"] == {}
    assert "fused" not in too_large["seconds"] and "product" in too_large["seconds"]
    assert fast_attention.table([too_large]).splitlines()[1].split()[5:] == ["-"] * 4 + ["attention_math"]


def test_the_explicit_steps_are_attention_s():
    steps = fast_attention.explicit_steps(2, 5, 21, 3)
    scores, _ = steps["products"]()
    new = steps["softmax, new"]()
    same(steps["softmax, ready"](), new)
    assert scores.shape == (2, 3, 5, 5) and new.data_ptr() != steps["softmax, ready"]().data_ptr()
    assert steps["softmax, ready"]().data_ptr() == steps["copy"]().data_ptr()
    same(steps["copy"](), scores)
    same(steps["softmax, new"]().sum(-1), torch.ones(2, 3, 5), tol=1e-6)


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


@pytest.mark.parametrize("refused", [{"flash": "too wide"}, {}], ids=["NVIDIA", "AMD"])
def test_the_lesson_s_check_of_a_gpu_run_holds_on_either_make(refused):
    """An AMD GPU's flash kernel takes a head of 512, where NVIDIA's ends at 256."""
    notebook = Path(__file__).parents[1] / "notebooks/09_fast_attention.ipynb"
    [cell] = [cell for cell in nbformat.read(notebook, as_version=4).cells if cell.id == "f26c5aec"]
    seconds = dict.fromkeys({"fused", *baselines.KERNELS} - set(refused), 0.1)
    widest = {"num_heads": 1, "seconds": seconds, "refused": refused}
    largest = {"T": 131_072, "seconds": {"fused": 1.0}}
    exec(cell.source, {"gpu": {"tokens": [largest], "heads": [widest]}, "torch": torch})
    del widest["seconds"]["math"]
    with pytest.raises(AssertionError):
        exec(cell.source, {"gpu": {"tokens": [largest], "heads": [widest]}, "torch": torch})
