"""How well the checks find what is wrong: python -m mhsa.exercises.audit FILE [--show]

A line of the file is an answer as a learner would type it, in JSON: exercise, code, right (true or false), and truth,
the mistake in words. Each goes through its exercise's check. Counted is how the words were found; whether they lead to
the true mistake is for a reader, and --show prints them.
"""

import argparse
import importlib
import json
import linecache
import math
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import einops
import numpy as np
import torch
from torch.nn import functional as F

from mhsa.exercises.exercise import Exercise, exercises
from mhsa.exercises.judge import Verdict, examine
from mhsa.lessons import WITH_EXERCISES

WAYS = ("form", "listed", "mutant", "relation", "stage", "error", "gradient", "first difference")
NAMES = {
    **{name: getattr(math, name) for name in ("inf", "nan", "pi", "sqrt", "log", "ceil")},
    **{name: getattr(einops, name) for name in ("rearrange", "repeat", "reduce")},
    "math": math, "np": np, "numpy": np, "torch": torch, "nn": torch.nn, "F": F, "einops": einops,
    "tensor": torch.tensor, "Tensor": torch.Tensor, "array": np.array, "einsum": torch.einsum, "esum": einops.einsum,
}  # fmt: skip


@dataclass
class Audited:
    """An answer of the file, and what the check said of it."""

    item: dict
    verdict: Verdict
    seconds: float

    @property
    def way(self) -> str:
        if self.item["right"]:
            return "right" if self.verdict.right else "refused"
        return "accepted" if self.verdict.right else self.verdict.way


def audit(path: Path) -> list[Audited]:
    known, found = all_exercises(), []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines()):
        item = json.loads(line)
        if item["exercise"] not in known:
            raise ValueError(f"{path}, line {number + 1}: there is no exercise {item['exercise']}")
        answer, start = build(f"<answer {number}>", item["code"]), time.perf_counter()
        verdict = examine(known[item["exercise"]], answer)
        found.append(Audited(item, verdict, time.perf_counter() - start))
    return found


def all_exercises() -> dict[str, Exercise]:
    modules = [importlib.import_module(f"mhsa.exercises.{lesson.name}") for lesson in WITH_EXERCISES]
    return {exercise.name: exercise for module in modules for exercise in exercises(module)}


def build(file: str, code: str) -> Callable | object:
    """The function that the code defines last, or the value that it is; a traceback can show its lines."""
    linecache.cache[file] = (len(code), None, code.splitlines(True), file)
    space = dict(NAMES)
    try:
        return eval(compile(code, file, "eval"), space)
    except SyntaxError:
        exec(compile(code, file, "exec"), space)
    return [value for name, value in space.items() if name not in NAMES and callable(value)][-1]


def summary(found: list[Audited]) -> str:
    """Wrong answers by how they were found, and right ones refused."""
    ways = Counter(one.way for one in found)
    wrong, right = (sum(one.item["right"] is kind for one in found) for kind in (False, True))
    lines = [f"{wrong} wrong answers, {ways['accepted']} accepted; {right} right ones, {ways['refused']} refused"]
    lines += [f"{ways[way]:4} {way:16} {ways[way] / max(wrong, 1):4.0%}" for way in WAYS]
    slowest = max(found, key=lambda one: one.seconds)
    return "\n".join([*lines, f"slowest check: {slowest.seconds:.1f} s ({slowest.item['exercise']})"])


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("--show", action="store_true", help="each answer with what the check says of it")
    asked = parser.parse_args()
    found = audit(asked.file)
    for one in found:
        if asked.show or one.way in ("accepted", "refused"):
            name = f"{one.item.get('id', '')} {one.item['exercise']}"
            print(f"--- {name}: {one.way}, {one.seconds:.2f} s\n{one.item['code']}")
            print(f"  truth: {one.item.get('truth', '')}\n  words: {one.verdict.words}")
    print(summary(found))


if __name__ == "__main__":
    main()
