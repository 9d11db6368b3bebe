"""Find the words for an answer: right, not written yet, a known mistake, or the first difference."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, NamedTuple

from mhsa.exercises.compare import Comparison, compare
from mhsa.exercises.diagnose import diagnose
from mhsa.exercises.outcome import tensors_in
from mhsa.exercises.sandbox import Printed, sandbox
from mhsa.exercises.timeout import run_with_timeout
from mhsa.exercises.words import describe, not_written, with_article

if TYPE_CHECKING:
    from mhsa.exercises.exercise import Exercise

PRINTED_LINES = 12  # shown of what the learner's function prints


class Verdict(NamedTuple):
    right: bool
    words: str  # for the learner
    way: str = ""  # how what is wrong was found


def check_answer(exercise: Exercise, answer: object, seconds: int | float = 5) -> tuple[bool, str]:
    """(is it right, what to tell the learner)."""
    return examine(exercise, answer, seconds)[:2]


def examine(exercise: Exercise, answer: object, seconds: int | float = 5) -> Verdict:
    """Any answer may come; nothing is raised but a kernel interrupt."""
    printed = Printed()
    try:
        with sandbox(printed):
            right, text, way = run_with_timeout(lambda: _check(exercise, answer, printed), seconds)
    except TimeoutError as late:
        right, way = False, "form"
        text = (
            f"No answer after {seconds:g} seconds. Is there a loop that never ends? If your code is only slow, "
            f"give it time: ex.{exercise.name}.check({exercise.answer_name}, seconds=60)."
        )
        if late.args[0]:
            text += " It could not be stopped: restart the kernel before you go on."
    except Exception as error:  # an object that raises when it is looked at
        right, way, text = False, "form", f"The check cannot make sense of this answer: {type(error).__name__}."
    lines = printed.getvalue().splitlines()
    if lines:
        shown = lines[:PRINTED_LINES] + ["..."] * (len(lines) > PRINTED_LINES)
        text += "\n\nYour function printed:\n" + "\n".join(f"  {line[:120]}" for line in shown)
    return Verdict(right, text, way)


def _check(exercise: Exercise, answer: object, printed: Printed) -> Verdict:
    refusal = refuse(exercise, answer)
    if refusal:
        return Verdict(False, refusal, "form")
    comparison = compare(exercise, answer)
    printed_once = printed.tell()
    wrong = diagnose(comparison)
    printed.truncate(printed_once)  # later calls print the same again
    return Verdict(False, wrong.words, wrong.way) if wrong else Verdict(True, right_message(comparison))


def refuse(exercise: Exercise, answer: object) -> str:
    """Why this cannot be an answer: the wrong kind of thing, or a function that cannot take the inputs."""
    name, kind = exercise.answer_name, type(answer).__name__
    if answer is None or answer is ...:
        return not_written(exercise)
    if exercise.asks_value:
        if callable(answer):
            return f"A value is asked here, and this is {with_article(kind)}. Pass what it returns."
        return ""
    if inspect.isclass(answer):
        return f"A function is asked here, and {answer.__name__} is a class. Pass a function."
    if not callable(answer):
        return (
            f"Pass the function itself, without calling it: ex.{exercise.name}.check({name}). "
            f"This is {with_article(kind)}, perhaps what it returned."
        )
    for word, instead, found in (("yield", "return", inspect.isgeneratorfunction), ("async def", "def", is_async)):
        if found(answer):
            return f"Your function has {word}, so a call returns no numbers. Write {instead} in place of {word}."
    try:
        inspect.signature(answer).bind(*exercise.signature.parameters)
    except ValueError:  # a built-in without a signature: try it
        return ""
    except TypeError as error:
        return f"Your function cannot be called as {name}{exercise.signature}: {error}."
    return ""


def is_async(answer: object) -> bool:
    return inspect.iscoroutinefunction(answer) or inspect.isasyncgenfunction(answer)


def right_message(comparison: Comparison) -> str:
    exercise, trials = comparison.exercise, comparison.trials
    if exercise.asks_value:
        return "Right."
    tried = "; ".join(describe(exercise, trial.inputs) for trial in trials)
    text = f"Right. Tried on {len(trials)} inputs: {tried}."
    if any(x.is_floating_point() for trial in trials for x in tensors_in(trial.want.values)):
        text += f" Difference allowed: {comparison.tolerance:g}."
    if all(trial.want.whole for trial in trials) and any(not trial.got.whole for trial in trials):
        text += " One remark: a count is whole, and yours is a float. `//` divides to a whole number; `/` does not."
    if any(outcome.no_tensor for outcome in comparison.got) and any(comparison.right_gradients):
        kind = with_article(comparison.got[0].type_name)
        text += f" One remark: it returns {kind}. Return a torch.Tensor, so that gradients can flow."
    return text
