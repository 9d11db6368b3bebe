"""attention(): the formula, its masks, and the number formats it must survive."""

import math

import pytest
import torch
from helpers import rand, same

from mhsa import attention, causal_mask

T, S, D_K, D_V = 5, 7, 11, 13
EYE = torch.eye(3)
HALVES = pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
FORMS = [(T, S), (1, S), (T, 1), (S,), (), (1, 1, T, S), (2, 1, 1, S), (1, 3, T, 1), (2, 3, T, S)]


def inputs(*lead, dtype=torch.float64):
    return (
        rand(*lead, T, D_K, dtype=dtype),
        rand(*lead, S, D_K, seed=1, dtype=dtype),
        rand(*lead, S, D_V, seed=2, dtype=dtype),
    )


def test_weights_are_shares_of_the_exponentials():
    scores = torch.tensor([[1, 2, 5], [3, 3, 3]]).log()  # 1 + 2 + 5 = 8
    out, weights = attention(scores, EYE, 10 * EYE, scale=1.0)
    same(weights, [[1 / 8, 2 / 8, 5 / 8], [1 / 3] * 3], 1e-6)
    same(out, [[10 / 8, 20 / 8, 50 / 8], [10 / 3] * 3], 1e-6)


def test_the_scale_is_one_over_the_root_of_d_k():
    """Not d_k, d_v or the number of keys: q·k = 2 ln 3 over √4 gives odds of 3 to 1."""
    q, k = torch.zeros(1, 4), torch.zeros(2, 4)
    q[0, 3], k[1, 3] = 2 * math.log(3), 1
    same(attention(q, k, torch.ones(2, 9))[1], [[1 / 4, 3 / 4]], 1e-6)


@pytest.mark.parametrize("scale, expected", [(0.0, [1 / 2, 1 / 2]), (2.0, [1 / 10, 9 / 10]), (-1.0, [3 / 4, 1 / 4])])
def test_a_given_scale_replaces_it(scale, expected):
    q, k = torch.tensor([[math.log(3)]]), torch.tensor([[0.0], [1.0]])
    same(attention(q, k, k, scale=scale)[1], [expected], 1e-6)


def test_true_means_may_attend():
    zeros = torch.zeros(3, 3)
    same(attention(zeros, EYE, EYE, torch.tensor([[False, True, True]]))[1], [[0, 1 / 2, 1 / 2]] * 3, 1e-6)
    same(attention(zeros, EYE, EYE, causal_mask(3))[0], [[1, 0, 0], [1 / 2, 1 / 2, 0], [1 / 3] * 3], 1e-6)


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_every_form_of_mask_equals_the_same_mask_written_out(form):
    q, k, v = inputs(2, 3)
    mask = rand(*form) > 0 if form else torch.tensor(True)
    full = mask.expand(2, 3, T, S)
    for got, expected in zip(attention(q, k, v, mask), attention(q, k, v, full), strict=True):
        same(got, expected)
    kept = torch.einsum("...td,...sd->...ts", q, k).div(D_K**0.5).exp() * full
    same(attention(q, k, v, mask)[1], (kept / kept.sum(-1, keepdim=True)).nan_to_num(0))


def test_a_hidden_key_leaves_no_trace():
    """A fill of -1e9 is the largest score where the others are lower still."""
    q, k, v = inputs()
    mask = torch.arange(S) < 4
    out, weights = attention(q, k, v, mask)
    k[4:], v[4:] = 1e6, -1e6
    assert torch.equal(attention(q, k, v, mask)[0], out) and not weights[:, 4:].any()
    low = torch.full_like(k, -1e6)
    same(attention(q.fill_(1e6), low, v, mask)[1], [[1 / 4] * 4 + [0] * 3] * T)


def test_a_score_of_minus_infinity_does_not_open_a_closed_key():
    """1e30 · -1e30 overflows to -inf, below any finite number that closes a key."""
    q, k, v = torch.tensor([[1e30]]), torch.tensor([[-1e30], [1.0]]), torch.tensor([[3.0], [7.0]])
    out, weights = attention(q, k, v, torch.tensor([[True, False]]))
    assert weights[0, 1] == 0 and out[0, 0] in (0, 3)


@pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated")  # torch's own forward mode uses it
@pytest.mark.parametrize("grad", [True, False])
def test_vmap_and_jvp_work_with_and_without_gradients(grad):
    q, k, v = inputs(3)
    mask = rand(T, S) > 0
    expected, (one, small) = attention(q, k, v, mask), (rand(3, T, D_K, seed=7), 1e-6)
    with torch.set_grad_enabled(grad):
        for got, right in zip(torch.vmap(lambda q, k, v: attention(q, k, v, mask))(q, k, v), expected, strict=True):
            same(got, right)
        out, slope = torch.func.jvp(lambda q: attention(q, k, v, mask)[0], (q,), (one,))
        with torch.autograd.forward_ad.dual_level():
            dual = attention(torch.autograd.forward_ad.make_dual(q, one), k, v, mask)[0]
            same(torch.autograd.forward_ad.unpack_dual(dual).tangent, slope)
    difference = attention(q + small * one, k, v, mask)[0] - attention(q - small * one, k, v, mask)[0]
    same(out, expected[0])
    same(slope, difference / (2 * small), 1e-7)


