"""course.py sets up what the lists of packages say, and each way to fail ends in one clear sentence."""

import ast
import importlib.util
import os
import re
import shutil
import socket
import subprocess
import sys
import time
import tomllib
import urllib.error
import urllib.request
from importlib.metadata import packages_distributions
from pathlib import Path
from types import SimpleNamespace

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
LISTS = [(ROOT / name).read_text() for name in ("requirements.txt", "tests/requirements.txt")]
PINS = {pin.name: pin for pin in map(Requirement, re.findall(r"(?m)^\w.*", "\n".join(LISTS)))}
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
DEPENDENCIES = PROJECT["dependencies"]
AUTHORING = PROJECT["optional-dependencies"]["authoring"]


def version(pin):
    [specifier] = pin.specifier
    assert specifier.operator == "==", f"{pin} is not an exact pin"
    return specifier.version


def test_every_pin_lies_in_the_range_of_the_package():
    assert version(PINS["torch"]) == "2.13.0" and all(map(version, PINS.values()))
    for needed in map(Requirement, DEPENDENCIES + AUTHORING):
        assert needed.specifier and version(PINS[needed.name]) in needed.specifier


def test_conda_and_binder_get_the_same_set():
    lines = [line.split(" #")[0].strip() for line in (ROOT / "environment.yml").read_text().splitlines()]
    conda, pip = (lines[lines.index(start) + 1 :] for start in ("dependencies:", "- pip:"))
    assert conda[1:3] == ["- pip", "- pip:"]
    name, python = conda[0].removeprefix("- ").split("=")  # one "=": a version, and no build string
    assert name == "python" and python in Requirement("python" + PROJECT["requires-python"]).specifier
    assert pip == ["- --extra-index-url https://download.pytorch.org/whl/cpu", "- -r requirements.txt", "- -e ."]


