"""Find the words for an answer: right, not written yet, a known mistake, or the first difference."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING

import torch

from mhsa.exercises.compare import Comparison, Trial, compare
from mhsa.exercises.outcome import Outcome, tensors_in
from mhsa.exercises.sandbox import Printed, sandbox
from mhsa.exercises.timeout import run_with_timeout

if TYPE_CHECKING:
    from mhsa.exercises.exercise import Exercise

PRINTED_LINES = 12  # shown of what the learner's function prints


def check_answer(exercise: Exercise, answer: object, seconds: int | float = 5) -> tuple[bool, str]:
    """(is it right, what to tell the learner). Any answer may come; nothing is raised but a kernel interrupt."""
    printed = Printed()
    try:
        with sandbox(printed):
            right, text = run_with_timeout(lambda: _check(exercise, answer, printed), seconds)
    except TimeoutError as late:
        right = False
        text = (
            f"No answer after {seconds:g} seconds. Is there a loop that never ends? If your code is only slow, "
            f"give it time: ex.{exercise.name}.check({exercise.answer_name}, seconds=60)."
        )
        if late.args[0]:
            text += " It could not be stopped: restart the kernel before you go on."
    except Exception as error:  # an object that raises when it is looked at
        right, text = False, f"The check cannot make sense of this answer: {type(error).__name__}."
    lines = printed.getvalue().splitlines()
    if lines:
        shown = lines[:PRINTED_LINES] + ["..."] * (len(lines) > PRINTED_LINES)
        text += "\n\nYour function printed:\n" + "\n".join(f"  {line[:120]}" for line in shown)
    return right, text


def _check(exercise: Exercise, answer: object, printed: Printed) -> tuple[bool, str]:
    refusal = refuse(exercise, answer)
    if refusal:
        return False, refusal
    comparison = compare(exercise, answer)
    printed_once = printed.tell()
    wrong = diagnose(comparison)
    printed.truncate(printed_once)  # later calls print the same again
    return not wrong, wrong or right_message(comparison)


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


def diagnose(comparison: Comparison) -> str:
    """What is wrong, or nothing."""
    exercise, got, wrong = comparison.exercise, comparison.got, comparison.first_wrong
    if all(outcome.unwritten for outcome in got):
        return not_written(exercise, error=bool(got[0].error))
    for trial in comparison.trials:
        wrapped = wrapped_result(trial.got, trial.want)
        if wrapped:
            return known_mistake(comparison) or f"Not yet. {wrapped}"
    if wrong and exercise.given and comparison.equals(exercise.given):
        return f"Not written yet: {exercise.answer_name} still does what the given code does."
    if wrong:
        return known_mistake(comparison) or wrong_result(exercise, wrong)
    for trial in comparison.trials:
        if trial.got.changed:
            return changed_input(exercise, trial)
    if any(outcome.no_tensor for outcome in got):  # so no gradient: right_message() remarks on it
        return ""
    gradient = wrong_gradient(comparison)
    return gradient and (known_mistake(comparison, in_gradients=True) or gradient)


def known_mistake(comparison: Comparison, in_gradients: bool = False) -> str:
    """The message of the known mistake that does on every input what the answer does, or nothing."""
    for mistake, message in comparison.exercise.mistakes:
        if comparison.equals(mistake) and (not in_gradients or comparison.equals_in_gradients(mistake)):
            return f"Not yet. {message}"
    return ""


def not_written(exercise: Exercise, error: bool = False) -> str:
    if exercise.asks_value:
        return "Not written yet: put your answer in place of the three dots."
    if error:
        return f"Not written yet: {exercise.answer_name} still holds the three dots."
    return f"Not written yet: {exercise.answer_name} returns nothing. If you have written it, is there a return?"


def wrapped_result(got: Outcome, want: Outcome) -> str:
    """What to say of a tuple or list where one tensor or one number is due, or nothing."""
    kind = got.type_name
    if kind not in ("tuple", "list") or want.type_name in ("tuple", "list") or len(got.values) != 1:
        return ""
    [inside], [due] = got.values, want.values
    if isinstance(inside, str) or isinstance(due, str):
        return ""
    if due.dim() == 0 and got.no_tensor and inside.numel() > 1:
        return "Several numbers came. A comma begins a new one in Python: write 1,234,567 as 1234567 or 1_234_567."
    if not got.no_tensor or due.dim() == 0 and inside.numel() == 1:  # a list of rows of numbers is a fine map
        what = "tensor" if due.dim() else "number"
        return f"A {kind} came, with the {what} inside. Is there a comma or a bracket too much? Return the {what}."
    return ""


def wrong_result(exercise: Exercise, trial: Trial) -> str:
    """What came and what is expected; where a value is asked, what is expected is not told."""
    got, difference = trial.got, trial.difference
    if exercise.asks_value:
        came = difference.came if got.values and difference else with_article(got.type_name)
        return f"Not yet. This is not right: {came}."
    text = f"Not yet. On {describe(exercise, trial.inputs)}"
    if got.error:
        return f"{text} your code stops with an error:\n  {got.error}{got.failing_line}"
    if got.unwritten:
        return f"{text} your function returns nothing. Does each way through it end in a return?"
    if not got.values or not difference:
        return f"{text} your function returns {with_article(got.type_name)}, and no numbers to compare."
    text += f": {difference.came}; expected {difference.expected}."
    if "nan" in difference.came:
        text += " NaN comes from 0/0, from inf - inf, or from a softmax over a row of -inf alone."
    if got.changed:
        text += f" Your function also writes over its input {' and '.join(got.changed)}."
    return text


def changed_input(exercise: Exercise, trial: Trial) -> str:
    return (
        f"The result is right, but your function changes its input {' and '.join(trial.got.changed)}, "
        f"which its caller may still need. That happens on {describe(exercise, trial.inputs)}. "
        "Look for `+=`, an assignment to x[...] or x.name, or a method that changes x (`add_`, `append`)."
    )


def wrong_gradient(comparison: Comparison) -> str:
    wrong = comparison.first_wrong_gradient
    if wrong is None:
        return ""
    if wrong.got is None:
        return (
            "The values are right, but no gradient flows back to the inputs, so a layer could not learn. Look "
            "for detach, .data, no_grad, item, tolist, numpy, or torch.tensor(...) around a tensor."
        )
    where = describe(comparison.exercise, wrong.inputs)
    if wrong.difference is None:
        return (
            f"The values are right, but the backward pass fails on {where}:\n  {wrong.got}\n"
            "Look for a step that leaves torch (numpy, math) or writes over a tensor (`*=`, `..._()`)."
        )
    return (
        f"The values are right, but the gradient is not, on {where}: {wrong.difference.came}; "
        f"expected {wrong.difference.expected}. Look for a step that cuts the gradient, or divides zero by zero."
    )


def right_message(comparison: Comparison) -> str:
    exercise, trials = comparison.exercise, comparison.trials
    if exercise.asks_value:
        return "Right."
    tried = "; ".join(describe(exercise, trial.inputs) for trial in trials)
    text = f"Right. Tried on {len(trials)} inputs: {tried}."
    if any(x.is_floating_point() for trial in trials for x in tensors_in(trial.want.values)):
        text += f" Difference allowed: {comparison.tolerance:g}."
    if any(outcome.no_tensor for outcome in comparison.got) and any(comparison.right_gradients):
        kind = with_article(comparison.got[0].type_name)
        text += f" One remark: it returns {kind}. Return a torch.Tensor, so that gradients can flow."
    return text


def describe(exercise: Exercise, inputs: list) -> str:
    """q (2, 3, 5), num_heads=4: shapes of tensors, types of layers, values of the rest."""
    return ", ".join(
        f"{name} {shape_of(x)}"
        if tensors_in(x)
        else f"{name} {type(x).__name__}"
        if isinstance(x, torch.nn.Module)
        else f"{name}={x}"
        for name, x in zip(exercise.input_names, inputs)
    )


def shape_of(x: torch.Tensor | list) -> str:
    return str(tuple(x.shape)) if isinstance(x, torch.Tensor) else f"{len(x)} times {shape_of(x[0])}"


def with_article(kind: str) -> str:
    return f"{'an' if kind[:1] in 'aeiouAEIOU' else 'a'} {kind}"
