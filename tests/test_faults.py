"""What a machine, a system or an impatient user can do to the course: nothing is lost, and what is shown is the same.

Faults of the progress file stand in test_progress.py, those of the set-up in test_setup.py, of the model's files in
test_pretrained.py, of an answer in test_sandbox.py, of processes in test_shard.py.
"""

import contextlib
import inspect
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import psutil
import pytest
from helpers import ALONE, AS_A_USER
from jupyter_client import KernelManager

from mhsa.exercises.quiz import to_number

ROOT = Path(__file__).parents[1]
ODD_NAME = "Übung 1 it's 100% #1"


# Interrupted and killed in a real kernel


class Kernel:
    """A Jupyter kernel, its cells run one by one: run() returns what is printed and, of an error, its name."""

    def __init__(self, progress: Path):
        self.manager = KernelManager(kernel_name="python3")
        self.manager.start_kernel(env=os.environ | {"MHSA_PROGRESS": str(progress)}, stderr=subprocess.DEVNULL)
        self.process = psutil.Process(self.manager.provisioner.pid)
        self.connect()

    def connect(self):
        self.client = self.manager.client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=60)

    def run(self, code: str, then=None) -> str:
        """then(): called as soon as the cell has printed "now"."""
        said = []

        def hear(message):
            content = message["content"]
            said.append(content.get("text", "") if content.get("name") == "stdout" else content.get("ename", ""))
            if then and said[-1].startswith("now"):
                then()

        self.client.execute_interactive(code, timeout=60, output_hook=hear)
        return "".join(said).strip()

    def children(self) -> list[psutil.Process]:
        """Without multiprocessing's own helper, which ends with the kernel."""
        found = []
        for child in self.process.children():
            with contextlib.suppress(psutil.NoSuchProcess):  # it ended a moment ago
                if "resource_tracker" not in str(child.cmdline()):
                    found.append(child)
        return found

    def interrupt(self):
        time.sleep(0.3)  # the cell goes on from "now" to what it is to do
        self.manager.interrupt_kernel()

    def stop(self):
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)


SETUP = """import torch
from mhsa import MultiHeadAttention
from mhsa.exercises import lesson01 as ex
from mhsa.shard import run_sharded
from mhsa.toys import relations
from mhsa.train import sweep_heads

def endless(scores):
    while True:
        pass

def state():
    return torch.get_default_dtype(), torch.get_num_threads(), torch.is_grad_enabled()

before = state()"""


@pytest.fixture(scope="module")
def kernel(tmp_path_factory):
    kernel = Kernel(tmp_path_factory.mktemp("kernel") / "progress.json")
    kernel.run(SETUP)
    yield kernel
    kernel.stop()


@pytest.mark.parametrize(
    "cell, said",
    [
        ("ex.TO_WEIGHTS.check(endless, seconds=600)", "KeyboardInterrupt"),
        (
            "print(len(sweep_heads(relations(2), [1, 2], steps=20000).results))",
            "Interrupted: 0 of 2 settings are finished.\n0",
        ),
    ],
    ids=["check", "training"],
)
def test_an_interrupt_ends_a_cell_and_leaves_the_settings(kernel, cell, said):
    assert kernel.run(f"print('now')\n{cell}", then=kernel.interrupt) == f"now\n{said}"
    assert kernel.run("print(state() == before)") == "True"


def test_an_interrupt_ends_the_processes_of_run_sharded(kernel):
    def interrupt():
        while len(kernel.children()) < 2:
            time.sleep(0.01)
        kernel.manager.interrupt_kernel()

    said = kernel.run("print('now')\nrun_sharded(MultiHeadAttention(8, 4), torch.zeros(1, 5, 8))", then=interrupt)
    assert said in ("now\nKeyboardInterrupt", "now\nRuntimeError") and kernel.children() == []