def packages_imported_in(paths):
    """What these files import besides Python's own modules and mhsa, by the names of the packages."""
    nodes = [node for path in paths for node in ast.walk(ast.parse(path.read_text()))]
    names = {node.module for node in nodes if isinstance(node, ast.ImportFrom)}
    names |= {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    packages = packages_distributions()  # PIL comes in pillow
    modules = {name.split(".")[0] for name in names} - set(sys.stdlib_module_names) - {"mhsa"}
    return {packages[module][0].lower() for module in modules}


def test_the_package_imports_what_it_declares_and_nothing_else():
    authoring = set((ROOT / "mhsa/authoring").glob("*.py"))
    package = set((ROOT / "mhsa").rglob("*.py")) - authoring
    assert packages_imported_in(package) == {Requirement(needed).name for needed in DEPENDENCIES}
    assert packages_imported_in(authoring) == {Requirement(needed).name for needed in AUTHORING}


@pytest.fixture
def course(tmp_path):
    """course.py in a folder of its own, its steps recorded in `did` and not done."""
    (tmp_path / "tests").mkdir()
    for name in ("course.py", "requirements.txt", "tests/requirements.txt", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path / name)
    for lesson in ("02_many_heads", "03_split_and_merge"):
        (tmp_path / "notebooks").mkdir(exist_ok=True)
        (tmp_path / f"notebooks/{lesson}.ipynb").touch()
    (tmp_path / "mhsa/authoring").mkdir(parents=True)
    shutil.copy(ROOT / "mhsa/authoring/names.py", tmp_path / "mhsa/authoring")
    spec = importlib.util.spec_from_file_location("course_copy", tmp_path / "course.py")
    course = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(course)

    def run(*command):
        course.did.append(" ".join(map(str, command)))
        if command[1:3] == ("-m", "venv"):
            course.PYTHON.parent.mkdir(parents=True, exist_ok=True)
            course.PYTHON.touch()

    course.did, course.really_run, course.really_become, course.run = [], course.run, course.become, run
    course.become = lambda *command: course.did.append(" ".join(command))
    course.subprocess = SimpleNamespace(**vars(subprocess) | {"call": lambda *args, **options: 0})
    return course


def test_set_up_is_done_once_and_again_when_the_packages_change(course):
    course.set_up(course.LEARN)
    python = str(course.PYTHON)
    assert course.did == [
        f"{sys.executable} -m venv {course.VENV} --clear",
        f"{python} -m pip install --disable-pip-version-check -r requirements.txt",
        f"{python} -m pip install --disable-pip-version-check --no-deps --no-build-isolation -e .",
    ]
    course.set_up(course.LEARN)
    assert len(course.did) == 3
    with open(course.ROOT / "requirements.txt", "a") as file:
        file.write("# one more line\n")
    course.set_up(course.LEARN)
    assert len(course.did) == 6 and "--clear" not in course.did[3]


def installs(course):
    """Which lists were installed since the last look."""
    lists = [step.split(" -r ")[1] for step in course.did if " -r " in step]
    course.did.clear()
    return lists


def test_what_tests_need_is_installed_by_the_first_test_and_kept(course):
    for args in ([], ["refresh"], ["test"], ["test"], [], ["handout"]):
        course.main(args)
    assert installs(course) == ["requirements.txt", "tests/requirements.txt"]
    with open(course.ROOT / "tests/requirements.txt", "a") as file:
        file.write("# one more line\n")
    course.main([])
    assert installs(course) == []  # nothing that a learner needs has changed
    course.main(["test"])
    assert installs(course) == ["tests/requirements.txt"]
    with open(course.ROOT / "requirements.txt", "a") as file:
        file.write("# one more line\n")
    course.main(["test"])
    course.main([])
    assert installs(course) == ["tests/requirements.txt"]  # it holds the other


def test_what_tests_need_holds_what_a_learner_needs():
    learners, testers = LISTS
    assert re.findall(r"(?m)^-r (.*)", testers) == ["../requirements.txt"] and "-r" not in learners
    assert not {"pytest", "playwright", "transformers"} & set(re.findall(r"(?m)^[\w-]+", learners))


@pytest.mark.parametrize("command", [[], ["test"]])
@pytest.mark.parametrize("step", ["venv", "requirements.txt", "-e ."])
@pytest.mark.parametrize(
    "trouble, sentence",
    [
        (KeyboardInterrupt(), "Interrupted. The next start repairs"),
        (OSError(28, "No space left"), "failed: .Errno 28. No space left"),
    ],
)
def test_an_interrupted_set_up_is_begun_anew(course, command, step, trouble, sentence):
    run = course.run
    course.set_up(course.LEARN)
    with open(course.ROOT / "requirements.txt", "a") as file:
        file.write("# one more line\n")

    def broken(*command):
        run(*command)
        if step in " ".join(map(str, command)):
            raise trouble

    course.run = broken
    with pytest.raises(SystemExit, match=sentence):
        course.main(command)
    course.did.clear()
    course.run = run
    course.main(command)
    assert "--clear" in course.did[0] and len(course.did) == 4


@pytest.mark.parametrize("code, words", [(0, ""), (1, "Lesson 7 has no model yet")])
def test_the_model_is_fetched_and_may_fail(course, capsys, code, words):
    course.subprocess.call = lambda command, **options: course.did.append(" ".join(command)) or code
    course.set_up(course.LEARN)
    assert course.did[3:] == [f"{course.PYTHON} -m mhsa.pretrained"] and course.STAMP.exists()
    assert words in capsys.readouterr().out
    course.set_up(course.LEARN)
    assert len(course.did) == 4


def test_a_moved_folder_is_set_up_again(course, monkeypatch):
    before = course.fingerprint(course.LEARN)
    monkeypatch.setattr(course, "ROOT", shutil.copytree(course.ROOT, course.ROOT / "moved"))
    assert course.fingerprint(course.LEARN) != before


@pytest.mark.parametrize(
    "args, command",
    [
        (["test", "-k", "masks"], "-m pytest -n auto --dist loadfile --no-loadscope-reorder -k masks"),
        (["refresh", "02_many_heads"], "-m mhsa.authoring.refresh 02_many_heads"),
        (["refresh"], "-m mhsa.authoring.refresh"),
        (["handout", "--solutions", "2"], "-m mhsa.authoring.handout --solutions 2"),
        (["slides"], r"-m nbconvert --to slides --output-dir slides notebooks/\[0-9\]\*.ipynb"),
        (["slides", "notebooks/02_many_heads.ipynb"], "-m nbconvert .* slides /[^ ]*/notebooks/02_many_heads.ipynb"),
        (["--port=9999"], "-m jupyterlab .*--port=9999"),
    ],
)
def test_arguments_go_on(course, args, command):
    course.main(args)
    assert re.fullmatch(command, course.did[-1])


def test_a_misspelt_command_is_refused_before_the_set_up(course):
    for misspelt in ("testing", "tests", "Refresh"):
        with pytest.raises(SystemExit, match=f"{misspelt} is no command. These are: test, refresh, slides, "):
            course.main([misspelt, "-k", "masks"])
    assert not course.did
    course.main(["notebooks/02_many_heads.ipynb"])  # a place to open
    assert course.did[-1] == "-m jupyterlab notebooks/02_many_heads.ipynb"


@pytest.mark.parametrize("command", ["refresh", "slides", "handout"])
def test_a_lesson_that_does_not_exist_is_named_before_the_set_up(course, command):
    with pytest.raises(SystemExit, match="^7 is no lesson; these are: 02_many_heads, 03_split_and_merge$"):
        course.main([command, "3", "7"])
    assert not course.did


def test_a_set_up_whose_python_is_gone_is_done_again(course):
    course.set_up(course.LEARN)
    course.PYTHON.unlink()
    course.set_up(course.LEARN)
    assert len(course.did) == 6 and "--clear" in course.did[3]


@pytest.mark.parametrize("before", [None, "", "/mine"])
def test_jupyters_own_settings_are_kept_beside_the_courses(course, monkeypatch, before):
    monkeypatch.setenv("MPLCONFIGDIR", "/kept")
    ours = {"JUPYTER_CONFIG_PATH": course.JUPYTER, "PYTHONPATH": course.JUPYTER / "lean"}
    for name in ours:
        monkeypatch.setenv(name, before or "")
        if before is None:
            monkeypatch.delenv(name)
    monkeypatch.chdir(ROOT)
    ran = []
    monkeypatch.setattr(course.os, "execv", lambda program, command: ran.append((program, command)))
    course.subprocess.call = lambda command: ran.append((command[0], command))
    with pytest.raises(SystemExit):  # on Windows; elsewhere execv does not return
        course.really_become("-m", "jupyterlab")
    for name, folder in ours.items():
        assert os.environ[name] == os.pathsep.join([str(folder), *([before] if before else [])])
    assert ran[0] == (str(course.PYTHON), [str(course.PYTHON), "-m", "jupyterlab"])
    assert os.environ["MPLCONFIGDIR"] == "/kept"


def test_in_a_read_only_copy_only_what_writes_there_is_refused(course, monkeypatch):
    writable = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: path != str(course.ROOT) and writable(path, mode))
    for command in ("refresh", "slides", "handout"):
        with pytest.raises(SystemExit, match=f"^course.py: {course.ROOT} cannot be written to. Copy the course to "):
            course.main([command, "02_many_heads"])
    assert not course.did
    course.main([])
    assert course.did[-1] == "-m jupyterlab"


