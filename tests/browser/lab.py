"""A real JupyterLab in a real Chromium, on a copy of the lessons. Used by the tests, latency.py and picture.py."""

import json
import os
import re
import secrets
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import nbformat
from nbformat.sign import NotebookNotary
from nbformat.v4 import new_code_cell, new_notebook

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
import course  # noqa: E402
from mhsa.draw.__main__ import CHROMIUM  # noqa: E402

FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
SETTINGS = "JUPYTERLAB_SETTINGS_DIR"
KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}
UPSTREAM = "Could not restore the debugger state"  # JupyterLab says it of a kernel that ends meanwhile
HERE = ".jp-NotebookPanel:not(.lm-mod-hidden)"  # the notebook in front


class Lab:
    """A running JupyterLab: `open` gives a page with one notebook in it, `run_all` runs it from the menu; `run_cells`
    does both with a new notebook of these cells.

    `start` and `finish` are the halves of `run_all`: between them something else can be done. `show` puts another
    notebook of the same page in front, `close` ends the one in front and its kernel.
    """

    def __init__(self, url: str, token: str, settings: Path, notebooks: Path, browser):
        self.url, self.token, self.settings, self.notebooks, self.browser = url, token, settings, notebooks, browser

    def open(self, notebook: str, theme: str = "Light", **options):
        """In a context of its own, with these options."""
        save(self.settings / "@jupyterlab/apputils-extension/themes.jupyterlab-settings", theme=f"JupyterLab {theme}")
        page = self.browser.new_context(**{"viewport": {"width": 1400, "height": 1000}} | options).new_page()
        page.set_default_timeout(30_000)
        page.problems = []  # errors in the console, requests to the outside
        page.on(
            "console",
            lambda message: (
                message.type == "error" and not message.text.startswith(UPSTREAM) and page.problems.append(message.text)
            ),
        )
        page.on("pageerror", lambda error: page.problems.append(str(error)))
        ours = (self.url, "data:", "blob:")
        page.on("request", lambda request: request.url.startswith(ours) or page.problems.append(request.url))
        page.goto(f"{self.url}/lab/workspaces/{Path(notebook).stem}/tree/notebooks/{notebook}?token={self.token}&reset")
        page.locator(".jp-Notebook .jp-Cell").first.wait_for()
        self.wait_idle(page)
        return page

    def run_cells(self, name: str, sources: list[str], theme: str = "Light"):
        cells = [new_code_cell(source) for source in sources]
        nbformat.write(new_notebook(cells=cells, metadata={"kernelspec": KERNEL}), self.notebooks / f"{name}.ipynb")
        page = self.open(f"{name}.ipynb", theme)
        self.run_all(page)
        return page

    def show(self, page, notebook: str) -> None:
        """In its tab if it has one, else in a new tab."""
        tab = page.locator(".lm-DockPanel-tabBar .lm-TabBar-tab", has_text=notebook)
        if tab.count():
            tab.click()
        else:
            choose(page, "File", "Open from Path…")
            page.locator(".jp-Dialog input").fill(f"notebooks/{notebook}")
            page.keyboard.press("Enter")
            tab.wait_for()
        page.locator(f"{HERE} .jp-Notebook .jp-Cell").first.wait_for()
        self.wait_idle(page)

    def run_all(self, page) -> None:
        """Run > Run All Cells, as a reader does, and wait for the last cell."""
        self.start(page)
        self.finish(page)

    def start(self, page) -> None:
        choose(page, "Edit", "Clear Outputs of All Cells")
        choose(page, "Run", "Run All Cells")

    def finish(self, page) -> None:
        """Wait for the last cell, or for the first that fails: those after it never run."""
        prompts = f"[...document.querySelectorAll('{HERE} .jp-CodeCell .jp-InputPrompt')]"
        failed = f"document.querySelector('{HERE} .jp-OutputArea [data-mime-type*=stderr] .ansi-red-fg')"  # a traceback
        page.wait_for_function(
            f"() => {failed} || {prompts}.every(prompt => /\\d/.test(prompt.textContent))", timeout=240_000, polling=200
        )
        self.wait_idle(page)

    def wait_idle(self, page) -> None:
        page.locator("#jp-main-statusbar").get_by_text("| Idle").wait_for(timeout=60_000)

    def change_theme(self, page, theme: str) -> None:
        ground = "getComputedStyle(document.body).getPropertyValue('--jp-layout-color0')"
        before = page.evaluate(ground)
        choose(page, "Settings", "Theme", f"JupyterLab {theme}")
        page.wait_for_function(f"before => !['', before].includes({ground})", arg=before)

    def close(self, page) -> None:
        choose(page, "File", "Close and Shut Down Notebook…")
        page.locator(".jp-Dialog button", has_text="Ok").press("Enter")
        page.locator(".jp-Dialog").wait_for(state="detached")


def choose(page, menu: str, *entries: str) -> None:
    """An entry of a menu, or of a menu in a menu."""
    page.get_by_role("menuitem", name=menu, exact=True).click()
    for entry in entries:
        page.locator(".lm-Menu-itemLabel", has_text=re.compile(f"^{re.escape(entry)}$")).click()


def save(path: Path, **settings) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(settings))


@contextmanager
def chromium() -> Iterator:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@contextmanager
def jupyterlab(browser, folder: Path, **variables: str) -> Iterator[Lab]:
    """Serve a copy of the lessons from the folder, with settings and environment variables of its own."""
    shutil.copytree(ROOT / "notebooks", folder / "root/notebooks")
    if (ROOT / "assets").exists():
        shutil.copytree(ROOT / "assets", folder / "root/assets")
    homes = {
        SETTINGS: "settings",
        "JUPYTERLAB_WORKSPACES_DIR": "workspaces",
        "JUPYTER_DATA_DIR": "data",
        "JUPYTER_RUNTIME_DIR": "runtime",
        "JUPYTER_CONFIG_DIR": "config",
    }
    homes = {name: str(folder / home) for name, home in homes.items()} | {"JUPYTER_CONFIG_PATH": str(course.JUPYTER)}
    homes |= {
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(course.JUPYTER / "lean")]),
        "MHSA_PROGRESS": str(folder / "progress.json"),
    }  # not the user's own
    (folder / "data").mkdir()
    notary = NotebookNotary(data_dir=str(folder / "data"))
    for path in (folder / "root/notebooks").glob("*.ipynb"):  # as course.py does: then the stored pictures show
        notary.sign(nbformat.read(path, as_version=4))
    settings = Path(homes[SETTINGS])
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    url, token = f"http://127.0.0.1:{port}", secrets.token_hex(8)
    command = [
        sys.executable,
        "-m",
        "jupyterlab",
        "--no-browser",
        f"--port={port}",
        f"--IdentityProvider.token={token}",
        f"--ServerApp.root_dir={folder / 'root'}",
        "--KernelManager.shutdown_wait_time=0.2",
    ]  # a kernel that does not go by itself is ended soon
    with open(folder / "log.txt", "w") as log:
        server = subprocess.Popen(command, env=os.environ | homes | variables, stdout=log, stderr=log)
    try:
        for _ in range(120):
            try:
                urllib.request.urlopen(f"{url}/api?token={token}", timeout=1).close()
                break
            except OSError:
                if server.poll() is not None:
                    raise RuntimeError((folder / "log.txt").read_text()) from None
                time.sleep(0.5)
        yield Lab(url, token, settings, folder / "root/notebooks", browser)
    finally:
        server.terminate()
        server.wait(20)
