"""One attention layer (or a few) on toy tasks: every seed of a setting trains at once.

The model: token and place embeddings, attention, a linear read-out; no MLP, no bias, no residual connection.
Its number of parameters does not depend on the number of heads. The weights of S seeds are stacked on a leading axis,
so that a step is a handful of batched products for all of them. What a seed draws and learns does not depend on the
other seeds.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import sqrt

import torch
from torch import Tensor
from torch.nn import functional as F

from mhsa.checks import check_divides, check_size, check_type, short
from mhsa.layers import MultiHeadAttention
from mhsa.toys import Task

D_MODEL, LR = 16, 0.005  # unless told otherwise
HELD_OUT = 512  # sequences a seed that accuracy is measured on


@dataclass(frozen=True)
class ToyRun:
    """A trained setting: weights by name, each with one entry a seed in front; accuracy (S, m), a question each.

    tokens (S, vocab, d_model), places (S, T, d_model), w_qkv (S, layers, 2·h·d_k + d_model, d_model), w_o (S, layers,
    d_model, d_model), readout (S, m·classes, d_model); rows are outputs, as in nn.Linear.
    """

    task: Task
    num_heads: int
    seeds: tuple[int, ...]
    weights: dict[str, Tensor]
    accuracy: Tensor

    @property
    def parameters(self) -> int:
        """Of one seed."""
        return sum(w[0].numel() for w in self.weights.values())

    def embed(self, tokens: Tensor, seed: int) -> Tensor:
        """What the first attention layer of one seed reads: tokens (B, T) -> (B, T, d_model)."""
        w = self._of(seed)
        return w["tokens"][tokens] + w["places"]

    def layer(self, seed: int, number: int = 0) -> MultiHeadAttention:
        """The trained attention layer of one seed."""
        w = self._of(seed)
        d_model = w["w_o"].shape[-1]
        w_q, w_k, w_v = _split_qkv(w["w_qkv"][number], d_model)
        d_k, d_v = (len(rows) // self.num_heads for rows in (w_q, w_v))
        layer = MultiHeadAttention(d_model, self.num_heads, d_k=d_k, d_v=d_v)
        layer.load_state_dict({"w_q.weight": w_q, "w_k.weight": w_k, "w_v.weight": w_v, "w_o.weight": w["w_o"][number]})
        return layer.eval()

    def logits(self, tokens: Tensor, seed: int) -> Tensor:
        """tokens (B, T) -> (B, T, m, classes), a score for every possible answer."""
        one = {name: w[None] for name, w in self._of(seed).items()}
        logits = _forward(one, tokens[None], self.num_heads)  # (1, m·classes, T·B)
        return logits.view(self.task.m, self.task.classes, *tokens.mT.shape).permute(3, 2, 0, 1)

    def _of(self, seed: int) -> dict[str, Tensor]:
        if seed not in self.seeds:
            raise ValueError(f"seed={seed} was not trained; these were: {', '.join(map(str, self.seeds))}")
        i = self.seeds.index(seed)
        return {name: w[i] for name, w in self.weights.items()}


@contextmanager
def _one_thread() -> Iterator[None]:
    """So small a product is not worth sharing: with two threads a busy machine waits, up to twenty times as long."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@_one_thread()
@torch.enable_grad()
def train_toy(
    task: Task,
    num_heads: int,
    seeds: Iterable[int] = range(5),
    *,
    d_model: int = D_MODEL,
    steps: int = 300,
    batch: int = 32,
    lr: float = LR,
    num_layers: int = 1,
    hidden: int = 0,
    d_k: int | None = None,
) -> ToyRun:
    """Train the model on the task, all seeds at once, `steps` steps of Adam with `batch` new sequences each.

    num_layers: attention layers; all but the last add their output to what they read
    hidden:     0: linear read-out; else that of an MLP with so many hidden units
    d_k:        width of a head's queries and keys alone, default d_model / num_heads; values keep that width
    Raises ValueError for bad sizes, for seeds that are no whole numbers, for lr outside (0, 1], and if num_heads does
    not divide d_model.
    """
    check_settings(
        task, num_heads, d_model=d_model, lr=lr, hidden=hidden, d_k=d_k, steps=steps, batch=batch, num_layers=num_layers
    )
    seeds = check_seeds(seeds)
    d_k = d_model // num_heads if d_k is None else d_k

    generators = [torch.Generator().manual_seed(seed) for seed in seeds]
    weights = _first_weights(task, d_model, num_heads * d_k, num_layers, hidden, generators)
    tokens, targets = _draw(task, steps * batch, generators)  # (S, …, T), (S, m, T, …)
    optimizer = torch.optim.Adam(weights.values(), lr, fused=True)
    for step in range(steps):
        now = slice(step * batch, (step + 1) * batch)
        logits = _forward(weights, tokens[:, now], num_heads)  # (S, m·classes, T·B)
        answers = targets[..., now].reshape(len(seeds) * task.m, -1)
        loss = len(seeds) * F.cross_entropy(logits.view(len(answers), task.classes, -1), answers)  # each seed's, added
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    weights = {name: w.detach() for name, w in weights.items()}
    tokens, targets = _draw(task, HELD_OUT, generators)
    with torch.no_grad():
        logits = _forward(weights, tokens, num_heads).view(len(seeds), task.m, task.classes, task.T, HELD_OUT)
    accuracy = (logits.argmax(2) == targets).float().mean((2, 3))  # (S, m)
    return ToyRun(task, num_heads, seeds, weights, accuracy)


