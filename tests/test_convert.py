"""from_loop, from_torch and to_torch: the same numbers, dtype, device and mode on both sides, and nothing shared."""

import pytest
import torch
from helpers import rand, randomised, same
from torch import nn

from mhsa import MultiHeadAttention, MultiHeadAttentionLoop, causal_mask, padding_mask

B, T, S, D, H = 2, 5, 7, 30, 6
KINDS = [dict(), dict(bias=False), dict(kdim=17), dict(kdim=17, vdim=19, bias=False), dict(batch_first=True)]
CONVERSIONS = [
    (lambda: MultiHeadAttentionLoop(D, H, d_k=11, d_v=13, bias=True), MultiHeadAttention.from_loop),
    (lambda: nn.MultiheadAttention(D, H), MultiHeadAttention.from_torch),
    (lambda: nn.MultiheadAttention(D, H, kdim=17, vdim=19), MultiHeadAttention.from_torch),
    (lambda: MultiHeadAttention(D, H, bias=True), MultiHeadAttention.to_torch),
    (lambda: MultiHeadAttention(D, H, key_dim=17), MultiHeadAttention.to_torch),
]
each_conversion = pytest.mark.parametrize(
    "make, convert", CONVERSIONS, ids=["loop", "torch", "torch kdim", "ours", "ours key_dim"]
)


def inputs(kind):
    return (rand(B, T, D), rand(B, S, kind.get("kdim", D), seed=1), rand(B, S, kind.get("vdim", D), seed=2))


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_torch_and_back_gives_the_same_numbers(kind):
    """Interleaved instead of stacked q, k, v; a lost bias; forgotten batch_first; a mask taken the other way round."""
    theirs = randomised(nn.MultiheadAttention(D, H, **kind)).eval()
    ours = MultiHeadAttention.from_torch(theirs)
    back = ours.to_torch()
    assert type(back) is nn.MultiheadAttention and back.batch_first and not back.training
    for name, p in theirs.state_dict().items():
        same(back.state_dict()[name], p, 0)
    causal, padding = causal_mask(T, S), padding_mask([6, 3], S)
    expected, weights = back(
        *inputs(kind), attn_mask=~causal, key_padding_mask=~padding[:, 0, 0], average_attn_weights=False
    )
    out, got = ours(*inputs(kind), mask=causal & padding, need_weights=True)
    same(out, expected)
    same(got, weights)
    if not theirs.batch_first:
        swapped = theirs(*(x.transpose(0, 1) for x in inputs(kind)), need_weights=False)[0].transpose(0, 1)
        same(ours(*inputs(kind)), swapped)


def test_ours_to_torch_and_back():
    for options in (dict(), dict(bias=True), dict(key_dim=17, value_dim=19, bias=True), dict(value_dim=19)):
        ours = randomised(MultiHeadAttention(D, H, **options))
        again = MultiHeadAttention.from_torch(ours.to_torch())
        assert again.state_dict().keys() == ours.state_dict().keys()
        for name, p in ours.state_dict().items():
            same(again.state_dict()[name], p, 0)


def test_heads_of_the_loop_keep_their_order():
    loop = randomised(MultiHeadAttentionLoop(D, H, d_k=11, d_v=13, bias=True))
    m = MultiHeadAttention.from_loop(loop)
    for i, head in enumerate(loop.heads):
        assert torch.equal(m.w_q.weight[11 * i : 11 * i + 11], head.w_q.weight)
        assert torch.equal(m.w_v.bias[13 * i : 13 * i + 13], head.w_v.bias)
    x = rand(B, T, D)
    same(m(x, need_weights=True)[1], loop(x, need_weights=True)[1])


@each_conversion
@pytest.mark.parametrize("dtype", [torch.float16, torch.float64])
@pytest.mark.parametrize("training", [True, False])
def test_dtype_device_and_mode_are_kept(make, convert, dtype, training):
    other = convert(make().to(dtype).train(training))
    assert all(p.dtype == dtype and not p.is_meta for p in other.parameters())
    assert all(child.training == training for child in other.modules())
    assert all(p.is_meta for p in convert(make().to("meta")).parameters())


@each_conversion
def test_the_two_share_no_memory_and_the_copy_can_be_trained(make, convert):
    one = make()
    other = convert(one)
    before = [p.clone() for p in other.parameters()]
    for p in one.parameters():
        nn.init.constant_(p, 7)
    assert all(torch.equal(p, q) for p, q in zip(other.parameters(), before, strict=True))
    assert all(p.requires_grad and p.is_leaf for p in other.parameters())


def test_dropout_is_kept():
    theirs = MultiHeadAttention(D, H, dropout=0.25).to_torch()
    assert theirs.dropout == 0.25 and MultiHeadAttention.from_torch(theirs).dropout == 0.25


@pytest.mark.parametrize(
    "options, words",
    [
        (dict(num_kv_heads=2), "num_kv_heads=2 .* num_kv_heads=6"),
        (dict(d_k=7), "d_k=7 .* d_k=5"),
        (dict(d_v=13), "d_v=13 .* d_v=5"),
    ],
)
def test_what_torch_cannot_do_is_refused_by_name(options, words):
    with pytest.raises(ValueError, match=words):
        MultiHeadAttention(D, H, **options).to_torch()


@pytest.mark.parametrize("option", ["add_bias_kv", "add_zero_attn"])
def test_what_we_cannot_do_is_refused_by_name(option):
    with pytest.raises(ValueError, match=f"{option}=True has no counterpart"):
        MultiHeadAttention.from_torch(nn.MultiheadAttention(D, H, **{option: True}))
