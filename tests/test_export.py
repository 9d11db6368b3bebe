"""torch.compile and torch.export leave lengths open: one program, right for every length, and the flag a plain bool."""

import pytest
import torch
from helpers import each_path, rand, same
from torch import nn
from torch.export import Dim

from mhsa import (
    KVCache,
    MultiHeadAttention,
    MultiHeadAttentionLoop,
    SingleHeadAttention,
    attention,
    causal_mask,
    padding_mask,
)

pytestmark = pytest.mark.usefixtures("as_a_user")
D, H = 12, 4
B, T, S = Dim("B", min=1, max=64), Dim("T", min=2, max=64), Dim("S", min=2, max=64)


class Program(nn.Module):
    """run(layer, …) as a module of one or two inputs, which is what export takes."""

    def __init__(self, layer, run):
        super().__init__()
        self.layer, self.run = layer, run

    def forward(self, x, y=None):
        return self.run(self.layer, x) if y is None else self.run(self.layer, x, y)


def tokens(length, batch=2, seed=0):
    return rand(batch, length, D, seed=seed, dtype=torch.float32)


def everything(result):
    """The tensors of a result, one or more."""
    return [result] if isinstance(result, torch.Tensor) else list(result)


def check_exported(layer, run, example, open_sizes, others):
    program = Program(layer.eval(), run)
    names = ("x", "y")[: len(example)]
    exported = torch.export.export(program, example, dynamic_shapes=dict(zip(names, open_sizes))).module()
    for given in others:
        for got, expected in zip(everything(exported(*given)), everything(program(*given)), strict=True):
            same(got, expected, 1e-5)


@each_path
@pytest.mark.parametrize("options", [{}, {"num_kv_heads": 2, "d_v": 5}, {"num_kv_heads": 1}], ids=str)
def test_batch_and_length_are_open(options, need_weights):
    check_exported(
        MultiHeadAttention(D, H, **options),
        lambda layer, x: layer(x, is_causal=True, need_weights=need_weights),
        (tokens(7),),
        [{0: B, 1: T}],
        [(tokens(3),), (tokens(11, batch=5),), (tokens(29, batch=1),)],
    )


@each_path
@pytest.mark.parametrize("is_causal", [False, True])
def test_queries_and_keys_may_turn_out_equally_many(need_weights, is_causal):
    """The example has 7 and 5: a program that took that for a rule would refuse 4 and 4."""
    check_exported(
        MultiHeadAttention(D, H),
        lambda layer, x, y: layer(x, y, is_causal=is_causal, need_weights=need_weights),
        (tokens(7), tokens(5, seed=1)),
        [{1: T}, {1: S}],
        [(tokens(t), tokens(s, seed=1)) for t, s in ((4, 4), (3, 9), (9, 3))],
    )


@each_path
def test_masks_of_an_open_length(need_weights):
    """Given, or made of the length by causal_mask() and padding_mask()."""

    def made(layer, x):
        n = x.shape[1]
        return layer(x, mask=causal_mask(n) & padding_mask([2, 1], n), need_weights=need_weights)

    check_exported(MultiHeadAttention(D, H), made, (tokens(7),), [{1: T}], [(tokens(3),), (tokens(13),)])
    check_exported(
        MultiHeadAttention(D, H),
        lambda layer, x, y: layer(x, mask=y, is_causal=True, need_weights=need_weights),
        (tokens(7), padding_mask([7, 3], 7)),
        [{1: T}, {3: T}],
        [(tokens(n), padding_mask([n, 2], n)) for n in (3, 13)],
    )


@pytest.mark.parametrize("make", [lambda: MultiHeadAttentionLoop(D, H), lambda: SingleHeadAttention(D, 5)])
def test_the_loop_and_one_head(make):
    check_exported(
        make(),
        lambda layer, x: layer(x, mask=causal_mask(x.shape[1]), need_weights=True),
        (tokens(7),),
        [{0: B, 1: T}],
        [(tokens(3),), (tokens(11, batch=5),)],
    )


def test_the_formula():
    check_exported(
        nn.Identity(),
        lambda _, x: attention(x, x, x, causal_mask(x.shape[1])),
        (tokens(7),),
        [{0: B, 1: T}],
        [(tokens(3),), (tokens(11, batch=5),)],
    )


def test_a_prompt_of_any_length_and_one_token_after_it():
    def write(layer, x, y):
        cache = KVCache()
        return layer(x, is_causal=True, cache=cache), layer(y, is_causal=True, cache=cache)

    check_exported(
        MultiHeadAttention(D, H, num_kv_heads=2),
        write,
        (tokens(7), tokens(1, seed=1)),
        [{1: T}, None],
        [(tokens(n), tokens(1, seed=1)) for n in (3, 13)],
    )


@each_path
@pytest.mark.parametrize("dynamic", [True, None])
def test_compiled_in_one_graph_for_all_lengths(need_weights, dynamic):
    torch._dynamo.reset()
    layer = MultiHeadAttention(D, H, num_kv_heads=2).eval()
    compiled = torch.compile(layer, fullgraph=True, dynamic=dynamic, backend="eager")
    for n in (5, 9, 7, 1):
        for given in ((tokens(n),), (tokens(n), tokens(n + 2, seed=1))):
            got, expected = (f(*given, is_causal=True, need_weights=need_weights) for f in (compiled, layer))
            for a, b in zip(everything(got), everything(expected), strict=True):
                same(a, b, 1e-5)


@torch.no_grad()
def test_decoding_compiled_in_one_graph():
    torch._dynamo.reset()
    layer, caches = MultiHeadAttention(D, H).eval(), (KVCache(), KVCache())
    step = torch.compile(
        lambda x, cache: layer(x, is_causal=True, cache=cache), fullgraph=True, dynamic=True, backend="eager"
    )
    for n in (5, 1, 1, 3):
        same(step(tokens(n, seed=n), caches[0]), layer(tokens(n, seed=n), is_causal=True, cache=caches[1]), 1e-5)
