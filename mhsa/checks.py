"""The checks at the door: each names the argument, the value it got and what would do."""
import torch
from torch import Tensor


def check_size(name: str, value: object, minimum: int = 1) -> None:
    """A size is a whole number; True, 2.0 and "4" are not."""
    if isinstance(value, bool) or not isinstance(value, int) or value < minimum:
        raise ValueError(f"{name}={value!r} is not a whole number of at least {minimum}")


def check_divides(name: str, value: int, of_name: str, of: int) -> None:
    if of % value:
        divisors = ", ".join(str(n) for n in range(1, of + 1) if of % n == 0)
        raise ValueError(f"{name}={value} does not divide {of_name}={of}; these do: {divisors}")


def resolve_sizes(d_model: int, num_heads: int, num_kv_heads: int | None = None, d_k: int | None = None,
                  d_v: int | None = None) -> tuple[int, int, int]:
    """Fill in the defaults and check them: num_kv_heads = num_heads, d_k = d_model / num_heads, d_v = d_k."""
    check_size("d_model", d_model)
    check_size("num_heads", num_heads)
    if d_k is None:
        check_divides("num_heads", num_heads, "d_model", d_model)
    num_kv_heads = num_heads if num_kv_heads is None else num_kv_heads
    d_k = d_model // num_heads if d_k is None else d_k
    d_v = d_k if d_v is None else d_v
    check_size("num_kv_heads", num_kv_heads)
    check_divides("num_kv_heads", num_kv_heads, "num_heads", num_heads)
    check_size("d_k", d_k)
    check_size("d_v", d_v)
    return num_kv_heads, d_k, d_v


def check_dropout(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < 1:
        raise ValueError(f"{name}={value!r} is not a probability from 0 up to, but not including, 1")


def check_float(name: str, value: object, dtype: torch.dtype | None = None) -> None:
    if not isinstance(value, Tensor):
        raise ValueError(f"{name} is a {type(value).__name__}; a torch.Tensor is needed")
    if not value.is_floating_point():
        raise ValueError(f"{name} holds {value.dtype}; a floating type is needed (.float() converts)")
    if dtype is not None and value.dtype != dtype:
        raise ValueError(f"{name} holds {value.dtype}, its partners {dtype}; convert one with .to(...)")


def check_mask(mask: object, shape: tuple[int, ...], *, any_rank: bool = False) -> None:
    """A mask is Boolean, True = may attend, and broadcasts to the scores' shape without enlarging it."""
    if mask is None:
        return
    if not isinstance(mask, Tensor):
        raise ValueError(f"mask is a {type(mask).__name__}; a Boolean torch.Tensor is needed, True = may attend")
    if mask.dtype != torch.bool:
        raise ValueError(f"mask holds {mask.dtype}; a Boolean mask is needed, True = may attend (a float mask would "
                         "be added to the scores, and in a 0/1 mask either could mean 'attend'): mask.bool() or mask == 0")
    got = tuple(mask.shape)
    if not any_rank and mask.dim() not in (2, len(shape)):
        raise ValueError(f"mask has shape {got}; 2-D (T_q, T_k) or 4-D (B or 1, h or 1, T_q or 1, T_k) is needed: "
                         "add the missing axes, for example mask[:, None] for a mask per sentence")
    if len(got) > len(shape) or any(m not in (1, n) for m, n in zip(reversed(got), reversed(shape))):
        raise ValueError(f"mask has shape {got}, which does not broadcast to the scores' shape {shape}; "
                         f"the last two axes are (T_q, T_k) = {shape[-2:]}")


def check_attention(q: Tensor, k: Tensor, v: Tensor, mask: object, dropout_p: object) -> None:
    """q (..., T_q, d_k), k (..., T_k, d_k), v (..., T_k, d_v) with equal leading axes, and one dtype."""
    check_dropout("dropout_p", dropout_p)
    check_float("q", q)
    for name, x in (("k", k), ("v", v)):
        check_float(name, x, q.dtype)
        if x.dim() < 2 or x.shape[:-2] != q.shape[:-2]:
            raise ValueError(f"{name} has shape {tuple(x.shape)}, q {tuple(q.shape)}; "
                             "all axes before the last two must be equal")
    if k.shape[-1] != q.shape[-1]:
        raise ValueError(f"q has d_k={q.shape[-1]}, k has d_k={k.shape[-1]}; they must be equal")
    if v.shape[-2] != k.shape[-2]:
        raise ValueError(f"k has T_k={k.shape[-2]}, v has T_k={v.shape[-2]}; each key needs one value")
    check_mask(mask, (*q.shape[:-1], k.shape[-2]), any_rank=True)


def check_inputs(query: Tensor, key: Tensor, value: Tensor, mask: object, *, widths: tuple[int, int, int],
                 num_heads: int, dtype: torch.dtype, past: int = 0) -> None:
    """query (B, T_q, d_model), key (B, T_k, key_dim), value (B, T_k, value_dim) and mask fit the module and each other.

    widths: (d_model, key_dim, value_dim); dtype: of the module's weights; past: the keys that wait in a cache.
    """
    for name, x, width in zip(("query", "key", "value"), (query, key, value), widths):
        check_float(name, x)
        if x.dim() != 3:
            raise ValueError(f"{name} has shape {tuple(x.shape)}; (B, T, {width}) is needed, batch first")
        if x.shape[2] != width:
            raise ValueError(f"{name} has width {x.shape[2]} (shape {tuple(x.shape)}); the module was built for {width}")
    if key.shape[0] != query.shape[0]:
        raise ValueError(f"key has a batch of {key.shape[0]}, query of {query.shape[0]}; they must be equal")
    if value.shape[:2] != key.shape[:2]:
        raise ValueError(f"value has (B, T_k) = {tuple(value.shape[:2])}, key {tuple(key.shape[:2])}; "
                         "each key needs one value")
    for name, x in (("query", query), ("key", key), ("value", value)):
        if x.dtype != dtype and not torch.is_autocast_enabled(x.device.type):
            raise ValueError(f"{name} holds {x.dtype}, the module's weights {dtype}; convert one with .to(...)")
    check_mask(mask, (query.shape[0], num_heads, query.shape[1], past + key.shape[1]))
