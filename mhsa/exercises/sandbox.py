"""Where a learner's code runs in a check: what it prints is caught, and nothing of the session is changed."""

import builtins
import contextlib
import io
from collections.abc import Iterator

import torch


class Printed(io.StringIO):
    """Keeps the beginning of what is printed: an endless loop may print without end."""

    def write(self, text: str) -> int:
        return super().write(text) if self.tell() < 10_000 else len(text)


@contextlib.contextmanager
def sandbox(printed: Printed) -> Iterator[None]:
    """input() is refused, torch.zeros(...) has the inputs' float64, and the random numbers go on as if nothing was.

    One thread computes: the inputs are tiny, and to wake up others takes longer than the work.
    """
    asked, dtype, threads = builtins.input, torch.get_default_dtype(), torch.get_num_threads()
    with contextlib.redirect_stdout(printed), torch.random.fork_rng(devices=[]):
        builtins.input = _refuse
        torch.set_default_dtype(torch.float64)
        torch.set_num_threads(1)
        try:
            yield
        finally:
            builtins.input = asked
            torch.set_default_dtype(dtype)
            torch.set_num_threads(threads)


def _refuse(prompt=""):
    """input() would wait for ever: an error says so instead."""
    raise RuntimeError("input() waits for someone to type. A check cannot: use the arguments")
