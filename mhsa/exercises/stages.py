"""Which inputs pass and which fail, and what tells them apart: with one head it is right, with several it is not."""

from mhsa.exercises.compare import Comparison
from mhsa.exercises.letters import WORDS, letter_sizes
from mhsa.exercises.outcome import tensors_in

EQUALS = [("T_q", "T_k"), ("d_k", "d_v"), ("B", "T"), ("d_model", "h·d")]


def stage(comparison: Comparison) -> str:
    """What passed and what did not; "" where nothing passed, or more than one thing tells the two apart."""
    exercise, trials = comparison.exercise, comparison.trials
    known = list(zip(exercise.stages, trials))
    passed = [on.words for on, trial in known if on and not trial.difference and trial.got.values]
    failed = next((on for on, trial in known if on and (trial.difference or not trial.got.values)), None)
    if failed and passed:
        return f"Yours is right {' and '.join(passed[:3])}, but not {failed.words}."
    sizes = [letter_sizes(exercise, trial.inputs) for trial in trials]
    right = [s for s, t in zip(sizes, trials) if not t.difference and t.got.values]
    wrong = [s for s, t in zip(sizes, trials) if t.difference or not t.got.values]
    if not right or not wrong:
        return ""
    ones = [
        name
        for name in WORDS
        if all(name in s for s in sizes) and all(s[name] == 1 for s in right) and all(s[name] > 1 for s in wrong)
    ]
    if len({WORDS[name] for name in ones}) == 1:
        return f"With one {WORDS[ones[0]]} yours is right, with several it is not."
    for one, other in EQUALS if tensors_in(trials[0].inputs) else ():
        known = all(one in s and other in s for s in sizes)
        if known and all(s[one] == s[other] for s in right) and all(s[one] != s[other] for s in wrong):
            return f"Where {one} = {other} yours is right, elsewhere it is not."
    return ""


def question(comparison: Comparison) -> str:
    """One to go on with: of the first stage that fails, or the exercise's first hint."""
    for on, trial in zip(comparison.exercise.stages, comparison.trials):
        if on and on.ask and (trial.difference or not trial.got.values):
            return on.ask
    return comparison.exercise.hints[0]
