"""Stop code that never ends, on every system: it runs in a thread, so the main thread can hear an interrupt."""

import contextlib
import ctypes
import threading
import time
from collections.abc import Callable


class StopThread(BaseException):
    """Raised inside the thread to end it; an `except Exception` of the learner does not catch it."""


def run_with_timeout(fn: Callable, seconds: int | float):
    """fn(), or what it raises, or TimeoutError(still running: bool) after so many seconds."""
    result, error, ended = [], [], threading.Event()

    def work():
        with contextlib.suppress(StopThread):  # asked again while it was ending
            try:
                result.append(fn())
            except BaseException as raised:  # SystemExit too
                error.append(raised)
        ended.set()

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        end = time.monotonic() + seconds
        while not ended.wait(0.05) and time.monotonic() < end:  # short: Windows hears an interrupt only between waits
            pass
    finally:
        stop(thread, ended)
    if result:
        return result[0]
    if not error or isinstance(error[0], StopThread):
        raise TimeoutError(not ended.is_set())
    raise error[0]


def stop(thread: threading.Thread, ended: threading.Event) -> None:
    """Ask ten times: a request is heard between two steps of Python, not inside one long product or sleep."""
    for _ in range(10):
        if ended.is_set():
            break
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident or 0), ctypes.py_object(StopThread))
        ended.wait(0.1)
