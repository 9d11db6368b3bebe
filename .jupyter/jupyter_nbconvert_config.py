"""Slides as the course makes them: each deck one file that loads nothing. course.py points JUPYTER_CONFIG_PATH here."""

import re
from base64 import b64encode
from html import unescape
from mimetypes import guess_type
from pathlib import Path
from xml.etree.ElementTree import tostring

from latex2mathml.converter import convert_to_element

HERE = Path(__file__).parent
FORMULA = r"(<(code|pre)\b.*?</\2>|<[^>]*>)|\$\$([^<]+?)\$\$|\$([^<]+?)\$"  # code and tags are left alone


def formula(found):
    code, _, block, inline = found.groups()
    return code or mathml(unescape(block or inline), "block" if block else "inline")


def mathml(latex, display):
    """As latex2mathml's convert(), which lets an element in \\text{…} through as one."""
    math = convert_to_element(latex, display=display)
    for part in math.iter():
        part.text = unescape(part.text or "")  # it holds symbols as entities
    return tostring(math, encoding="unicode")


def picture(found):
    path = HERE.parent / "notebooks" / found[1]
    return f'src="data:{guess_type(path)[0]};base64,{b64encode(path.read_bytes()).decode()}"'


def for_deck(html):
    """Formulas as MathML, which browsers draw themselves; pictures inside; links to lessons as links to their decks."""
    html = re.sub(FORMULA, formula, html, flags=re.DOTALL)
    html = re.sub(r'src="(\.\./assets/[^"]+)"', picture, html)
    html = re.sub(r'(href="\d\d_\w+)\.ipynb', r"\1.slides.html", html)
    return re.sub(r'href="(?=[a-z_]+\.(md|ipynb))', 'href="../notebooks/', html)  # glossary, cheat sheet


c.SlidesExporter.extra_template_basedirs = [str(HERE / "templates")]  # noqa: F821
c.SlidesExporter.template_name = "deck"  # noqa: F821
c.SlidesExporter.filters = {"for_deck": for_deck}  # noqa: F821
