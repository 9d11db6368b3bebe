"""Claims about parameters and FLOPs, each beneath the function that measures it."""

import torch
from torch import nn

from mhsa.claims.claim import Claim, Evidence
from mhsa.claims.common import layer, numbers, products, seeded, size
from mhsa.count import count_flops, count_parameters
from mhsa.layers import MultiHeadAttention


def same_parameters() -> Evidence:
    one, eight, free = size(layer(512, 1)), size(layer(512, 8)), size(layer(512, 8, d_k=16))
    with_biases = size(nn.MultiheadAttention(512, 8))
    return one == eight == 4 * 512**2 and free != one != with_biases, dict(one=one, free=free, with_biases=with_biases)


P1 = Claim(
    "P1",
    "One head of full width and eight narrow heads have the same number of parameters, 4 · d_model².",
    "holds if",
    "if h · d_k = h · d_v = d_model and there is no bias: {one:,} for both at d_model = 512. torch's default has "
    "biases, {with_biases:,}; with d_k = 16 eight heads hold {free:,}.",
    lessons=[4],
    measure=same_parameters,
)


def parameters_per_head() -> Evidence:
    sizes, published = ((256, 4), (512, 8), (768, 12), (12288, 96)), (65_536, 262_144, 589_824, 150_994_944)
    own = [count_parameters(d_model, h).per_head for d_model, h in sizes]
    whole = [layer(d_model, h).w_q.weight.numel() for d_model, h in sizes]
    agree = [a == b for a, b in zip(own, published)]
    follows = whole == list(published) and agree == [True, False, False, False]
    return follows, dict(own=" / ".join(f"{n:,}" for n in own))


P2 = Claim(
    "P2",
    "*Per head*, layers of width 256, 512, 768 and 12,288 hold 65,536 / 262,144 / 589,824 / 150 million parameters.",
    "does not hold",
    "That is d_model², one whole matrix. A head uses 4 · d_model · d_k: {own}. Only the first agrees.",
    lessons=[4],
    measure=parameters_per_head,
)


def parameter_parts() -> Evidence:
    mha = layer(512, 8)
    heads, output = sum(w.weight.numel() for w in (mha.w_q, mha.w_k, mha.w_v)), mha.w_o.weight.numel()
    return heads == 8 * 3 * 64 * 512 and output == 512**2, dict(heads=heads, output=output, total=heads + output)


P3 = Claim(
    "P3",
    "At d_model = 512 and h = 8 the three input projections hold 786,432 numbers and W_O 262,144.",
    "holds",
    "Counted in the built layer: {heads:,} + {output:,} = {total:,}.",
    lessons=[4],
    measure=parameter_parts,
)


def width_of_a_projection() -> Evidence:
    h, d_k = 8, 64
    holds = layer(512, h).w_q.weight.numel()
    return holds == h * 512 * d_k != h * d_k**2, dict(holds=holds, square=h * d_k**2)


P4 = Claim(
    "P4",
    "A head's projection has d_k × d_k numbers, and h of them make d_model².",
    "does not hold",
    "The total is right, the way to it is not. A head reads all d_model columns: d_model × d_k. W_Q holds {holds:,}; "
    "h · d_k² would be {square:,}.",
    lessons=[4],
    measure=width_of_a_projection,
)


