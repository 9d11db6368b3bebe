"""What a check says where nothing has to be searched: not written, wrapped, changed, without a gradient, different."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from mhsa.exercises.compare import Comparison, Trial
from mhsa.exercises.outcome import Outcome, tensors_in

if TYPE_CHECKING:
    from mhsa.exercises.exercise import Exercise


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