def test_a_kernel_killed_in_mid_cell_loses_nothing_and_the_next_goes_on(kernel):
    kernel.run("ex.REACHABLE.check(ex.REACHABLE.reference())")
    kernel.client.execute("ex.TO_WEIGHTS.check(endless, seconds=600)")
    os.kill(kernel.process.pid, signal.SIGKILL)
    kernel.client.stop_channels()
    kernel.manager.restart_kernel(now=True)
    kernel.connect()
    assert kernel.run("ex.REACHABLE") == "NameError"  # the variables are gone: run the cells above again
    alone = f"import sys\nsys.path.insert(0, {ALONE['PYTHONPATH']!r})\nimport progress\n"
    record = "progress.record('lesson01', 'ATTEND')\nprint(progress.solved('lesson01'))"
    assert kernel.run(alone + record) == "['REACHABLE', 'ATTEND']"


# The server killed while a notebook is open


class Server:
    """Jupyter's server with the course's settings, asked as JupyterLab's page asks it."""

    def __init__(self, folder: Path):
        homes = {f"JUPYTER_{kind}_DIR": str(folder / kind) for kind in ("CONFIG", "DATA", "RUNTIME")}
        homes["JUPYTER_CONFIG_PATH"] = str(ROOT / ".jupyter")
        command = [sys.executable, "-m", "jupyter_server", "--no-browser", f"--ServerApp.root_dir={folder}"]
        self.program = subprocess.Popen(command, env=os.environ | homes, stderr=subprocess.PIPE, text=True)
        log = iter(self.program.stderr.readline, "")
        self.url, self.token = next(
            filter(None, (re.search(r"(http://127\S+?/)\S*token=(\w+)", line) for line in log))
        ).groups()
        while not self.listens():  # it prints its address a moment before
            time.sleep(0.05)

    def listens(self) -> bool:
        with socket.socket() as there:
            return there.connect_ex(("127.0.0.1", int(self.url.split(":")[2].strip("/")))) == 0

    def ask(self, method: str, what: str, **content):
        asked = urllib.request.Request(
            f"{self.url}api/{what}",
            json.dumps(content).encode() if content else None,
            {"Authorization": f"token {self.token}"},
            method=method,
        )
        with urllib.request.urlopen(asked, timeout=60) as answer:
            return json.load(answer)

    def open_kernel(self) -> psutil.Process:
        self.ask("POST", "sessions", path="a.ipynb", name="a", type="notebook", kernel={"name": "python3"})
        [kernel] = self.children()
        return kernel

    def children(self) -> list[psutil.Process]:
        return psutil.Process(self.program.pid).children()

    def kill(self):
        self.program.kill()
        self.program.communicate()


def test_a_killed_server_leaves_no_kernel_and_the_next_one_serves_what_was_saved(tmp_path):
    notebook = {"cells": [], "metadata": {"mine": 7}, "nbformat": 4, "nbformat_minor": 5}
    first = Server(tmp_path)
    try:
        first.ask("PUT", "contents/a.ipynb", type="notebook", format="json", content=notebook)
        kernel = first.open_kernel()
    finally:
        first.kill()
    second = Server(tmp_path)
    try:
        assert second.token != first.token  # the page's old address asks for the new one
        assert second.ask("GET", "contents/a.ipynb")["content"] == notebook
        assert second.open_kernel().is_running()
        psutil.wait_procs([kernel], timeout=30)
        assert not kernel.is_running() or kernel.status() == psutil.STATUS_ZOMBIE
    finally:
        for process in second.children():
            process.kill()
        second.kill()


# Odd machines


def shown() -> dict:
    """Pictures, words and recorded numbers as a learner sees them; another Python runs this too."""
    from mhsa import explore
    from mhsa.bench import fast_attention
    from mhsa.draw.head_count import head_count_svg
    from mhsa.exercises import board, lesson01
    from mhsa.exercises.judge import check_answer

    answers = lesson01.TO_WEIGHTS.reference, lambda scores: scores / 3
    return {
        "explorers": [getattr(explore, name)().view.svg for name in ("cost", "heads", "one_vs_many", "shapes")],
        "matplotlib": head_count_svg(),
        "board": board().table.value,
        "verdicts": [check_answer(lesson01.TO_WEIGHTS, answer)[1] for answer in answers],
        "recorded": fast_attention.report(fast_attention.recorded("cpu")),
    }


