"""SVG as text. One text serves the live view, the stored still, the README and slides.

Colours name JupyterLab's theme variables with a fallback: live in JupyterLab they follow the theme; a still is shown
as an image, which has no variables, and the fallbacks give dark text on a light ground.
"""

import re
from html import escape, unescape
from textwrap import wrap

from IPython.display import display

INK = "var(--jp-content-font-color1, #1b1b1b)"
MUTED = "var(--jp-content-font-color2, #555555)"
LINE = "var(--jp-border-color1, #b0b0b0)"
PAPER = "var(--jp-layout-color0, #ffffff)"
FONT = "var(--jp-ui-font-family, system-ui, sans-serif)"
NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # control characters above all


class Svg(str):
    """Text that is SVG already; any other text is escaped."""


def el(tag: str, *children: object, **attributes: object) -> Svg:
    """An element: el("text", "a < b", x=1, font_size=12, class_="big"); None leaves an attribute out."""
    opening = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{_value(value)}"'
        for name, value in attributes.items()
        if value is not None
    )
    inner = "".join(child if isinstance(child, Svg) else _escaped(child) for child in children)
    return Svg(f"<{tag}{opening}>{inner}</{tag}>")


def text(
    content: object,
    x: float,
    y: float,
    *,
    size: float = 13,
    fill: str = INK,
    anchor: str = "start",
    **attributes: object,
) -> Svg:
    """A line of text whose baseline starts (or, by anchor, has its middle or end) at x, y."""
    return el("text", content, x=x, y=y, font_size=size, fill=fill, text_anchor=anchor, **attributes)


def keyed(key: str, label: str, *children: Svg) -> Svg:
    """Something to point at: all that share a key light up together; the label is read out and shown below.

    A part of several things has several keys, with a space between them.
    """
    return el("g", *children, data_key=key, role="img", aria_label=label)


def picture(width: float, height: float, title: str, desc: str, *children: Svg) -> str:
    """The whole picture; title and desc say in words what it shows."""
    ground = el("rect", width=width, height=height, fill=PAPER)
    return el(
        "svg",
        el("title", title),
        el("desc", desc),
        ground,
        *children,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {_value(width)} {_value(height)}",
        width=width,
        height=height,
        role="img",
        aria_label=f"{title}. {desc}",
        font_family=FONT,
    )


def message(sentence: str) -> str:
    """A sentence in place of a picture: what is wrong, and what would do."""
    lines = wrap(sentence, 90) or [""]
    return picture(
        760,
        30 + 20 * len(lines),
        "No picture",
        sentence,
        *(text(line, 12, 28 + 20 * i) for i, line in enumerate(lines)),
    )


def standalone(svg: str) -> str:
    """The picture for programs that know no theme variables: every colour and font is the variable's fallback."""
    return re.sub(r'"var\(--[\w-]+, ([^")]*)\)"', r'"\1"', svg)


def describe(svg: str) -> str:
    """The words of a picture: its title and desc, on one line."""
    label = re.search(r'aria-label="(.*?)"', svg, re.DOTALL)  # the first is that of the whole; to parse takes longer
    return unescape(label[1]) if label else ""


def show_svg(svg: str) -> None:
    """Display a picture as a still, with its words for those who see no picture."""
    display({"image/svg+xml": svg, "text/plain": describe(svg)}, raw=True)


def _value(value: object) -> str:
    if isinstance(value, int):
        return str(value)
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else _escaped(value)


def _escaped(content: object) -> str:
    return escape(NOT_IN_XML.sub("\N{REPLACEMENT CHARACTER}", str(content)))
