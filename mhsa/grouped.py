"""From multi-head to grouped-query attention: fewer heads of keys and values, each the mean of those it replaces."""

from copy import deepcopy

from mhsa.checks import check_divides, check_size, check_type
from mhsa.layers import MultiHeadAttention


def mean_pool_kv_heads(layer: MultiHeadAttention, num_kv_heads: int) -> MultiHeadAttention:
    """The layer with num_kv_heads heads of keys and values, each the mean of the neighbouring heads it replaces.

    Another layer, not an equal one: it is where further training starts (Ainslie et al. 2023, section 2.1).
    Raises ValueError if num_kv_heads does not divide the heads of keys and values that the layer has.
    """
    check_type("layer", layer, MultiHeadAttention)
    num_kv_heads = check_size("num_kv_heads", num_kv_heads)
    check_divides("num_kv_heads", num_kv_heads, "layer.num_kv_heads", layer.num_kv_heads)
    grouped = deepcopy(layer)  # frozen weights stay frozen
    grouped.num_kv_heads = num_kv_heads
    for linear in (grouped.w_k, grouped.w_v):
        for p in linear.parameters():
            groups = p.data.unflatten(0, (num_kv_heads, layer.num_kv_heads // num_kv_heads, -1))
            p.data = groups.mean(1).flatten(0, 1)  # (g·d, …)
        linear.out_features = len(linear.weight)
    return grouped
