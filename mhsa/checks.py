"""Checks of arguments: each names the argument, the value it got and what would do."""

import math
from collections.abc import Iterable
from numbers import Integral, Real
from reprlib import repr as short  # of a whole tensor, its first letters
from typing import Any, NamedTuple

import torch
from torch import Tensor


def check_type(name: str, value: object, wanted: type) -> None:
    if not isinstance(value, wanted):
        raise ValueError(f"{name}={short(value)} has type {type(value).__name__}; a {wanted.__name__} is needed")


def check_flag(name: str, value: object) -> None:
    """A flag is True or False; None, 1 and "no" are not."""
    if not isinstance(value, bool):
        raise ValueError(f"{name}={short(value)} is neither True nor False")


def check_size(name: str, value: Any, minimum: int = 1) -> int:
    """A size is a whole number; True, 2.0 and "4" are not. Returns it as an int: numpy's would overflow in a count.

    A SymInt, a length that torch.compile and torch.export leave open, is one too and comes back as it is.
    """
    if not _is_whole(value) or value < minimum:
        raise ValueError(f"{name}={short(value)} is not a whole number (int) of at least {minimum}")
    return value if type(value) in (int, torch.SymInt) else int(value)


def _is_whole(value: object) -> bool:
    return isinstance(value, (int, Integral, torch.SymInt)) and not isinstance(value, bool)


def check_choice(name: str, value: object, choices: Iterable[str]) -> None:
    if value not in (choices := list(choices)):
        raise ValueError(f"{name}={short(value)} is none of these: {', '.join(choices)}")


