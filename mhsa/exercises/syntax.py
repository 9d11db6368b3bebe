"""Functions as syntax trees: where their source is, each expression in its place, code put together from pieces."""

import ast
import inspect
import re
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache

Edit = tuple[str, str]  # other code for an expression, and words that finish "your result is what comes out if …"


@dataclass
class Scope:
    """What a right answer works with: its names, and which of them hold tensors, lists or whole numbers."""

    arguments: list[str]
    names: list[str]
    tensors: list[str]
    floats: list[str]
    lists: list[str]
    numbers: list[str]
    sizes: dict[str, str]  # sizes it may take, code -> letter: {"q.shape[-1]": "d_k"}


@cache
def functions_of(path: str) -> dict[int, list[ast.FunctionDef | ast.Lambda]]:
    """The functions and lambdas of a file by the line they begin in."""
    found: dict[int, list] = {}
    with open(path, encoding="utf-8") as file:
        for node in ast.walk(ast.parse(file.read())):
            if isinstance(node, (ast.FunctionDef, ast.Lambda)):
                found.setdefault(node.lineno, []).append(node)
    return found


def function_tree(function: Callable, name: str) -> ast.FunctionDef:
    """A tree of its own, without the docstring; a lambda becomes a function that returns."""
    for node in functions_of(inspect.getsourcefile(function) or "").get(function.__code__.co_firstlineno, []):
        body: list[ast.stmt]
        if isinstance(node, ast.FunctionDef):
            body = node.body[1:] if ast.get_docstring(node) else node.body
        elif looks_like(node, function.__code__):
            body = [ast.Return(node.body)]
        else:
            continue  # another lambda of the line
        whole = ast.fix_missing_locations(ast.FunctionDef(name, node.args, body, []))
        copy = ast.parse(ast.unparse(whole)).body[0]
        assert isinstance(copy, ast.FunctionDef)
        return copy
    raise ValueError(f"no source of {function}")


def with_parameters(tree: ast.FunctionDef, names: list[str]) -> None:
    """Call the arguments as the exercise does, so that words about them are understood; not where a name is taken."""
    old = [argument.arg for argument in tree.args.args]
    taken = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    taken |= {a.arg for n in ast.walk(tree) if isinstance(n, ast.Lambda) for a in n.args.args}
    if len(old) != len(names) or taken & {*old, *names} or tree.args.vararg:
        return
    new = dict(zip(old, names))
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            node.id = new.get(node.id, node.id)
        elif isinstance(node, ast.arg):
            node.arg = new.get(node.arg, node.arg)


def looks_like(node: ast.Lambda, compiled: types.CodeType) -> bool:
    """Of several lambdas in a line: the same arguments, and all the names of the compiled one."""
    arguments = tuple(argument.arg for argument in node.args.args)
    names = {
        n.id if isinstance(n, ast.Name) else n.attr for n in ast.walk(node) if isinstance(n, (ast.Name, ast.Attribute))
    }
    return arguments == compiled.co_varnames[: compiled.co_argcount] and names >= {*compiled.co_names}


def expressions(tree: ast.FunctionDef) -> Iterator[tuple[ast.AST, str, int | None, ast.expr]]:
    """(parent, field, index, node) of every expression that is read; the function's arguments are left alone."""
    for parent in ast.walk(ast.Module(tree.body, [])):
        for field, value in ast.iter_fields(parent):
            for index, node in enumerate(value) if isinstance(value, list) else [(None, value)]:
                if isinstance(node, ast.expr) and isinstance(getattr(node, "ctx", ast.Load()), ast.Load):
                    yield parent, field, index, node


def code(node: ast.AST) -> str:
    """Source code that may stand anywhere in an expression."""
    simple = (ast.Name, ast.Constant, ast.Call, ast.Attribute, ast.Subscript, ast.List, ast.Tuple)
    return ast.unparse(node) if isinstance(node, simple) else f"({ast.unparse(node)})"


def short(node: ast.AST) -> str:
    """For words: a long piece of code is cut."""
    text = ast.unparse(node)
    return text if len(text) <= 40 else f"{text[:36]} ..."


def is_number(node: ast.AST) -> bool:
    """A whole number or a float, with or without a minus."""
    inner = node.operand if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) else node
    return isinstance(inner, ast.Constant) and type(inner.value) in (int, float)


def replaced(node: ast.AST, part: ast.AST, text: str) -> str:
    """The code of a node with other code for a part of it."""
    for parent in ast.walk(node):
        for field, value in ast.iter_fields(parent):
            here = [i for i, one in enumerate(value) if one is part] if isinstance(value, list) else []
            if value is not part and not here:
                continue
            put(parent, field, here[0] if here else None, ast.Name("_PART_", ast.Load()))
            result = code(node).replace("_PART_", text)
            put(parent, field, here[0] if here else None, part)
            return result
    raise ValueError(f"nothing to replace by {text}")


def put(parent: ast.AST, field: str, index: int | None, node: ast.AST | list) -> None:
    if index is None:
        setattr(parent, field, node)
    else:
        getattr(parent, field)[index] = node


def swapped(text: str, one: str, other: str) -> str:
    """Two letters of einsum, or two words of einops, exchanged."""
    word = r"\w+" if " " in text else r"\w"
    return re.sub(word, lambda found: {one: other, other: one}.get(found[0], found[0]), text)
