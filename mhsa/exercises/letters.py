"""The letters of a docstring, such as q (B, T_q, d_k): which axis they name, and which sizes they have in a case."""

from __future__ import annotations

import inspect
import itertools
import math
import re
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from mhsa.exercises.exercise import Exercise

AXIS = r"\d+|\.\.\.|[A-Za-z]\w*(?: [+-] \d)?|(?:\w+·)+\w+"
NAMED_SHAPE = re.compile(r"((?:\w+(?:, | and ))*\w+)(?:: a list of \w+ tensors)? \(([^()]*)\)")
WORDS = {
    "B": "sentence", "h": "head", "num_heads": "head", "g": "head", "m": "answer", "W": "word",
    "T": "token", "T_q": "query", "T_k": "key", "T + 1": "token",
}  # fmt: skip


def axes_of(group: str) -> list[str] | None:
    """["B", "T_q", "d_k"] of "B, T_q, d_k"; None for anything else in brackets."""
    axes = [axis for axis in group.split(", ") if axis]
    axes = [axis.rstrip(",") for axis in axes]
    return axes if axes and all(re.fullmatch(AXIS, axis) for axis in axes) else None


def argument_axes(exercise: Exercise) -> dict[str, list[str]]:
    """The axes of each argument that the docstring gives a shape."""
    found = {}
    before = " ".join((inspect.getdoc(exercise.reference) or "").split()).partition("->")[0]
    for names, group in NAMED_SHAPE.findall(before):
        axes = axes_of(group)
        for name in re.split(", | and ", names) if axes else []:
            found[name] = axes
    return found


def result_axes(exercise: Exercise) -> list[list[str]]:
    """The axes of each result; [] where the docstring does not say."""
    after = " ".join((inspect.getdoc(exercise.reference) or "").split()).partition("->")[2]
    arguments = argument_axes(exercise)
    like = re.search(r"like (\w+)", after)
    if like and like[1] in arguments:
        return [arguments[like[1]]]
    if "same shape" in after and arguments:
        return list(arguments.values()) if "same shapes" in after else [next(iter(arguments.values()))]
    return [axes for group in re.findall(r"\(([^()]*)\)", after) if (axes := axes_of(group))]


def letter_sizes(exercise: Exercise, inputs: list) -> dict[str, int]:
    """What each letter stands for on these inputs; a whole number is called as its argument is."""
    sizes, products = {"h": 0}, []
    for name, value in zip(exercise.input_names, inputs):
        if isinstance(value, int) and not isinstance(value, bool):
            sizes[name] = sizes[{"num_heads": "h", "num_kv_heads": "g"}.get(name, name)] = value
    for name, value in zip(exercise.input_names, inputs):
        axes = argument_axes(exercise).get(name, [])
        if isinstance(value, (list, tuple)) and value and isinstance(value[0], torch.Tensor):
            sizes["h"], value = len(value), value[0]
        if isinstance(value, torch.nn.MultiheadAttention):
            sizes["h"] = value.num_heads
        if isinstance(value, torch.Tensor) and value.dim() == len(axes):
            for axis, size in zip(axes, value.shape):
                if "·" in axis:
                    products.append((axis.split("·"), size))
                elif axis.isidentifier():
                    sizes[axis] = size
    for factors, size in products:
        unknown = [f for f in factors if f not in sizes and not f.isdigit()]
        known = math.prod(int(f) if f.isdigit() else sizes.get(f, 1) for f in factors)
        if len(unknown) == 1 and known:
            sizes[unknown[0]] = size // known
    return {name: size for name, size in sizes.items() if size or name != "h"}


def size_in_letters(numbers: list[int], letters: list[dict[str, int]], first: str = "") -> str:
    """T_q, or h·d, for a size that has these values in these cases; "" where none fits, or several and none is due."""
    if not letters:
        return ""
    names = sorted(set.intersection(*map(set, letters)), key=lambda name: (len(name), name))
    products = ["·".join(pair) for pair in itertools.combinations(names, 2)]
    if first and [value(first, sizes) for sizes in letters] == numbers:
        return first
    for expressions in (names, products):
        fitting = [one for one in expressions if [value(one, sizes) for sizes in letters] == numbers]
        if fitting and (len(fitting) == 1 or len(set(numbers)) > 1):
            return fitting[0]
    for name, step in itertools.product(names, (1, -1)):
        if [sizes[name] + step for sizes in letters] == numbers and len(set(numbers)) > 1:
            return f"{name} {'+' if step > 0 else '-'} 1"
    return str(numbers[0]) if len(set(numbers)) == 1 and (len(numbers) > 1 or numbers[0] == 1) else ""


def value(expression: str, sizes: dict[str, int]) -> int:
    """Of h·d, 3·h·d or T + 1; 0 where a letter has no size."""
    if " + " in expression:
        name, more = expression.split(" + ")
        return sizes[name] + int(more) if name in sizes else 0
    return math.prod(int(f) if f.isdigit() else sizes.get(f, 0) for f in expression.split("·"))


def shape_in_letters(shapes: list[tuple[int, ...]], letters: list[dict[str, int]], due: list[str]) -> str:
    """(B, T_k, d_v) for shapes that came in these cases; "" where an axis has no letter."""
    if len({len(shape) for shape in shapes}) != 1 or not letters:
        return ""
    axes = [
        size_in_letters(list(sizes), letters, due[i] if i < len(due) else "") for i, sizes in enumerate(zip(*shapes))
    ]
    return f"({', '.join(axes)}{',' * (len(axes) == 1)})" if all(axes) else ""


def axis_word(due: list[str], i: int, several: bool = False) -> str:
    """sentence, head, query, …; of two axes T the first are queries; what has no name of its own is a row or column."""
    letter = due[i]
    if letter == "T" and due.count("T") == 2:
        letter = "T_k" if "T" in due[:i] else "T_q"
    word = WORDS.get(letter, "column" if i == len(due) - 1 else "row")
    return word if not several else "queries" if word == "query" else f"{word}s"
