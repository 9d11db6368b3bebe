"""`python -m mhsa.bench`: what is printed, written and refused."""

import json

import pytest
import torch

from mhsa import recording
from mhsa.bench import Shape, __main__, baselines, fast_attention, measure, speed


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


def test_without_a_gpu_cuda_is_refused_plainly(monkeypatch, capsys):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(SystemExit, match="there is no GPU to measure .* Nothing was run"):
        __main__.main(["--device", "cuda"])
    assert capsys.readouterr().out == ""


def test_a_gpu_leaves_no_shape_out_unless_told():
    assert __main__._parse([]).gflop == 30
    assert __main__._parse(["--device", "cuda"]).gflop == float("inf")
    assert __main__._parse(["--device", "cuda", "--gflop", "7"]).gflop == 7


@pytest.mark.parametrize("arguments", ["--T 0", "--repeats 0", "--num-heads -1"])
def test_sizes_below_one_are_refused(arguments, capsys):
    with pytest.raises(SystemExit):
        __main__.main(arguments.split())
    assert "at least 1" in capsys.readouterr().err


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
