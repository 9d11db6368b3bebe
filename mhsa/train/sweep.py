"""Many settings of mhsa.train.train_toy, and how each ended: one table of tasks and numbers of heads."""

import os
import platform
import statistics
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from typing import Any

from tqdm.auto import tqdm

from mhsa.checks import check_type
from mhsa.recording import environment_info
from mhsa.toys import Task
from mhsa.train.model import check_seeds, check_settings, train_toy


@dataclass(frozen=True)
class Result:
    """One task with one number of heads. accuracy: a list a seed, with a number a question."""

    task: str
    T: int
    vocab: int
    num_heads: int
    predicted: float
    parameters: int
    seconds: float
    accuracy: list[list[float]]

    @property
    def runs(self) -> list[float]:
        """The accuracy of each seed over all questions."""
        return [statistics.fmean(run) for run in self.accuracy]

    @property
    def mean(self) -> float:
        return statistics.fmean(self.runs)

    @property
    def spread(self) -> float:
        """Sample standard deviation over the seeds, of one run, not of the mean; 0 for a single seed."""
        return statistics.stdev(self.runs) if len(self.runs) > 1 else 0.0


@dataclass(frozen=True)
class Sweep:
    """The results of a sweep, its settings (seeds and what train_toy was told), and what it was made with."""

    settings: dict[str, Any]
    made: dict[str, str]
    results: list[Result]

    def result(self, task: Task | str, num_heads: int) -> Result:
        """Raises ValueError if there is none, and for a task of another size than the one that was trained."""
        name = task.name if isinstance(task, Task) else task
        for result in self.results:
            if (result.task, result.num_heads) == (name, num_heads):
                if isinstance(task, Task) and (task.T, task.vocab) != (result.T, result.vocab):
                    raise ValueError(
                        f"task={name!r} has T={task.T}, vocab={task.vocab}; "
                        f"trained was T={result.T}, vocab={result.vocab}"
                    )
                return result
        there = ", ".join(f"({result.task!r}, {result.num_heads})" for result in self.results)
        raise ValueError(f"there is no result ({name!r}, {num_heads}); these are: {there}")

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> "Sweep":
        return cls(data["settings"], data["made"], [Result(**result) for result in data["results"]])


def sweep_heads(
    tasks: Task | Sequence[Task], heads: Sequence[int], seeds: Iterable[int] = range(5), **settings: Any
) -> Sweep:
    """Train every task with every number of heads; settings are those of train_toy.

    A keyboard interrupt ends the sweep with the results there are. Raises ValueError, before anything is trained, where
    train_toy would, and for two tasks of one name, by which results are found.
    """
    tasks = [tasks] if isinstance(tasks, Task) else tasks
    check_type("tasks", tasks, Sequence)
    check_type("heads", heads, Sequence)
    seeds = check_seeds(seeds)
    for task, num_heads in product(tasks, heads):
        check_settings(task, num_heads, **settings)
    names = [task.name for task in tasks]
    if len(set(names)) < len(names):
        raise ValueError(f"tasks={names} has a name twice; train such tasks in a sweep each")
    made = environment_info("cpu") | {"device": f"CPU {platform.processor() or platform.machine()}, 1 thread"}
    sweep = Sweep({"seeds": list(seeds), **settings}, made, [])
    try:
        for task, num_heads in tqdm([*product(tasks, heads)], unit="setting", leave=False, disable=not _is_watched()):
            start = time.perf_counter()
            run = train_toy(task, num_heads, seeds, **settings)
            sweep.results.append(
                Result(
                    task.name,
                    task.T,
                    task.vocab,
                    num_heads,
                    task.predicted(num_heads),
                    run.parameters,
                    time.perf_counter() - start,
                    run.accuracy.tolist(),
                )
            )
    except KeyboardInterrupt:
        print(f"Interrupted: {len(sweep.results)} of {len(tasks) * len(heads)} settings are finished.")
    for task in tasks:
        sizes = {result.parameters for result in sweep.results if result.task == task.name}
        assert len(sizes) <= 1, f"{task.name}: the number of parameters depends on the number of heads: {sizes}"
    return sweep


def _is_watched() -> bool:
    """Whether someone sees a progress bar: at a terminal, or in a notebook that a Jupyter server has opened."""
    return sys.stderr.isatty() or "JPY_SESSION_NAME" in os.environ