def test_matplotlib_keeps_its_files_in_venv_where_that_can_be_written(course, monkeypatch):
    """A class may share a read-only copy: matplotlib would then warn in every lesson."""
    monkeypatch.chdir(ROOT)
    for name in ("JUPYTER_CONFIG_PATH", "PYTHONPATH", "MPLCONFIGDIR"):
        monkeypatch.setenv(name, "")
    monkeypatch.delenv("MPLCONFIGDIR")
    monkeypatch.setattr(os, "execv", lambda *command: None)
    course.VENV.mkdir()
    for writable, kept in ((False, None), (True, str(course.VENV / "matplotlib"))):
        monkeypatch.setattr(os, "access", lambda *args, writable=writable: writable)
        with pytest.raises(SystemExit):
            course.really_become("-m", "jupyterlab")
        assert os.environ.get("MPLCONFIGDIR") == kept


@pytest.mark.skipif(os.name != "posix", reason="Windows asks nobody before it writes")
@pytest.mark.parametrize("home", ["gone", "read-only", ""])
def test_without_a_home_folder_the_set_up_does_not_begin(course, tmp_path, monkeypatch, home):
    """ "": HOME is not set, and the user has no name, as in some containers."""
    import pwd

    (tmp_path / "read-only").mkdir()
    writable = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: "read-only" not in str(path) and writable(path, mode))
    monkeypatch.setattr(pwd, "getpwuid", {}.__getitem__)
    monkeypatch.setenv("HOME", str(tmp_path / home))
    if not home:
        monkeypatch.delenv("HOME")
    with pytest.raises(SystemExit, match="does not exist or cannot be written to. Set HOME to a folder of your own"):
        course.main([])
    assert not course.did


