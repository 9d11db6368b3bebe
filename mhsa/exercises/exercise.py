"""An exercise is data: here is what a notebook shows of it and what a learner calls; judge.py finds the words."""

import inspect
import reprlib
import textwrap
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import ModuleType
from typing import Any, NamedTuple

import torch

from mhsa.exercises import progress
from mhsa.exercises.judge import check_answer


class On(NamedTuple):
    """Inputs with words for what is special about them, and a question: On("with one head", "…?", [x, w_q, 1])."""

    words: str  # finish "yours is right …"
    ask: str  # the question to go on with where these inputs are the first that fail
    inputs: list


@dataclass(repr=False)
class Exercise:
    """One exercise. Raises ValueError at import where hints, mistakes or also_right are no lists.

    reference:  the right answer; its name, arguments and docstring make the stub. Without arguments: a value is asked
    mistakes:   (wrong answer, what the learner should look at): a function, or a value where a value is asked
    also_right: right answers written differently; those written in the lesson's module are shown by solution(2), (3), …
    inputs:     what it is tried on, from simple to full: lists of arguments, or On(...); or a function of rand that
                makes them with rand(*shape)
    given:      a function NAME_given with code to complete (`return ...`) or to mend, shown in place of an empty stub
    run:        (answer, *inputs) -> what is compared, where that is not answer(*inputs)
    extra:      for a learner with time to spare; what is not extra is the core of its lesson
    fresh:      more inputs, on which a mistake found by search is confirmed; where inputs is a function, it makes some
    tolerance:  relative and absolute; for a result in float32 it is at least 1e-5
    """

    title: str
    difficulty: int  # 1 to 5
    minutes: int
    task: str  # markdown
    reference: Callable
    hints: list[str]
    mistakes: list[tuple[Any, str]]
    also_right: list[Any]
    inputs: list | Callable[[Callable], list] = field(default_factory=lambda: [[]])
    given: Callable | None = None
    run: Callable | None = None
    extra: bool = False
    fresh: list[list] = field(default_factory=list)
    tolerance: float = 4e-7  # float32 in between is no mistake

    cases: list[list] = field(init=False)  # the inputs, made with random numbers of this exercise's own
    stages: list[On | None] = field(init=False)  # what is known of each of them
    hints_given: int = field(default=0, init=False)  # since the import

    def __post_init__(self):
        for name in ("hints", "mistakes", "also_right"):
            value = getattr(self, name)
            if not isinstance(value, list):  # of a text, each letter would be a hint
                raise ValueError(f"{self.name}: {name}={reprlib.repr(value)} is no list: write {name}=[...]")
        for pair in self.mistakes:
            if not (isinstance(pair, tuple) and len(pair) == 2 and isinstance(pair[1], str)):
                raise ValueError(
                    f"{self.name}: mistakes holds {reprlib.repr(pair)}: write pairs (wrong answer, what to look at)"
                )
        made = self.inputs(random_numbers(self.name)) if callable(self.inputs) else self.inputs
        self.cases = [case.inputs if isinstance(case, On) else case for case in made]
        self.stages = [case if isinstance(case, On) else None for case in made]

    @cached_property
    def fresh_cases(self) -> list[list]:
        """Inputs that no check has shown."""
        made = self.inputs(random_numbers(f"{self.name} again")) if callable(self.inputs) else []
        return [case.inputs if isinstance(case, On) else case for case in made] + self.fresh

    @property
    def answer_name(self) -> str:
        """What the learner's answer is called: my_split."""
        return self.reference.__name__

    @property
    def name(self) -> str:
        """What the exercise is called: MY_SPLIT."""
        return self.answer_name.upper()

    @property
    def lesson(self) -> str:
        """lesson03."""
        return self.reference.__module__.rsplit(".", 1)[-1]

    @cached_property
    def signature(self) -> inspect.Signature:
        return inspect.signature(self.reference)

    @property
    def asks_value(self) -> bool:
        """A value is asked, and no function."""
        return not self.signature.parameters

    @cached_property
    def input_names(self) -> list[str]:
        """What the inputs are called, in messages."""
        return [*inspect.signature(self.run).parameters][1:] if self.run else [*self.signature.parameters]

    def __repr__(self):
        return f"Exercise {self.name}: {self.title}"

    @property
    def card(self) -> str:
        """Markdown: title, difficulty, minutes, core or extra, what to write, signature with shapes."""
        effort = f"**Difficulty** {self.difficulty} of 5 · **Minutes** {self.minutes}" + " · *extra*" * self.extra
        parts = [f"### {self.title}", effort, self.task]
        if not self.asks_value:
            parts.append(f"`{self.answer_name}{self.signature}`: {inspect.getdoc(self.reference)}")
        return "\n\n".join([*parts, f"Stuck? `ex.{self.name}.hint()`, then `ex.{self.name}.solution()`."])

    @property
    def stub(self) -> str:
        """The code cell to start from; it ends in the check."""
        check = f"ex.{self.name}.check({self.answer_name})"
        if self.asks_value:
            return f"{self.answer_name} = ...\n\n{check}"
        code = f"def {self.answer_name}{self.signature}:\n    ..."
        if self.given:
            code = source(self.given, self.answer_name)
        return f"{code}\n\n\n{check}"

    def check(self, answer, seconds: int | float = 5) -> None:
        """Say whether the answer is right, and if not, what to look at."""
        right, text = check_answer(self, answer, seconds)
        print(text.encode(errors="replace").decode())  # half a character would not arrive
        if right:
            progress.record(self.lesson, self.name)

    def hint(self) -> None:
        """One hint more each call."""
        self.hints_given += 1
        if self.hints_given <= len(self.hints):
            print(f"Hint {self.hints_given} of {len(self.hints)}: {self.hints[self.hints_given - 1]}")
        else:
            print(f"There are no more than these {len(self.hints)} hints. ex.{self.name}.solution() shows an answer.")

    def solution(self, way: int = 1) -> None:
        """The source of the answer that every check compares with; way 2, 3, …: of others that are right too."""
        ways = [self.reference, *(other for other in self.also_right if self._is_written_here(other))]
        if way in range(1, len(ways) + 1):
            print(source(ways[way - 1], self.answer_name))
        else:
            there_are = f"are {len(ways)} ways" if len(ways) > 1 else "is 1 way"
            print(f"There {there_are} to show. ex.{self.name}.solution() shows the first.")

    def _is_written_here(self, answer: object) -> bool:
        """No value, and no function of torch or of another module."""
        return inspect.isfunction(answer) and answer.__module__ == self.reference.__module__