@pytest.mark.parametrize("dropout_p", [0.0, 0.5])
def test_a_query_with_no_key_reads_nothing(dropout_p):
    """Not 1/S of every value (fill of -1e9), not NaN (fill of -inf), not NaN in the next step's gradients."""
    q, k, v = (x.requires_grad_() for x in inputs(2))
    mask = (rand(2, T, S) > 0).index_fill(1, torch.tensor([0, 3]), False)
    with torch.autograd.set_detect_anomaly(True):
        out, weights = attention(q, k, v, mask, dropout_p=dropout_p)
        (out.square().sum() + weights.square().sum()).backward()
    assert not out[:, [0, 3]].any() and not weights[:, [0, 3]].any() and not q.grad[:, [0, 3]].any()
    assert out[:, 1].all() or dropout_p
    assert all(x.grad.isfinite().all() and x.grad.any() for x in (q, k, v))


def test_gradients_are_those_of_small_differences():
    q, k, v = (rand(*shape, seed=shape[1]).requires_grad_() for shape in ((5, 2), (3, 2), (3, 4)))
    mask = causal_mask(5, 3)  # its first two rows are empty
    assert torch.autograd.gradcheck(lambda q, k, v: attention(q, k, v, mask), (q, k, v))


def test_no_keys_or_no_queries():
    q, k, v = inputs(2)
    out, weights = attention(q, k[:, :0], v[:, :0])
    assert out.shape == (2, T, D_V) and weights.shape == (2, T, 0) and not out.any()
    assert attention(q[:, :0], k, v)[0].shape == (2, 0, D_V)


@pytest.mark.parametrize("p", [0.25, 0.5])
def test_dropout_keeps_or_scales_each_weight_and_returns_what_it_applied(p):
    torch.manual_seed(5)
    q, k, v = inputs(31)
    _, plain = attention(q, k, v)
    out, weights = attention(q, k, v, dropout_p=p)
    kept = weights != 0
    same(weights, kept * plain / (1 - p))
    same(out, weights @ v)
    assert abs(kept.double().mean() - (1 - p)) < 0.05
    assert not torch.equal(attention(q, k, v, dropout_p=p)[1], weights)


@HALVES
def test_large_half_precision_scores_do_not_overflow(dtype):
    """64 · 400 · 400 = 10,240,000 is inf in float16, and so is 1/8 of it; the right weights are one-hot."""
    k = 400 * torch.where(rand(S, 64) > 0, 1, -1).to(dtype)
    v = rand(S, D_V, dtype=dtype)
    for mask in (None, torch.ones(T, S, dtype=torch.bool)):
        out, weights = attention(k[:T], k, v, mask)
        assert out.dtype == weights.dtype == dtype
        assert torch.equal(weights, torch.eye(T, S, dtype=dtype)) and torch.equal(out, v[:T])


@HALVES
def test_half_precision_loses_only_its_own_rounding(dtype):
    eps = torch.finfo(dtype).eps
    q, k, v = inputs(2, dtype=dtype)
    expected = attention(q.double(), k.double(), v.double())[0]
    same(attention(q, k, v)[0].double(), expected, 4 * eps)


@pytest.mark.parametrize("grad", [True, False])
@pytest.mark.parametrize("masked", [True, False])
def test_autocast_leaves_scores_and_softmax_in_float32(grad, masked):
    """In bfloat16 300 · 301 and 300 · 300 are one number, and rows of weights sum to 0.998."""
    q, k = torch.tensor([[300.0, 0.0]]), torch.tensor([[300.0, 0.0], [301.0, 0.0], [0.0, 1.0]])
    mask, many = torch.tensor([True, True, False]) if masked else None, inputs(2, dtype=torch.float32)
    plain = attention(*many)
    with torch.set_grad_enabled(grad), torch.autocast("cpu", torch.bfloat16):
        out, weights = attention(q, k, EYE, mask)
        cast = attention(*many)
    same(weights, [[0.0, 1.0, 0.0]], 1e-6)
    assert out.dtype == weights.dtype == torch.float32
    for got, expected in zip(cast, plain, strict=True):
        assert torch.equal(got, expected)


@pytest.mark.parametrize("dtype, other", [(torch.bfloat16, torch.float32), (torch.float32, torch.bfloat16)])
def test_mixed_types_which_autocast_permits_give_results_in_the_type_of_q(dtype, other):
    (q, *_), (_, k, v) = inputs(2, dtype=dtype), inputs(2, dtype=other)
    with torch.autocast("cpu", torch.bfloat16):
        out, weights = attention(q, k, v)
    expected = attention(q.double(), k.double(), v.double())
    assert out.dtype == weights.dtype == dtype
    same(out.double(), expected[0], 0.02)
    same(weights.double(), expected[1], 0.02)


@pytest.mark.parametrize("lead", [(), (3,), (2, 3)])
def test_leading_axes_are_so_many_separate_problems(lead):
    q, k, v = inputs(*lead)
    out, weights = attention(q, k, v)
    flat = [x.reshape(-1, *x.shape[-2:]) for x in (q, k, v, out, weights)]
    for q1, k1, v1, out1, weights1 in zip(*flat, strict=True):
        expected = attention(q1, k1, v1)
        same(out1, expected[0])
        same(weights1, expected[1])


def test_inputs_may_lie_anyhow_in_memory_and_stay_as_they_are():
    q, k, v = inputs(2)
    expected = attention(q, k, v)
    strided = [x.mT.contiguous().mT for x in (q, k, v)] + [torch.ones(S, T).bool().tril().mT]
    before = [x.clone() for x in strided]
    same(attention(*strided[:3])[0], expected[0])
    attention(*strided, dropout_p=0.1)
    assert all(torch.equal(x, y) and not x.is_contiguous() for x, y in zip(strided, before, strict=True))
