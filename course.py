"""Multi-head attention, a course in JupyterLab. It needs Python 3.11 or newer, and a network at first starts only.

  python3 course.py [options of jupyter lab]   set up .venv once, then open JupyterLab on the first lesson
  python3 course.py test [options of pytest]   set up that and what tests need, once, then run every test
  python3 course.py refresh [lessons]          set up the same way, then put in exercises, run, mark slides, store clean
  python3 course.py slides [lessons]           set up the same way, then make a deck of each lesson, in slides/
  python3 course.py handout [lessons]          set up the same way, then copy the lessons without their outputs to
                                               handouts/; with the solutions: handout --solutions [lessons]
  python3 course.py --help                     show this text

Lessons are numbers, names or files (2, 02_many_heads, notebooks/02_many_heads.ipynb); all of them if none is named.

On Windows write `py` for `python3`. Everything is installed into the folder .venv; delete that to start afresh.
"""

import hashlib
import importlib.util
import os
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent
VENV = ROOT / ".venv"
PYTHON = VENV / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
STAMP = VENV / "complete"  # written last: no stamp, no whole set-up
LEARN = "requirements.txt"
TEST = "tests/requirements.txt"  # the same, and what the tests need

JUPYTER = ROOT / ".jupyter"  # its settings: first page, no news, no npm, …

MAKING = ("refresh", "slides", "handout")  # of lessons: these write files here

REASONS = [  # in pip's words -> in ours; the first match counts
    ("No space left|not enough space", "The disk is full. Free 3 GB (pip's cache counts too) and start again."),
    (
        "Permission denied|Access is denied|Read-only file system",
        "A file could not be written. Close what uses .venv (a JupyterLab?), check who owns this folder, start again.",
    ),
    (
        "certificate (is not yet valid|has expired)",
        "By this computer's clock the package index has no valid certificate. Set date and time and start again.",
    ),
    (
        "connection broken|connection reset|timed out|proxy|ssl",
        "The network or the package index cannot be reached. The first start needs it: connect and start again.",
    ),
    (
        "No matching distribution",
        "The package named above does not exist for this Python ({}.{} on {}). "
        "Python 3.11 to 3.14, 64 bit, has them all.".format(*sys.version_info[:2], sys.platform),
    ),
]


def stop(sentence):
    sys.exit("course.py: " + sentence)


def run(*command):
    """One step of the set-up, its output shown as it comes; stops with a sentence that says why it failed."""
    said = ""
    with subprocess.Popen(
        [str(part) for part in command], cwd=str(ROOT), stderr=subprocess.PIPE, encoding="utf-8", errors="replace"
    ) as step:
        for line in step.stderr:
            sys.stderr.write(line)
            said += line
    if step.returncode != 0:
        if shutil.disk_usage(str(ROOT)).free < 50e6:  # not every tool says so
            said += "No space left"
        stop(
            next(
                (why for words, why in REASONS if re.search(words, said, re.IGNORECASE)),
                "The set-up failed; the lines above say why. Mend that and start again.",
            )
        )


def fingerprint(packages):
    """Changes with the packages, this file, the folder and the Python: then the set-up is done again."""
    files = b"".join((ROOT / name).read_bytes() for name in (LEARN, packages, "pyproject.toml", "course.py"))
    return hashlib.sha256(files + repr((str(ROOT), sys.version_info[:2])).encode()).hexdigest()


def set_up(packages):
    """Makes .venv complete: at once if it is, from nothing if it was interrupted, else by what has changed."""
    done = STAMP.read_text().split() if PYTHON.exists() and STAMP.exists() else []
    if fingerprint(packages) in done:
        return
    if importlib.util.find_spec("ensurepip") is None:
        stop("Python's venv module is missing. On Debian and Ubuntu: sudo apt install python3-venv")
    print("Setting up .venv, once; this takes minutes. If it is interrupted, the next start repairs it.", flush=True)
    STAMP.unlink(missing_ok=True)
    run(sys.executable, "-m", "venv", VENV, *([] if done else ["--clear"]))
    install = [PYTHON, "-m", "pip", "install", "--disable-pip-version-check"]
    run(*install, "-r", packages)
    run(*install, "--no-deps", "--no-build-isolation", "-e", ".")  # requirements.txt has setuptools
    if subprocess.call([str(PYTHON), "-m", "mhsa.pretrained"]) != 0:
        print("Lesson 7 has no model yet; it says how to fetch it. The other lessons need none.", flush=True)
    STAMP.write_text("\n".join(sorted({fingerprint(LEARN), fingerprint(packages)})))


