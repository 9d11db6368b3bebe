"""Lessons to hand out: `python3 course.py handout [--solutions] [lessons]` writes them to handouts/.

Without solutions all outputs are cleared, so that nobody reads an answer before the question. With solutions the
outputs stay, and each exercise holds the answer that its check compares with; `ex.NAME.solution()` shows the same.
"""

import ast
import importlib.util
import inspect
import sys
from types import ModuleType

from nbformat import NotebookNode

from mhsa.authoring.names import NOTEBOOKS, paths_of
from mhsa.authoring.notebook import read, write
from mhsa.exercises import Exercise, exercises

HANDOUTS = NOTEBOOKS.parent / "handouts"


def without_outputs(notebook: NotebookNode) -> None:
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None


def solution(exercise: Exercise) -> str:
    """A cell with the right answer and its check."""
    answer = exercise.answer_name + "()" * exercise.asks_value
    return f"{inspect.getsource(exercise.reference)}\n\nex.{exercise.name}.check({answer})"


def with_solutions(notebook: NotebookNode, lesson: ModuleType) -> None:
    """Fill in the exercises of a lesson module; its imports come first, since an answer may use them."""
    tree = ast.parse(inspect.getsource(lesson))
    imports = [ast.unparse(node) for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    solutions = {exercise.stub: solution(exercise) for exercise in exercises(lesson)}
    for cell in notebook.cells:
        if cell.id == "exercises-import":
            cell.source = "\n".join([*(line for line in imports if "mhsa" not in line), cell.source])
        elif cell.source in solutions:
            cell.source = solutions[cell.source]
            cell.outputs, cell.execution_count = [], None  # it has not been run


def main(args: list[str]) -> None:
    solved = "--solutions" in args
    names = [name for name in args if name != "--solutions"]
    HANDOUTS.mkdir(exist_ok=True)
    for path in paths_of(names) if names else sorted(NOTEBOOKS.glob("[0-9]*.ipynb")):
        notebook = read(path)
        name = f"mhsa.exercises.lesson{path.stem[:2]}"
        if not solved:
            without_outputs(notebook)
        elif importlib.util.find_spec(name):  # lesson 0 has no exercises
            with_solutions(notebook, importlib.import_module(name))
        copy = HANDOUTS / f"{path.stem}{'-solutions' * solved}.ipynb"
        write(notebook, copy)
        print(copy)


if __name__ == "__main__":
    main(sys.argv[1:])
