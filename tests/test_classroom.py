"""A class on one server: what an update does to students' copies, who may sign in, and what Binder builds from."""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
import yaml
from helpers import run_async
from nbformat.sign import NotebookNotary
from traitlets.config import PyFileConfigLoader

ROOT = Path(__file__).resolve().parents[1]
CLASSROOM = ROOT / "assets/classroom"
needs_hub = pytest.mark.skipif(
    not os.environ.get("CI") and any(importlib.util.find_spec(name) is None for name in ("jupyterhub", "nbgitpuller")),
    reason="pip install -r assets/classroom/requirements.txt",
)


class Class:
    """A teacher's checkout, and one student whose server is started by the real student.sh up to JupyterLab itself."""

    def __init__(self, folder: Path):
        self.teacher, self.home, self.bin = folder / "teacher", folder / "home", folder / "bin"
        self.copy = self.home / "course"
        for name in (".gitattributes", "notebooks", "assets/classroom"):
            source, target = ROOT / name, self.teacher / name
            if source.is_dir():
                shutil.copytree(source, target, ignore=shutil.ignore_patterns(".*", "0[4-9]*", "1*"))
            else:
                target.parent.mkdir(parents=True)
                shutil.copy(source, target)
        self.bin.mkdir()
        server = self.bin / "jupyterhub-singleuser"
        server.write_text('#!/bin/sh\necho "server $*, data $(ulimit -d) KiB"\n')
        server.chmod(0o755)
        self.home.mkdir()
        (self.home / ".gitconfig").write_text(f"[safe]\n directory = {self.copy}\n directory = {self.copy}/.git\n")
        self.git("init", "--quiet", "--initial-branch=main")
        self.commit()

    def git(self, *command: str) -> str:
        command = ("git", "-c", "user.name=teacher", "-c", "user.email=teacher@example.org", *command)
        return subprocess.run(command, cwd=self.teacher, check=True, capture_output=True, text=True).stdout

    def commit(self) -> None:
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message=lessons")

    def start_server(self) -> str:
        """As the hub does; git believes that every folder belongs to somebody else, but for the copy (.gitconfig)."""
        path = os.pathsep.join([str(self.bin), str(Path(sys.executable).parent), os.environ["PATH"]])
        environment = {
            "PATH": path,
            "HOME": str(self.home),
            "MEM_LIMIT": str(800 * 1024 * 1024),
            "GIT_TEST_ASSUME_DIFFERENT_OWNER": "1",
        }
        done = subprocess.run(
            [self.teacher / "assets/classroom/student.sh", "--some=option"],
            env=environment,
            cwd=self.home,
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def files(self) -> dict[str, bytes]:
        """What the teacher's checkout holds, but for git's own files."""
        return {
            str(path.relative_to(self.teacher)): path.read_bytes()
            for path in self.teacher.rglob("*")
            if path.is_file() and ".git" not in path.parts
        }


def change(notebook: Path, *words: str) -> bytes:
    """Puts words into its first code cells, as code and output; the bytes that are stored."""
    read = nbformat.read(notebook, 4)
    for cell, word in zip((cell for cell in read.cells if cell.cell_type == "code"), words):
        cell.source, cell.outputs = word, [nbformat.v4.new_output("stream", text=word)] if word else []
    nbformat.write(read, notebook)
    return notebook.read_bytes()


@needs_hub
def test_an_update_brings_new_lessons_and_never_touches_a_students_work(tmp_path):
    room = Class(tmp_path)
    assert "server --some=option, data 819200 KiB" in room.start_server()
    lessons = room.copy / "notebooks"
    theirs = room.teacher / "notebooks"
    first = lessons / "01_one_head.ipynb"
    assert first.read_bytes() == (theirs / first.name).read_bytes()
    assert NotebookNotary(data_dir=str(room.home / ".local/share/jupyter")).check_signature(nbformat.read(first, 4))

    solved = change(first, "", "", "my = 'solution'", "", "a = 1")  # the student solves, tidies and takes notes
    (lessons / "03_split_and_merge.ipynb").unlink()
    (lessons / "notes.ipynb").write_bytes(solved)
    (lessons / "04_new.ipynb").write_text("the student's, made before there was a lesson of this name")

    change(theirs / first.name, "import torch", "", "", "", "", "", "", "b = 2")  # the teacher changes the same
    new = change(theirs / "02_many_heads.ipynb", "", "new")  # and another notebook,
    shutil.copy(theirs / "02_many_heads.ipynb", theirs / "04_new.ipynb")  # adds one,
    (theirs / "cheat_sheet.ipynb").unlink()  # and takes one away
    room.commit()
    published = room.files()

    assert "server --some=option" in room.start_server()
    assert first.read_bytes() == solved
    assert (lessons / "notes.ipynb").read_bytes() == solved
    assert (lessons / "02_many_heads.ipynb").read_bytes() == (lessons / "04_new.ipynb").read_bytes() == new
    [kept] = lessons.glob("04_new__*.ipynb")
    assert kept.read_text().startswith("the student's")
    assert (lessons / "03_split_and_merge.ipynb").read_bytes() == published["notebooks/03_split_and_merge.ipynb"]
    assert not (lessons / "cheat_sheet.ipynb").exists()
    assert room.files() == published and not room.git("status", "--porcelain")


@needs_hub
def test_a_server_starts_with_the_old_lessons_when_the_update_fails(tmp_path):
    room = Class(tmp_path)
    room.start_server()
    solved = change(room.copy / "notebooks/01_one_head.ipynb", "my = 1")
    shutil.rmtree(room.teacher / ".git")
    assert "server --some=option" in room.start_server()
    assert (room.copy / "notebooks/01_one_head.ipynb").read_bytes() == solved


@pytest.fixture
def configuration(tmp_path, monkeypatch):
    """Loads jupyterhub_config.py as the hub does, with a class password or without."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr(Path, "owner", lambda path: "teacher")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)

    def load(password=None):
        monkeypatch.setenv("PATH", os.environ["PATH"])  # the file changes it
        if password is not None:
            monkeypatch.setenv("MHSA_CLASS_PASSWORD", password)
        return PyFileConfigLoader("jupyterhub_config.py", str(CLASSROOM)).load_config()

    return load


@needs_hub
@pytest.mark.parametrize("password", [None, "eight or more"])
def test_every_option_of_the_hub_exists(configuration, password):
    """The hub ignores an option that it does not know, without a word."""
    from jupyter_server.services.kernels.kernelmanager import MappingKernelManager
    from jupyterhub import app, auth, proxy, spawner
    from jupyterhub.authenticators.shared import SharedPasswordAuthenticator

    known = {
        cls.__name__: set(cls.class_traits(config=True))
        for cls in [
            app.JupyterHub,
            auth.PAMAuthenticator,
            SharedPasswordAuthenticator,
            proxy.ConfigurableHTTPProxy,
            spawner.Spawner,
            spawner.SimpleLocalProcessSpawner,
            MappingKernelManager,
        ]
    }
    c = configuration(password)
    options = [(section, name) for section, names in c.items() for name in names]
    options += [re.fullmatch(r"--(\w+)\.(\w+)=.+", argument).groups() for argument in c.Spawner.args]
    assert len(options) > 15
    assert [option for option in options if option[1] not in known[option[0]]] == []
    assert os.access(c.Spawner.cmd[0], os.X_OK)


@needs_hub
def test_who_may_sign_in(configuration, tmp_path):
    c = configuration()
    assert c.JupyterHub.bind_url == "http://127.0.0.1:8000"
    assert c.JupyterHub.authenticator_class == "pam" and c.PAMAuthenticator.allowed_groups == {"mhsa"}
    assert c.PAMAuthenticator.admin_users == {"teacher"}
    assert not {"allow_all", "allow_existing_users"} & (set(c.PAMAuthenticator) | set(c.get("Authenticator", {})))
    assert (tmp_path / "mhsa-hub").stat().st_mode & 0o077 == 0  # the hub's secrets are there


@needs_hub
@pytest.mark.parametrize(
    "told, name, password, may",
    [
        ("eight or more", "ada", "eight or more", True),
        ("eight or more", "ada", "", False),
        ("", "ada", "", False),
        ("eight or more", "a/b", "eight or more", False),
        ("eight or more", "..", "eight or more", False),
    ],
)
def test_a_class_password_is_needed_and_a_name_is_no_path(configuration, told, name, password, may):
    from jupyterhub.authenticators.shared import SharedPasswordAuthenticator

    authenticator = SharedPasswordAuthenticator(config=configuration(told))
    who = run_async(authenticator.authenticate(None, {"username": name, "password": password}))
    assert bool(who and authenticator.validate_username(who["name"])) == may
    assert "MHSA_CLASS_PASSWORD" not in os.environ


@needs_hub
def test_a_class_password_does_not_make_every_student_root(configuration, monkeypatch):
    monkeypatch.delenv("MHSA_CLASS_ROOT", raising=False)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    with pytest.raises(SystemExit, match="that is root: start it as an ordinary user"):
        configuration("eight or more")
    assert configuration().JupyterHub.authenticator_class == "pam"


def pip_lines(file: Path) -> list[str]:
    [packages] = [part["pip"] for part in yaml.safe_load(file.read_text())["dependencies"] if isinstance(part, dict)]
    return packages


def test_binder_builds_the_same_set():
    """Binder reads .binder alone, since its postBuild must be there; pip's paths are relative to each file."""
    ours, binders = ROOT / "environment.yml", ROOT / ".binder/environment.yml"
    for file in ours, binders:
        lines = dict(line.split() for line in pip_lines(file))
        assert (file.parent / lines["-r"]).resolve() == ROOT / "requirements.txt"
        assert (file.parent / lines["-e"]).resolve() == ROOT
    same = binders.read_text().replace("-r ../requirements.txt", "-r requirements.txt").replace("-e ..", "-e .")
    assert yaml.safe_load(same) == yaml.safe_load(ours.read_text())


def test_binder_fetches_the_model_and_trusts_the_lessons():
    lines = (ROOT / ".binder/postBuild").read_text().splitlines()
    modules = [re.match(r"python -m (\S+)", line)[1] for line in lines if line.startswith("python")]
    assert lines[0] == "#!/bin/bash" and modules == ["mhsa.pretrained", "nbformat.sign"]
    assert all(importlib.util.find_spec(module) for module in modules)


def test_the_class_adds_to_the_course_and_changes_no_pin():
    ours, extra = (
        set(re.findall(r"^([\w.-]+)==[\w.]+", (folder / "requirements.txt").read_text(), re.MULTILINE))
        for folder in (ROOT, CLASSROOM)
    )
    assert "torch" in ours and {"jupyterhub", "jupyterhub-idle-culler", "nbgitpuller"} == extra