def source(function: Callable, name: str) -> str:
    """The source of a function or lambda, to be run in a cell, where it is called `name`."""
    code = textwrap.dedent(inspect.getsource(function)).rstrip().rstrip(",")
    if function.__name__ == "<lambda>":
        return f"{name} = {code}"
    return code.replace(f"def {function.__name__}(", f"def {name}(", 1)


def random_numbers(name: str) -> Callable:
    """rand(*shape) -> random float64 numbers: for each name its own, the same on every machine."""
    generator = torch.Generator().manual_seed(zlib.crc32(name.encode()))
    return lambda *shape: torch.randn(shape, generator=generator, dtype=torch.float64)


def torch_layer(rand: Callable, d_model: int, num_heads: int, *, batch_first: bool) -> torch.nn.MultiheadAttention:
    """torch's layer with weights of rand; making it leaves the random numbers of the session alone."""
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        layer = torch.nn.MultiheadAttention(d_model, num_heads, batch_first=batch_first, dtype=torch.float64)
        for p in layer.parameters():
            p.copy_(rand(*p.shape))
    return layer


def exercises(lesson: ModuleType) -> list[Exercise]:
    """The exercises of a lesson module, in order."""
    return [value for value in vars(lesson).values() if isinstance(value, Exercise)]


def minutes(some: Sequence[Exercise], extra: bool) -> int:
    """How long these exercises take: the core of them, or with `extra` the others."""
    return sum(exercise.minutes for exercise in some if exercise.extra == extra)


def introduction(lesson: ModuleType) -> str:
    """Markdown: what to do, and how long it takes."""
    core, extra = (minutes(exercises(lesson), kind) for kind in (False, True))
    time = (
        f"The core takes {core} minutes; what is marked *extra*, {extra} more."
        if extra
        else f"They take {core} minutes."
    )
    what = "Finish each cell and run it: the check says that it is right, or what it sees. A hint costs nothing."
    return f"## Exercises\n\n{what}\n\n{time}"


def cells(lesson: ModuleType) -> list[tuple[str, str, str]]:
    """The notebook cells of a lesson's exercises: (cell type, cell id, source) each."""
    name = lesson.__name__.rsplit(".", 1)[-1]
    result = [
        ("markdown", "exercises", introduction(lesson)),
        ("code", "exercises-import", f"from mhsa.exercises import {name} as ex"),
    ]
    for exercise in exercises(lesson):
        slug = exercise.name.lower().replace("_", "-")
        result += [("markdown", f"{slug}-card", exercise.card), ("code", slug, exercise.stub)]
    return result
