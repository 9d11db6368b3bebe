"""What is right in the quiz of lesson 2."""

import torch
from helpers import rand

from mhsa import MultiHeadAttention, MultiHeadAttentionLoop
from quiz_keys.common import close, seeded


def columns_read():
    x = rand(1, 4, 12).requires_grad_()
    seeded(MultiHeadAttentionLoop, 12, 3).heads[0](x)[0, 1].sum().backward()
    read = x.grad[0] != 0  # tokens, columns
    columns, tokens = read.any(0), read.any(1)
    return {
        "0 to 3": columns.tolist() == [True] * 4 + [False] * 8 and bool(tokens.all()),
        "12 columns, of all tokens": bool(columns.all() and tokens.all()),
        "of its own token": bool(columns.all()) and tokens.sum() == 1,
        "4 columns": columns.sum() == 4,
    }


def size_of_w_o():
    return MultiHeadAttention(10, 3, d_k=4, d_v=5).w_o.weight.numel()


def double_w_k():
    x, loop = rand(1, 5, 6), seeded(MultiHeadAttentionLoop, 6, 3)
    out, maps = loop(x, need_weights=True)
    values = loop.heads[0].w_v(x)
    loop.heads[0].w_k.weight.data *= 2
    new_out, new_maps = loop(x, need_weights=True)
    changed = ((new_out - out).abs() > 1e-9).any(1)[0]
    return {
        "map of head 0": not close(new_maps[:, 0], maps[:, 0]),
        "map of head 1": not close(new_maps[:, 1], maps[:, 1]),
        "values": not close(loop.heads[0].w_v(x), values),
        "first columns alone": changed.tolist() == [True] * 2 + [False] * 4,
        "all columns": bool(changed.all()),
    }


def concat():
    x, loop = rand(1, 5, 6), seeded(MultiHeadAttentionLoop, 6, 3)
    heads, w_o = [head(x) for head in loop.heads], loop.w_o.weight.T
    side_by_side = torch.cat(heads, -1)
    squares = [head @ w_o[2 * i : 2 * i + 2, 2 * i : 2 * i + 2] for i, head in enumerate(heads)]
    mean = torch.stack(heads).mean(0).repeat(1, 1, 3) @ w_o  # repeated, else the shapes do not fit
    rows = sum(head @ block for head, block in zip(heads, w_o.split(2)))
    ordered = all(any(close(column, given) for given in side_by_side[0].T) for column in loop(x)[0].T)
    return {
        "square block": close(torch.cat(squares, -1), loop(x)),
        "mean": close(mean, loop(x)),
        "rows of W_O": close(rows, loop(x)),
        "orders them": ordered,
    }


def twins():
    x, loop = rand(1, 5, 6), seeded(MultiHeadAttentionLoop, 6, 3)
    loop.heads[1].load_state_dict(loop.heads[0].state_dict())
    loop.w_o.weight.data[:, 2:4] = loop.w_o.weight.data[:, 0:2]
    start = loop.heads[0].w_q.weight.clone()
    optimizer = torch.optim.SGD(loop.parameters(), lr=0.1)
    for _ in range(100):
        optimizer.zero_grad()
        (loop(x) - x.flip(1)).square().mean().backward()
        optimizer.step()
    weights, w_o = [head.w_q.weight for head in loop.heads], loop.w_o.weight.T
    both = sum(loop.heads[i](x) @ w_o[2 * i : 2 * i + 2] for i in (0, 1))
    return {
        "still equal": close(weights[0], weights[1]),
        "differ": not close(weights[0], weights[1]),
        "cancelled": close(both, 0 * both),
        "cannot learn": close(weights[0], start),
    }


def averaged():
    pairs = [torch.tensor([[1.0, 0, 0, 0], [0, 1, 0, 0]]), torch.tensor([[0.5, 0.5, 0, 0], [0.5, 0.5, 0, 0]])]
    assert all(pair.mean(0).tolist() == [0.5, 0.5, 0, 0] for pair in pairs)
    last = [pair[:, 2:] for pair in pairs]  # a mean of 0 of numbers that are never negative
    return {
        "Each head reads both": all((pair[:, :2] > 0).all() for pair in pairs),
        "the other one the second": all(set(pair.argmax(-1).tolist()) == {0, 1} and pair.max() == 1 for pair in pairs),
        "No head reads": not any(x.any() for x in last),
        "agree": all(close(*pair) for pair in pairs),
    }
