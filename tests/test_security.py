"""The server answers its own user alone, and nothing that a learner types or stores is ever run as code."""

import ast
import http.client
import json
import os
import socket
import stat
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import nbformat
import psutil
import pytest

from mhsa.pretrained import ModelFilesError
from mhsa.pretrained import files as model_files

ROOT = Path(__file__).parents[1]
AS_COURSE_PY = "import course, sys; course.PYTHON = sys.executable; course.become('-m', 'jupyterlab', *sys.argv[1:])"
OURS = {"::1", "127.0.0.1"}


# The server, started as course.py starts it


def ask(server, method, path, **headers):
    """(status, headers, text) of one request."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    connection.request(method, path, headers={"Host": f"127.0.0.1:{server.port}"} | names)
    answer = connection.getresponse()
    body = "" if answer.status == 101 else answer.read().decode()
    connection.close()
    return answer.status, answer.headers, body


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("jupyter")
    folders = {f"JUPYTER_{kind}_DIR": str(folder / kind.lower()) for kind in ("CONFIG", "DATA", "RUNTIME")}
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("JUPYTER")}
    process = subprocess.Popen(
        [sys.executable, "-c", AS_COURSE_PY, "--no-browser", f"--port={port}"],
        cwd=ROOT,
        env=environment | folders | {"MPLCONFIGDIR": str(folder)},
        stderr=subprocess.DEVNULL,
    )
    try:
        server = SimpleNamespace(port=port, pid=process.pid, runtime=folder / "runtime")
        until = time.monotonic() + 60
        while time.monotonic() < until and process.poll() is None:
            try:
                server.token = json.loads((server.runtime / f"jpserver-{process.pid}.json").read_text())["token"]
                status, headers, server.page = ask(server, "GET", f"/lab?token={server.token}")
                break
            except (OSError, ValueError):  # it is not there yet, or half written
                time.sleep(0.1)
        assert status == 200
        cookies = dict(cookie.split(";")[0].split("=", 1) for cookie in headers.get_all("Set-Cookie"))
        server.cookie = "; ".join(f"{name}={value}" for name, value in cookies.items())
        server.xsrf = cookies["_xsrf"]
        yield server
    finally:
        process.terminate()
        process.wait(20)


def test_without_its_token_it_tells_nothing(server):
    assert len(server.token) >= 40
    for path in ("/api/contents", "/api/kernels", "/api/contents?token=", "/api/contents?token=0", "/api/terminals"):
        assert ask(server, "GET", path)[0] == 403, path
    for path in ("/lab", "/files/README.md", "/nbconvert/html/notebooks/00_start_here.ipynb"):
        status, headers, _ = ask(server, "GET", path)
        assert status == 302 and headers["Location"].startswith("/login"), path
    assert ask(server, "POST", "/login")[0] == 403
    assert ask(server, "GET", f"/api/contents?token={server.token}")[0] == 200


def test_another_page_in_the_same_browser_cannot_use_it(server):
    """Such a page can send the learner's cookie along, but neither the token nor the XSRF header."""
    evil, own = "http://evil.example", f"http://127.0.0.1:{server.port}"
    for headers in ({}, {"Origin": evil}, {"Origin": evil, "X_XSRFToken": server.xsrf}):
        assert ask(server, "POST", "/api/kernels", Cookie=server.cookie, **headers)[0] in (403, 404), headers
    _, headers, _ = ask(server, "GET", "/api/contents", Cookie=server.cookie, Origin=evil, Referer=own)
    assert not [name for name in headers if name.lower().startswith("access-control-allow")]
    assert ask(server, "GET", f"/api?token={server.token}", Host="evil.example")[0] == 403  # a renamed 127.0.0.1


def test_a_kernel_hears_its_own_user_alone(server):
    status, _, body = ask(server, "POST", "/api/kernels", Cookie=server.cookie, X_XSRFToken=server.xsrf)
    assert status == 201
    number = json.loads(body)["id"]
    websocket = {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec_WebSocket_Version": "13",
        "Sec_WebSocket_Key": "c2V2ZW4gdGltZXMgc2V2ZW4=",
        "Cookie": server.cookie,
    }
    for origin, status in (("http://evil.example", 403), (f"http://127.0.0.1:{server.port}", 101)):
        assert ask(server, "GET", f"/api/kernels/{number}/channels", Origin=origin, **websocket)[0] == status
    connection = json.loads((server.runtime / f"kernel-{number}.json").read_text())
    assert len(connection["curve_secretkey"]) == 40  # what goes over its ports is encrypted
    processes = [psutil.Process(server.pid), *psutil.Process(server.pid).children(recursive=True)]
    listening = {
        link.laddr.ip
        for process in processes
        for link in process.net_connections("inet")
        if link.status == psutil.CONN_LISTEN
    }
    assert len(processes) >= 2 and "127.0.0.1" in listening <= OURS
    assert not [process for process in processes if server.token in " ".join(process.cmdline())]
    if os.name == "posix":  # where the files with token and keys lie
        assert stat.S_IMODE(server.runtime.stat().st_mode) & 0o077 == 0


def test_the_page_installs_nothing_and_asks_for_no_news(server):
    _, _, rest = server.page.partition('id="jupyter-config-data"')
    config = json.loads(rest.partition(">")[2].partition("</script>")[0])
    assert config["extensionManager"]["can_install"] is False
    assert "@jupyterlab/apputils-extension:announcements" in config["disabledExtensions"]


# The code: no pickle, and no text that is run

