"""What several tests share: fixed random numbers, a comparison, attention worked out by hand, handles on explorers, and
how another program is started."""

import asyncio
import os
import re
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

ALONE = {"PYTHONPATH": str(Path(__file__).parents[1] / "mhsa/exercises")}  # progress.py by itself: no second for torch
AS_A_USER = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"] if os.geteuid() == 0 else []
each_path = pytest.mark.parametrize("need_weights", [False, True], ids=["fused", "explicit"])


def rand(*shape, seed=0, dtype=torch.float64):
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed)).to(dtype)


def randomised(module, dtype=torch.float64):
    """The module with fresh numbers in every parameter, its biases too (torch fills some of them with zeros)."""
    for seed, p in enumerate(module.to(dtype).parameters(), start=1000):
        nn.init.normal_(p, std=0.4, generator=torch.Generator().manual_seed(seed))
    return module


def same(got, expected, tol=1e-12):
    torch.testing.assert_close(got.detach(), torch.as_tensor(expected, dtype=got.dtype).detach(), rtol=tol, atol=tol)


def first(result):
    """The output, with or without the weights beside it."""
    return result[0] if isinstance(result, tuple) else result


def by_hand(m, query, key, value, allowed=None):
    """MultiHeadAttention m in numpy, one sentence, head and query after the other -> (out, weights).

    allowed broadcasts to (B, h, T_q, T_k); a query with no key keeps its zeros.
    """

    def project(linear, x, heads):
        bias = 0 if linear.bias is None else linear.bias.detach().numpy()
        y = x.detach().numpy() @ linear.weight.detach().numpy().T + bias
        return np.split(y, heads, axis=-1)

    B, T_q, T_k, h = len(query), query.shape[1], key.shape[1], m.num_heads
    allowed = np.broadcast_to(True if allowed is None else allowed.numpy(), (B, h, T_q, T_k))
    q, k, v = project(m.w_q, query, h), project(m.w_k, key, m.num_kv_heads), project(m.w_v, value, m.num_kv_heads)
    weights, heads = np.zeros((B, h, T_q, T_k)), np.zeros((B, T_q, h, m.d_v))
    for b, i, t in product(range(B), range(h), range(T_q)):
        g = i * m.num_kv_heads // h  # neighbouring heads share keys and values
        seen = np.flatnonzero(allowed[b, i, t])
        if len(seen):
            e = np.exp(k[g][b, seen] @ q[i][b, t] / np.sqrt(m.d_k))
            weights[b, i, t, seen] = e / e.sum()
            heads[b, t, i] = weights[b, i, t] @ v[g][b]
    out = torch.from_numpy(project(m.w_o, torch.from_numpy(heads.reshape(B, T_q, -1)), 1)[0])
    return out, torch.from_numpy(weights)


def message(call, *args, **options):
    """What the learner reads; torch's and Python's own errors (RuntimeError, TypeError) fail the test."""
    with pytest.raises(ValueError) as error:
        call(*args, **options)
    return str(error.value)


def refused(call, *words):
    said = message(call)
    for word in map(str, words):  # whole words and numbers: 5 is not in 15 or 0.5
        assert re.search(rf"(?<![\w.]){re.escape(word)}(?!\w|\.\d)", said), f"{word!r} is missing: {said}"


def controls(explorer):
    """{description: control}, row by row; a row may be one control."""
    rows = [getattr(row, "children", [row]) for row in explorer.children[:-1]]
    return {control.description: control for row in rows for control in row}


def drawings(explorer):
    """A list that every new picture is added to."""
    drawn = []
    explorer.view.observe(lambda change: drawn.append(change["new"]), names="svg")
    return drawn


def run_async(coroutine):
    """In a thread of its own: in this one Playwright's loop may be running."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, coroutine).result()
