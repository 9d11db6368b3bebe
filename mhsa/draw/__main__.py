"""Every generated picture of assets/, as SVG and PNG: `python -m mhsa.draw`. Chromium makes the PNG."""

import re
import subprocess
from pathlib import Path
from shutil import which

from mhsa.draw.braid import draw_braid, draw_braid_loop
from mhsa.draw.course_map import draw_course_map
from mhsa.draw.data_flow import draw_data_flow
from mhsa.draw.head_count import head_count_svg
from mhsa.draw.lenses import draw_lenses
from mhsa.draw.parameter_count import draw_parameter_count
from mhsa.recording import check_writable

ASSETS = Path(__file__).parents[2] / "assets"
PICTURES = {
    "braid": draw_braid,
    "braid_loop": draw_braid_loop,
    "lenses": draw_lenses,
    "course_map": draw_course_map,
    "data_flow": draw_data_flow,
    "parameter_count_comparison": draw_parameter_count,
    "optimal_head_count": head_count_svg,
}
CHROMIUM = next(filter(None, map(which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)
SCALE = 2  # pixels of the PNG for one of the SVG


def size(svg: str) -> tuple[int, int]:
    """Width and height that the SVG's opening tag states, in pixels (matplotlib states points)."""
    [(width, w_unit)] = re.findall(r'<svg[^>]* width="([\d.]+)(pt)?"', svg)
    [(height, h_unit)] = re.findall(r'<svg[^>]* height="([\d.]+)(pt)?"', svg)
    pixels = {"": 1, "pt": 4 / 3}
    return round(float(width) * pixels[w_unit]), round(float(height) * pixels[h_unit])


def write(name: str, folder: Path = ASSETS) -> None:
    """Write NAME.svg, then NAME.png from it."""
    if CHROMIUM is None:
        raise SystemExit("no Chromium found, which makes the PNG; on Debian: apt-get install chromium")
    svg, png = folder / f"{name}.svg", folder / f"{name}.png"
    check_writable(svg)
    svg.write_text(PICTURES[name](), encoding="utf-8")
    width, height = size(svg.read_text(encoding="utf-8"))
    subprocess.run(
        [
            CHROMIUM,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-background-networking",
            "--hide-scrollbars",
            f"--force-device-scale-factor={SCALE}",
            f"--window-size={width},{height}",
            f"--screenshot={png}",
            svg.as_uri(),
        ],
        check=True,
        capture_output=True,
    )


if __name__ == "__main__":
    for name in PICTURES:
        write(name)
        print(ASSETS / f"{name}.png")
