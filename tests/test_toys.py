"""Toy tasks, their answers looked up one by one."""

from itertools import product

import numpy as np
import pytest
import torch

from mhsa.toys import RELATIONS, SENTENCE, STORY, Task, copy_two_sources, lookup, relations, reverse, story

TASKS = [
    relations(3, T=5, vocab=7),
    relations(5, T=5, vocab=3),
    copy_two_sources(T=6, vocab=5),
    lookup(T=7, classes=3),
    reverse(T=5, vocab=11),
    story(),
]
each_task = pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def key_of(token, task):
    return token // task.classes


def place_of_answer(task, tokens, question, t):
    """The place that the answer stands at, from what each maker promises."""
    T = len(tokens)
    if task.name.startswith("relations"):
        return (t - 1 - question) % T
    if task.name == "copy two sources":
        return (t + 1) % (T // 2) + question * T // 2
    if task.name == "reverse":
        return T - 1 - t
    if task.name == "story":
        return list(RELATIONS.values())[question][t]
    if question == 1:
        return (t - 1) % T
    wanted = (key_of(tokens[t], task) + 1) % T
    return [key_of(token, task) for token in tokens].index(wanted)


@each_task
def test_targets_and_ideal_maps(task):
    tokens, targets = task.batch(13, generator())
    ideal = task.ideal(tokens)
    assert tokens.shape == (13, task.T) and targets.shape == (13, task.T, task.m)
    assert ideal.shape == (13, task.m, task.T, task.T) and tokens.dtype == targets.dtype == torch.int64
    for b, t, j in product(range(13), range(task.T), range(task.m)):
        place = place_of_answer(task, tokens[b].tolist(), j, t)
        assert targets[b, t, j] == tokens[b, place] % task.classes
        assert ideal[b, j, t].tolist() == [float(key == place) for key in range(task.T)]


@each_task
def test_tokens_are_random_and_repeat_with_the_seed(task):
    tokens, targets = task.batch(997, generator(3))
    assert torch.equal(tokens, task.batch(997, generator(3))[0])
    assert not torch.equal(tokens, task.batch(997, generator(4))[0])
    assert tokens.unique().tolist() == list(range(task.vocab))
    share = targets.flatten().bincount(minlength=task.classes) / targets.numel()
    assert (share - task.chance).abs().max() < 0.03


def test_in_a_look_up_each_key_stands_once():
    tokens, _ = lookup(T=5, classes=3).batch(29, generator())
    assert (tokens // 3).sort(-1).values.tolist() == [[0, 1, 2, 3, 4]] * 29


@pytest.mark.parametrize(
    "task, h, expected",
    [
        (relations(2), 1, 0.5625),
        (relations(2), 2, 1.0),
        (relations(4), 1, 0.34375),
        (relations(4), 2, 0.5625),
        (relations(4), 16, 1.0),
        (relations(8, T=16, vocab=16), 4, 0.53125),
        (lookup(), 1, 0.625),
        (reverse(), 1, 1.0),
    ],
)
def test_one_question_a_head_and_the_rest_guessed(task, h, expected):
    assert task.predicted(h) == expected


def test_what_the_story_says():
    refers = {
        (relation, word): STORY[places[STORY.index(word)]] for relation, places in RELATIONS.items() for word in STORY
    }
    assert refers["antecedent", "her"] == refers["subject", "lost"] == "Mia"
    assert refers["antecedent", "them"] == "keys" and refers["subject", "found"] == "Tom"
    assert [refers["neighbour", word] for word in STORY] == ["Mia", *STORY[:-1]]
    assert STORY[:4] == SENTENCE and len(set(STORY)) == story().vocab == 8


@pytest.mark.parametrize(
    "make, says",
    [
        (lambda: relations(9), "m=9 relations do not fit T=8 places; m of at most T is needed"),
        (lambda: relations(0), "m=0"),
        (lambda: relations(T=8.0), "T=8.0"),
        (lambda: relations(vocab=True), "vocab=True"),
        (lambda: copy_two_sources(T=7), "T=7 has no two equal halves; an even number is needed"),
        (lambda: copy_two_sources(vocab=0), "vocab=0"),
        (lambda: reverse(T=-1), "T=-1"),
        (lambda: reverse(vocab="8"), "vocab='8'"),
        (lambda: lookup(T=0), "T=0"),
        (lambda: lookup(classes=0), "classes=0"),
        (lambda: reverse().predicted(0), "num_heads=0"),
    ],
)
def test_bad_sizes_are_named(make, says, as_a_user):
    with pytest.raises(ValueError) as error:
        make()
    assert str(error.value).startswith(says)


def test_a_task_cannot_be_changed():
    with pytest.raises(AttributeError):
        relations().m = 3  # pyright: ignore[reportAttributeAccessIssue]
    assert isinstance(relations(), Task)


@pytest.mark.parametrize("whole", [np.int8, np.uint8, np.int64], ids=lambda t: t.__name__)
def test_sizes_may_come_from_numpy(whole, as_a_user):
    """8-bit numbers, kept as they are, would overflow in T · classes and in t - back."""
    for make, sizes in ((relations, (3, 5, 7)), (copy_two_sources, (6, 5)), (lookup, (101, 3)), (reverse, (5, 11))):
        task, right = make(*map(whole, sizes)), make(*sizes)
        assert (task.name, task.T, task.vocab, task.m, task.classes) == (
            right.name,
            right.T,
            right.vocab,
            right.m,
            right.classes,
        )
        assert type(task.vocab) is int
        tokens = right.batch(3, generator())[0]
        assert torch.equal(task.targets(tokens), right.targets(tokens))