CODE = [
    ROOT / "course.py",
    *ROOT.glob("mhsa/**/*.py"),
    *ROOT.glob("tests/notebooks/*.py"),
    *ROOT.glob("tests/offline/*.py"),
    *ROOT.glob(".jupyter/*.py"),
    *ROOT.glob("assets/**/*.py"),
    *ROOT.glob("tests/classroom/*.py"),
]
OWN_CELLS = "runs the answers that stand in the handouts, cells of the course's own"
OWN_TREES = "right answers of the package, with an edit of edits.py: no text of a learner"
OF_A_FILE = "answers of a file that is named on the command line: they are there to be run"
ALLOWED = {
    ("test_slides.py", "exec"): OWN_CELLS,
    ("test_slides.py", "eval"): OWN_CELLS,
    ("program.py", "exec"): OWN_TREES,
    ("program.py", "compile"): OWN_TREES,
    ("audit.py", "exec"): OF_A_FILE,
    ("audit.py", "eval"): OF_A_FILE,
    ("audit.py", "compile"): OF_A_FILE,
}

PICKLES = {"pickle", "cPickle", "cloudpickle", "dill", "joblib", "marshal", "shelve"}
RUNS_TEXT = {"eval", "exec", "compile", "__import__", "os.system", "os.popen", "run_line_magic", "run_cell"}
SENDS_PICKLES = {
    "all_gather_object",
    "broadcast_object_list",
    "gather_object",
    "scatter_object_list",
    "send_object_list",
    "recv_object_list",
    "read_pickle",
    "mktemp",
}
READS_PLAIN = {"json.load", "json.loads", "tomllib.load", "tomllib.loads"}


def dangers(source):
    """What could run a text, a pickle or a shell in a piece of Python."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names]
            yield from (name for name in names if name.split(".")[0] in PICKLES)
        elif isinstance(node, ast.Call):
            name, options = ast.unparse(node.func), {each.arg: ast.unparse(each.value) for each in node.keywords}
            last = name.split(".")[-1]
            if name in RUNS_TEXT or last in SENDS_PICKLES | (RUNS_TEXT - {"eval", "exec", "compile"}):
                yield name
            if last in ("load", "loads") and name not in READS_PLAIN and options.get("weights_only") != "True":
                yield name
            if options.get("shell", "False") != "False" or options.get("allow_pickle", "False") != "False":
                yield name


def test_nothing_is_unpickled_and_no_text_is_run():
    found = {(path.name, what) for path in CODE for what in dangers(path.read_text(encoding="utf-8"))}
    for path in ROOT.glob("notebooks/*.ipynb"):
        found |= {
            (path.name, what)
            for cell in nbformat.read(path, as_version=4).cells
            if cell.cell_type == "code"
            for what in dangers(cell.source)
        }
    assert found == set(ALLOWED)


@pytest.mark.parametrize(
    "source",
    [
        "eval('1')",
        "exec(text)",
        "compile(text, '', 'exec')",
        "import pickle",
        "from pickle import loads",
        "import torch, joblib.parallel",
        "torch.load(file)",
        "torch.load(file, weights_only=False)",
        "load(file)",
        "numpy.load(file)",
        "yaml.load(text)",
        "subprocess.run(command, shell=True)",
        "subprocess.call('x', shell=flag)",
        "os.system('x')",
        "os.popen('x')",
        "tempfile.mktemp()",
        "dist.all_gather_object(a, b)",
        "pandas.read_pickle(file)",
        "np.fromfile(file, allow_pickle=True)",
        "__import__(name)",
        "get_ipython().run_line_magic('x', '')",
    ],
)
def test_each_danger_is_seen(source):
    assert [*dangers(source)]


def test_what_is_harmless_passes():
    harmless = (
        "layer.eval(); re.compile('a'); torch.compile(f); json.loads(text); load_file(file)\n"
        "torch.load(file, weights_only=True); subprocess.run(['a'], shell=False); layer.load_state_dict(state)"
    )
    assert not [*dangers(harmless)]


# The model's files: what is read is what was hashed


@pytest.fixture
def files(tmp_path, monkeypatch):
    """A package in two places, as pip may leave one; the second holds the right file."""
    for place in ("first", "second"):
        (tmp_path / place / "two_places/model").mkdir(parents=True)
        monkeypatch.syspath_prepend(tmp_path / place)
    first, second = (tmp_path / place / "two_places/model/weights" for place in ("second", "first"))
    second.write_bytes(b"seven")
    monkeypatch.setattr(model_files, "PACKAGE", "two_places")
    monkeypatch.setattr(model_files, "SHA256", {"weights": model_files.digest(second)})
    return first, second


@pytest.mark.parametrize(
    "swap",
    [
        lambda file, other: file.write_bytes(b"sevem"),
        lambda file, other: file.symlink_to(other.with_name("none")),
        lambda file, other: (
            other.with_name("swapped").write_bytes(b"sevem"),
            file.symlink_to(other.with_name("swapped")),
        ),
        lambda file, other: file.mkdir(),
        lambda file, other: None,
    ],
    ids=["same size", "dead link", "link to another", "folder", "gone"],
)
def test_a_swapped_file_is_passed_over(files, swap):
    first, second = files
    swap(*files)
    assert model_files.find() == second.parent
    second.write_bytes(b"sevem")
    with pytest.raises(ModelFilesError, match="are damaged. This fetches them"):
        model_files.find()


def test_a_link_to_the_right_file_is_taken(files):
    first, second = files
    first.symlink_to(second)
    assert model_files.find() == first.parent
