"""Find the words for an answer: right, not written yet, a known mistake, or the first difference."""

import builtins
import contextlib
import dataclasses
import inspect
import io

import torch

from mhsa.exercises.outcome import SINGLE, Outcome, describe, difference, gradients, in_float32, observe, tensors
from mhsa.exercises.timeout import run_with_timeout

PRINTED_LINES = 12  # shown of what the learner's function prints


def check_answer(exercise, answer, seconds: int | float = 5) -> tuple[bool, str]:
    """(is it right, what to tell the learner). Any answer may come; nothing is raised but a kernel interrupt."""
    printed = Printed()
    try:
        with (
            contextlib.redirect_stdout(printed),
            nobody_types(),
            torch.random.fork_rng(devices=[]),
            float64_by_default(),
        ):
            right, text = run_with_timeout(lambda: _check(exercise, answer, printed), seconds)
    except TimeoutError as late:
        right, text = (
            False,
            (
                f"No answer after {seconds:g} seconds. Is there a loop that never ends? If your code is only slow, "
                f"give it time: ex.{exercise.name}.check({exercise.answer_name}, seconds=60)."
            ),
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


class Printed(io.StringIO):
    """Keeps the beginning of what is printed: an endless loop may print without end."""

    def write(self, text: str) -> int:
        return super().write(text) if self.tell() < 10_000 else len(text)


@contextlib.contextmanager
def nobody_types():
    """input() would wait for ever: an error says so instead."""

    def refuse(prompt=""):
        raise RuntimeError("input() waits for someone to type. A check cannot: use the arguments")

    before, builtins.input = builtins.input, refuse
    try:
        yield
    finally:
        builtins.input = before


@contextlib.contextmanager
def float64_by_default():
    """A learner's torch.zeros(...) then has the inputs' type."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


def _check(exercise, answer, printed: Printed) -> tuple[bool, str]:
    refused = no_answer(exercise, answer)
    if refused:
        return False, refused
    got = outcomes(exercise, answer)
    if any("type" in outcome.error for outcome in got):  # it mixes the inputs' float64 with its own float32
        exercise = dataclasses.replace(exercise, inputs=in_float32(exercise.cases))
        got = outcomes(exercise, answer)
    want = outcomes(exercise, exercise.reference)
    heard = printed.tell()
    wrong = what_is_wrong(exercise, answer, got, want)
    printed.truncate(heard)  # later calls print the same again
    return not wrong, wrong or praise(exercise, got, want)


def what_is_wrong(exercise, answer, got: list[Outcome], want: list[Outcome]) -> str:
    if all(outcome.unwritten for outcome in got):
        return not_written(exercise, error=bool(got[0].error))
    for g, w in zip(got, want):
        wrapped = comma(g, w)
        if wrapped:
            return known_mistake(exercise, got) or f"Not yet. {wrapped}"
    for i, (g, w) in enumerate(zip(got, want)):
        if not g.leaves or difference(g.leaves, w.leaves, exercise.tolerance):
            if exercise.given and same(exercise, got, outcomes(exercise, exercise.given)):
                return f"Not written yet: {exercise.answer_name} still does what the given code does."
            return known_mistake(exercise, got) or first_difference(exercise, i, g, w)
    for g, inputs in zip(got, exercise.cases):
        if g.changed:
            return (
                f"The result is right, but your function changes its input {' and '.join(g.changed)}, "
                f"which its caller may still need. That happens on {describe(inputs, exercise.input_names)}. "
                "Look for `+=`, an assignment to x[...] or x.name, or a method that changes x (`add_`, `append`)."
            )
    if any(g.plain for g in got):  # no tensor, so no gradient: praise() remarks on it
        return ""
    ours, right = all_gradients(exercise, answer), all_gradients(exercise, exercise.reference)
    wrong = wrong_gradient(exercise, ours, right, allowed(exercise, got, want))
    return wrong and (known_mistake(exercise, got, ours) or wrong)


def no_answer(exercise, answer) -> str:
    """Why this cannot be an answer: the wrong kind of thing, or a function that cannot take the inputs."""
    name, kind = exercise.answer_name, type(answer).__name__
    if answer is None or answer is ...:
        return not_written(exercise)
    if exercise.asks_value:
        return f"A value is asked here, and this is {a(kind)}. Pass what it returns." if callable(answer) else ""
    if inspect.isclass(answer):
        return f"A function is asked here, and {answer.__name__} is a class. Pass a function."
    if not callable(answer):
        return (
            f"Pass the function itself, without calling it: ex.{exercise.name}.check({name}). "
            f"This is {a(kind)}, perhaps what it returned."
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


def a(kind: str) -> str:
    return f"{'an' if kind[:1] in 'aeiouAEIOU' else 'a'} {kind}"


def is_async(answer) -> bool:
    return inspect.iscoroutinefunction(answer) or inspect.isasyncgenfunction(answer)


def comma(got: Outcome, want: Outcome) -> str:
    """What to say of a tuple or list where one tensor or one number is due, or nothing."""
    if got.kind not in ("tuple", "list") or want.kind in ("tuple", "list") or len(got.leaves) != 1:
        return ""
    [inside], [due] = got.leaves, want.leaves
    if isinstance(inside, str) or isinstance(due, str):
        return ""
    if due.dim() == 0 and got.plain and inside.numel() > 1:
        return "Several numbers came. A comma begins a new one in Python: write 1,234,567 as 1234567 or 1_234_567."
    if not got.plain or due.dim() == 0 and inside.numel() == 1:  # a list of rows of numbers is a fine map
        what = "tensor" if due.dim() else "number"
        return f"A {got.kind} came, with the {what} inside. Is there a comma or a bracket too much? Return the {what}."
    return ""


def run(exercise):
    """(answer, *inputs) -> result."""
    return exercise.run or (lambda answer, *inputs: answer(*inputs) if callable(answer) else answer)


def outcomes(exercise, answer) -> list[Outcome]:
    return [observe(run(exercise), answer, inputs, exercise.input_names) for inputs in exercise.cases]


def all_gradients(exercise, answer) -> list:
    return [gradients(run(exercise), answer, inputs) for inputs in exercise.cases]


def same(exercise, got: list[Outcome], known: list[Outcome]) -> bool:
    return all(
        g.error == k.error
        and g.unwritten == k.unwritten
        and len(g.leaves) == len(k.leaves)
        and not difference(g.leaves, k.leaves, exercise.tolerance)
        for g, k in zip(got, known)
    )


def same_gradients(ours: list, theirs: list, tolerance: float) -> bool:
    return all(
        not difference(a, b, tolerance) if isinstance(a, list) and isinstance(b, list) else type(a) is type(b)
        for a, b in zip(ours, theirs)
    )


def known_mistake(exercise, got: list[Outcome], got_gradients: list | None = None) -> str:
    """The message of the known mistake that does on every input what the answer does, or nothing."""
    for wrong, message in exercise.mistakes:
        if same(exercise, got, outcomes(exercise, wrong)) and (
            got_gradients is None
            or same_gradients(got_gradients, all_gradients(exercise, wrong), max(exercise.tolerance, SINGLE))
        ):
            return f"Not yet. {message}"
    return ""


def wrong_gradient(exercise, ours: list, right: list, tolerance: float) -> str:
    for inputs, found, expected in zip(exercise.cases, ours, right):
        where = describe(inputs, exercise.input_names)
        if expected is None:  # a mask or a count has no gradient
            continue
        if found is None:
            return (
                "The values are right, but no gradient flows back to the inputs, so a layer could not learn. Look "
                "for detach, .data, no_grad, item, tolist, numpy, or torch.tensor(...) around a tensor."
            )
        if isinstance(found, str):
            return (
                f"The values are right, but the backward pass fails on {where}:\n  {found}\n"
                "Look for a step that leaves torch (numpy, math) or writes over a tensor (`*=`, `..._()`)."
            )
        wrong = difference(found, expected, tolerance)
        if wrong:
            return (
                f"The values are right, but the gradient is not, on {where}: {wrong[0]}; expected {wrong[1]}. "
                "Look for a step that cuts the gradient, or divides zero by zero."
            )
    return ""


def allowed(exercise, got: list[Outcome], want: list[Outcome]) -> float:
    """The tolerance, wider where the answer has float32 in place of float64."""
    single = any(
        x.dtype != torch.float64
        for g, w in zip(got, want)
        for x, y in zip(tensors(g.leaves), tensors(w.leaves))
        if y.is_floating_point()
    )
    return max(exercise.tolerance, SINGLE) if single else exercise.tolerance


def not_written(exercise, error: bool = False) -> str:
    if exercise.asks_value:
        return "Not written yet: put your answer in place of the three dots."
    if error:
        return f"Not written yet: {exercise.answer_name} still holds the three dots."
    return f"Not written yet: {exercise.answer_name} returns nothing. If you have written it, is there a return?"


def first_difference(exercise, i: int, got: Outcome, want: Outcome) -> str:
    """What came and what is expected; where a value is asked, what is expected is not told."""
    wrong = difference(got.leaves, want.leaves, exercise.tolerance)
    if exercise.asks_value:
        return f"Not yet. This is not right: {wrong[0] if got.leaves and wrong else a(got.kind)}."
    text = f"Not yet. On {describe(exercise.cases[i], exercise.input_names)}"
    if got.error:
        return f"{text} your code stops with an error:\n  {got.error}{got.where}"
    if got.unwritten:
        return f"{text} your function returns nothing. Does each way through it end in a return?"
    if not got.leaves or not wrong:
        return f"{text} your function returns {a(got.kind)}, and no numbers to compare."
    text += f": {wrong[0]}; expected {wrong[1]}."
    if "nan" in wrong[0]:
        text += " NaN comes from 0/0, from inf - inf, or from a softmax over a row of -inf alone."
    if got.changed:
        text += f" Your function also writes over its input {' and '.join(got.changed)}."
    return text


def praise(exercise, got: list[Outcome], want: list[Outcome]) -> str:
    if exercise.asks_value:
        return "Right."
    tried = "; ".join(describe(inputs, exercise.input_names) for inputs in exercise.cases)
    text = f"Right. Tried on {len(exercise.cases)} inputs: {tried}."
    if any(x.is_floating_point() for w in want for x in tensors(w.leaves)):
        text += f" Difference allowed: {allowed(exercise, got, want):g}."
    if any(g.plain for g in got) and any(all_gradients(exercise, exercise.reference)):
        text += f" One remark: it returns {a(got[0].kind)}. Return a torch.Tensor, so that gradients can flow."
    return text
