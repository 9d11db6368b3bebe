"""Every public function and class shows itself in a short example, and the example says what comes out."""

import doctest

import pytest
import torch
from torch import nn

import mhsa
from mhsa import convert

SHOWN = {name: getattr(mhsa, name) for name in mhsa.__all__ if callable(getattr(mhsa, name))} | {
    f"convert.{name}": getattr(convert, name) for name in ("from_loop", "from_torch", "to_torch")
}


@pytest.mark.parametrize("name", SHOWN)
def test_the_example_runs_and_is_right(name):
    """With what a reader has imported: torch, nn and the public names."""
    known = {"torch": torch, "nn": nn} | {name: getattr(mhsa, name) for name in mhsa.__all__}
    example = doctest.DocTestParser().get_doctest(SHOWN[name].__doc__, known, name, None, None)
    assert example.examples
    said = []
    torch.manual_seed(0)
    result = doctest.DocTestRunner().run(example, out=said.append)
    assert not result.failed, "".join(said)
