"""Small edits of calls: a step left out, another function, another axis, a reshape for a transpose."""

import ast
import itertools
from collections.abc import Iterator

from mhsa.exercises.syntax import Edit, Scope, code, is_number, replaced, short

MODULES = {"torch", "F", "nn", "math", "np", "einops", "copy"}
AXIS_NAMES = {-3: "the third-last axis", -2: "the second-last axis", -1: "the last axis"}
ALONG_AXES = set(
    ["softmax", "log_softmax", "sum", "mean", "amax", "argmax", "max", "min", "any", "cat", "stack", "chunk", "split"]
    + ["unbind", "roll", "flip", "repeat_interleave", "diagonal", "flatten", "unflatten", "select", "normalize"]
)
MOVES_AXES = {"transpose", "permute", "movedim"}
SIBLINGS = {
    "sum": ["mean", "amax", "prod"], "mean": ["sum", "amax"], "amax": ["mean", "amin"], "max": ["min"], "min": ["max"],
    "maximum": ["minimum"], "argmax": ["argmin"], "tril": ["triu"], "triu": ["tril"], "any": ["all"],
    "repeat_interleave": ["repeat"], "softmax": ["log_softmax"], "exp": ["log", "sigmoid"], "eye": ["ones"],
    "log": ["log2", "log10", "exp"], "ones": ["zeros"], "zeros": ["ones"], "cos": ["sin"], "sin": ["cos"],
    "ceil": ["floor"], "stack": ["cat"],
}  # fmt: skip


def of_calls(node: ast.expr, scope: Scope) -> Iterator[Edit]:
    """A call left out, of another function, along another axis, with an argument less; a view for a transpose."""
    if isinstance(node, ast.Attribute) and node.attr == "mT":
        yield code(node.value), f"`{short(node.value)}` is not transposed"
        yield f"{code(node.value)}.reshape({code(node)}.shape)", reshaped(short(node.value))
    if not isinstance(node, ast.Call):
        return
    name = node.func.attr if isinstance(node.func, ast.Attribute) else code(node.func)
    of = code(node.func.value) if isinstance(node.func, ast.Attribute) else ""
    method = of and of not in MODULES
    if method:
        yield of, f"the step `.{name}(...)` is missing"
    for argument in node.args:
        if not method and not isinstance(argument, (ast.Constant, ast.Starred, ast.GeneratorExp)):
            yield code(argument), f"`{name}` is missing: `{short(argument)}` alone"
    for other in SIBLINGS.get(name, []):
        yield with_function(node, other), f"`{other}` stands in place of `{name}`"
    for keyword in node.keywords:
        rest = [other for other in node.keywords if other is not keyword]
        yield code(ast.Call(node.func, node.args, rest)), f"`{short(keyword)}` is missing"
    if method and len(node.args) > 1 or name in ("tril", "triu") and node.args:
        yield (
            code(ast.Call(node.func, node.args[:-1], node.keywords)),
            f"`{short(node.args[-1])}` in `{name}` is missing",
        )
    if name in ALONG_AXES and isinstance(node.func, ast.Attribute):
        yield from along_other_axes(node, name)
    if method and name in MOVES_AXES:
        yield f"{of}.reshape({code(node)}.shape)", reshaped(of)
        if all(is_number(axis) for axis in node.args):
            yield from in_another_order(node, name)
    yield from with_sizes_exchanged(node, name)
    if name == "softmax" and method:
        yield f"{code(node)}.softmax(-1)", "a second softmax runs over the weights"
        yield f"causal({of}).softmax(-1)", "a causal mask closes later keys"
        yield f"{of}.sigmoid()", "a sigmoid stands in place of the softmax, so that a row does not sum to 1"
        yield f"{of}.exp()", "the exponentials are not divided by their sum"
        yield (
            f"({of} / {of}.sum(-1, keepdim=True))",
            "the scores are divided by their sum, without exponentials",
        )


def with_sizes_exchanged(call: ast.Call, name: str) -> Iterator[Edit]:
    """Of view(a, b, c), or of unflatten(1, (a, b))."""
    groups = [call] if name in ("view", "reshape") else [arg for arg in call.args if isinstance(arg, ast.Tuple)]
    for group in groups:
        sizes = group.args if isinstance(group, ast.Call) else group.elts
        for one, other in itertools.combinations(sizes, 2):
            order = {id(one): other, id(other): one}
            new = [order.get(id(size), size) for size in sizes]
            whole = ast.Call(call.func, new, []) if group is call else ast.Tuple(new, ast.Load())
            text = code(whole) if group is call else replaced(call, group, code(whole))
            yield text, f"`{name}` has the sizes `{short(one)}` and `{short(other)}` exchanged"


def along_other_axes(call: ast.Call, name: str) -> Iterator[Edit]:
    """A whole number among the arguments is another; an axis more or less in a tuple of axes."""
    for number in [arg for arg in [*call.args, *(k.value for k in call.keywords)] if is_number(arg)]:
        was = ast.literal_eval(number)
        for now in {-2, -1, 0, 1, 2} - {was}:
            yield replaced(call, number, str(now)), f"`{name}` runs over {axis(now)}, not over {axis(was)}"
    for axes in (a for a in call.args if isinstance(a, ast.Tuple) and all(is_number(n) for n in a.elts)):
        for other in [(0, 1), (0, 2), (1, 2), (2, 3), (0,), (1,), (2,), (3,)]:
            if str(other) != code(axes):
                yield replaced(call, axes, str(other)), f"`{name}` runs over the axes {list(other)}, not {code(axes)}"


def in_another_order(call: ast.Call, name: str) -> Iterator[Edit]:
    was = [code(number) for number in call.args]
    for order in itertools.permutations(range(4), len(was)):
        now = [str(i) for i in order]
        if now != was:
            yield (
                f"{code(call.func)}({', '.join(now)})",
                f"`{name}({', '.join(now)})` stands in place of `{name}({', '.join(was)})`",
            )


def with_function(call: ast.Call, name: str) -> str:
    """The call of another function, or method, with the same arguments."""
    function = f"{code(call.func.value)}.{name}" if isinstance(call.func, ast.Attribute) else name
    return f"{function}({', '.join(ast.unparse(part) for part in [*call.args, *call.keywords])})"


def reshaped(what: str) -> str:
    return f"`{what}` gets its shape by a reshape, which moves no axis: the numbers are mixed"


def axis(number: int) -> str:
    return AXIS_NAMES.get(number, f"axis {number}")