def test_all_is_the_same_in_a_read_only_folder_with_an_odd_name_in_turkish_far_east(tmp_path):
    """Turkish without UTF-8: 1,5 for 1.5, other capitals, and files are Latin 5 unless one says otherwise."""
    make = ["localedef", "-i", "tr_TR", "-f", "ISO-8859-9", tmp_path / "tr_TR"]
    if not shutil.which("localedef") or subprocess.run(make, capture_output=True).returncode:
        pytest.skip("no Turkish locale can be made here")
    there = tmp_path / ODD_NAME
    shutil.copytree(ROOT / "mhsa", there / "mhsa", ignore=shutil.ignore_patterns("__pycache__"))
    paths = [there, *there.rglob("*")]
    for path in paths:
        path.chmod(0o555)
    code = (
        "import json, locale\nlocale.setlocale(locale.LC_ALL, '')\nassert locale.str(1.5) == '1,5'\nimport mhsa\n"
        f"{inspect.getsource(shown)}\nprint(json.dumps([mhsa.__file__, shown()]))"
    )
    odd = {
        "LOCPATH": str(tmp_path),
        "LC_ALL": "tr_TR",
        "PYTHONUTF8": "0",
        "TZ": "UTC-14",
        "PYTHONPATH": str(there),
        "HOME": "/nowhere",
        "MHSA_PROGRESS": str(there / "progress.json"),
        "MPLCONFIGDIR": str(tmp_path),
    }
    run = subprocess.run([*AS_A_USER, sys.executable, "-c", code], cwd=there, env=os.environ | odd, capture_output=True)
    for path in paths:
        path.chmod(0o755)
    assert run.returncode == 0, run.stderr.decode(errors="replace")
    place, there_shown = json.loads(run.stdout)
    assert ODD_NAME.encode() in place.encode("iso8859-9") and there_shown == json.loads(json.dumps(shown()))


def test_the_clock_and_the_language_are_asked_for_in_one_place_only():
    """When something was measured is noted, in UTC. A clock in 1970 or 2100 changes no more than that."""
    asks = r"\btime\.(time|localtime|gmtime|strftime|ctime)\b|datetime\.|\bimport locale|\bstrftime\b"
    found = {path.name: re.findall(asks, path.read_text(encoding="utf-8")) for path in (ROOT / "mhsa").rglob("*.py")}
    assert {name for name, asked in found.items() if asked} == {"recording.py"} and len(found["recording.py"]) == 1
    assert "datetime.now(UTC)" in (ROOT / "mhsa/recording.py").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "typed, number",
    [("٣", 3), ("١٢٫٥", 12.5), ("١٬٠٤٨", 1048), ("٠,١٢٣", 0.123), ("１２", 12), ("1\u202f048", 1048), ("½", None)],
)
def test_a_number_in_other_digits_is_read_or_asked_for_again(typed, number):
    assert to_number(typed) == number


def test_every_line_compiles_without_a_warning_in_each_python_here():
    """Python 3.12 warns of more than 3.11 does, and 3.13 of more than that."""
    code = (
        "import json, pathlib, sys\n"
        "for path in map(pathlib.Path, sys.argv[1:]):\n"
        "    text = path.read_text(encoding='utf-8')\n"
        "    cells = json.loads(text)['cells'] if path.suffix == '.ipynb' else []\n"
        "    cells = [''.join(cell['source']) for cell in cells if cell['cell_type'] == 'code'] or [text]\n"
        "    for source in cells: compile(source, str(path), 'exec')"
    )
    files = [
        ROOT / "course.py",
        *ROOT.glob(".jupyter/*.py"),
        *ROOT.glob("notebooks/*.ipynb"),
        *(path for folder in ("mhsa", "tests") for path in (ROOT / folder).rglob("*.py")),
    ]
    others = [f"python3.{minor}" for minor in (12, 13, 14)]
    for python in [sys.executable, *filter(is_here, others)]:
        subprocess.run([python, "-W", "error", "-c", code, *files], check=True)
        subprocess.run([python, "-W", "error", ROOT / "course.py", "--help"], check=True, stdout=subprocess.DEVNULL)


def is_here(python: str) -> bool:
    """A name on the path may be an empty promise, as pyenv's are."""
    return bool(shutil.which(python)) and subprocess.run([python, "--version"], capture_output=True).returncode == 0