def check_settings(
    task: Task,
    num_heads: int,
    *,
    d_model: int = D_MODEL,
    lr: float = LR,
    hidden: int = 0,
    d_k: int | None = None,
    **sizes: int,
) -> None:
    check_type("task", task, Task)
    sizes |= {} if d_k is None else {"d_k": d_k}
    for name, value in {"num_heads": num_heads, "d_model": d_model, **sizes}.items():
        check_size(name, value)
    check_size("hidden", hidden, minimum=0)
    check_divides("num_heads", num_heads, "d_model", d_model)
    if isinstance(lr, bool) or not isinstance(lr, (int, float)) or not 0 < lr <= 1:
        raise ValueError(f"lr={short(lr)} is not a number above 0 and up to 1")


def check_seeds(seeds: Iterable[int]) -> tuple[int, ...]:
    if not isinstance(seeds, Iterable):
        raise ValueError(
            f"seeds={short(seeds)} has type {type(seeds).__name__}; whole numbers are needed, as in range(5)"
        )
    seeds = tuple(check_size("seed", seed, minimum=0) for seed in seeds)
    if not seeds or len(set(seeds)) < len(seeds):
        raise ValueError(f"seeds={seeds} are none, or some twice; at least one is needed, each once")
    return seeds


def _first_weights(
    task: Task, d_model: int, keys: int, num_layers: int, hidden: int, generators: list[torch.Generator]
) -> dict[str, Tensor]:
    """Random weights, each of variance 1 / (columns); embeddings of variance 1. keys: columns of all keys, h·d_k."""
    shapes = {
        "tokens": (task.vocab, d_model),
        "places": (task.T, d_model),
        "w_qkv": (num_layers, 2 * keys + d_model, d_model),
        "w_o": (num_layers, d_model, d_model),
    }
    shapes |= {"hidden": (hidden, d_model), "hidden_bias": (hidden,)} if hidden else {}
    shapes |= {"readout": (task.m * task.classes, hidden or d_model)}

    def first(name: str, shape: tuple[int, ...]) -> Tensor:
        scale = 1 if name in ("tokens", "places") else shape[-1] ** -0.5
        return torch.stack([scale * torch.randn(shape, generator=g) for g in generators]).requires_grad_()

    return {name: first(name, shape) for name, shape in shapes.items()}


def _draw(task: Task, size: int, generators: list[torch.Generator]) -> tuple[Tensor, Tensor]:
    """tokens (S, size, T), targets (S, m, T, size), one generator a seed."""
    tokens, targets = zip(*(task.batch(size, generator) for generator in generators))
    return torch.stack(tokens), torch.stack(targets).permute(0, 3, 2, 1).contiguous()


def _forward(w: dict[str, Tensor], tokens: Tensor, num_heads: int) -> Tensor:
    """tokens (S, B, T) -> logits (S, m·classes, T·B). The batch stands last: tiny sums over other axes are fast."""
    S, B, T = tokens.shape
    _, vocab, d_model = w["tokens"].shape
    first_row = vocab * torch.arange(S)[:, None, None]  # of each seed's own embeddings
    x = F.embedding(tokens + first_row, w["tokens"].flatten(0, 1)) + w["places"][:, None]
    x = x.permute(0, 3, 2, 1).reshape(S, d_model, T * B)
    last = w["w_qkv"].shape[1] - 1
    for number in range(last + 1):
        parts = _split_qkv(w["w_qkv"][:, number] @ x, d_model)
        q, k, v = (part.view(S, num_heads, -1, T, B) for part in parts)
        out = w["w_o"][:, number] @ _attend(q, k, v).view(S, d_model, T * B)
        x = out if number == last else x + out
    if "hidden" in w:
        x = torch.baddbmm(w["hidden_bias"][..., None], w["hidden"], x).relu()
    return w["readout"] @ x


def _split_qkv(rows: Tensor, d_model: int) -> tuple[Tensor, ...]:
    """(…, 2·h·d_k + d_model, N) -> the rows of q, of k, and the last d_model, of v."""
    keys = (rows.shape[-2] - d_model) // 2
    return rows.split([keys, keys, d_model], -2)


def _attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Attention of all seeds and heads in one go: q, k (S, h, d_k, T, B), v (S, h, d_v, T, B) -> like v.

    Written out, since the fused kernel takes up to five times as long over thousands of maps of 8 × 8.
    """
    q = q / sqrt(q.shape[2])
    scores = (q[:, :, :, :, None] * k[:, :, :, None]).sum(2)  # (S, h, T_q, T_k, B)
    weights = scores.softmax(3)
    return (weights[:, :, None] * v[:, :, :, None]).sum(4)  # (S, h, d_v, T_q, B)
