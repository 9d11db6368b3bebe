"""Counts equal what is really held, computed and stored; the trace follows every number of a real tensor."""

import subprocess
import sys
from itertools import product

import pytest
import torch
from torch.profiler import ProfilerActivity, profile

from mhsa import (
    PRESETS,
    KVCache,
    MultiHeadAttention,
    count_flops,
    count_memory,
    count_parameters,
    merge_heads,
    split_heads,
    trace_shapes,
)

OPTIONS = [
    dict(),
    dict(bias=True),
    dict(num_kv_heads=2, d_k=11, d_v=13, key_dim=17, value_dim=19, bias=True),
    dict(num_kv_heads=1),
    dict(key_dim=17),
    dict(d_v=13, value_dim=19, bias=True),
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_parameters_are_those_of_the_layer(options):
    n, m = count_parameters(30, 6, **options), MultiHeadAttention(30, 6, **options)
    held = {
        name: sum(p.numel() for key, p in m.named_parameters() if name in key)
        for name in ("w_q.weight", "w_k.weight", "w_v.weight", "w_o.weight", "bias")
    }
    assert list(held.values()) == [n.w_q, n.w_k, n.w_v, n.w_o, n.bias]
    assert n.total == sum(held.values())


def test_parameters_worked_out_by_hand():
    """Not "divided by the number of heads": a head reads all of d_model. The sum does not depend on it."""
    n = count_parameters(8, 2, d_k=3, d_v=5, bias=True)
    assert n == (48, 48, 80, 80, 6 + 6 + 10 + 8, 8 * 3 + 8 * 3 + 8 * 5 + 5 * 8) and n.total == 286
    assert count_parameters(12, 4, num_kv_heads=2).per_head == 4 * 12 * 3
    assert count_parameters(12, 4, key_dim=7, value_dim=5).per_head == 12 * 3 + 7 * 3 + 5 * 3 + 3 * 12
    assert {count_parameters(768, h).total for h in (1, 12, 768)} == {2_359_296}


def test_flops_worked_out_by_hand():
    """Two for a multiply-add; softmax 5 a score; keys counted by T_k; the shared heads of grouped attention once."""
    assert count_flops(1, 1, 6, 3) == (3 * 72, 12, 15, 12, 72) and count_flops(1, 1, 6, 3).total == 327
    n = count_flops(2, 3, 6, 3, T_k=5, num_kv_heads=1, d_v=7)
    q, k, v = 2 * 3 * 6 * 6, 2 * 5 * 6 * 2, 2 * 5 * 6 * 7  # multiply-adds of the three projections
    assert n == (2 * (q + k + v), 2 * 2 * 3 * 3 * 5 * 2, 5 * 2 * 3 * 3 * 5, 2 * 2 * 3 * 3 * 5 * 7, 2 * 2 * 3 * 21 * 6)


@pytest.mark.parametrize("dtype, size", [(torch.float64, 8), (torch.float32, 4), (torch.bfloat16, 2)], ids=str)
def test_memory_is_what_the_tensors_take(dtype, size):
    options = dict(num_kv_heads=2, d_k=11, d_v=13)
    n, m, cache = count_memory(3, 5, 30, 6, dtype=dtype, **options), MultiHeadAttention(30, 6, **options), KVCache()
    m.to(dtype)(torch.zeros(3, 5, 30, dtype=dtype), cache=cache)
    assert n.weights == sum(p.nbytes for p in m.parameters()) and n.kv_cache == cache.nbytes
    assert n.qkv == size * 3 * 5 * (6 * 11 + 2 * 11 + 2 * 13) and n.scores == size * 3 * 6 * 5 * 5
    assert n.total == n.weights + n.qkv + n.scores
    assert count_memory(3, 5, 30, 6) == count_memory(3, 5, 30, 6, dtype=torch.float32)


@pytest.mark.parametrize(
    "name, total",
    [
        ("Transformer base", 1_048_576),
        ("BERT-base", 2_362_368),
        ("BERT-large", 4_198_400),
        ("GPT-2 small", 2_362_368),
        ("GPT-2 XL", 10_246_400),
        ("GPT-3 175B", 604_028_928),
        ("T5-11B", 67_108_864),
        ("Llama-3-70B", 150_994_944),
    ],
)
def test_presets_give_the_published_sizes(name, total):
    """4·d² (+ 4·d with biases), save T5-11B's 4·1024·16384 and Llama's 8 heads of keys and values for 64."""
    assert count_parameters(**PRESETS[name]._asdict()).total == total


def test_the_trace_walks_from_input_to_output():
    assert [(step.code, step.shape, step.axes) for step in trace_shapes(2, 5, 21, 7)] == [
        ("x", (2, 5, 21), "B T d_model"),
        ("q = x @ W_Q", (2, 5, 21), "B T d_model"),
        ("q = q.view(B, T, h, d_k)", (2, 5, 7, 3), "B T h d_k"),
        ("q = q.transpose(1, 2)", (2, 7, 5, 3), "B h T d_k"),
        ("s = q @ k.mT", (2, 7, 5, 5), "B h T T"),
        ("w = softmax(s / sqrt(d_k))", (2, 7, 5, 5), "B h T T"),
        ("z = w @ v", (2, 7, 5, 3), "B h T d_k"),
        ("z = z.transpose(1, 2)", (2, 5, 7, 3), "B T h d_k"),
        ("z = z.contiguous()", (2, 5, 7, 3), "B T h d_k"),
        ("z = z.view(B, T, d_model)", (2, 5, 21), "B T d_model"),
        ("out = z @ W_O", (2, 5, 21), "B T d_model"),
    ]


def test_flops_of_the_steps_are_the_counted_ones():
    steps, n = trace_shapes(2, 5, 21, 7), count_flops(2, 5, 21, 7)
    assert n.projections % 3 == 0  # the trace shows the query's way only
    assert [step.flops for step in steps] == [
        0,
        n.projections // 3,
        0,
        0,
        n.scores,
        n.softmax,
        n.mix,
        0,
        0,
        0,
        n.output,
    ]


@pytest.mark.parametrize("sizes", [(10**9, 10**6, 512, 8), (1, 10**12, 8, 2), (10**20, 3, 8, 2), (1, 1, 2**40, 2)])
def test_sizes_beyond_all_memory_are_refused(sizes):
    with pytest.raises(ValueError, match="need more bytes than 64-bit addresses reach; smaller sizes"):
        trace_shapes(*sizes)
    assert trace_shapes(1000, 10**6, 512, 8)[-1].shape == (1000, 10**6, 512)  # 32 TB of scores: nothing is stored


@pytest.mark.parametrize("tokens, h, copies", [(5, 7, ["z = z.contiguous()"]), (5, 1, []), (1, 7, [])])
def test_one_step_only_copies_unless_there_is_one_head_or_one_token(tokens, h, copies):
    steps = trace_shapes(2, tokens, 21, h)
    assert [step.code for step in steps if step.copies] == copies
    assert [step.is_contiguous for step in steps if step.code == "z = z.transpose(1, 2)"] == [not copies]


def test_every_step_says_what_it_is():
    steps = trace_shapes(2, 5, 21, 7)
    layout = ["layout"]
    kinds = ["input", "product", *2 * layout, "product", "softmax", "product", *3 * layout, "product"]
    assert [step.kind for step in steps] == kinds
    assert [step.has_heads for step in steps] == [False] + 9 * [True] + [False]


@pytest.mark.parametrize(
    "sizes, copied",
    [
        ((1, 5, 21, 7), [("z",)]),
        ((2, 5, 21, 7), [("q", "k"), ("v",), ("z",)]),
        ((3, 5, 21, 21), [("q", "k"), ("v",), ("z",)]),
        ((2, 1, 21, 7), []),
        ((2, 5, 21, 1), []),
        ((2, 2**18, 12288, 96), [("q", "k"), ("v",), ("z",)]),
    ],
)
def test_products_of_several_sentences_copy_what_they_multiply(sizes, copied):
    assert [step.copied for step in trace_shapes(*sizes) if step.copied] == copied


def test_the_wrong_split_leaves_heads_that_no_product_must_copy():
    assert [step.copied for step in trace_shapes(2, 5, 21, 7, wrong_split=True) if step.copied] == [("z",)]


def copies_in_a_profile(run):
    with profile(activities=[ProfilerActivity.CPU]) as record, torch.no_grad():
        run()
    return sum(event.count for event in record.key_averages() if event.key == "aten::copy_")


@pytest.mark.parametrize("B, T, h", list(product((1, 2, 3), (1, 5), (1, 3))))
def test_as_many_copies_as_a_profiler_sees(B, T, h):
    """In plain products, and in the layer's own; torch's fused kernel needs none."""
    layer, x = MultiHeadAttention(33 * h, h), torch.randn(B, T, 33 * h)
    q, k, v = (split_heads(w(x), h) for w in (layer.w_q, layer.w_k, layer.w_v))
    counted = sum(len(step.copied) for step in trace_shapes(B, T, 33 * h, h))
    assert copies_in_a_profile(lambda: merge_heads(torch.softmax(q @ k.mT, -1) @ v)) == counted
    assert copies_in_a_profile(lambda: layer(x, need_weights=True)) == counted
    assert copies_in_a_profile(lambda: layer(x)) == 0


def test_the_trace_loads_no_compiler():
    """A dispatch mode would count copies too, and load torch._dynamo: 40 MB in every student's kernel."""
    script = "import sys, mhsa; mhsa.trace_shapes(2, 5, 12, 4); print('torch._dynamo' in sys.modules)"
    assert subprocess.check_output([sys.executable, "-c", script], text=True) == "False\n"


def test_the_trace_needs_gradients_off_or_on_and_draws_no_random_numbers():
    plain = trace_shapes(2, 5, 21, 7)
    torch.manual_seed(3)
    expected = torch.rand(5)
    torch.manual_seed(3)
    for off in (torch.no_grad, torch.inference_mode):
        with off():
            assert trace_shapes(2, 5, 21, 7) == plain
    assert torch.equal(torch.rand(5), expected)


@pytest.mark.parametrize("B, T, h, d", [(2, 5, 3, 2), (3, 1, 2, 5), (1, 4, 1, 3)])
def test_where_follows_every_number(B, T, h, d):
    """By its index and by its place in memory, in every step but the scores."""
    x = torch.arange(B * T * h * d).view(B, T, h * d)
    q, heads = x.unflatten(-1, (h, d)), torch.stack(x.split(d, -1), 1)  # a view, and new memory as of w @ v
    z = heads.movedim(1, 2)
    tensors = [x, x, q, q.movedim(2, 1), heads, z, z.contiguous(), x, x]
    steps = [step for step in trace_shapes(B, T, h * d, h) if step.axes != "B h T T"]
    for step, tensor in zip(steps, tensors, strict=True):
        memory = tensor.as_strided((tensor.numel(),), (1,))
        for place in product(range(B), range(T), range(h * d)):
            index, offset = step.where(*place)
            assert tensor[index] == memory[offset] == x[place], (step.code, place)


def test_where_knows_no_place_for_a_score_and_refuses_one_outside():
    steps = trace_shapes(2, 5, 6, 3)
    assert [step.where(1, 4, 5) for step in steps if step.axes == "B h T T"] == [None, None]
    assert steps[-1].where(1, 4, 5) == ((1, 4, 5), 59)
    for place in ((2, 0, 0), (0, 5, 0), (0, 0, 6)):
        for step in steps:
            if step.axes != "B h T T":
                with pytest.raises(ValueError, match=r"\(b, t, c\)"):
                    step.where(*place)


def test_a_shape_too_large_for_memory_is_traced_all_the_same():
    """2**36 tokens of 12,288 numbers; strides, copies and FLOPs as for a small one."""
    large, small = (trace_shapes(n, n, 12288, 96) for n in (2**18, 2))
    assert [(step.code, step.copied, step.is_contiguous) for step in large] == [
        (step.code, step.copied, step.is_contiguous) for step in small
    ]
    steps = {step.code: step for step in large}
    assert steps["q = q.transpose(1, 2)"].strides == (2**18 * 12288, 128, 12288, 1)
    assert steps["s = q @ k.mT"].flops == 2 * 2**18 * 96 * 2**36 * 128
    assert steps["x"].nbytes == 4 * 2**36 * 12288