def test_help_names_every_command():
    said = subprocess.check_output([sys.executable, ROOT / "course.py", "--help"], text=True)
    assert all(
        f"course.py {command}" in said
        for command in ("[options of jupyter lab]", "test", "refresh", "slides", "handout")
    )


def test_an_old_python_is_told_so(course):
    ast.parse((ROOT / "course.py").read_text(), feature_version=(3, 6))  # it can read the file that tells it
    course.sys = SimpleNamespace(version_info=(3, 9, 2), exit=sys.exit)
    with pytest.raises(SystemExit, match="Python 3.11 or newer is needed; this is 3.9"):
        course.main([])


def test_a_missing_venv_module_is_named(course):
    course.importlib = SimpleNamespace(util=SimpleNamespace(find_spec=lambda name: None))
    with pytest.raises(SystemExit, match="apt install python3-venv"):
        course.main([])
    assert not course.did


OFFLINE = {
    "PIP_CONFIG_FILE": os.devnull,
    "PIP_FIND_LINKS": "",
    "PIP_INDEX_URL": "http://127.0.0.1:9",
    "PIP_RETRIES": "1",
}
PIP = ("-m", "pip", "install", "--dry-run", "nothing==7")


@pytest.mark.parametrize(
    "command, environment, sentence",
    [
        (PIP, OFFLINE, "The network or the package index cannot be reached"),
        (PIP, OFFLINE | {"PIP_NO_INDEX": "1"}, "does not exist for this Python"),
        (("-c", "raise OSError(28, 'No space left on device')"), {}, "The disk is full"),
        (("-c", "raise PermissionError(13, 'Permission denied')"), {}, "who owns this folder"),
        (("-c", "raise OSError('certificate verify failed: certificate has expired')"), {}, "Set date and time"),
        (("-c", "1 / 0"), {}, "the lines above say why"),
    ],
    ids=["offline", "no such build", "disk full", "not writable", "clock", "else"],
)
def test_a_failed_step_says_why_in_one_sentence(course, monkeypatch, capfd, command, environment, sentence):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(SystemExit, match=sentence) as stopped:
        course.really_run(sys.executable, *command)
    assert "\n" not in str(stopped.value)
    assert capfd.readouterr().err  # the step's own words were shown too


def fetch(url):
    """Jupyter prints its URL a moment before it listens."""
    for _ in range(50):
        try:
            with urllib.request.urlopen(url, timeout=20) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            error.close()
            return error.code, ""
        except urllib.error.URLError:
            time.sleep(0.1)
    return pytest.fail(f"{url} does not answer")


@pytest.fixture
def occupied_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def test_jupyterlab_takes_the_next_port_and_wants_the_token_it_prints(tmp_path, occupied_port):
    there = tmp_path / "Übung 1 it's 100% #1"  # what people call folders
    shutil.copytree(ROOT / ".jupyter", there / ".jupyter")
    shutil.copy(ROOT / "README.md", there)
    folders = {f"JUPYTER_{kind}_DIR": str(tmp_path) for kind in ("CONFIG", "DATA", "RUNTIME")}
    folders["JUPYTER_CONFIG_PATH"] = str(there / ".jupyter")
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--ip=127.0.0.1", f"--port={occupied_port}"]
    with subprocess.Popen(command, cwd=tmp_path, env=os.environ | folders, stderr=subprocess.PIPE, text=True) as lab:
        try:
            log = ""
            for line in lab.stderr:
                log += line
                if found := re.search(r"(http://127.0.0.1:(\d+))(/\S*)(\?token=\w+)", line):
                    break
            assert found, log
            server, port, page, token = found.groups()
            assert page == "/lab/tree/notebooks/00_start_here.ipynb"
            assert f"port {occupied_port} is already in use" in log and int(port) != occupied_port
            status, html = fetch(server + page + token)
            assert status == 200 and '"disabledExtensions": ["@jupyterlab/apputils-extension:announcements"]' in html
            assert fetch(f"{server}/files/README.md{token}")[0] == 200  # the root is the project
            assert fetch(f"{server}/api/contents")[0] == 403
        finally:
            lab.terminate()
            lab.stderr.read()
