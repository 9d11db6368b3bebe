"""What every recorded result needs: when and where it was made, and a file that is written whole or not at all."""

import platform
import sys
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryFile

import torch


def environment_info(device: str) -> dict[str, str]:
    """When and where something was measured, and with what."""
    cpu = f"CPU {platform.machine()} ({torch.backends.cpu.get_cpu_capability()}), {torch.get_num_threads()} threads"
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "device": torch.cuda.get_device_name() if device == "cuda" else cpu,
        "python": platform.python_version(),
        "torch": torch.__version__,
    }


def check_writable(file: Path) -> None:
    """Ends the program with a sentence if the file could not be written: before work that would be lost."""
    try:
        TemporaryFile(dir=file.parent).close()
        if file.exists():
            open(file, "r+b").close()
    except OSError as error:
        sys.exit(
            f"{file} cannot be written ({error.strerror}), so nothing was run. Copy the course, or name another place."
        )


def write_whole(file: Path, text: str) -> None:
    """Whole or not at all: an interrupt leaves the file as it was."""
    part = file.with_suffix(".part")
    part.write_text(text + "\n", encoding="utf-8")
    part.replace(file)
