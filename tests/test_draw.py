"""SVG text and colours."""

from xml.etree import ElementTree

import pytest

from mhsa.draw.colors import HEADS, weight_opacity
from mhsa.draw.heads import draw_heads
from mhsa.draw.svg import Svg, describe, el, keyed, message, picture, text

SVG = "{http://www.w3.org/2000/svg}"
NASTY = '<script>alert("1 & 2")</script>'


def test_everything_from_outside_is_escaped():
    svg = picture(70, 30, NASTY, NASTY, text(NASTY, 1, 2), keyed(NASTY, NASTY, el("rect", class_=NASTY)))
    root = ElementTree.fromstring(svg)  # well-formed, and nothing became an element
    assert {node.tag.removeprefix(SVG) for node in root.iter()} == {"svg", "title", "desc", "rect", "text", "g"}
    assert root.find(f"{SVG}text").text == NASTY and root.find(f"{SVG}g").get("data-key") == NASTY
    assert describe(svg) == f"{NASTY}. {NASTY}"


@pytest.mark.parametrize("character", ["\0", "\x07", "\x1b", "\x0b", "\ud800", "\uffff"], ids=ascii)
def test_what_xml_cannot_hold_is_replaced(character):
    svg = picture(7, 7, f"a{character}b", "\tz", el("g", class_=f"c{character}"))
    root = ElementTree.fromstring(svg)
    assert describe(svg) == "a\N{REPLACEMENT CHARACTER}b. \tz"
    assert root.find(f"{SVG}g").get("class") == "c\N{REPLACEMENT CHARACTER}"


def test_a_weight_that_is_no_number_is_told():
    with pytest.raises(ValueError, match="a weight is NaN, which has no colour; it comes from a row"):
        draw_heads(["a", "b"], [[[0.3, 0.7], [float("nan"), 0.5]]])


def test_numbers_and_names_of_attributes():
    assert el("a", font_size=1 / 3, x=2.0, class_="b", y=None) == '<a font-size="0.33" x="2" class="b"></a>'
    assert el("a", "<", Svg("<b></b>"), 7) == "<a>&lt;<b></b>7</a>"


def test_a_message_is_a_picture_that_says_it():
    sentence = "num_heads=7 does not divide d_model=8; these do: 1, 2, 4, 8. " * 3
    lines = ElementTree.fromstring(message(sentence)).iter(f"{SVG}text")
    assert " ".join(line.text for line in lines) == sentence.strip()


def cells(svg):
    groups = ElementTree.fromstring(svg).iter(f"{SVG}g")
    return {group.get("aria-label"): group for group in groups if group.get("data-key")}


def test_heads_say_who_reads_whom_and_how_much():
    weights = [[[0.113, 0.887], [0.71, 0.29]], [[0.5, 0.5], [0.03, 0.97]], [[1.0, 0.0], [0.4, 0.6]]]
    parts = cells(draw_heads(["a", "b"], weights, allowed=[[True, False], [True, True]]))
    assert len(parts) == 12
    cell = parts["head 1: b (query) reads a (key), weight 0.03"]
    assert cell.get("data-key") == "1,0 1:1,0" and cell.find(f"{SVG}text").text == "0.03"
    shade = cell.findall(f"{SVG}rect")[1]
    assert shade.get("fill") == HEADS[1] and float(shade.get("fill-opacity")) == pytest.approx(
        weight_opacity(0.03, HEADS[1]), abs=0.006
    )
    assert parts["head 0: a may not read b"].find(f"{SVG}line") is not None
    assert "head 0: a (query) reads b (key), weight 0.89" not in parts


def words(svg):
    return [text.text for text in ElementTree.fromstring(svg).iter(f"{SVG}text")]


def test_a_head_is_named_with_its_columns():
    weights = [[[0.2, 0.3, 0.5]] * 3] * 5
    tokens = ["abcdefg", "b", "c"]
    assert {"head 0", "columns 0–6", "head 4", "columns 28–34"} <= {*words(draw_heads(tokens, weights, d_k=7))}
    assert "column 3" in words(draw_heads(tokens, weights, d_k=1))
    assert not [word for word in words(draw_heads(tokens, weights)) if word.startswith("columns")]


