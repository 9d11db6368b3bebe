"""Weights as an embedded picture (PNG): thousands of cells in one element, which a page draws at once."""

from base64 import b64encode
from io import BytesIO

import numpy as np
from PIL import Image

from mhsa.draw.colors import HEADS, weight_opacity
from mhsa.draw.svg import Svg, el

FINE = 60  # pixels of a thumbnail, each way
CLEAR = 101  # the level after those of the weights 0.00 to 1.00
PALETTE = bytes.fromhex(HEADS[0][1:]) * (CLEAR + 1)
OPACITIES = (
    bytes(round(255 * weight_opacity(level / 100)) for level in range(CLEAR)) + b"\0"
)  # the ground shows through


def weight_image(weights: np.ndarray, x: float, y: float, width: float, height: float, **attributes: object) -> Svg:
    """weights (rows, columns) from 0 to 1, rounded to hundredths; NaN stays clear."""
    levels = np.rint(100 * np.nan_to_num(weights, nan=CLEAR / 100)).astype(np.uint8)
    image = Image.frombytes("P", levels.shape[::-1], levels.tobytes())
    image.putpalette(PALETTE)
    png = BytesIO()
    image.save(png, "PNG", transparency=OPACITIES)
    return el(
        "image",
        href="data:image/png;base64," + b64encode(png.getvalue()).decode(),
        x=x,
        y=y,
        width=width,
        height=height,
        preserveAspectRatio="none",
        **attributes,
    )


def contact_sheet(maps: np.ndarray, right: int, below: int) -> np.ndarray:
    """Maps (L, h, T, T) as one array of FINE × FINE pixels a map, with NaN to its right and below.

    Where several cells share a pixel, it shows the largest weight. Rounded to twentieths: the file is half as large.
    """
    L, h, T, _ = maps.shape
    first = np.arange(FINE) * T // FINE  # the first cell of each pixel
    small = np.maximum.reduceat(np.maximum.reduceat(maps, first, axis=2), first, axis=3)
    sheet = np.pad(np.round(20 * small) / 20, ((0, 0), (0, 0), (0, below), (0, right)), constant_values=np.nan)
    return sheet.transpose(0, 2, 1, 3).reshape(L * (FINE + below), h * (FINE + right))
