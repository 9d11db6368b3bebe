"""A real JupyterLab in a real Chromium, on a copy of the lessons. Used by the tests, latency.py and picture.py."""
import json
import os
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

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
import course  # noqa: E402
from mhsa.draw.__main__ import CHROMIUM  # noqa: E402

FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
SETTINGS = "JUPYTERLAB_SETTINGS_DIR"


class Lab:
    """A running JupyterLab: `open` gives a page with one notebook in it, `run_all` runs it from the menu."""

    def __init__(self, url: str, token: str, settings: Path, notebooks: Path, browser):
        self.url, self.token, self.settings, self.notebooks, self.browser = url, token, settings, notebooks, browser

    def open(self, notebook: str, theme: str = "Light", **context):
        save(self.settings / "@jupyterlab/apputils-extension/themes.jupyterlab-settings", theme=f"JupyterLab {theme}")
        page = self.browser.new_context(**{"viewport": {"width": 1400, "height": 1000}} | context).new_page()
        page.set_default_timeout(30_000)
        page.problems = []                                         # errors in the console, requests to the outside
        page.on("console", lambda message: message.type == "error" and page.problems.append(message.text))
        ours = (self.url, "data:", "blob:")
        page.on("request", lambda request: request.url.startswith(ours) or page.problems.append(request.url))
        page.goto(f"{self.url}/lab/tree/notebooks/{notebook}?token={self.token}&reset")
        page.locator(".jp-Notebook .jp-Cell").first.wait_for()
        self.wait_idle(page)
        return page

    def run_all(self, page) -> None:
        """Run > Run All Cells, as a reader does, and wait for the last cell."""
        for menu, entry in (("Edit", "Clear Outputs of All Cells"), ("Run", "Run All Cells")):
            page.get_by_role("menuitem", name=menu, exact=True).click()
            page.get_by_role("menuitem", name=entry, exact=True).click()
        prompts = "[...document.querySelectorAll('.jp-CodeCell .jp-InputPrompt')]"
        page.wait_for_function(f"() => {prompts}.every(prompt => /\\d/.test(prompt.textContent))", timeout=120_000)
        self.wait_idle(page)

    def wait_idle(self, page) -> None:
        page.locator("#jp-main-statusbar").get_by_text("| Idle").wait_for(timeout=60_000)


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
def jupyterlab(browser, folder: Path, notebooks: Path = ROOT / "notebooks") -> Iterator[Lab]:
    """Serve a copy of the notebooks from the folder, with settings of its own, until the block ends."""
    shutil.copytree(notebooks, folder / "root/notebooks")
    if (ROOT / "assets").exists():
        shutil.copytree(ROOT / "assets", folder / "root/assets")
    homes = {SETTINGS: "settings", "JUPYTERLAB_WORKSPACES_DIR": "workspaces", "JUPYTER_DATA_DIR": "data",
             "JUPYTER_RUNTIME_DIR": "runtime", "JUPYTER_CONFIG_DIR": "config"}
    homes = {name: str(folder / home) for name, home in homes.items()} | {"JUPYTER_CONFIG_PATH": str(course.JUPYTER)}
    settings = Path(homes[SETTINGS])
    save(settings / "@jupyterlab/notebook-extension/tracker.jupyterlab-settings", windowingMode="none")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    url, token = f"http://127.0.0.1:{port}", secrets.token_hex(8)
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", f"--port={port}",
               f"--IdentityProvider.token={token}", f"--ServerApp.root_dir={folder / 'root'}"]
    with open(folder / "log.txt", "w") as log:
        server = subprocess.Popen(command, env=os.environ | homes | {"PYTHONPATH": str(ROOT)}, stdout=log, stderr=log)
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
