"""One attention layer of a trained toy model, changed and trained a little more; the rest stays as it is."""

import torch
from torch import Tensor
from torch.nn import functional as F

from mhsa.layers import MultiHeadAttention
from mhsa.train.model import ToyRun


def accuracy(run: ToyRun, layer: MultiHeadAttention, seed: int) -> float:
    """The share of 1,000 new sequences' answers that are right with `layer` in the place of the seed's own."""
    tokens, targets = run.task.batch(1000, torch.Generator().manual_seed(1))
    with torch.no_grad():
        return (_logits(run, layer, seed, tokens).argmax(-1) == targets).float().mean().item()


def train_further(run: ToyRun, layer: MultiHeadAttention, seed: int, steps: int) -> MultiHeadAttention:
    """Train `layer`, and nothing else, in the place of the seed's own. Returns it."""
    optimizer, generator = torch.optim.Adam(layer.parameters(), 0.01), torch.Generator().manual_seed(2)
    torch.set_flush_denormal(True)  # the gradients of a trained layer are full of numbers below 1e-38: 20 times slower
    try:
        for _ in range(steps):
            tokens, targets = run.task.batch(32, generator)
            loss = F.cross_entropy(_logits(run, layer, seed, tokens).flatten(0, 2), targets.flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    finally:
        torch.set_flush_denormal(False)
    return layer


def _logits(run: ToyRun, layer: MultiHeadAttention, seed: int, tokens: Tensor) -> Tensor:
    """(B, T, m, classes)"""
    readout = run.weights["readout"][run.seeds.index(seed)]
    return (layer(run.embed(tokens, seed)) @ readout.T).unflatten(-1, (run.task.m, -1))
