"""Toy sentences, small enough to print whole, and toy tasks whose right attention map is known."""

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional as F

from mhsa.checks import check_size, short

SENTENCE = ("Mia", "lost", "her", "keys")  # her -> Mia, lost -> Mia, keys -> her

STORY = (*SENTENCE, "and", "Tom", "found", "them")
RELATIONS = {  # for each word of STORY the place it refers to
    "subject": (0, 0, 0, 0, 5, 5, 5, 5),  # who acts in its half: Mia, then Tom
    "antecedent": (0, 1, 0, 3, 4, 5, 6, 3),  # her -> Mia, them -> keys, any other word itself
    "neighbour": (0, 0, 1, 2, 3, 4, 5, 6),  # the word before; the first has none but itself
}


def words(T: int) -> list[str]:
    """Names for T tokens: those of the sentence, then t4, t5, …"""
    return [*SENTENCE, *(f"t{i}" for i in range(len(SENTENCE), T))][:T]


def embed(tokens: Sequence[str], d_model: int) -> Float[Tensor, "1 T d_model"]:
    """A random vector a token, (1, T, d_model) float32 of mean 0 and variance 1; the same word always has the same."""
    check_size("d_model", d_model)
    if isinstance(tokens, str) or not all(isinstance(token, str) for token in tokens) or not tokens:
        raise ValueError(f"tokens={short(tokens)} is not a list of words")
    seeds = [zlib.crc32(token.encode()) for token in tokens]
    return torch.stack([torch.randn(d_model, generator=torch.Generator().manual_seed(seed)) for seed in seeds])[None]


@dataclass(frozen=True)
class Task:
    """Random sequences of T tokens. At every place m questions are asked; each answer stands at one place, its source.

    A token is a whole number below vocab = keys · classes. A question asks for token % classes; token // classes is the
    key by which a token can be found, and each key occurs equally often. Most tasks have one key, that is none.

    sources: tokens (B, T) -> (B, m, T), for every question and place the place of the answer
    """

    name: str
    T: int
    vocab: int
    m: int
    classes: int
    sources: Callable[[Tensor], Tensor]

    def batch(self, size: int, generator: torch.Generator) -> tuple[Int[Tensor, "B T"], Int[Tensor, "B T m"]]:
        """(tokens, targets) of `size` random sequences; targets lie below classes."""
        keys = torch.rand(size, self.T, generator=generator).argsort(-1) % (self.vocab // self.classes)
        tokens = keys * self.classes + torch.randint(self.classes, (size, self.T), generator=generator)
        return tokens, self.targets(tokens)

    def targets(self, tokens: Int[Tensor, "B T"]) -> Int[Tensor, "B T m"]:
        """The right answers."""
        sources = self.sources(tokens)  # (B, m, T)
        return tokens[:, None].expand_as(sources).gather(2, sources).mT % self.classes

    def ideal(self, tokens: Int[Tensor, "B T"]) -> Float[Tensor, "B m T T"]:
        """The right attention maps, one a question: all weight of a row (query) on the source of its answer."""
        return F.one_hot(self.sources(tokens), self.T).float()

    @property
    def chance(self) -> float:
        """The accuracy of guessing."""
        return 1 / self.classes

    def predicted(self, num_heads: int) -> float:
        """The accuracy if each head answers one question, and the questions left over are guessed."""
        check_size("num_heads", num_heads)
        answered = min(num_heads, self.m)
        return (answered + (self.m - answered) * self.chance) / self.m


def relations(m: int = 2, T: int = 8, vocab: int = 8) -> Task:
    """The tokens 1, 2, …, m places back; before the first comes the last."""
    m, T, vocab = check_size("m", m), check_size("T", T), check_size("vocab", vocab)
    if m > T:
        raise ValueError(f"m={m} relations do not fit T={T} places; m of at most T is needed")
    return _by_place(f"relations, m={m}", [[(t - back) % T for t in range(T)] for back in range(1, m + 1)], vocab)


def copy_two_sources(T: int = 8, vocab: int = 8) -> Task:
    """The token that comes next in each half: at place t that at (t + 1) mod T/2, of the first half and the second."""
    T, vocab = check_size("T", T), check_size("vocab", vocab)
    if T % 2:
        raise ValueError(f"T={T} has no two equal halves; an even number is needed")
    first = [(t + 1) % (T // 2) for t in range(T)]
    return _by_place("copy two sources", [first, [t + T // 2 for t in first]], vocab)


def reverse(T: int = 8, vocab: int = 8) -> Task:
    """The sequence backwards: one question a place, so one head is enough."""
    T, vocab = check_size("T", T), check_size("vocab", vocab)
    return _by_place("reverse", [list(reversed(range(T)))], vocab)


def story() -> Task:
    """The three RELATIONS of STORY. The words of a random sequence are random, so that its places alone tell.

    Relations that share a source, and words that refer to themselves, make it easier than predicted() says.
    """
    return _by_place("story", list(RELATIONS.values()), len(STORY))


def who_and_what() -> Task:
    """Two questions to each place of a sentence as long as SENTENCE: who (Mia, Mia, Mia, her) and what (lost, keys,
    keys, lost). The four words of a random sequence are random, so that its places alone tell."""
    return _by_place("who and what", [[0, 0, 0, 2], [1, 3, 3, 1]], len(SENTENCE))


def lookup(T: int = 8, classes: int = 4) -> Task:
    """By content and by place at once: the answer of the token with the next key (T keys, each once), and that of the
    token one place back."""
    T, classes = check_size("T", T), check_size("classes", classes)

    def sources(tokens: Tensor) -> Tensor:
        keys = tokens // classes
        with_next_key = keys.argsort(-1).gather(1, (keys + 1) % T)  # argsort: where each key stands
        one_back = (torch.arange(T) - 1) % T
        return torch.stack([with_next_key, one_back.expand_as(keys)], 1)

    return Task("look-up", T, T * classes, 2, classes, sources)


def _by_place(name: str, table: Sequence[Sequence[int]], vocab: int) -> Task:
    """A task whose sources are the same for every sequence: table[question][place]."""
    places = torch.tensor(table)
    m, T = places.shape
    return Task(name, T, vocab, m, vocab, lambda tokens: places.expand(len(tokens), m, T))
