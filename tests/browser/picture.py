"""The README's picture, taken from the running lesson 02: `python tests/browser/picture.py`."""

import tempfile
from pathlib import Path

from lab import ROOT, chromium, jupyterlab


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, chromium() as browser, jupyterlab(browser, Path(folder)) as lab:
        page = lab.open("02_many_heads.ipynb", device_scale_factor=2)
        lab.run_all(page)
        explorer = page.locator(".mhsa-panel", has=page.locator("[aria-label^='head 1: lost (query)']")).first
        explorer.locator("[aria-label^='head 1: lost (query) reads Mia']").click()
        page.wait_for_timeout(500)
        explorer.screenshot(path=ROOT / "assets/heads_explorer.png")


if __name__ == "__main__":
    main()
