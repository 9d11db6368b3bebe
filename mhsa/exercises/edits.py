"""Small edits of a right answer, each a slip that a learner makes: other code for one expression, and its words.

The words finish the sentence "your result is what comes out if …". Where a rule gives none, old and new code are shown.
"""

import ast
import itertools
import re
from collections.abc import Iterator

from mhsa.exercises.call_edits import of_calls
from mhsa.exercises.syntax import Edit, Scope, code, is_number, replaced, short, swapped

SIGNS = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.MatMult: "@", ast.Pow: "**",
    ast.Mod: "%", ast.BitAnd: "&", ast.BitOr: "|", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==",
}  # fmt: skip
OTHER_SIGNS = {"*": "/+", "/": "", "//": "", "+": "-*", "-": "+", "&": "|^", "@": "*"}


def of_operations(node: ast.expr, scope: Scope) -> Iterator[Edit]:
    """A step left out, turned round, or with another sign; brackets elsewhere."""
    if isinstance(node, ast.UnaryOp) and not isinstance(node.operand, ast.Constant):
        sign = {ast.USub: "the minus", ast.Invert: "the `~`", ast.Not: "`not`"}.get(type(node.op), "the sign")
        yield code(node.operand), f"{sign} in front of `{short(node.operand)}` is missing"
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        left, sign, right = code(node.left), SIGNS.get(type(node.ops[0]), ""), code(node.comparators[0])
        for other in ("<", "<=", ">", ">=") if sign[:1] in ("<", ">") else ():
            if other != sign:
                yield f"{left} {other} {right}", ""
    if not isinstance(node, ast.BinOp) or type(node.op) not in SIGNS:
        return
    left, sign, right = code(node.left), SIGNS[type(node.op)], code(node.right)
    named, before, here = f"`{short(node.right)}`", f"`{short(node.left)}`", f"in `{short(node)}`"
    without = {
        "/": f"nothing is divided by {named}",
        "//": f"nothing is divided by {named}",
        "-": f"{named} is not taken away",
        "+": f"{named} is not added",
        "*": f"the factor {named} is missing {here}",
        "@": f"the product with {named} is missing",
        "&": f"{named} is missing {here}",
        "**": f"the root of {before} is not taken" if right == "0.5" else f"the power {named} is missing",
    }
    yield left, without.get(sign, f"`{sign} {short(node.right)}` is missing")
    if sign in "*+&@":
        yield right, f"{before} is missing {here}"
    if sign == "*" and isinstance(node.left, ast.BinOp) and isinstance(node.left.op, ast.Mult):
        yield code(node.left.left), f"the factors `{short(node.left.right)}` and {named} are missing {here}"
    if sign in ("/", "//"):
        yield f"{right} {sign} {left}", "the fraction is turned upside down"
        yield f"{left} * {right}", f"it is multiplied by {named}, not divided"
    elif sign in "-@":
        yield f"{right} {sign} {left}", f"the two sides of `{sign}` are exchanged"
    for other in OTHER_SIGNS.get(sign, ""):
        yield f"{left} {other} {right}", f"`{other}` stands in place of `{sign}` {here}"
    if right == "0.5" and isinstance(node.left, ast.BinOp):  # of a product or quotient, the root of a part
        inner, (one, other) = SIGNS.get(type(node.left.op), "*"), (code(node.left.left), code(node.left.right))
        yield f"{one} ** 0.5 {inner} {other}", f"the root is taken of `{one}` alone"
        yield f"{one} {inner} {other} ** 0.5", f"the root is taken of `{other}` alone"
    if sign in ("/", "//") and isinstance(node.right, ast.BinOp) and isinstance(node.right.op, (ast.Mult, ast.Div)):
        yield f"{left} {sign} {ast.unparse(node.right)}", "the brackets below the line are missing"
    if sign in ("/", "//") and isinstance(node.left, ast.BinOp) and isinstance(node.left.op, (ast.Add, ast.Sub)):
        yield f"{ast.unparse(node.left)} {sign} {right}", "the brackets above the line are missing"


def of_names(node: ast.expr, scope: Scope) -> Iterator[Edit]:
    """One name taken for another; a tensor transposed, of the wrong sign, or one part of it for all."""
    if not isinstance(node, ast.Name) or node.id not in scope.names:
        return
    name = node.id
    for other in scope.names:
        if other != name:
            yield other, f"`{other}` stands where `{name}` is due"
    if name in scope.tensors:
        yield f"{name}.mT", f"`{name}` is transposed"
        yield f"(-{name})", f"`{name}` has the opposite sign"
    if name in scope.tensors and name in scope.arguments:
        yield f"{name}[:1]", f"`{name}[0]` serves for all"
        yield f"{name}[-1:]", f"the last of `{name}` serves for all"
        yield f"{name}.flip(0)", f"`{name}` is taken from the end"
    if name in scope.lists:
        yield f"{name}[::-1]", f"`{name}` is taken from the end"
        yield f"({name}[1:] + {name}[:1])", f"`{name}` begins with its second"
        yield f"({name}[-1:] + {name}[:-1])", f"`{name}` begins with its last"
    if name in scope.numbers:
        yield f"({name} + 1)", ""
        yield f"({name} - 1)", ""