def test_other_queries_than_keys_are_drawn_whole():
    """A decoder's step has one query; cross-attention reads another sentence."""
    rows = [[0.11, 0.12, 0.13, 0.64], [0.21, 0.22, 0.23, 0.34], [0.31, 0.32, 0.33, 0.04]]
    svg = draw_heads(["a", "b", "c"], [rows] * 2, ["w", "x", "y", "z"], allowed=[[True] * 4, [True] * 4, [False] * 4])
    parts = cells(svg)
    assert len(parts) == 2 * 12 and "c reads most: head 0 y 0.33" in describe(svg)
    for q, k, token, key in ((0, 3, "a", "z"), (1, 2, "b", "y")):
        cell = parts[f"head 1: {token} (query) reads {key} (key), weight {rows[q][k]}"]
        assert cell.get("data-key") == f"{q},{k} 1:{q},{k}" and cell.find(f"{SVG}text").text == f"{rows[q][k]}"
    assert "head 1: c may not read z" in parts
    assert [word for word in words(svg) if word in ("a", "b", "c", "w", "x", "y", "z")] == list("wxyzabc" * 2)


@pytest.mark.parametrize(
    "tokens, weights, keys, said",
    [
        ("abc", [[[0.2, 0.3, 0.5]]], None, r"weights\[0\] is 1 × 3, but there are 3 queries and 3 keys"),
        ("abc", [[[0.1, 0.2, 0.3, 0.4]] * 3], None, r"weights\[0\] is 3 × 4, but there are 3 queries and 3 keys"),
        ("ab", [[[0.5, 0.5]] * 2, [[0.5, 0.5], [1.0]]], None, r"weights\[1\] is 2 × 1 or 2, but"),
        ("a", [[[0.5, 0.5]]], "xyz", "is 1 × 2, but there are 1 queries and 3 keys"),
    ],
)
def test_names_and_weights_that_differ_in_number_are_refused(tokens, weights, keys, said):
    with pytest.raises(ValueError, match=said):
        draw_heads([*tokens], weights, None if keys is None else [*keys])


def test_a_mask_of_another_shape_is_refused():
    with pytest.raises(ValueError, match="allowed is 1 × 2, but there are 2 queries and 2 keys"):
        draw_heads(["a", "b"], [[[0.5, 0.5]] * 2], allowed=[[True, False]])


@pytest.mark.parametrize("h", [1, 7, 16, 17, 64])
def test_every_head_is_drawn_inside_the_picture(h):
    svg = draw_heads(["Mia", "lost", "her", "keys"], [[[0.25] * 4] * 4] * h)
    root = ElementTree.fromstring(svg)
    moves = [group.get("transform") for group in root.iter(f"{SVG}g") if group.get("transform")]
    places = [tuple(map(float, move.removeprefix("translate(")[:-1].split(","))) for move in moves]
    assert len(set(places)) == h and len(cells(svg)) == h * 16
    assert all(0 <= x < float(root.get("width")) and 0 <= y < float(root.get("height")) for x, y in places)
    assert float(root.get("width")) <= 940


def test_a_single_run_has_no_error_bar():
    from mhsa.draw.plots import panels_with_error_bars, with_error_bars

    series = {"runs": {0: (0.3, 0.1), 3: (0.5, 0.2)}, "one run": {1: (0.7, None), 2: (0.9, None)}}
    for figure in (
        with_error_bars(series, xlabel="x", ylabel="y"),
        panels_with_error_bars({"a": series}, xlabel="x", ylabels=["y"]),
    ):
        runs, one = figure.axes[0].containers
        assert [list(runs[0].get_xdata()), list(one[0].get_xdata())] == [[0, 3], [1, 2]]
        assert runs.has_yerr and not one.has_yerr
        low, high = runs[2][0].get_segments()[1][:, 1]
        assert (low, high) == pytest.approx((0.3, 0.7))


def test_a_scatter_has_a_point_for_each_pair_and_names_some():
    from mhsa.draw.plots import scatter

    groups = {"a": [(2, 3), (5, 7)], "b": [(11, 13)]}
    axes = scatter(groups, {"1.2": (5, 7)}, xlabel="x", ylabel="y").axes[0]
    assert [[*zip(*line.get_data())] for line in axes.lines] == [*groups.values()]
    assert axes.get_yscale() == "log" and [text.get_text() for text in axes.texts] == ["1.2"]
    assert {line.get_linestyle() for line in axes.lines} == {"None"}


def test_points_stand_where_they_were_measured_and_lines_beside_them():
    from mhsa.draw.plots import points_and_lines

    lines = {"T": [1, 4], "T²": [1, 16]}
    figure = points_and_lines([2, 8], {"a": [3, 5], "b": [7, 11]}, lines, xlabel="T", ylabel="MB")
    a, b, first, second = figure.axes[0].lines
    assert [list(line.get_ydata()) for line in (a, b, first, second)] == [[3, 5], [7, 11], [1, 4], [1, 16]]
    assert a.get_linestyle() == "None" != first.get_linestyle() != second.get_linestyle()
    assert a.get_marker() != b.get_marker() and [text.get_text() for text in figure.axes[0].get_legend().texts] == [
        "a",
        "b",
        "T",
        "T²",
    ]
