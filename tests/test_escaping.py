"""What a learner types is text in every picture, page and deck: it never becomes an element or an attribute."""

import contextlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from explorers import EXPLORERS
from hypothesis import example, given
from hypothesis import strategies as st
from nbconvert.exporters import SlidesExporter
from nbformat.v4 import new_code_cell, new_notebook, new_output
from traitlets import HasTraits, TraitError, Unicode
from traitlets.config import PyFileConfigLoader

from mhsa import explore
from mhsa.draw.cost import draw_cost
from mhsa.draw.heads import draw_heads
from mhsa.draw.masks import draw_masks
from mhsa.draw.one_vs_many import Side, draw_one_vs_many
from mhsa.draw.real_heads import PATTERNS, draw_real_heads, thumbnails
from mhsa.draw.shapes import draw_shapes
from mhsa.draw.svg import describe, el, keyed, message, picture, standalone, text
from mhsa.exercises import board, lesson01, progress
from mhsa.exercises.form import Form
from mhsa.exercises.quiz import Number, Quiz, to_html
from mhsa.explore.base import Explorer
from mhsa.explore.shapes import walk

JUPYTER = Path(__file__).parents[1] / ".jupyter"
NASTY = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "' onload='alert(1)",
    "&",
    "&lt;&#60;&amp",
    "]]>",
    "<!--",
    "<![CDATA[",
    "</svg><svg onload=alert(1)>",
    "</title></desc>",
    "javascript:alert(1)",
    "<a href=//x>",
    'var(--x, "red")',
    "$\\text{<b onclick=alert(1)>}$",
    "\0\x07\x1b[31m",
    "\r\n\t",
    "\ud800",
    "\ud83d\ude00",
    "👩‍👩‍👧",
    "\u202eabc",
    "\u2028\ufeff\uffff",
    "a" * 10_000,
    "",
    " ",
    "%s{0}",
    "`*<b>*`",
]
strings = st.sampled_from(NASTY) | st.text(st.characters(exclude_categories=()), max_size=20)
eight = st.lists(strings, min_size=8, max_size=8)


# Pictures: as with harmless words of the same lengths, but for the words


def heads(w):
    return draw_heads(w[:3], [[[0.2, 0.3, 0.5]] * 3] * 2, allowed=[[True, True, False]] * 3)


def masks(w):
    return draw_masks(w[:2], w[2:5], [["", "C", "P"], ["H", "C", "PH"]], [[0.5] * 3] * 2, [[0.2] * 3] * 2, w[5])


def real_heads(w, tokens=6):
    weights, score = np.full((2, 3, tokens, tokens), 1 / tokens), np.linspace(0, 1, 6).reshape(2, 3)
    scores = {name: score for name in PATTERNS}
    return draw_real_heads(
        (w[:6] * 5)[:tokens], weights, thumbnails(weights), scores, [["self", "", "next"]] * 2, 1, 2, w[6], query=3
    )


def one_vs_many(w):
    side = Side(
        [[0.125] * 8] * 2, {w[0]: w[1], "b": w[2]}, {w[0]: 1, "b": 0}, {3: 0.5, 4: 0.7}, [(0, 0), (1, 0), (0, 1)]
    )
    return draw_one_vs_many(w, w[5], {w[0]: 3, "b": 4}, "b", side, side)


def shapes(w):
    stages = [
        stage._replace(
            cells=[cell._replace(word=w[i % 8], label=w[-i % 8], number=w[i % 3]) for i, cell in enumerate(stage.cells)]
        )
        for stage in walk(1, 2, 4, 2, False)
    ]
    return draw_shapes(stages, 2, w[:2], w[2], w[3:5])


def cost(w):
    return draw_cost(
        [16, 32], dict.fromkeys(("weights", "qkv", "scores", "kv_cache"), [5, 7]), 16, 20, {w[0]: 7}, w[1], w[2]
    )


def parts(w):
    shape = el("rect", class_=w[5])
    return picture(70, 30, w[0], w[1], text(w[2], 1, 2), keyed(w[3], w[4], shape), el("g", w[6], "|", w[7]))


DRAW = [heads, masks, real_heads, lambda w: real_heads(w, tokens=25), one_vs_many, shapes, cost, parts]


def flat(words):
    """As an XML parser hands over a text or an attribute."""
    return re.sub("\r\n|[\r\n\t]", " ", words)