def check_home():
    """Jupyter keeps its files there, and without it would stop with a page of Python."""
    home = os.path.expanduser("~")
    if not os.access(home, os.W_OK):
        stop(
            "Jupyter keeps files in your home folder, and {} does not exist or cannot be written to. Set {} to a "
            "folder of your own and start again.".format(home, "HOME" if os.name == "posix" else "USERPROFILE")
        )


def find_lessons(names):
    """The files meant by these names; stops where one is no lesson, or where nothing could be written."""
    if not os.access(str(ROOT), os.W_OK):
        stop(f"{ROOT} cannot be written to. Copy the course to a folder of your own and start there.")
    paths_of = runpy.run_path(str(ROOT / "mhsa/authoring/names.py"))["paths_of"]  # mhsa itself needs torch
    return [str(path) for path in paths_of([name for name in names if name != "--solutions"])]


def become(*command):
    """Hand over to a program of .venv; its exit code is ours, and Ctrl-C reaches it alone."""
    os.chdir(str(ROOT))
    if os.access(str(VENV), os.W_OK):
        os.environ.setdefault("MPLCONFIGDIR", str(VENV / "matplotlib"))  # else it writes to the home folder
    for name, folder in (("JUPYTER_CONFIG_PATH", JUPYTER), ("PYTHONPATH", JUPYTER / "lean")):  # see that file
        os.environ[name] = os.pathsep.join([str(folder), *filter(None, [os.environ.get(name)])])
    command = [str(PYTHON), *command]
    if os.name == "posix":
        os.execv(command[0], command)
    sys.exit(subprocess.call(command))


def main(args):
    if args[:1] in (["--help"], ["-h"]):
        print(__doc__)
        return
    if args and args[0] not in ("test", *MAKING) and not args[0].startswith(("-", "notebooks")):
        stop(
            f"{args[0]} is no command. These are: test, refresh, slides, handout and --help. Without one, or with "
            "options of jupyter lab such as --port 9000, it opens the first lesson."
        )
    if sys.version_info < (3, 11):  # noqa: UP036
        stop("Python 3.11 or newer is needed; this is {}.{}. Newer ones: python.org.".format(*sys.version_info))
    check_home()
    lessons = find_lessons(args[1:]) if args and args[0] in MAKING else []
    try:
        set_up(TEST if args[:1] == ["test"] else LEARN)
    except KeyboardInterrupt:
        stop("Interrupted. The next start repairs the installation.")
    except OSError as error:
        stop(f"The set-up failed: {error}. Mend that and start again.")
    if args[:1] == ["test"]:
        os.environ.setdefault("OMP_NUM_THREADS", "1")  # files run side by side, the long ones first
        become("-m", "pytest", "-n", "auto", "--dist", "loadfile", "--no-loadscope-reorder", *args[1:])
    elif args[:1] == ["slides"]:
        lessons = lessons if args[1:] else ["notebooks/[0-9]*.ipynb"]
        become("-m", "nbconvert", "--to", "slides", "--output-dir", "slides", *lessons)
    elif lessons:
        become("-m", f"mhsa.authoring.{args[0]}", *args[1:])
    else:
        files = [str(path) for path in (ROOT / "notebooks").glob("*.ipynb")]
        subprocess.call([str(PYTHON), "-m", "nbformat.sign", *files], stdout=subprocess.DEVNULL)  # `jupyter trust`
        become("-m", "jupyterlab", *args)


if __name__ == "__main__":
    main(sys.argv[1:])
