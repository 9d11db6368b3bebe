"""A right answer that can be edited: its syntax trees, and each small change that a slip may make in them."""

from __future__ import annotations

import ast
import math
import types
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

import torch

from mhsa.exercises.edits import RULES
from mhsa.exercises.letters import argument_axes
from mhsa.exercises.syntax import Scope, expressions, function_tree, put, short, with_parameters

if TYPE_CHECKING:
    from mhsa.exercises.exercise import Exercise


class Change(NamedTuple):
    """One edit: new stands in place of old in a field of its parent; the words finish "comes out if …"."""

    words: str
    parent: ast.AST
    field: str
    index: int | None
    old: ast.AST | list
    new: ast.AST | list

    def put(self, node: ast.AST | list) -> None:
        put(self.parent, self.field, self.index, node)


class Program:
    """An answer as syntax trees that can be edited: its own function, and those of its lesson that it calls."""

    def __init__(self, answer: Callable, exercise: Exercise):
        self.space = vars(math) | dict(answer.__globals__) | {"causal": causal}
        self.name = exercise.answer_name
        self.trees = [function_tree(answer, self.name)]
        with_parameters(self.trees[0], [*exercise.signature.parameters])
        for name in self._called(self.trees[0], ()):
            self.trees.append(function_tree(self.space[name], name))
        self.scope = scope_of(exercise, self.trees[0])

    def _called(self, tree: ast.AST, found: tuple[str, ...]) -> tuple[str, ...]:
        for node in ast.walk(tree):
            if isinstance(node, ast.Name) and node.id not in (self.name, *found):
                function = self.space.get(node.id)
                if isinstance(function, types.FunctionType) and function.__module__ == self.space["__name__"]:
                    found = self._called(function_tree(function, node.id), (*found, node.id))
        return found

    def build(self, *changes: Change) -> Callable | None:
        """The function with these changes; None if it is no Python, or one of them undoes the place of another."""
        done: list[Change] = []
        try:
            for change in sorted(changes, key=lambda change: -weight(change)):  # what is outside first
                there = change if len(changes) == 1 else self._where_it_is_now(change)
                if there is None:
                    return None
                there.put(there.new)
                done.append(there)
            space = dict(self.space)
            exec(compile(ast.fix_missing_locations(ast.Module([*self.trees], [])), "<edited>", "exec"), space)
            return space[self.name]
        except (SyntaxError, TypeError, ValueError):
            return None
        finally:
            for change in reversed(done):
                change.put(change.old)

    def _where_it_is_now(self, change: Change) -> Change | None:
        """The expression to change may stand inside one that was changed before."""
        if isinstance(change.old, list):
            return change
        for tree in self.trees:
            for parent, field, index, node in expressions(tree):
                if node is change.old:
                    return change._replace(parent=parent, field=field, index=index)
        return None

    def changes(self, rules: tuple = RULES) -> Iterator[Change]:
        for tree in self.trees:
            places = list(expressions(tree))
            for rule in rules:
                for parent, field, index, node in places:
                    for text, words in rule(node, self.scope):
                        new = ast.parse(text, mode="eval").body
                        change = Change(words, parent, field, index, node, new)
                        yield change if words else change._replace(words=replacement(change))
            yield from self._changes_of_lines(tree)
        yield from self._changes_of_arguments()

    def _changes_of_arguments(self) -> Iterator[Change]:
        """Arguments exchanged, or turned round, before the first line."""
        tree, lines = self.trees[0], {}
        for one in self.scope.arguments:
            for other in self.scope.arguments:
                if one < other:
                    lines[f"{one}, {other} = {other}, {one}"] = f"`{one}` and `{other}` are exchanged"
            lines[f"{one} = ~{one}"] = f"`{one}` is turned round: True for False"
            lines[f"{one} = {one}.mT"] = f"`{one}` is transposed"
        for line, words in lines.items():
            yield Change(words, tree, "body", None, tree.body, [*ast.parse(line).body, *tree.body])

    def _changes_of_lines(self, tree: ast.FunctionDef) -> Iterator[Change]:
        for i, line in enumerate(tree.body):
            before, after = tree.body[:i], tree.body[i + 1 :]
            if isinstance(line, ast.Assign) and after:
                target = line.targets[0]
                if not isinstance(target, ast.Tuple):
                    made = target.value if isinstance(target, ast.Subscript) else target
                    result = ast.Return(ast.parse(ast.unparse(made), mode="eval").body)
                    words = f"the steps after `{short(line)}` are missing"
                    yield Change(words, tree, "body", None, tree.body, [*before, line, result])
                yield Change(f"the line `{short(line)}` is missing", tree, "body", None, tree.body, [*before, *after])
            if isinstance(line, ast.Return) and line.value and self.scope.floats and tree is self.trees[0]:
                first = self.scope.floats[0]
                more = ast.BinOp(line.value, ast.Add(), ast.Name(first, ast.Load()))
                yield Change(f"`{first}` is added to the result", line, "value", None, line.value, more)
            if isinstance(line, ast.Return) and isinstance(line.value, ast.Tuple) and tree is self.trees[0]:
                back = ast.Tuple(line.value.elts[::-1], ast.Load())
                yield Change("the results are returned in reverse order", line, "value", None, line.value, back)