def shown(word):
    """What XML cannot hold is shown as a replacement character."""
    return "".join(
        c if c in "\t\n\r" or " " <= c < "\ud800" or "\udfff" < c < "\ufffe" or c > "\uffff" else "\ufffd" for c in word
    )


def tree(svg):
    return [
        (node.tag, *map(flat, node.attrib), *map(flat, node.attrib.values()), flat(node.text or ""))
        for node in ElementTree.fromstring(svg).iter()
    ]


@pytest.mark.parametrize("draw", DRAW, ids=lambda draw: draw.__name__)
@given(words=eight)
@example(words=NASTY[:8])
@example(words=NASTY[8:16])
@example(words=NASTY[16:24])
def test_a_word_in_a_picture_is_that_word_and_nothing_else(draw, words):
    signs = {word: chr(0xE000 + i) for i, word in enumerate(dict.fromkeys(words))}
    harmless = [signs[word] * len(word) for word in words]
    by_sign = {sign: shown(word) for word, sign in signs.items()}
    expected = [
        tuple(flat(re.sub(r"([\ue000-\ue007])\1*", lambda run: by_sign[run[1]][: len(run[0])], part)) for part in node)
        for node in tree(draw(harmless))
    ]
    assert tree(draw(words)) == expected
    assert [(tag, words) for tag, *_, words in tree(standalone(draw(words)))] == [
        (tag, words) for tag, *_, words in expected
    ]


@given(strings)
@example("x" * 10_000)
def test_a_message_says_what_it_was_given(sentence):
    said = shown(re.sub("[\x0b\x0c]", " ", sentence))  # to wrap() these are spaces
    root = ElementTree.fromstring(message(sentence))
    lines = [node.text or "" for node in root.iter("{http://www.w3.org/2000/svg}text")]
    assert {node.tag.split("}")[1] for node in root.iter()} == {"svg", "title", "desc", "rect", "text"}
    assert "".join("".join(lines).split()) == "".join(said.split())


class Heads(HasTraits):
    token = Unicode()


@given(strings)
def test_an_explorer_carries_words_as_words(token):
    explorer = Explorer(Heads(token=token), lambda state: draw_heads([state.token, "b"], [[[0.5, 0.5]] * 2]), [])
    bundle = explorer._repr_mimebundle_()
    assert flat(bundle["text/plain"]).startswith(f"Attention maps of 1 head. {flat(shown(token))} b: rows are queries")
    assert explorer.view.svg == bundle["image/svg+xml"] and set(bundle) == {
        "text/plain",
        "image/svg+xml",
        "application/vnd.jupyter.widget-view+json",
    }


@pytest.mark.parametrize("name", EXPLORERS)
def test_what_is_typed_into_an_explorer_makes_no_element(name):
    explorer = EXPLORERS[name].make()
    plain = {node.tag for node in ElementTree.fromstring(explorer.view.svg).iter()}
    for trait in explorer.state.traits():
        for word in NASTY:
            with contextlib.suppress(TraitError):  # a number, or one of a few names
                setattr(explorer.state, trait, word)
            nodes = [*ElementTree.fromstring(explorer.view.svg).iter()]
            assert {node.tag for node in nodes} <= plain
            attributes = [attribute for node in nodes for attribute in node.attrib.items()]
            assert not [name for name, _ in attributes if name.startswith("on")]
            assert all(value.startswith("data:image/png;") for name, value in attributes if "href" in name)


@pytest.mark.parametrize("query", NASTY)
def test_a_query_that_is_no_word_of_the_story_is_told_in_few_words(query):
    said = describe(explore.one_vs_many(query=query).view.svg)
    assert said.startswith("No picture. query=") and len(said) < 140
    assert said.endswith("is not there; these are: Mia, lost, her, keys, and, Tom, found, them")


# HTML: quiz, board, forms


