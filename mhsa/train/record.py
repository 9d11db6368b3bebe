"""The sweeps that lessons show full-size results of: which they are, reading what was recorded, recording it anew."""

import json
from collections.abc import Iterable
from importlib.resources import files
from itertools import product
from pathlib import Path
from typing import Any

import torch

from mhsa.recording import write_whole
from mhsa.toys import copy_two_sources, lookup, relations, reverse, story
from mhsa.train.model import ToyRun, train_toy
from mhsa.train.sweep import Sweep, sweep_heads

RECORDED = files("mhsa.train") / "recorded"
RECORD, WEIGHTS = "one_vs_many.json", "one_vs_many_weights.json"
SWEEPS: dict[str, dict[str, Any]] = {
    "map": dict(tasks=[relations(m) for m in (1, 2, 4)], heads=(1, 2, 4, 8, 16)),
    **{
        f"lr {lr} for {steps} steps": dict(tasks=[relations(2), relations(4)], heads=(1, 2, 16), lr=lr, steps=steps)
        for lr, steps in product((0.002, 0.005, 0.02), (300, 900, 3000))
    },
    **{
        f"T={T} d_k={d_k} for {steps} steps": dict(tasks=[relations(1, T=T)], heads=(1,), d_k=d_k, steps=steps)
        for T, d_k, steps in product((8, 16, 32), (1, 2, 4, 8), (300, 900))
    },
    "tasks": dict(tasks=[copy_two_sources(), lookup(), reverse(), story()], heads=(1, 2, 4, 8, 16), steps=900),
    "mlp": dict(tasks=[relations(2), relations(4)], heads=(1, 2, 4), hidden=64),
    "two layers": dict(tasks=[relations(2), relations(4)], heads=(1, 2, 4), num_layers=2),
}


def recorded(name: str) -> Sweep:
    """A full-size sweep from the package's files: one of SWEEPS."""
    sweeps = json.loads((RECORDED / RECORD).read_text(encoding="utf-8"))
    if name not in sweeps:
        raise ValueError(f"name={name!r} was not recorded; these were: {', '.join(sweeps)}")
    return Sweep.from_json(sweeps[name])


def load_story_runs() -> dict[int, ToyRun]:
    """number of heads -> a run of one seed, 0, on toys.story(), from the package's files."""
    data = json.loads((RECORDED / WEIGHTS).read_text(encoding="utf-8"))
    return {
        run["num_heads"]: ToyRun(
            story(),
            run["num_heads"],
            (0,),
            {name: torch.tensor(w) for name, w in run["weights"].items()},
            torch.tensor(run["accuracy"]),
        )
        for run in data["runs"]
    }


def record(folder: Path, seeds: Iterable[int], steps: dict[str, int]) -> None:
    """Each sweep is written when it ends. A half one is kept only where there is none yet, and ends it all."""
    file = folder / RECORD
    before = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    sweeps = {name: before[name] for name in SWEEPS if name in before}
    for name, what in SWEEPS.items():
        sweep = sweep_heads(seeds=seeds, **{**what, **steps})
        print(f"{name}: {sweep.settings}, {sweep.made}")
        for result in sweep.results:
            print(
                f"  {result.task:16} h={result.num_heads:<3} {result.mean:.2f} +/- {result.spread:.2f}   predicted "
                f"{result.predicted:.2f}   {result.parameters:,} parameters   {result.seconds:.1f} s"
            )
        complete = len(sweep.results) == len(what["tasks"]) * len(what["heads"])
        if complete or name not in sweeps:
            sweeps[name] = sweep.to_json()
            write_whole(file, json.dumps(sweeps, indent=1))
        if not complete:
            raise KeyboardInterrupt  # sweep_heads has held it back

    runs = [train_toy(story(), h, (0,), **steps) for h in (1, 2, 4, 8, 16)]
    data = [
        {
            "num_heads": run.num_heads,
            "accuracy": run.accuracy.tolist(),
            "weights": {name: w.mul(1e4).round().div(1e4).tolist() for name, w in run.weights.items()},
        }
        for run in runs
    ]
    write_whole(folder / WEIGHTS, json.dumps({"runs": data}))
