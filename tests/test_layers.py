"""One head, the loop of heads, all heads at once: equal to the formula worked out by hand and to one another."""

import pickle
from copy import deepcopy

import pytest
import torch
from helpers import by_hand, each_path, first, rand, randomised, same
from torch import nn

from mhsa import MultiHeadAttention, MultiHeadAttentionLoop, SingleHeadAttention, attention, causal_mask, padding_mask

B, T, S, D, H = 2, 5, 7, 30, 6  # so d_k = 5
OPTIONS = [
    dict(),
    dict(bias=True),
    dict(d_k=11),
    dict(d_k=11, d_v=13, bias=True),
    dict(num_kv_heads=2, d_v=13),
    dict(num_kv_heads=3, bias=True),
    dict(num_kv_heads=1),
    dict(num_kv_heads=2, d_k=11, key_dim=17, value_dim=19),
    dict(key_dim=17, bias=True),
    dict(value_dim=19),
]
FORMS = [(T, S), (1, S), (1, 1, 1, S), (B, 1, 1, S), (1, H, 1, S), (1, H, T, S), (B, 1, T, S), (B, H, T, S)]
each_form = pytest.mark.parametrize("form", FORMS, ids=str)


def inputs(m, dtype=torch.float64):
    key_dim, value_dim = (getattr(m, name, D) for name in ("key_dim", "value_dim"))
    return (
        rand(B, T, D, dtype=dtype),
        rand(B, S, key_dim, seed=1, dtype=dtype),
        rand(B, S, value_dim, seed=2, dtype=dtype),
    )


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("form", [None, (T, S), (B, H, T, S)], ids=str)
def test_all_heads_at_once_equal_the_formula_by_hand(options, form):
    m = randomised(MultiHeadAttention(D, H, **options))
    mask = None if form is None else rand(*form) > 0.3
    out, weights = by_hand(m, *inputs(m), mask)
    got, got_weights = m(*inputs(m), mask=mask, need_weights=True)
    same(got, out)
    same(got_weights, weights)
    same(m(*inputs(m), mask=mask), out)


@pytest.mark.parametrize("off", [torch.no_grad, torch.inference_mode])
@pytest.mark.parametrize("form", [None, (B, 1, T, S)], ids=str)
def test_without_gradients_the_numbers_are_the_same(off, form):
    m = randomised(MultiHeadAttention(D, H, num_kv_heads=2))
    mask = None if form is None else rand(*form) > 1  # many empty rows
    with off():
        got, got_weights = m(*inputs(m), mask=mask, need_weights=True)
        fused = m(*inputs(m), mask=mask)
    out, weights = by_hand(m, *inputs(m), mask)
    same(got, out)
    same(got_weights, weights)
    same(fused, out)


@each_form
@pytest.mark.parametrize("dtype, tol", [(torch.float64, 1e-12), (torch.float32, 1e-6)], ids=str)
def test_loop_and_batch_agree_for_every_form_of_mask(form, dtype, tol):
    loop = randomised(MultiHeadAttentionLoop(D, H, d_k=11, d_v=13, bias=True), dtype)
    for p in loop.parameters():
        p.data *= 0.3  # outputs within ±3, so that tol is absolute
    m, mask = MultiHeadAttention.from_loop(loop), rand(*form) > 0
    expected, weights = loop(*inputs(m, dtype), mask=mask, need_weights=True)
    out, got = m(*inputs(m, dtype), mask=mask, need_weights=True)
    assert (out - expected).abs().max() < tol and (got - weights).abs().max() < tol
    assert (m(*inputs(m, dtype), mask=mask) - expected).abs().max() < tol and out.dtype == dtype
    same(loop(*inputs(m, dtype), mask=mask), expected, 0)


@pytest.mark.parametrize("options", [dict(), dict(num_kv_heads=2, d_v=13), dict(num_kv_heads=1, bias=True)], ids=str)
def test_both_paths_have_the_same_gradients(options):
    m, mask = randomised(MultiHeadAttention(D, H, **options)), rand(B, 1, T, S) > 0
    grads = []
    for need_weights in (False, True):
        x, y, z = (t.requires_grad_() for t in inputs(m))
        first(m(x, y, z, mask=mask, need_weights=need_weights)).square().sum().backward()
        grads.append([t.grad for t in (x, y, z, *m.parameters())])
        m.zero_grad()
    for fused, explicit in zip(*grads, strict=True):
        same(fused, explicit, 1e-11)


def test_one_head_is_attention_between_three_projections():
    head = randomised(SingleHeadAttention(D, 11, 13, bias=True))
    x, y, z = inputs(head)
    mask = rand(B, T, S) > 0
    expected = attention(
        x @ head.w_q.weight.T + head.w_q.bias,
        y @ head.w_k.weight.T + head.w_k.bias,
        z @ head.w_v.weight.T + head.w_v.bias,
        mask,
    )
    out, weights = head(x, y, z, mask=mask[:, None], need_weights=True)
    same(out, expected[0])
    same(weights, expected[1])
    same(head(x), head(x, x, x), 0)
    same(head(x, y, mask=mask[0]), head(x, y, y, mask=mask[:1, None]), 0)


