"""SvgView, the one part of the course that runs in the browser."""

from pathlib import Path

import anywidget
from traitlets import Unicode


class SvgView(anywidget.AnyWidget):
    """Shows `svg`. What carries a data-key can be pointed at and reached by Tab, arrow keys, Home and End: all that
    share the key light up, and the label is shown below. `selected` is the key last pointed at by focus or click.

    Enter, space or a click also sends {"press": key} (`on_msg`). `send` {"save": file name, "svg": text} to download a
    picture: the name ends with .svg or .png.
    """

    _esm = Path(__file__).with_name("view.js")
    _css = Path(__file__).with_name("view.css")
    svg = Unicode().tag(sync=True)
    selected = Unicode().tag(sync=True)
