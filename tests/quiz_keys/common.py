"""A layer with fixed weights, a comparison, a count."""

import torch


def seeded(make, *sizes, **options):
    torch.manual_seed(0)
    return make(*sizes, **options).double()


def close(a, b):
    return a.shape == b.shape and torch.allclose(a, b, atol=1e-9)


def size(parameters):
    return sum(p.numel() for p in parameters)
