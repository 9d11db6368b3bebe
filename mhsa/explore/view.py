"""The one part of the course that runs in the browser."""

from pathlib import Path

import anywidget
from traitlets import Unicode

HERE = Path(__file__).parent


class PanelView(anywidget.AnyWidget):
    """Shows `words` in a line, and speaks what is new in them. Keys of its panel are kept from JupyterLab, and what
    ipywidgets leaves without a name gets one.
    """

    _esm = "\n".join((HERE / name).read_text(encoding="utf-8") for name in ("panel.js", "view.js"))
    _css = HERE / "view.css"
    words = Unicode().tag(sync=True)


class SvgView(PanelView):
    """Shows the picture `svg`, of which `words` are spoken only. What carries a data-key can be pointed at and reached
    by Tab, arrow keys, Home and End: all that share the key light up, and the label is shown in the line. `selected` is
    the key last pointed at by focus or click.

    Enter, space or a click also sends {"press": key} (`on_msg`). `send` {"save": file name, "svg": text} to download a
    picture: the name ends with .svg or .png.
    """

    svg = Unicode().tag(sync=True)
    selected = Unicode().tag(sync=True)
