"""attend_lean() is attention(): the same numbers, gradients and dropout, in less memory."""

import pytest
import torch
from helpers import rand, same

from mhsa import attention, causal_mask
from mhsa.bench.measure import peak_extra_bytes
from mhsa.explicit import attend_lean

B, H, T, S, D_K, D_V = 2, 3, 5, 7, 11, 13
SCALE = 0.37
FORMS = [None, (T, S), (1, S), (S,), (B, 1, 1, S), (1, H, T, S), (B, H, T, S)]
HALVES = pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)


def inputs(*lead, dtype=torch.float64):
    """As a layer splits them: heads lie side by side in memory."""
    sizes = ((T, D_K), (S, D_K), (S, D_V))
    return [rand(*lead[:-1], t, lead[-1], d, seed=i, dtype=dtype).transpose(-2, -3) for i, (t, d) in enumerate(sizes)]


def both(q, k, v, mask=None, dropout_p=0.0):
    """(out, weights) of the formula and of its lean neighbour, each from the same seed."""
    results = []
    for run in (
        lambda: attention(q, k, v, mask, scale=SCALE, dropout_p=dropout_p),
        lambda: attend_lean(q, k, v, mask, SCALE, dropout_p),
    ):
        torch.manual_seed(5)
        results.append(run())
    return results


@pytest.mark.parametrize("form", FORMS, ids=str)
@pytest.mark.parametrize("grad", [True, False])
def test_the_numbers_are_those_of_the_formula(form, grad):
    mask = None if form is None else rand(*form) > 0.5
    if form and form[-2:] == (T, S):
        mask[..., 3, :] = False  # a query with no key
    with torch.set_grad_enabled(grad):
        (out, weights), (lean_out, lean_weights) = both(*inputs(B, H), mask)
    same(lean_out, out)
    same(lean_weights, weights)


@pytest.mark.parametrize("lead", [(3,), (2, 3), (2, 1, 3)], ids=str)
def test_any_number_of_leading_axes(lead):
    for lean, right in zip(*reversed(both(*inputs(*lead))), strict=True):
        same(lean, right)


@pytest.mark.parametrize("masked", [False, True])
def test_the_gradients_are_those_of_the_formula(masked):
    mask = (rand(T, S) > 0).index_fill(0, torch.tensor([1, 4]), False) if masked else None
    q, k, v = (x.requires_grad_() for x in inputs(B, H))
    grads = [
        torch.autograd.grad(out.square().sum() + (weights * rand(B, H, T, S, seed=9)).sum(), (q, k, v))
        for out, weights in both(q, k, v, mask)
    ]
    for right, lean in zip(*grads, strict=True):
        same(lean, right)
        assert right.any()


@HALVES
@pytest.mark.parametrize("masked", [False, True])
def test_half_types_are_widened_in_the_same_place(dtype, masked):
    """Scores near 100, rounded to a half type, would be wrong by more than the results' own rounding."""
    mask = causal_mask(T, S) if masked else None
    q, k, v = inputs(B, H, dtype=dtype)
    with torch.no_grad():
        for lean, right in zip(*reversed(both(9 * q, 9 * k, v, mask)), strict=True):
            assert lean.dtype == right.dtype == dtype
            same(lean.double(), right.double(), torch.finfo(dtype).eps)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("grad", [True, False])
def test_autocast_changes_neither(dtype, grad):
    given = [3 * x for x in inputs(B, H, dtype=dtype)]
    with torch.set_grad_enabled(grad):
        plain = both(*given)
        with torch.autocast("cpu", torch.bfloat16):
            cast = both(*given)
    for got, right in zip(sum(cast, ()), sum(plain, ()), strict=True):
        assert got.dtype == dtype and torch.equal(got, right)


@pytest.mark.parametrize("grad", [True, False])
def test_dropout_drops_the_same_weights(grad):
    with torch.set_grad_enabled(grad):
        (out, weights), (lean_out, lean_weights) = both(*inputs(B, H), dropout_p=0.25)
    same(lean_weights, weights)
    same(lean_out, out)
    assert 0.1 < (weights == 0).double().mean() < 0.4


@pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated")  # torch's own forward mode uses it
@pytest.mark.parametrize("grad", [True, False])
def test_vmap_and_jvp_work_with_and_without_gradients(grad):
    q, k, v = inputs(B, H)
    mask, step = rand(T, S) > 0, torch.ones_like(q)

    def lean(q, k, v):
        return attend_lean(q, k, v, mask, SCALE, 0.0)

    def formula(q, k, v):
        return attention(q, k, v, mask, scale=SCALE)

    with torch.set_grad_enabled(grad):
        for got, right in zip(torch.vmap(lean)(q, k, v), formula(q, k, v), strict=True):
            same(got, right)
        slopes = [torch.func.jvp(lambda q, f=f: f(q, k, v)[0], (q,), (step,))[1] for f in (lean, formula)]
    same(*slopes)
    assert slopes[0].any()


def test_without_gradients_the_softmax_overwrites_the_scores(monkeypatch):
    seen, softmax = [], torch.softmax
    monkeypatch.setattr(
        torch, "softmax", lambda scores, dim, out=None: seen.append(out is scores) or softmax(scores, dim, out=out)
    )
    for off in (torch.no_grad, torch.enable_grad):
        with off():
            attend_lean(*inputs(B, H), None, SCALE, 0.0)
    assert seen == [True, False]


def test_it_holds_one_map_less():
    q, k, v = (rand(1, H, 256, 4, seed=i, dtype=torch.float32) for i in range(3))
    one_map = 4 * H * 256 * 256
    with torch.no_grad():
        formula = peak_extra_bytes(lambda: attention(q, k, v))
        lean = peak_extra_bytes(lambda: attend_lean(q, k, v, None, 0.5, 0.0))
    assert one_map < lean < 1.1 * one_map and 2 * one_map < formula < 2.1 * one_map


def test_shapes_are_known_without_numbers():
    """The meta device has no autocast to switch off."""
    for dtype in (torch.float32, torch.bfloat16):
        q, k, v = (x.to("meta") for x in inputs(B, H, dtype=dtype))
        for out, weights in both(q, k, v, causal_mask(T, S, device="meta")):
            assert out.shape == (B, H, T, D_V) and weights.shape == (B, H, T, S) and out.dtype == weights.dtype == dtype