def same_products() -> Evidence:
    flops = [products(128, 512, h) for h in (1, 8, 64)]
    softmax = [count_flops(1, 128, 512, h).softmax for h in (1, 64)]
    kept = products(128, 512, 8, d_k=64) / products(128, 512, 1, d_k=64)
    return (
        flops == [8 * 128 * 512**2 + 4 * 128**2 * 512] * 3 and softmax[1] == 64 * softmax[0] and kept == 8,
        dict(flops=flops[0], softmax=softmax[1] // softmax[0], kept=kept),
    )


P5 = Claim(
    "P5",
    "The matrix products cost the same for every h.",
    "holds if",
    "if h · d_k = h · d_v = d_model: {flops:,} FLOPs for h = 1, 8 and 64 (T = 128, d_model = 512). Eight heads of a "
    "fixed d_k cost {kept:g} times one. The softmax is no product: its work grows {softmax} times from 1 head to 64.",
    lessons=[4],
    measure=same_products,
)


def twelve_heads() -> Evidence:
    beside_one = [
        (
            size(layer(768, 12)) / size(layer(768, 1, d_k=width)),
            products(128, 768, 12) / products(128, 768, 1, d_k=width),
        )
        for width in (768, 64)
    ]
    return beside_one == [(1, 1), (12, 12)], dict(same=beside_one[0][0], kept=beside_one[1][0])


P6 = Claim(
    "P6",
    "Twelve heads make a layer neither twelve times as large nor twelve times as costly.",
    "holds if",
    "if you compare with one head of the same total width: {same:g} times the parameters and the FLOPs of the "
    "products. Beside one head of the same d_k it is {kept:g} times both.",
    lessons=[4],
    measure=twelve_heads,
)


def narrow_or_wide() -> Evidence:
    one, eight = count_flops(1, 128, 512, 1), count_flops(1, 128, 512, 8)
    narrow, wide = products(128, 512, 8), products(128, 512, 8, d_k=512)
    follows = products(128, 512, 1) == narrow and wide == 8 * narrow and eight.total > one.total
    return follows, dict(times=wide / narrow, more=100 * (eight.total / one.total - 1))


P7 = Claim(
    "P7",
    "Narrow projections, one a head, reduce the computation.",
    "holds if",
    "if compared with as many heads of full width: eight of 512 cost {times:g} times the products of eight of 64. "
    "Beside one head of 512 the products cost the same, and with the softmax {more:.1f} % *more* FLOPs (T = 128).",
    lessons=[4],
    measure=narrow_or_wide,
)


def growth_with_length() -> Evidence:
    short, long = (products(2 * T, 512, 8) / products(T, 512, 8) for T in (64, 32768))
    return short < 2.3 and long > 3.7, dict(short=short, long=long)


P8 = Claim(
    "P8",
    "The cost of attention grows with T².",
    "holds if",
    "if T is well above 2 · d_model. At d_model = 512, twice the tokens cost {short:.2f} times as much from T = 64, "
    "and {long:.2f} times from T = 32,768: the projections grow with T alone.",
    lessons=[4],
    measure=growth_with_length,
)


def work_in_parallel() -> Evidence:
    flops = [products(128, 512, h) for h in (1, 8)]
    return flops[0] == flops[1], dict(flops=flops[0])


P9 = Claim(
    "P9",
    "Computing the heads in parallel makes the constant factor of that cost smaller.",
    "holds if",
    "if the cost is time, and the machine would else stand idle. The work stays: {flops:,} FLOPs of products for one "
    "head and for eight (T = 128, d_model = 512), and more softmax.",
    lessons=[4, 9],
    measure=work_in_parallel,
)


def start() -> Evidence:
    """Rows that give one key over 0.99 before training, and how torch's own layer draws its numbers."""

    def one_hot_rows(factor: float) -> float:
        mha = seeded(MultiHeadAttention, 64, 8)
        for p in mha.parameters():
            nn.init.normal_(p, std=factor * 64**-0.5)
        maps = mha(numbers(32, 16, 64, seed=1), need_weights=True)[1]
        return (maps.amax(-1) > 0.99).double().mean().item()

    torch.manual_seed(0)
    block, single = nn.MultiheadAttention(512, 8).in_proj_weight, nn.init.xavier_uniform_(torch.empty(512, 512))
    ratio = (block.std() / single.std()).item()
    good, bad = one_hot_rows(1), one_hot_rows(10)
    return good < 0.01 and bad > 0.8 and abs(ratio - 0.5**0.5) < 0.02, dict(bad=100 * bad, good=100 * good, ratio=ratio)


P10 = Claim(
    "P10",
    "The matrices must start with the proper spread.",
    "holds",
    "With numbers ten times as large as 1/√d_model, {bad:.0f} % of all rows give one key over 0.99 before any "
    "training ({good:.0f} % with 1/√d_model). Beware of one detail: nn.MultiheadAttention draws W_Q, W_K and W_V as "
    "one (3·d, d) matrix, so they start {ratio:.2f} times as large as three of (d, d).",
    lessons=[1],
    measure=start,
)
