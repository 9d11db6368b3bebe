"""The small trained layer that explore.flow() starts with: words that ask who and what, told apart by two heads."""

import json
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from mhsa.layers import MultiHeadAttention
from mhsa.recording import environment_info, write_whole
from mhsa.toys import who_and_what
from mhsa.train.record import RECORDED

EXAMPLE = "example.json"
SIZES = {8: (1, 2, 4, 8), 12: (1, 2, 3, 4, 6, 12)}  # d_model -> numbers of heads
STEPS, BATCH, LR, HELD_OUT = 1000, 64, 0.005, 1024


@dataclass(frozen=True)
class Example:
    """A trained layer, what it reads for the words of toys.SENTENCE, x (1, T, d_model), and how often it is right."""

    x: Tensor
    layer: MultiHeadAttention
    accuracy: tuple[float, ...]  # who, what


@torch.enable_grad()
def train_example(d_model: int, num_heads: int, seed: int = 0) -> Example:
    """Token and place embeddings, one attention layer whose result is added, a linear read-out of who and of what."""
    task = who_and_what()
    generator = torch.Generator().manual_seed(seed)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        tokens, places = nn.Embedding(task.vocab, d_model), nn.Parameter(torch.randn(task.T, d_model))
        layer, readout = MultiHeadAttention(d_model, num_heads), nn.Linear(d_model, task.m * task.classes)

    def logits(words: Tensor) -> Tensor:
        x = tokens(words) + places
        return readout(x + layer(x)).unflatten(-1, (task.m, task.classes))  # (B, T, m, classes)

    optimizer = torch.optim.Adam([*tokens.parameters(), places, *layer.parameters(), *readout.parameters()], LR)
    for _ in range(STEPS):
        words, right = task.batch(BATCH, generator)
        optimizer.zero_grad()
        F.cross_entropy(logits(words).flatten(0, 2), right.flatten()).backward()
        optimizer.step()

    with torch.no_grad():
        words, right = task.batch(HELD_OUT, generator)
        accuracy = (logits(words).argmax(-1) == right).float().mean((0, 1))  # (m,)
        x = tokens.weight[None] + places  # the sentence is the words 0, 1, 2, 3
    return Example(x.detach(), layer.requires_grad_(False).eval(), tuple(accuracy.tolist()))


def record_examples(folder: Path) -> None:
    """Train one for each of SIZES and store it, rounded to thousandths."""
    examples = []
    for d_model, heads in SIZES.items():
        for num_heads in heads:
            example = train_example(d_model, num_heads)
            print(
                f"d_model={d_model:<2} h={num_heads:<2} who {example.accuracy[0]:.2f}   what {example.accuracy[1]:.2f}"
            )
            numbers = {"x": example.x, **example.layer.state_dict()}
            examples.append(
                {"d_model": d_model, "num_heads": num_heads, "accuracy": example.accuracy}
                | {
                    name: [[round(n, 3) for n in row] for row in t.view(-1, t.shape[-1]).tolist()]
                    for name, t in numbers.items()
                }
            )
    what = {"steps": STEPS, "batch": BATCH, "lr": LR, "seed": 0, **environment_info("cpu"), "examples": examples}
    write_whole(folder / EXAMPLE, json.dumps(what))


def load_examples() -> dict[tuple[int, int], Example]:
    """(d_model, num_heads) -> the trained layer, from the package's files."""
    found = {}
    for stored in json.loads((RECORDED / EXAMPLE).read_text(encoding="utf-8"))["examples"]:
        sizes = stored.pop("d_model"), stored.pop("num_heads")
        accuracy = tuple(stored.pop("accuracy"))
        numbers = {name: torch.tensor(rows) for name, rows in stored.items()}
        layer = MultiHeadAttention(*sizes)
        x = numbers.pop("x")[None]
        layer.load_state_dict(numbers)
        found[sizes] = Example(x, layer.requires_grad_(False).eval(), accuracy)
    return found
