"""A result and the right one, over all cases: what the finders of relations compare, and how they name an axis."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from mhsa.exercises.letters import axis_word, shape_in_letters


@dataclass
class Pairs:
    """One of the results, in every case where both give one, and the sizes of the letters there."""

    got: list[Tensor]
    want: list[Tensor]
    sizes: list[dict[str, int]]
    due: list[str]  # the letters of the right axes; [] where the docstring does not say
    tolerance: float
    boolean: bool = False

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        return zip(self.got, self.want)

    def all(self, relation: Callable[[Tensor, Tensor], bool]) -> bool:
        """In all cases. One of them at least is wrong, so what holds there is no accident of the right answer."""
        try:
            return all(relation(g, w) for g, w in self)
        except (RuntimeError, IndexError, TypeError):  # the relation has no meaning for these shapes
            return False

    def close(self, g: Tensor, w: Tensor) -> bool:
        return g.shape == w.shape and torch.allclose(g, w, rtol=self.tolerance, atol=self.tolerance, equal_nan=True)

    @property
    def wrong(self) -> list[tuple[Tensor, Tensor]]:
        return [(g, w) for g, w in self if not self.close(g, w)]

    @property
    def scalar(self) -> bool:
        return all(w.dim() == 0 for w in self.want)

    def word(self, i: int, several: bool = False) -> str:
        """What an index of an axis is called: head, token, query; row or column where the letter has no name."""
        return (
            axis_word(self.due, i, several) if i < len(self.due) else f"{'places' if several else 'place'} of axis {i}"
        )

    def one(self, i: int, index: int) -> str:
        return (
            f"{self.word(i)} {index}"
            if i < len(self.due)
            else f"place {index}" + (f" of axis {i}" if self.want[0].dim() > 1 else "")
        )

    @property
    def shapes(self) -> str:
        """Both shapes, in letters where each axis has one: yours is (B, T_k, d_v), asked is (B, T_q, d_v)."""
        came = shape_in_letters([tuple(g.shape) for g in self.got], self.sizes, self.due)
        asked = f"({', '.join(self.due)}{',' * (len(self.due) == 1)})" if self.due else ""
        g, w = next(((g, w) for g, w in self if g.shape != w.shape), (self.got[0], self.want[0]))
        if not came or not asked or came == asked:
            came, asked = str(tuple(g.shape)), f"{asked} = {tuple(w.shape)}" if asked else str(tuple(w.shape))
        return f"yours is {came}, asked is {asked}"
