"""Key press to changed picture in JupyterLab: every explorer, beside `interact` + matplotlib drawing the same heads.

`python tests/browser/latency.py [presses]`: milliseconds, median and 95th percentile, and the ratio within this run.
The clock starts at the browser's key event. It is read when the new picture stands in the page (an image: when it is
decoded), and again in the next frame, when it is painted: headless Chromium paints 60 times a second.
"""

import statistics
import sys
import tempfile
from pathlib import Path

from lab import ROOT, chromium, jupyterlab

sys.path.insert(0, str(ROOT / "tests"))
import explorers  # noqa: E402

EXPLORERS = [
    *explorers.EXPLORERS.values(),
    explorers.Row("real_heads('the dog ' * 63)", ["head"], ""),  # 128 tokens, the most
]  # the last slider of each is moved
INTERACT = """%matplotlib inline
import matplotlib.pyplot as plt
from ipywidgets import SelectionSlider, interact
from mhsa.explore.base import divisors
from mhsa.explore.numbers import toy_layer
from mhsa.toys import SENTENCE

@interact(heads=SelectionSlider(options=divisors(24), value=4, description="heads"))
def draw(heads):
    figure, axes = plt.subplots(1, heads, figsize=(2.2 * heads, 2.4), squeeze=False)
    x, layer, _ = toy_layer("random", 24, heads, seed=0)
    for i, (ax, w) in enumerate(zip(axes[0], layer(x, need_weights=True)[1][0].tolist())):
        ax.imshow(w, vmin=0, vmax=1, cmap="cividis")
        ax.set_xticks(range(4), SENTENCE)
        ax.set_yticks(range(4), SENTENCE)
        ax.set_title(f"head {i}")
        for q in range(4):
            for k in range(4):
                ax.text(k, q, f"{w[q][k]:.2f}", ha="center", va="center", color="w", size=7)
    plt.show()"""
WATCH = """cell => {
  const area = cell.querySelector('.jp-OutputArea');
  window.samples = [];
  let pressed = null;
  document.addEventListener('keydown', event => { pressed = event.timeStamp; }, true);
  new MutationObserver(async changes => {
    const picture = changes.flatMap(change => [...change.addedNodes])
      .map(node => node.matches?.('svg, img') ? node : node.querySelector?.('svg, img')).find(Boolean);
    if (!picture || pressed === null) return;
    const start = pressed;
    pressed = null;
    await picture.decode?.();
    const there = performance.now() - start;
    requestAnimationFrame(() => window.samples.push([there, performance.now() - start]));
  }).observe(area, { childList: true, subtree: true });
}"""


def measure(page, cell: int, label: str, presses: int) -> list[list[float]]:
    """[there, painted] in milliseconds for each of `presses` keys, left and right in turn, after ten to warm up."""
    area = page.locator(".jp-CodeCell").nth(cell)
    area.evaluate(WATCH)
    slider = area.locator(".widget-hslider", has=page.locator(".widget-label", has_text=label)).first
    slider.locator(".noUi-handle").focus()
    for i in range(presses + 10):
        page.keyboard.press(("ArrowRight", "ArrowLeft")[i % 2])
        page.wait_for_function(f"window.samples.length > {i}")
    return page.evaluate("window.samples")[10:]


def main(presses: int) -> None:
    sources = [INTERACT, *(row.source for row in EXPLORERS)]
    sliders = {"interact + matplotlib": "heads", **{row.call: row.sliders[-1] for row in EXPLORERS}}
    results = {}
    with tempfile.TemporaryDirectory() as folder, chromium() as browser, jupyterlab(browser, Path(folder)) as lab:
        page = lab.run_cells("latency", sources)
        for cell, (name, label) in enumerate(sliders.items()):
            results[name] = measure(page, cell, label, presses)
    slow = statistics.median(there for there, _ in results["interact + matplotlib"])
    print(f"{presses} presses, milliseconds                  there             painted")
    print(f"{'':35}   median      p95   median      p95   interact / this one")
    for name, samples in results.items():
        there, painted = zip(*samples)
        figures = [
            figure
            for times in (there, painted)
            for figure in (statistics.median(times), statistics.quantiles(times, n=20)[-1])
        ]
        print(f"{name:35}" + "".join(f"{figure:9.1f}" for figure in figures) + f"{slow / figures[0]:12.1f}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 40)
