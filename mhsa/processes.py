"""Run a function in several new processes on this machine. However that ends, none of them is left."""

import os
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from multiprocessing import connection, get_context, parent_process
from multiprocessing.process import BaseProcess
from pathlib import Path
from signal import strsignal
from threading import Thread
from typing import NoReturn

# torch.multiprocessing.start_processes() does most of this, but it ends the others with their parent on Linux only, and
# what a process printed before it failed is not in its error.


def run_processes(work: Callable[[int], object], num_processes: int, folder: Path, timeout: int) -> None:
    """work(rank) in each of num_processes; what they print goes to files in folder.

    Raises RuntimeError as soon as one fails or is killed, with what it printed, and TimeoutError after whole seconds.
    """
    spawn = get_context("spawn")
    logs = [folder / f"log{rank}" for rank in range(num_processes)]
    processes = [
        spawn.Process(target=_begin, args=(work, rank, log), daemon=True, name=f"process {rank} of {num_processes}")
        for rank, log in enumerate(logs)
    ]
    try:
        for process, log in zip(processes, logs):
            log.touch()  # also if it fails before it writes
            process.start()
        _wait(processes, logs, timeout)
    finally:
        for process in [p for p in processes if p.pid is not None]:  # those that were started
            process.kill()
            process.join()


def leave(code: int) -> NoReturn:
    """End this process at once: now and then torch's threads abort a Python that takes itself apart first."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _wait(processes: Sequence[BaseProcess], logs: Sequence[Path], timeout: int) -> None:
    """Return when all have ended well; raise as soon as one has not."""
    deadline = time.monotonic() + timeout
    while True:
        codes = [process.exitcode for process in processes]  # None while it runs, -signal
        if any(codes):
            raise RuntimeError("\n".join(_failures(processes, codes, logs)) + "\nThe others were ended too.")
        if None not in codes:
            return
        if (left := deadline - time.monotonic()) <= 0:
            raise TimeoutError(f"{len(processes)} processes were not done after {timeout} s, and were ended")
        connection.wait([process.sentinel for process, code in zip(processes, codes) if code is None], left)


def _failures(processes: Sequence[BaseProcess], codes: list[int | None], logs: Sequence[Path]) -> list[str]:
    """Those that were killed; if none was, those that failed, with what they printed."""
    killed = [
        f"{process.name} was ended by signal {-code} ({strsignal(-code)})"
        for process, code in zip(processes, codes)
        if code and code < 0
    ]
    unsaid = (
        'It printed nothing. Does the script start it under `if __name__ == "__main__":`? '
        "Is each class that it is given in a file?"
    )  # not in a notebook: a new process cannot find it
    return killed or [
        f"{process.name} failed:\n{log.read_text() or unsaid}"
        for process, code, log in zip(processes, codes, logs)
        if code
    ]


def _begin(work: Callable[[int], object], rank: int, log: Path) -> None:
    """What a started process does. What it prints goes to a file, which the starting process reads if it fails."""
    with open(log, "w") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    Thread(target=_end_with_parent, daemon=True).start()
    try:
        work(rank)
        leave(0)
    except Exception:
        traceback.print_exc()
        leave(1)


def _end_with_parent() -> None:
    parent = parent_process()
    assert parent
    parent.join()
    os._exit(1)