def divisors(n: int) -> list[int]:
    """All divisors of n; above 10**12 those up to a million, and n by each of them: the search ends in any case."""
    small = [i for i in range(1, min(math.isqrt(n), 10**6) + 1) if n % i == 0]
    return sorted({*small, *(n // i for i in small)})


def check_divides(name: str, value: int, of_name: str, of: int) -> None:
    if of % value:
        raise ValueError(
            f"{name}={value} does not divide {of_name}={of}; these do: {', '.join(map(str, divisors(of)))}"
        )


class Sizes(NamedTuple):
    """Every size of a layer, none left open."""

    d_model: int
    num_heads: int
    num_kv_heads: int
    d_k: int
    d_v: int
    key_dim: int
    value_dim: int


def resolve_sizes(
    d_model: int,
    num_heads: int,
    num_kv_heads: int | None = None,
    d_k: int | None = None,
    d_v: int | None = None,
    key_dim: int | None = None,
    value_dim: int | None = None,
) -> Sizes:
    """Check the sizes and fill in what was left out.

    num_kv_heads = num_heads, d_k = d_model / num_heads, d_v = d_k, key_dim = d_model, value_dim = key_dim.
    """
    d_model, num_heads = check_size("d_model", d_model), check_size("num_heads", num_heads)
    if d_k is None:
        check_divides("num_heads", num_heads, "d_model", d_model)
    num_kv_heads = check_size("num_kv_heads", num_heads if num_kv_heads is None else num_kv_heads)
    check_divides("num_kv_heads", num_kv_heads, "num_heads", num_heads)
    d_k = check_size("d_k", d_model // num_heads if d_k is None else d_k)
    d_v = check_size("d_v", d_k if d_v is None else d_v)
    key_dim = check_size("key_dim", d_model if key_dim is None else key_dim)
    value_dim = check_size("value_dim", key_dim if value_dim is None else value_dim)
    return Sizes(d_model, num_heads, num_kv_heads, d_k, d_v, key_dim, value_dim)


def check_dropout(name: str, value: Any) -> float:
    """Returns it as a float."""
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 <= float(value) < 1:
        raise ValueError(f"{name}={short(value)} is not a probability from 0 up to, but not including, 1")
    return float(value)


def check_scale(name: str, value: Any) -> float:
    """Returns it as a float."""
    if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(value):
        raise ValueError(f"{name}={short(value)} is not a finite number (int or float)")
    return float(value)


def check_float(name: str, value: Tensor) -> None:
    check_type(name, value, Tensor)
    if not value.is_floating_point():
        hint = "a mask is passed by name: mask=..." if value.dtype == torch.bool else ".float() converts"
        raise ValueError(f"{name} holds {value.dtype}; a floating type is needed ({hint})")


def autocast_is_on(device: torch.device) -> bool:
    return device.type != "meta" and torch.is_autocast_enabled(device.type)  # for meta there is none: torch raises


def check_alike(name: str, x: Tensor, other_name: str, other: Tensor) -> None:
    """One dtype (autocast converts by itself) and one device."""
    if x is other:  # self-attention, the usual case
        return
    if x.dtype != other.dtype and not autocast_is_on(x.device):
        raise ValueError(f"{name} holds {x.dtype}, {other_name} {other.dtype}; convert one with .to(...)")
    if x.device != other.device:
        raise ValueError(f"{name} lies on {x.device}, {other_name} on {other.device}; move one with .to(...)")


def check_mask(mask: Tensor | None, shape: tuple[int, ...], device: torch.device, *, any_rank: bool = False) -> None:
    """A mask is Boolean, True = may attend, and broadcasts to the scores' shape without enlarging it.

    any_rank: as attention() takes it, with any number of axes, and one column for all keys.
    """
    if mask is None:
        return
    check_type("mask", mask, Tensor)
    if mask.dtype != torch.bool:
        raise ValueError(
            f"mask holds {mask.dtype}; torch.bool is needed, True = may attend: "
            "mask.bool() if 1 means 'attend', mask == 0 if 0 does"
        )
    got = tuple(mask.shape)
    if not any_rank and len(got) not in (2, 4):
        raise ValueError(
            f"mask has shape {got}; (T_q, T_k) or (B or 1, h or 1, T_q or 1, T_k) is needed: "
            "mask[:, None] if it is (B, T_q, T_k), mask[None] if it is (h, T_q, T_k)"
        )
    if len(got) > len(shape) or any(m not in (1, n) for m, n in zip(reversed(got), reversed(shape))):
        raise ValueError(
            f"mask has shape {got}, which does not broadcast to the scores' shape {shape}; its last two "
            f"axes are (T_q, T_k) = {shape[-2:]}, and padding_mask() makes one for padding"
        )
    if not any_rank and got[-1] == 1 < shape[-1]:
        raise ValueError(
            f"mask has shape {got}, its last axis 1 for {shape[-1]} keys; that hides whole queries, and a mask hides "
            "keys: mask.mT if it was laid over the queries"
        )
    if mask.device != device:
        raise ValueError(f"mask lies on {mask.device}, the scores on {device}; move it with .to(...)")


def check_attention(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, scale: float | None, dropout_p: float
) -> None:
    """q (..., T_q, d_k), k (..., T_k, d_k), v (..., T_k, d_v) with equal leading axes, one dtype and one device."""
    if scale is not None:
        check_scale("scale", scale)
    check_dropout("dropout_p", dropout_p)
    for name, x in (("q", q), ("k", k), ("v", v)):
        check_float(name, x)
        check_alike(name, x, "q", q)
        if x.dim() < 2 or x.shape[-1] == 0:
            raise ValueError(f"{name} has shape {tuple(x.shape)}; (..., T, d) is needed, d of at least 1")
        if x.shape[:-2] != q.shape[:-2]:
            raise ValueError(
                f"{name} has shape {tuple(x.shape)}, q {tuple(q.shape)}; all axes before the last two must be equal"
            )
    if k.shape[-1] != q.shape[-1]:
        raise ValueError(f"q has d_k={q.shape[-1]}, k has d_k={k.shape[-1]}; they must be equal")
    if v.shape[-2] != k.shape[-2]:
        raise ValueError(f"k has T_k={k.shape[-2]}, v has T_k={v.shape[-2]}; each key needs one value")
    check_mask(mask, (*q.shape[:-1], k.shape[-2]), q.device, any_rank=True)


def check_inputs(
    query: Tensor,
    key: Tensor | None,
    value: Tensor | None,
    mask: Tensor | None,
    widths: tuple[int, ...],
    num_heads: int,
    weight: Tensor,
    past: int = 0,
) -> tuple[Tensor, Tensor]:
    """query (B, T_q, d_model), key (B, T_k, key_dim), value (B, T_k, value_dim) and mask fit the module and each other.

    widths: (d_model, key_dim, value_dim); weight: one of the module's; past: the keys that wait in a cache.
    Returns key and value: key defaults to query, value to key.
    """
    key = query if key is None else key
    value = key if value is None else value
    for name, x, width in zip(("query", "key", "value"), (query, key, value), widths):
        if x is query and name != "query" and width == widths[0]:  # self-attention, the usual case
            continue
        check_float(name, x)
        if x.dim() != 3:
            raise ValueError(f"{name} has shape {tuple(x.shape)}; (B, T, {width}) is needed, batch first")
        if x.shape[2] != width:
            raise ValueError(f"{name} has width {x.shape[2]}, shape {tuple(x.shape)}; the module was built for {width}")
        check_alike(name, x, "query", query)
    if key.shape[0] != query.shape[0]:
        raise ValueError(f"key has a batch of {key.shape[0]}, query of {query.shape[0]}; they must be equal")
    if value.shape[:2] != key.shape[:2]:
        raise ValueError(
            f"value has (B, T_k) = {tuple(value.shape[:2])}, key {tuple(key.shape[:2])}; each key needs one value"
        )
    check_alike("query", query, "the module's weights", weight)
    check_mask(mask, (query.shape[0], num_heads, query.shape[1], past + key.shape[1]), query.device)
    return key, value
