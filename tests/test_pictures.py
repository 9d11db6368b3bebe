"""The generated pictures of assets/: up to date, described in words, and true."""

import os
import re
from xml.etree import ElementTree

import nbformat
import pytest
import torch
from PIL import Image

from mhsa import MultiHeadAttention, count_flops, count_parameters
from mhsa.draw.__main__ import ASSETS, CHROMIUM, PICTURES, SCALE, size, write
from mhsa.draw.braid import LOOP, draw_braid, draw_braid_loop
from mhsa.draw.course_map import LETTERS, PINS, draw_course_map
from mhsa.draw.data_flow import draw_data_flow
from mhsa.draw.lenses import draw_lenses
from mhsa.draw.parameter_count import LAYERS, draw_parameter_count
from mhsa.lessons import LESSONS

SVG = "{http://www.w3.org/2000/svg}"
each_picture = pytest.mark.parametrize("name", PICTURES)


def words(svg):
    return [node.text for node in ElementTree.fromstring(svg).iter(f"{SVG}text")]


@each_picture
def test_the_stored_picture_is_what_the_code_draws(name):
    assert (ASSETS / f"{name}.svg").read_text(encoding="utf-8") == PICTURES[name](), "run python -m mhsa.draw"


@each_picture
def test_the_png_was_made_from_the_svg(name):
    width, height = size((ASSETS / f"{name}.svg").read_text(encoding="utf-8"))
    with Image.open(ASSETS / f"{name}.png") as png:
        assert png.size == (SCALE * width, SCALE * height)
        assert len(png.convert("L").resize((64, 64)).getcolors(4096)) > 20  # more than an empty page
    assert (ASSETS / f"{name}.png").stat().st_size < 400_000


def test_the_command_writes_both_files(tmp_path):
    if CHROMIUM is None:
        (pytest.fail if os.environ.get("CI") else pytest.skip)("no Chromium found; on Debian: apt-get install chromium")
    tmp_path /= "Übung 1 it's 100% #1"
    with pytest.raises(SystemExit, match="data_flow.svg cannot be written"):
        write("data_flow", tmp_path)
    tmp_path.mkdir()
    write("data_flow", tmp_path)
    assert {file.name for file in tmp_path.iterdir()} == {"data_flow.svg", "data_flow.png"}
    with Image.open(tmp_path / "data_flow.png") as made, Image.open(ASSETS / "data_flow.png") as stored:
        assert made.size == stored.size and made.getpixel((60, 340)) == stored.getpixel((60, 340)) == (0, 114, 178)


@each_picture
def test_it_has_a_title_and_no_theme_variable(name):
    svg = PICTURES[name]()
    assert ElementTree.fromstring(svg).findtext(f"{SVG}title") and "var(" not in svg


def test_the_sizes_of_both_programs_are_read():
    assert size('<?xml?><svg viewBox="0 0 1 1" width="7" height="11" x="3">') == (7, 11)
    assert size('<svg xmlns="w" width="75pt" height="37.5pt">') == (100, 50)


def test_lenses_say_what_is_split_and_that_the_roles_are_examples():
    svg = draw_lenses()
    root = ElementTree.fromstring(svg)
    assert root.get("width") == root.get("height")
    said = " ".join(words(svg))
    assert "every head reads all d_model columns" in said and "nothing in the layer makes a head take one" in said
    assert said.count("e.g.") == 4 and said.count("512 × 128") == 4


def test_the_shapes_and_flops_of_the_data_flow_are_the_layer_s():
    said = words(draw_data_flow())
    x = torch.empty(2, 4, 768, device="meta")
    out, weights = MultiHeadAttention(768, 12).to("meta")(x, need_weights=True)
    flops = count_flops(2, 4, 768, 12)
    for shape, times in ((out.shape, 4), (weights.shape, 2), ((2, 12, 4, 64), 2), ((2, 4, 12, 64), 3)):
        assert said.count(str(tuple(shape))) == times
    for cost in (
        f"3 × {flops.projections // 3:,} FLOPs",
        f"{flops.output:,} FLOPs",
        f"{flops.softmax:,} FLOPs (5 a score)",
        f"copies {4 * 2 * 4 * 768:,} bytes",
        f"{flops.scores:,} FLOPs, copies q and k first",  # two sentences
        f"{flops.mix:,} FLOPs, copies v first",
    ):
        assert said.count(cost) == 1, cost
    assert said.count("no copy: same numbers, new strides") == 4
    assert [word for word in said if "transpose" in word] == [f"{n} = {n}.transpose(1, 2)" for n in "qkvz"]


def test_the_bars_are_as_long_as_the_counts():
    svg = draw_parameter_count()
    totals = [int(found[1].replace(",", "")) for word in words(svg) if (found := re.match(r"([\d,]+) \(", word))]
    expected = [count_parameters(512, **sizes) for sizes in LAYERS.values()]
    assert totals == [count.total for count in expected] and totals[:3] == [4 * 512**2] * 3
    bars = [float(bar.get("width")) for bar in ElementTree.fromstring(svg).iter(f"{SVG}rect")][1:]
    counts = [part for count in expected for part in count[:4]]
    assert [bar / max(bars) for bar in bars] == pytest.approx([count / max(counts) for count in counts], abs=1e-4)


def test_the_words_beside_the_bars_are_the_counts():
    notebook = nbformat.read(ASSETS.parent / "notebooks/04_counting.ipynb", as_version=4)
    [alt] = re.findall(
        r"!\[(.*)\]\(\.\./assets/parameter_count_comparison.svg\)", "\n".join(cell.source for cell in notebook.cells)
    )
    assert {int(number.replace(",", "")) for number in re.findall(r"\d[\d,]*,\d{3}", alt)} == {
        count_parameters(512, **sizes).total for sizes in LAYERS.values()
    }


def test_the_loop_shows_each_number_of_heads_in_turn():
    """One frame a number of heads, each its own still; at rest for those who want less motion."""
    loop = draw_braid_loop()
    frames = [group for group in ElementTree.fromstring(loop).iter(f"{SVG}g") if group.get("class") == "frame"]
    for h, frame in zip(LOOP, frames, strict=True):
        still = words(draw_braid(h))
        assert [node.text for node in frame.iter(f"{SVG}text")] == still and f"head {h - 1}" in still
    assert "prefers-reduced-motion" in loop and loop.count("animation-delay") == len(LOOP)
    assert (ASSETS / "braid_loop.svg").stat().st_size < 300_000


def test_each_lesson_has_a_pin_and_each_letter_of_lesson_0_a_place():
    shown = words(draw_course_map())
    assert {*PINS} == set(range(1, len(LESSONS))) and all(shown.count(str(n)) == len(PINS[n]) for n in PINS)
    assert {*LETTERS} <= {*shown} and all(lesson.title in draw_course_map() for lesson in LESSONS[1:])
