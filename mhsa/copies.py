"""How often torch lays a tensor out anew while code runs: most such copies stand in no line of the code."""

from collections.abc import Callable
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode


class _Watch(TorchDispatchMode):
    """Sees every operation that torch runs, also those inside another one."""

    copies = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.copies += func is torch.ops.aten.clone.default
        return func(*args, **(kwargs or {}))


def count_copies(run: Callable[..., object], *args: Any, **kwargs: Any) -> int:
    """Copies that run(*args, **kwargs) makes by `contiguous`, `reshape` or `clone`, in its lines or in a product."""
    with _Watch() as watch:
        run(*args, **kwargs)
    return watch.copies
