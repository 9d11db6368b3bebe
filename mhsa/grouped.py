"""From multi-head to grouped-query attention: fewer key-value heads, each the mean of those it replaces."""
from mhsa.checks import check_divides, check_size, check_type
from mhsa.layers import MultiHeadAttention


def mean_pool_kv_heads(layer: MultiHeadAttention, num_kv_heads: int) -> MultiHeadAttention:
    """The layer with num_kv_heads heads of keys and values, each the mean of the neighbouring heads it replaces.

    Another layer, not an equal one: it is where further training starts (Ainslie et al. 2023, section 2.1).
    Raises ValueError if num_kv_heads does not divide the heads of keys and values that the layer has.
    """
    check_type("layer", layer, MultiHeadAttention)
    check_size("num_kv_heads", num_kv_heads)
    check_divides("num_kv_heads", num_kv_heads, "layer.num_kv_heads", layer.num_kv_heads)
    grouped = MultiHeadAttention(layer.d_model, layer.num_heads, num_kv_heads=num_kv_heads, d_k=layer.d_k,
                                 d_v=layer.d_v, key_dim=layer.key_dim, value_dim=layer.value_dim,
                                 bias=layer.w_o.bias is not None, dropout=layer.dropout)
    grouped = grouped.to(layer.w_o.weight).train(layer.training)
    state = layer.state_dict()
    for name in state:
        if name.startswith(("w_k", "w_v")):
            groups = state[name].unflatten(0, (num_kv_heads, layer.num_kv_heads // num_kv_heads, -1))
            state[name] = groups.mean(1).flatten(0, 1)                              # (g·d, …)
    grouped.load_state_dict(state)
    return grouped