def test_the_output_is_the_sum_of_what_each_head_adds():
    loop, x = randomised(MultiHeadAttentionLoop(D, H, d_v=13)), rand(B, T, D)
    columns = loop.w_o.weight.split(13, dim=1)
    same(loop(x), sum(head(x) @ w.T for head, w in zip(loop.heads, columns, strict=True)))


def test_with_one_head_all_three_classes_agree():
    loop, x = randomised(MultiHeadAttentionLoop(D, 1, d_k=11)), rand(B, T, D)
    same(loop(x), loop.w_o(loop.heads[0](x)))
    same(MultiHeadAttention.from_loop(loop)(x), loop(x))


@each_path
def test_missing_inputs_and_causal_masks(need_weights):
    m, x, y = randomised(MultiHeadAttention(D, H)), rand(B, T, D), rand(B, S, D, seed=1)
    padding = padding_mask([4, 2], S)

    def run(*args, **options):
        return first(m(*args, need_weights=need_weights, **options))

    same(run(x), by_hand(m, x, x, x)[0])
    same(run(x, y), by_hand(m, x, y, y)[0])
    same(run(x, is_causal=True), by_hand(m, x, x, x, torch.ones(T, T).tril().bool())[0])
    lower_right = torch.ones(T, S).tril(S - T).bool()
    same(run(x, y, is_causal=True), by_hand(m, x, y, y, lower_right)[0])
    same(run(x, y, is_causal=True, mask=padding), by_hand(m, x, y, y, lower_right & padding)[0])


@each_path
@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("dropout", [0.0, 0.5])
@pytest.mark.parametrize("g", [H, 2])
def test_rows_without_keys_give_the_bias_alone(need_weights, training, dropout, g):
    m = randomised(MultiHeadAttention(D, H, num_kv_heads=g, bias=True, dropout=dropout)).train(training)
    x, mask = rand(B, T, D).requires_grad_(), torch.ones(B, 1, T, T).bool()
    mask[0, :, 3], mask[1] = False, False  # one query of a sentence, and a whole sentence
    with torch.autograd.set_detect_anomaly(True):
        out = first(m(x, mask=mask, need_weights=need_weights))
        out.square().sum().backward()
    same(out[0, 3], m.w_o.bias)
    same(out[1], m.w_o.bias.expand(T, D))
    assert not x.grad[1].any() and x.grad[0].any()
    assert all(t.grad.isfinite().all() for t in (x, *m.parameters()))


@each_path
def test_dropout_works_in_training_only_and_keeps_the_mean(need_weights):
    m, x = randomised(MultiHeadAttention(D, H, dropout=0.5)), rand(1, T, D).expand(4001, T, D)
    torch.manual_seed(0)
    out = first(m(x, need_weights=need_weights))
    m.eval()
    exact = by_hand(m, x[:1], x[:1], x[:1])[0]
    spread = (out - exact).std(0)
    assert spread.min() > 0.01 and ((out.mean(0) - exact[0]).abs() < 5 * spread / 4001**0.5).all()
    same(first(m(x[:1], need_weights=need_weights)), exact)


@each_path
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_stays_finite_and_close(need_weights, dtype):
    m = MultiHeadAttention(64, 1).to(dtype)
    for linear in m.children():
        nn.init.eye_(linear.weight)
    x = (400 * torch.where(rand(B, T, 64) > 0, 1, -1)).to(dtype).requires_grad_()
    out = first(m(x, is_causal=True, need_weights=need_weights))
    out.sum().backward()
    with torch.autocast("cpu", dtype=dtype), torch.no_grad():
        assert torch.equal(first(m.float()(x.float(), is_causal=True, need_weights=need_weights)), x)
    assert torch.equal(out, x) and out.dtype == dtype  # each token finds itself: 400² · 64 / 8 wins
    assert all(t.grad.isfinite().all() for t in (x, *m.parameters()))


@each_path
def test_autocast_converts_and_a_plain_call_is_refused(need_weights, as_a_user):
    m, x = randomised(MultiHeadAttention(D, H, bias=True), torch.float32), rand(B, T, D, dtype=torch.float32)
    exact = m(x, is_causal=True)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        for given in ([x], [x.bfloat16()], [x, x.bfloat16()]):
            out = first(m(*given, is_causal=True, need_weights=need_weights))
            assert out.dtype == torch.bfloat16
            same(out.float() / exact.abs().max(), exact / exact.abs().max(), 0.03)
    with pytest.raises(ValueError, match="query holds torch.bfloat16"):
        m(x.bfloat16(), need_weights=need_weights)