def weight(change: Change) -> int:
    """The number of nodes of what is changed."""
    return 1000 if isinstance(change.old, list) else sum(1 for _ in ast.walk(change.old))


def grafted(change: Change) -> Change:
    """The same change with the old nodes for what it keeps, so that these can be changed as well."""
    if isinstance(change.old, list) or isinstance(change.new, list):
        return change
    kept = {
        ast.dump(node): node for node in ast.walk(change.old) if isinstance(node, ast.expr) and node is not change.old
    }
    new = kept.get(ast.dump(change.new), change.new)
    for parent in [*ast.walk(new)] if new is change.new else ():
        for field, value in ast.iter_fields(parent):
            for index, node in enumerate(value) if isinstance(value, list) else [(None, value)]:
                if isinstance(node, ast.expr) and ast.dump(node) in kept:
                    put(parent, field, index, kept[ast.dump(node)])
    return change._replace(new=new)


def replacement(change: Change) -> str:
    """Old and new code, with what stands around it where that is short."""
    texts, parent = [], change.parent
    around = isinstance(parent, (ast.BinOp, ast.Call, ast.Compare, ast.Subscript))
    for node in (change.new, change.old):
        assert isinstance(node, ast.AST)
        change.put(node)
        whole = ast.unparse(parent) if around else ""
        texts.append(whole if 0 < len(whole) <= 50 else ast.unparse(node))
    return f"`{texts[0]}` stands in place of `{texts[1]}`"


def causal(scores: torch.Tensor) -> torch.Tensor:
    """Scores whose later keys are closed, for an edit."""
    return scores.masked_fill(torch.ones_like(scores).triu(1).bool(), -torch.inf)


def scope_of(exercise: Exercise, tree: ast.FunctionDef) -> Scope:
    arguments = [argument.arg for argument in tree.args.args]
    own = sorted({n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)})
    called = dict(zip(exercise.signature.parameters, arguments))  # a lambda may call them otherwise
    given, axes = dict(zip(exercise.input_names, exercise.cases[0])), argument_axes(exercise)
    values = {own_name: given.get(name, torch.ones(1)) for name, own_name in called.items()}
    tensors = [name for name, x in values.items() if isinstance(x, torch.Tensor)]
    numbers = [name for name, x in values.items() if type(x) is int]
    sizes = {
        f"{called[name]}.shape[{i if i < len(axes[name]) - 1 else -1}]": axis
        for name in called
        for i, axis in enumerate(axes.get(name, []))
    }
    return Scope(
        arguments=arguments,
        names=[*arguments, *own],
        tensors=[*tensors, *own],
        floats=[name for name in tensors if values[name].is_floating_point()],
        lists=[name for name, x in values.items() if isinstance(x, list)],
        numbers=[*numbers, *own],
        sizes=sizes | {name: name for name in numbers},
    )
