"""Edits of right answers: each rule by hand, and all of them over all exercises."""

import ast

import pytest
from exercise_helpers import ALL

from mhsa.exercises.edits import RULES
from mhsa.exercises.mutants import written_here
from mhsa.exercises.program import Program
from mhsa.exercises.sandbox import Printed, sandbox
from mhsa.exercises.syntax import Scope, expressions

SCOPE = Scope(
    arguments=["q", "k"],
    names=["q", "k", "h"],
    tensors=["q", "k"],
    floats=["q"],
    lists=["heads"],
    numbers=["h"],
    sizes={"q.shape[-1]": "d_k", "k.shape[1]": "T_k", "h": "h"},
)


def edits(code):
    """(edited code, words) of all edits of a function that returns the code."""
    tree = ast.parse(f"def f():\n return {code}").body[0]
    found = [edit for *_, node in expressions(tree) for rule in RULES for edit in rule(node, SCOPE)]
    return [(ast.unparse(ast.parse(text, mode="eval")), words) for text, words in found]


@pytest.mark.parametrize(
    "code, edited, words",
    [
        ("q / k ** 0.5", "q", "nothing is divided by `k ** 0.5`"),
        ("q / k ** 0.5", "k", "the root of `k` is not taken"),
        ("q / k ** 0.5", "q * k ** 0.5", "it is multiplied by `k ** 0.5`, not divided"),
        ("q / (k * h)", "q / k * h", "the brackets below the line are missing"),
        ("(q - k) / h", "q - k / h", "the brackets above the line are missing"),
        ("(q // h) ** 0.5", "q ** 0.5 // h", "the root is taken of `q` alone"),
        ("q * k * h", "q", "the factors `k` and `h` are missing in `q * k * h`"),
        ("q & k", "q | k", "`|` stands in place of `&` in `q & k`"),
        ("~q", "q", "the `~` in front of `q` is missing"),
        ("q < k", "q <= k", ""),
        ("q @ k.mT", "k", "`k` is not transposed"),
        ("k.mT", "k.reshape(k.mT.shape)", "`k` gets its shape by a reshape, which moves no axis"),
        ("q.softmax(-1)", "q.softmax(-2)", "`softmax` runs over the second-last axis, not over the last axis"),
        ("q.softmax(-1)", "q.softmax(-1).softmax(-1)", "a second softmax runs over the weights"),
        ("q.softmax(-1)", "causal(q).softmax(-1)", "a causal mask closes later keys"),
        ("q.sum(-1, keepdim=True)", "q.sum(-1)", "`keepdim=True` is missing"),
        ("q.mean((0, 2))", "q.mean((0, 1))", "`mean` runs over the axes [0, 1], not (0, 2)"),
        ("q.tril(h)", "q.tril()", "`h` in `tril` is missing"),
        ("q.tril(h)", "q.triu(h)", "`triu` stands in place of `tril`"),
        ("q.transpose(1, 2)", "q.transpose(2, 3)", "`transpose(2, 3)` stands in place of `transpose(1, 2)`"),
        ("q.view(h, 5, 7)", "q.view(h, 7, 5)", "`view` has the sizes `5` and `7` exchanged"),
        ("q.unflatten(1, (h, -1))", "q.unflatten(1, (-1, h))", "`unflatten` has the sizes `h` and `-1` exchanged"),
        ("q.shape[-1]", "k.shape[1]", "T_k is taken where d_k is due"),
        ("q", "k", "`k` stands where `q` is due"),
        ("q", "q[:1]", "`q[0]` serves for all"),
        ("q + k * h", "k + q * h", "`k` and `q` are exchanged in `q + k * h`"),
        ("h", "h + 1", ""),
        ("q[h]", "q", "the index `[h]` is missing"),
        ("[x for x in q]", "[x for x in [*q][:-1]]", "the loop over `q` leaves out the last"),
        ("[a @ b for a, b in zip(q, k)]", "[a @ b for a, b in zip([q[0]] * len(q), k)]", "each turn takes the first"),
        ("[x for x in q if x < h]", "[x for x in q if True]", "the condition `x < h` is missing"),
        ("f('bqd,bkd->bqk', q, k)", "'bqd,bkd->bkq'", "the result has `q` and `k` exchanged"),
        ("f('bqd,bkd->bqk', q, k)", "'bqd,bkd->bk'", "`q` is added up"),
        ("f(q, 'b (h d) -> b h d')", "'b (d h) -> b h d'", "what goes in has `h` and `d` exchanged"),
    ],
)
def test_an_edit_and_its_words(code, edited, words):
    assert any(text == edited and said.startswith(words) for text, said in edits(code)), edits(code)


def test_every_edit_of_every_right_answer_is_taken_back_and_has_words():
    count = 0
    for exercise in ALL.values():
        for answer in written_here(exercise, [exercise.reference, *exercise.also_right]):
            program = Program(answer, exercise)
            before = [ast.unparse(tree) for tree in program.trees]
            for change in program.changes():
                program.build(change)
                count += 1
                assert change.words and "\n" not in change.words
            assert [ast.unparse(tree) for tree in program.trees] == before
    assert count > 10_000


def test_a_right_answer_without_edits_does_what_it_did():
    """The trees are those of the source, under the exercise's names."""
    for name in ("ATTEND", "MIX_HEADS", "WORD_MAP", "HEADS_FOR"):
        exercise = ALL[name]
        for answer in written_here(exercise, [exercise.reference, *exercise.also_right]):
            program = Program(answer, exercise)
            rebuilt, inputs = program.build(), exercise.cases[0]
            run = exercise.run or (lambda answer, *inputs: answer(*inputs))
            with sandbox(Printed()):
                assert str(run(rebuilt, *inputs)) == str(run(answer, *inputs))
            assert [arg.arg for arg in program.trees[0].args.args] == [*exercise.signature.parameters]