class Tags(HTMLParser):
    """Every tag with its attributes, and the text between them."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.text = [], ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, *attrs))

    def handle_data(self, data):
        self.text += data


@given(strings)
@example("`<b>` *<i>*")
def test_html_of_a_quiz_holds_code_and_emphasis_alone(words):
    page = Tags(to_html(words))
    assert set(page.tags) <= {("code",), ("em",)} and page.text.replace("*", "").replace("`", "") == re.sub(
        "[*`]", "", words
    )


@pytest.mark.parametrize("typed", [*NASTY, "1e999", "nan", "0x7", "1" + 300 * "0", "٣"])
def test_what_is_typed_for_a_number_never_comes_back_as_html(typed, monkeypatch, tmp_path):
    monkeypatch.setenv("MHSA_PROGRESS", str(tmp_path / "<b>.json"))
    asked = Quiz("lesson01", [Number("How many?", 7, "Yes.", {}, "No.", id="count")]).questions[0]
    asked.controls[0].value = typed
    page = Tags(asked.feedback.value)
    assert set(page.tags) <= {("div", ("role", "alert"))} and "<" not in page.text


def test_a_form_shows_its_texts_as_texts():
    form = Form(NASTY, ["0", "1"], lambda given: (NASTY, NASTY[0]))
    pages = [Tags(widget.value) for widget in [*(line.children[0] for line in form.children[:-2]), *form.notes]]
    assert {tag for page in pages for tag in page.tags} <= {("code",), ("em",)}
    assert [page.text for page in pages[:6]] == NASTY[:6] and form.view.words == NASTY[0]


def test_a_progress_file_written_by_hand_reaches_no_page(monkeypatch, tmp_path, capsys):
    file = tmp_path / "<img src=x onerror=alert(1)>.json"
    monkeypatch.setenv("MHSA_PROGRESS", str(file))
    fresh = board().table.value
    names = [word for word in NASTY if word.isprintable()]
    file.write_text(
        json.dumps(
            {
                "exercises": {"lesson01": names, **{name: names for name in names}},
                "quizzes": {name: [1, 7] for name in names},
            }
        )
    )
    assert progress.solved("lesson01") == names and board().table.value == fresh
    file.write_text("<script>alert(1)</script>")  # damaged: the file's name is told
    page = Tags(board().trouble.value)
    assert page.tags == [("div", ("role", "alert"))] and file.name in page.text
    assert capsys.readouterr().out == ""


# What a check prints is text; what lies in a notebook is text in a deck


def test_a_check_shows_nothing_but_text(capsys, monkeypatch):
    shown = []
    monkeypatch.setattr("IPython.display.display", shown.append)

    def answer(*args):
        print(NASTY[0])
        raise ValueError(NASTY[1])

    lesson01.DOT_SCORES.check(answer)
    out = capsys.readouterr().out
    assert f"  {NASTY[0]}\n" in out and f"ValueError: {NASTY[1]}" in out and shown == []


def test_a_deck_shows_what_a_notebook_holds_as_text():
    svg = heads([NASTY[0], "$5", "and $6 <b>"])
    outputs = [
        new_output("stream", text="\n".join(NASTY[:14])),
        new_output("execute_result", {"text/plain": NASTY[1]}, execution_count=1),
        new_output("display_data", {"image/svg+xml": svg, "text/plain": describe(svg)}),
        new_output("display_data", {"image/png": "iVBO", "text/plain": NASTY[1] + " costs $5 and $6"}),
        new_output("error", ename="E", evalue="", traceback=[NASTY[0], "\x1b[31m" + NASTY[1]]),
    ]
    cell = new_code_cell(f"x = {NASTY[0]!r}", outputs=outputs, metadata={"slideshow": {"slide_type": "slide"}})
    config = PyFileConfigLoader("jupyter_nbconvert_config.py", path=str(JUPYTER)).load_config()
    html, _ = SlidesExporter(config=config).from_notebook_node(new_notebook(cells=[cell]))
    page = Tags(html[html.index("<body") : html.rindex("<nav")])
    assert not {tag for tag, *_ in page.tags} & {"script", "b", "a", "svg", "math"}
    assert not [name for _, *attrs in page.tags for name, _ in attrs if name.startswith("on")]
    pictures = [dict(attrs) for tag, *attrs in page.tags if tag == "img"]
    assert [picture["alt"] for picture in pictures] == [describe(svg), NASTY[1] + " costs $5 and $6"]
    assert all(word in page.text for word in NASTY[:14])


def test_a_formula_in_a_deck_is_mathematics_alone():
    config = PyFileConfigLoader("jupyter_nbconvert_config.py", path=str(JUPYTER)).load_config()
    page = Tags(
        config.SlidesExporter.filters["for_deck"](
            r'<p>$\text{&lt;script&gt;alert(1)&lt;/script&gt;}$ $a &lt; b$ <i title="$5 and $6">x</i></p>'
        )
    )
    assert [tag for tag, *_ in page.tags] == ["p", "math", "mrow", "mtext", "math", "mrow", "mi", "mo", "mi", "i"]
    assert page.text == "<script>alert(1)</script> a<b x" and page.tags[-1] == ("i", ("title", "$5 and $6"))
