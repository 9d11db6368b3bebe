"""An exercise is data: here is what a notebook shows of it and what a learner calls; judge.py finds the words."""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import ModuleType

import torch

from mhsa.exercises import progress
from mhsa.exercises.judge import check_answer


@dataclass(repr=False)
class Exercise:
    """One exercise.

    reference:  the right answer; its name, arguments and docstring make the stub. Without arguments: a value is asked
    inputs:     what it is tried on, one list of arguments each
    mistakes:   (wrong answer, what the learner should look at): a function, or a value where a value is asked
    given:      a function NAME_given with code to complete (`return ...`) or to mend, shown in place of an empty stub
    run:        (answer, *inputs) -> what is compared, where that is not answer(*inputs)
    extra:      for a learner with time to spare; what is not extra is the core of its lesson
    tolerance:  relative and absolute; for a result in float32 it is at least 1e-5
    """

    title: str
    difficulty: int  # 1 to 5
    minutes: int
    task: str  # markdown
    reference: Callable
    hints: Sequence[str]
    mistakes: Sequence[tuple[object, str]]
    inputs: Sequence[Sequence] = ((),)
    given: Callable | None = None
    run: Callable | None = None
    extra: bool = False
    tolerance: float = 4e-7  # float32 in between is no mistake

    def __post_init__(self):
        self.answer_name = self.reference.__name__
        self.name = self.answer_name.upper()
        self.lesson = self.reference.__module__.rsplit(".", 1)[-1]  # "lesson03"
        self.signature = inspect.signature(self.reference)
        self.asks_value = not self.signature.parameters
        self.input_names = [*self.signature.parameters]
        if self.run:
            self.input_names = [*inspect.signature(self.run).parameters][1:]
        self._hints_given = 0

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
            code = inspect.getsource(self.given).replace(self.given.__name__, self.answer_name).rstrip()
        return f"{code}\n\n\n{check}"

    def check(self, answer, seconds: int | float = 5) -> None:
        """Say whether the answer is right, and if not, what to look at."""
        right, text = check_answer(self, answer, seconds)
        print(text.encode(errors="replace").decode())  # half a character would not arrive
        if right:
            progress.record(self.lesson, self.name)

    def hint(self) -> None:
        """One hint more each call."""
        self._hints_given += 1
        if self._hints_given <= len(self.hints):
            print(f"Hint {self._hints_given} of {len(self.hints)}: {self.hints[self._hints_given - 1]}")
        else:
            print(f"There are no more than these {len(self.hints)} hints. ex.{self.name}.solution() shows an answer.")

    def solution(self) -> None:
        """The source of the answer that every check compares with."""
        print(inspect.getsource(self.reference).rstrip())


def random_numbers(seed: int) -> Callable:
    """A function of a shape that returns random float64 numbers, the same on every machine."""
    generator = torch.Generator().manual_seed(seed)
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