def test_without_weights_nothing_of_size_t_squared_is_kept_and_no_key_is_repeated():
    """The explicit path stores B·h·T_q·T_k weights; expanding 1 head of keys to 6 stores 6 · T · d_k numbers."""
    T, kept = 211, []
    m, x = MultiHeadAttention(D, H, num_kv_heads=1), torch.randn(1, T, D)
    for is_causal in (False, True):
        with torch.autograd.graph.saved_tensors_hooks(lambda t: kept.append(t) or t, lambda t: t):
            m(x, is_causal=is_causal)
    assert kept and max(t.untyped_storage().nbytes() for t in kept) <= 4 * T * D
    wide = [t for t in kept if t.dim() == 4 and t.shape[1] == H]
    assert len(wide) == 4  # q and the output, twice; k and v stay one head


@pytest.mark.parametrize("g, grouped", [(H, False), (2, True), (1, True)])
def test_the_kernel_is_told_of_grouped_heads_only(monkeypatch, g, grouped):
    """Told so without need, it leaves out its faster forms on some devices."""
    told, kernel = [], torch.nn.functional.scaled_dot_product_attention

    def spy(*args, enable_gqa, **options):
        told.append(enable_gqa)
        return kernel(*args, enable_gqa=enable_gqa, **options)

    monkeypatch.setattr(torch.nn.functional, "scaled_dot_product_attention", spy)
    MultiHeadAttention(D, H, num_kv_heads=g)(torch.randn(B, T, D))
    assert told == [grouped]


@pytest.mark.parametrize("b, t", [(1, 1), (1, T), (3, 1)])
@each_path
def test_single_sentences_and_single_tokens(b, t, need_weights):
    m, x = randomised(MultiHeadAttention(D, H, bias=True)), rand(b, t, D)
    for is_causal in (False, True):
        out = first(m(x, is_causal=is_causal, need_weights=need_weights))
        same(out, by_hand(m, x, x, x, causal_mask(t) if is_causal else None)[0])
    if t == 1:
        same(out, m.w_o(m.w_v(x)))  # nothing to choose from: the value itself


@each_path
def test_empty_sequences(need_weights):
    """No key at all is a row without keys; no query or no sentence gives an empty result."""
    m, x = randomised(MultiHeadAttention(D, H, bias=True)), rand(B, T, D)
    same(first(m(x, x[:, :0], need_weights=need_weights)), m.w_o.bias.expand(B, T, D))
    assert first(m(x[:, :0], x, need_weights=need_weights)).shape == (B, 0, D)
    same(first(m(x, x[:, :0], is_causal=True, need_weights=need_weights)), m.w_o.bias.expand(B, T, D))
    for given in ([x[:, :0]], [x[:, :0], x]):
        assert first(m(*given, is_causal=True, need_weights=need_weights)).shape == (B, 0, D)
    assert first(m(x[:0], need_weights=need_weights)).shape == (0, T, D)


@each_path
def test_inputs_may_lie_anyhow_in_memory(need_weights):
    m, mask = randomised(MultiHeadAttention(D, H)), (rand(T, T) > 0).mT
    x = rand(T, B, D).transpose(0, 1)
    same(first(m(x, mask=mask, need_weights=need_weights)), by_hand(m, x.clone(), x.clone(), x.clone(), mask)[0])
    row = rand(1, 1, D).expand(B, T, D)
    same(first(m(row, need_weights=need_weights)), m.w_o(m.w_v(row)))


def test_names_and_shapes_of_the_weights():
    m = MultiHeadAttention(D, H, num_kv_heads=2, d_k=11, d_v=13, key_dim=17, value_dim=19, bias=True)
    assert {name: tuple(p.shape) for name, p in m.state_dict().items()} == {
        "w_q.weight": (66, 30),
        "w_q.bias": (66,),
        "w_k.weight": (22, 17),
        "w_k.bias": (22,),
        "w_v.weight": (26, 19),
        "w_v.bias": (26,),
        "w_o.weight": (30, 78),
        "w_o.bias": (30,),
    }
    assert list(MultiHeadAttentionLoop(D, 2).state_dict()) == [
        f"heads.{i}.{w}.weight" for i in (0, 1) for w in ("w_q", "w_k", "w_v")
    ] + ["w_o.weight"]
    head = SingleHeadAttention(D)
    assert (head.d_k, head.d_v) == (D, D) and SingleHeadAttention(D, 11).d_v == 11
    m = MultiHeadAttention(D, H)
    assert (m.num_kv_heads, m.d_k, m.d_v, m.key_dim, m.value_dim) == (H, 5, 5, D, D)


@pytest.mark.parametrize("copy", [deepcopy, lambda m: pickle.loads(pickle.dumps(m))], ids=["deepcopy", "pickle"])
@pytest.mark.parametrize("make", [MultiHeadAttention, MultiHeadAttentionLoop])
def test_a_copy_works_alone(make, copy):
    m, x = randomised(make(D, H, bias=True)), rand(B, T, D)
    expected = m(x).detach()
    other = copy(m)
    nn.init.zeros_(m.w_o.weight)
    same(other(x), expected, 0)