def of_two_names(node: ast.expr, scope: Scope) -> Iterator[Edit]:
    """Two names exchanged, each where the other is due."""
    if isinstance(node, (ast.BinOp, ast.Call)):
        own = sorted({n.id for n in ast.walk(node) if isinstance(n, ast.Name) and n.id in scope.names})
        for one, other in itertools.combinations(own, 2):
            exchanged = re.sub(r"\b\w+\b", lambda m, a=one, b=other: {a: b, b: a}.get(m[0], m[0]), code(node))
            yield exchanged, f"`{one}` and `{other}` are exchanged in `{short(node)}`"


def of_sizes(node: ast.expr, scope: Scope) -> Iterator[Edit]:
    """Another size: T where d_k is due."""
    text = code(node)
    if text in scope.sizes or isinstance(node, ast.Subscript) and ".shape[" in text:
        due = scope.sizes.get(text, f"`{text}`")
        for other, letter in scope.sizes.items():
            if other != text and letter != due:
                yield other, f"{letter} is taken where {due} is due"


def of_numbers(node: ast.expr, scope: Scope) -> Iterator[Edit]:
    """A number beside the right one; an index left out."""
    if is_number(node):
        was = ast.literal_eval(node)
        for now in {was + 1, was - 1, 2 * was, -was, was / 2 if was % 2 else was // 2, 0, 1} - {was}:
            yield f"({now})" if now < 0 else str(now), ""
    if isinstance(node, ast.Subscript) and ".shape" not in code(node):
        yield code(node.value), f"the index `[{ast.unparse(node.slice)}]` is missing"


def of_loops(node: ast.expr, scope: Scope) -> Iterator[Edit]:
    """A loop that leaves out its first or last turn, runs backwards, or takes the same in every turn."""
    if not isinstance(node, (ast.ListComp, ast.GeneratorExp)):
        return
    loop = node.generators[0]
    over = short(loop.iter)
    for end, words in {
        "[1:]": f"the loop over `{over}` leaves out the first",
        "[:-1]": f"the loop over `{over}` leaves out the last",
        "[:1]": "the loop makes only its first turn: is there a `return` inside it?",
        "[-1:]": "only the last turn of the loop is kept",
        "[::-1]": "the loop runs backwards",
    }.items():
        yield replaced(node, loop.iter, f"[*{code(loop.iter)}]{end}"), words
    if isinstance(loop.iter, ast.Call) and code(loop.iter.func) == "zip":
        for one in loop.iter.args:
            if not isinstance(one, ast.Starred):
                same = f"[{code(one)}[0]] * len({code(one)})"
                yield replaced(node, one, same), f"each turn takes the first of `{short(one)}`"
                yield replaced(node, one, f"[*{code(one)}][::-1]"), f"`{short(one)}` is taken from the end"
    for condition in loop.ifs:
        yield replaced(node, condition, "True"), f"the condition `{short(condition)}` is missing"


def of_letters(node: ast.expr, scope: Scope) -> Iterator[Edit]:
    """Letters of einsum, or of einops, in another order."""
    if not (isinstance(node, ast.Constant) and isinstance(node.value, str) and "->" in node.value):
        return
    before, after = node.value.split("->")
    names = [name for name in re.findall(r"\w+" if " " in after else r"\w", after) if not name.isdigit()]
    here = f"in `{short(node)}`"
    for one, other in itertools.combinations(names, 2):
        yield repr(f"{before}->{swapped(after, one, other)}"), f"the result has `{one}` and `{other}` exchanged {here}"
        yield (
            repr(f"{swapped(before, one, other)}->{after}"),
            f"what goes in has `{one}` and `{other}` exchanged {here}",
        )
    if "," in before:
        first, second = before.split(",", 1)
        for one, other in itertools.combinations(sorted(set(re.findall(r"\w", second))), 2):
            now = f"{first},{swapped(second, one, other)}->{after}"
            yield repr(now), f"the second tensor has `{one}` and `{other}` exchanged {here}"
        for one in names:
            yield repr(f"{before}->{after.replace(one, '')}"), f"`{one}` is added up, {here}"


RULES = (of_operations, of_calls, of_sizes, of_letters, of_loops, of_names, of_numbers, of_two_names)
LIKELY = (of_operations, of_calls, of_sizes, of_letters)  # for two slips at once
