"""The data: every reference is right, every known mistake gets its own message, every stub is not written yet."""
import ast
import importlib
import inspect
import math
import re
import sys
from pathlib import Path

import einops
import nbformat
import numpy as np
import pytest
import torch
from torch.nn import functional as F

from mhsa import causal_mask, merge_heads, split_heads
from mhsa.exercises import cells, exercises
from mhsa.exercises.board import LESSONS as NAMES
from mhsa.exercises.engine import Exercise
from mhsa.exercises.judge import verdict

LESSONS = [importlib.import_module(f"mhsa.exercises.{name}") for name in NAMES]
NOTEBOOKS = Path(__file__).parents[1] / "notebooks"
ALL = {exercise.name: exercise for lesson in LESSONS for exercise in exercises(lesson)}
each_exercise = pytest.mark.parametrize("exercise", ALL.values(), ids=ALL)


def say(exercise, answer, seconds=5):
    return verdict(exercise, answer, seconds)[1]


def from_stub(exercise, **replace):
    """Run the stub up to its check, as a learner's cell would."""
    space = dict(vars(sys.modules[exercise.reference.__module__]))
    code = exercise.stub
    for old, new in replace.items():
        code = code.replace(old, new)
    exec(code[:code.rindex(f"ex.{exercise.name}.check(")], space)
    return space[exercise.answer_name]


# The data

def test_there_is_enough_of_everything():
    messages = {(exercise.name, message) for exercise in ALL.values() for _, message in exercise.mistakes}
    assert len(ALL) >= 24 and len(messages) >= 60
    assert all(len(exercises(lesson)) >= 4 for lesson in LESSONS)
    assert {exercise.difficulty for exercise in ALL.values()} == {1, 2, 3, 4, 5}
    assert any(exercise.asks_value for exercise in ALL.values()) and any(exercise.given for exercise in ALL.values())


@each_exercise
def test_the_reference_is_right(exercise):
    right, text = verdict(exercise, exercise.reference() if exercise.asks_value else exercise.reference)
    assert right and text.startswith("Right."), text


@each_exercise
def test_each_known_mistake_gets_its_own_message(exercise):
    told = [say(exercise, wrong) for wrong, _ in exercise.mistakes]
    assert told == [f"Not yet. {message}" for _, message in exercise.mistakes]
    assert len(set(told)) == len(told)


@each_exercise
def test_the_stub_is_not_written_yet(exercise):
    assert say(exercise, from_stub(exercise)).startswith("Not written yet: ")
    assert len(exercise.stub.splitlines()) <= 15
    assert exercise.stub.endswith(f"ex.{exercise.name}.check({exercise.answer_name})")


@each_exercise
def test_inputs_have_distinct_sizes_with_one_sentence_and_one_token(exercise):
    """Where inputs have a batch and tokens. Axes of one length may hide a swap, so some input must have none."""
    if exercise.name in ("STACK_WEIGHTS", "DROP"):                  # no batch; one row length for all
        return
    tensors = [x for inputs in exercise.inputs for x in inputs if isinstance(x, torch.Tensor) and x.is_floating_point()]
    shapes = [x.shape for x in tensors if x.dim() >= 3]
    if shapes:
        assert any(shape[0] == 1 for shape in shapes) and any(1 in shape[1:3] for shape in shapes)
        assert any(len(set(shape[:3])) == 3 for shape in shapes)


@each_exercise
def test_messages_do_not_give_the_answer_away(exercise):
    source = inspect.getsource(exercise.reference).splitlines()[-1].strip().removeprefix("return ")
    answer = re.escape(str(exercise.reference()) if exercise.asks_value else source)
    for text in [*exercise.hints, *(message for _, message in exercise.mistakes)]:
        assert len(text) < 320 and text[-1] in ".?!)`"
        assert not re.search(rf"(?<![\d.,]){answer}(?![\d,])", text)


@each_exercise
def test_card_and_solution(exercise, capsys):
    card = exercise.card
    assert exercise.title in card and f"**Difficulty** {exercise.difficulty} of 5" in card and exercise.task in card
    assert f"**Minutes** {exercise.minutes}" in card and f"ex.{exercise.name}.hint()" in card
    exercise.solution()
    assert capsys.readouterr().out.strip() == inspect.getsource(exercise.reference).strip()
    assert "0x" not in repr(exercise)


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: lesson.__name__[-8:])
def test_names_and_cells(lesson):
    assert all(vars(lesson)[exercise.name] is exercise for exercise in exercises(lesson))
    made = cells(lesson)
    code = [source for kind, _, source in made if kind == "code"]
    assert code[1:] == [exercise.stub for exercise in exercises(lesson)]
    assert len({id for _, id, _ in made}) == len(made)
    assert all(re.fullmatch(r"[a-z0-9-]{1,64}", id) for _, id, _ in made)
    assert made[1][2] == f"from mhsa.exercises import {lesson.__name__[-8:]} as ex"


def names_in(code):
    for node in ast.walk(ast.parse(code)):
        yield from (getattr(node, attribute, None) for attribute in ("id", "arg", "name", "asname"))


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: lesson.__name__[-8:])
def test_the_notebook_holds_the_cells_and_uses_no_name_of_an_exercise(lesson):
    """The stored cells are the data's; and an answer must not replace what the lesson itself uses."""
    [path] = NOTEBOOKS.glob(f"{lesson.__name__[-2:]}_*.ipynb")
    made, stored = cells(lesson), nbformat.read(path, as_version=4).cells
    ids = {id for _, id, _ in made}
    others = [cell.source for cell in stored if cell.cell_type == "code" and cell.id not in {*ids, "quiz"}]
    used = {name for source in others for name in names_in(source)}
    assert not used & {"ex", *(exercise.answer_name for exercise in exercises(lesson))}
    if not any(cell.id in ids for cell in stored):
        pytest.skip("the exercises are not in the notebook yet")
    assert [(cell.cell_type, cell.id, cell.source) for cell in stored if cell.id in ids] == made


def test_hints_come_one_by_one_and_run_out(capsys):
    exercise = Exercise(**{name: getattr(ALL["MY_SPLIT"], name) for name in Exercise.__dataclass_fields__})
    for _ in range(5):
        exercise.hint()
    told = capsys.readouterr().out.splitlines()
    assert told[:3] == [f"Hint {i} of 3: {hint}" for i, hint in enumerate(exercise.hints, 1)]
    assert told[3] == told[4] == "There are no more than these 3 hints. ex.MY_SPLIT.solution() shows an answer."


def test_an_import_leaves_the_random_numbers_alone():
    torch.manual_seed(7)
    expected = torch.randn(3)
    torch.manual_seed(7)
    importlib.reload(LESSONS[1]), importlib.reload(LESSONS[4])
    assert torch.equal(torch.randn(3), expected)


# Right answers, written differently

def weights_by_hand(scores):
    e = (scores - scores.amax(-1, keepdim=True)).exp()
    return e / e.sum(-1, keepdim=True)


def attend_by_loops(q, k, v):
    out = torch.zeros(q.shape[0], q.shape[1], v.shape[2])
    for b in range(q.shape[0]):
        for i in range(q.shape[1]):
            scores = torch.stack([(q[b, i] * k[b, j]).sum() for j in range(k.shape[1])]) / q.shape[2]**0.5
            out[b, i] = sum(w * v[b, j] for j, w in enumerate(scores.softmax(0)))
    return out


def loop_by_einsum(x, w_q, w_k, w_v, w_o):
    q, k, v = (torch.einsum("btm,hmd->bhtd", x, w) for w in (w_q, w_k, w_v))
    out = torch.einsum("bhqk,bhkd->bhqd", (torch.einsum("bhqd,bhkd->bhqk", q, k) / q.shape[-1]**0.5).softmax(-1), v)
    return torch.einsum("bhqd,hdm->bqm", out, w_o.view(len(w_q), -1, x.shape[-1]))


def split_by_loop(x, num_heads):
    d = x.shape[-1] // num_heads
    return torch.stack([x[..., i * d:(i + 1) * d] for i in range(num_heads)], 1)


def multi_head_by_einops(x, w_q, w_k, w_v, w_o, num_heads):
    q, k, v = (einops.rearrange(x @ w, "b t (h d) -> b h t d", h=num_heads) for w in (w_q, w_k, w_v))
    return einops.rearrange(F.scaled_dot_product_attention(q, k, v), "b h t d -> b t (h d)") @ w_o


def causal_by_loops(T_q, T_k):
    return torch.tensor([[key <= query + T_k - T_q for key in range(T_k)] for query in range(T_q)])


def masked_by_kernel(q, k, v, mask):
    return F.scaled_dot_product_attention(q, k, v, mask)


def masked_by_where(q, k, v, mask):
    scores = torch.where(mask, q @ k.mT / k.shape[-1]**0.5, -torch.inf)
    return scores.softmax(-1).nan_to_num(0) @ v


def padding_by_loops(lengths, T):
    mask = torch.zeros(len(lengths), 1, 1, T, dtype=torch.bool)
    for b, n in enumerate(lengths):
        mask[b, ..., :n] = True
    return mask


def merge_by_logs(out_a, top_a, sum_a, out_b, top_b, sum_b):
    log_a, log_b = top_a + sum_a.log(), top_b + sum_b.log()         # of each block's share of the whole
    share = torch.sigmoid(log_a - log_b)
    return out_a / sum_a * share + out_b / sum_b * (1 - share)


def decode_by_kernel(x, keys, values, w_q, w_k, w_v):
    keys, values = torch.cat((keys, x @ w_k), -2), torch.cat((values, x @ w_v), -2)
    return F.scaled_dot_product_attention(x @ w_q, keys, values), keys, values


def decode_by_einsum(x, keys, values, w_q, w_k, w_v):
    keys, values = (torch.hstack([old, x @ w]) for old, w in ((keys, w_k), (values, w_v)))
    scores = torch.einsum("bqd,bkd->bqk", x @ w_q, keys) * len(w_q.T)**-0.5
    return [torch.einsum("bqk,bkd->bqd", scores.softmax(-1), values), keys, values]


def words_by_loops(weights, word):
    W = max(word) + 1
    out = torch.zeros(W, W)
    for q, row in zip(word, weights):
        for k, w in zip(word, row):
            out[q, k] += w / word.count(q)
    return out


def words_divided_by_their_rows(weights, word):
    pieces = F.one_hot(torch.tensor(word)).double()
    added = pieces.mT @ weights @ pieces
    return added / added.sum(-1, keepdim=True)


def words_by_index_add(weights, word):
    number = torch.tensor(word)
    out = torch.zeros(max(word) + 1, len(word)).index_add(0, number, weights) / number.bincount()[:, None]
    return torch.zeros(max(word) + 1, max(word) + 1).index_add(1, number, out)


ALSO_RIGHT = {
    "DOT_SCORES": [lambda q, k: torch.einsum("bqd,bkd->bqk", q, k), lambda q, k: torch.bmm(q, k.transpose(1, 2)),
               lambda q, k: (q[:, :, None] * k[:, None]).sum(-1), lambda q, k: (k @ q.mT).mT],
    "SCALE_SCORES": [lambda s, d_model, h: s * (h / d_model)**0.5, lambda s, d, h: s.div(torch.tensor(d / h).sqrt())],
    "TO_WEIGHTS": [weights_by_hand, lambda s: F.softmax(s, 2), torch.nn.Softmax(2), lambda s: s.log_softmax(2).exp()],
    "ATTEND": [attend_by_loops, lambda q, k, v: F.scaled_dot_product_attention(q, k, v),
               lambda q, k, v: ((k @ q.mT) * k.shape[-1]**-0.5).softmax(1).mT @ v],
    "ONE_HEAD": [lambda x, a, b, c: F.scaled_dot_product_attention(x @ a, x @ b, x @ c),
                 lambda x, a, b, c: (x @ (a @ b.mT) @ x.mT / a.shape[1]**0.5).softmax(-1) @ x @ c],
    "JOIN": [lambda heads, w: torch.stack(heads, -2).flatten(-2) @ w,
             lambda heads, w: sum(a @ b for a, b in zip(heads, w.split(heads[0].shape[-1])))],
    "MULTI_HEAD_LOOP": [loop_by_einsum, lambda x, w_q, w_k, w_v, w_o: sum(
        F.scaled_dot_product_attention(x @ q, x @ k, x @ v) @ o
        for q, k, v, o in zip(w_q, w_k, w_v, w_o.chunk(len(w_q))))],
    "STACK_WEIGHTS": [lambda w: w.transpose(0, 1).flatten(1), lambda w: einops.rearrange(w, "h m d -> m (h d)")],
    "MAKE_HEADS": [lambda d, h, d_k: torch.nn.Sequential(*(torch.nn.Linear(d, d_k, bias=False) for _ in range(h))),
                   lambda d, h, d_k: torch.nn.ModuleList([torch.nn.Linear(d, d_k, False) for i in range(h)])],
    "MY_SPLIT": [split_heads, split_by_loop, lambda x, h: einops.rearrange(x, "b t (h d) -> b h t d", h=h),
              lambda x, h: x.unflatten(-1, (h, -1)).movedim(2, 1)],
    "MY_MERGE": [merge_heads, lambda x: torch.cat(x.unbind(1), -1),
                 lambda x: einops.rearrange(x, "b h t d -> b t (h d)")],
    "MEMORY_OFFSET": [lambda b, i, t, c, T, h, d: np.ravel_multi_index((b, t, i, c), (b + 1, T, h, d)),
                      lambda b, i, t, c, T, h, d: torch.arange((b + 1) * T * h * d).view(-1, T, h, d)[b, t, i, c]],
    "SCORES_BTHD": [lambda q, k: q.transpose(1, 2) @ k.permute(0, 2, 3, 1),
                    lambda q, k: einops.einsum(q, k, "b q h d, b k h d -> b h q k")],
    "UNFUSE": [lambda w, h: torch.stack([part.unflatten(0, (h, -1)) for part in w.chunk(3)]),
               lambda w, h: einops.rearrange(w, "(three h d) m -> three h d m", three=3, h=h)],
    "MIX_HEADS": [lambda *a: merge_heads(F.scaled_dot_product_attention(*(split_heads(x, a[3]) for x in a[:3]))),
                  lambda *a: torch.cat([F.scaled_dot_product_attention(*parts)
                                        for parts in zip(*(x.chunk(a[3], -1) for x in a[:3]))], -1)],
    "MULTI_HEAD": [multi_head_by_einops, lambda x, w_q, w_k, w_v, w_o, h: loop_by_einsum(
        x, *(w.unflatten(1, (h, -1)).transpose(0, 1) for w in (w_q, w_k, w_v)), w_o)],
    "PRODUCT_FLOPS": [lambda T, d, h: 4 * T * d * (2 * d + T), lambda T, d, h: 8 * T * d**2 + 4.0 * h * T**2 * (d / h)],
    "SCORE_BYTES": [lambda B, T, h, n: float(n * B * h * T**2), lambda B, T, h, n: torch.tensor([B * h * T * T * n])],
    "MY_CAUSAL_MASK": [causal_mask, causal_by_loops, lambda q, k: torch.arange(k) <= torch.arange(k - q, k)[:, None]],
    "MY_PADDING_MASK": [padding_by_loops, lambda n, T: torch.arange(T).lt(torch.tensor(n).view(-1, 1, 1, 1))],
    "JOIN_MASKS": [torch.logical_and, lambda c, p: c * p, lambda c, p: p.masked_fill(~c, False)],
    "FOR_TORCH": [lambda m: m.logical_not(), lambda m: torch.zeros(m.shape).masked_fill(~m, -torch.inf)],
    "MASKED_ATTENTION": [masked_by_kernel, masked_by_where],
    "MERGE_BLOCKS": [merge_by_logs, lambda a, m, s, b, n, t: (a + b * (n - m).exp()) / (s + t * (n - m).exp())],
    "DECODE_STEP": [decode_by_kernel, decode_by_einsum],
    "SHARE_KV": [lambda k, h: k.unsqueeze(2).expand(-1, -1, h // k.shape[1], -1, -1).flatten(1, 2),
                 lambda k, h: torch.stack([k[:, i * k.shape[1] // h] for i in range(h)], 1)],
    "POOL_HEADS": [lambda w, h, g: einops.reduce(w, "m (g r d) -> m (g d)", "mean", g=g, r=h // g),
                   lambda w, h, g: torch.cat([sum(part.chunk(h // g, 1)) * g / h for part in w.chunk(g, 1)], 1)],
    "TOKENS_THAT_FIT": [lambda n, L, h, g, d, size: int(n / (2 * L * g * d * size)),
                        lambda n, L, h, g, d, size: torch.tensor(n).div(2 * L * g * d * size, rounding_mode="floor")],
    "RANK_OUTPUT": [lambda m, w, rank, n: m.chunk(n, -1)[rank] @ w.chunk(n)[rank],
                    lambda m, w, rank, n: torch.tensordot(m.tensor_split(n, 2)[rank], w.tensor_split(n)[rank], 1)],
    "SINK_SHARE": [lambda w: w.transpose(0, 1)[..., 0].flatten(1).mean(1), lambda w: w.mean(2)[:, :, 0].mean(0)],
    "PREVIOUS_SHARE": [lambda w: sum(w[:, :, t, t - 1] for t in range(1, w.shape[2])).mean(0) / (w.shape[2] - 1),
                       lambda w: (w * torch.eye(w.shape[2]).roll(-1, 1).tril()).sum((2, 3)).mean(0) / (w.shape[2] - 1)],
    "RELATIVE_ENTROPY": [lambda w: torch.special.entr(w).sum(-1) / math.log(w.shape[-1]),
                         lambda w: 1 - (w * (w * w.shape[-1]).log()).sum(-1) / math.log(w.shape[-1]),
                         lambda w: torch.distributions.Categorical(w).entropy() / math.log(w.shape[-1])],
    "WORD_MAP": [words_by_loops, words_by_index_add, words_divided_by_their_rows],
    "WITHOUT_HEAD": [lambda x, w_o, i: merge_heads(x * (torch.arange(x.shape[1]) != i)[:, None, None]) @ w_o,
                     lambda heads, w_o, i: sum(heads[:, j] @ block for j, block in enumerate(w_o.chunk(heads.shape[1]))
                                               if j != i)],
    "DROP": [lambda w, p, training: F.dropout(w, p) if training else w,
             lambda w, p, training: torch.nn.Dropout(p).train(training)(w),
             lambda w, p, training: w * (torch.rand(w.shape) >= p) / (1 - p) if training else w],
    "TOKENS_BACK": [lambda x, m: torch.stack([torch.cat([x[:, -i:], x[:, :-i]], 1) for i in range(1, m + 1)], 2),
                    lambda x, m: x[:, (torch.arange(x.shape[1])[:, None] - torch.arange(m) - 1) % x.shape[1]]],
    "IDEAL_MAP": [lambda T, n: torch.eye(T).roll(-n, 1), lambda T, n: torch.eye(T).roll(n, 0),
                  lambda T, n: torch.tensor([[float((q - k - n) % T == 0) for k in range(T)] for q in range(T)])],
    "EVEN_BLEND": [lambda v, t: sum(v[t[:, i]] for i in range(t.shape[1])) / t.shape[1],
                   lambda v, t: F.one_hot(t, len(v)).double().mean(1) @ v],
    "RELATION_OF_HEADS": [lambda w, i: (w[:, None] * i).sum((-2, -1)).max(1).indices,
                          lambda w, i: [int((head * i).sum((1, 2)).argmax()) for head in w],
                          lambda w, i: ((w[:, None] - i)**2).sum((2, 3)).argmin(1)],
    "HEADS_NEEDED": [lambda m, V, a: next(h for h in range(1, m + 1) if (h + (m - h) / V) / m >= a),
                     lambda m, V, a: max(1, -int(-((m * a - m / V) / (1 - 1 / V)) // 1))],
    "HEADS_FOR": [lambda d, w: sorted((abs(d / h - w), h) for h in range(1, d + 1) if d % h == 0)[0][1],
                  lambda d, w: d // min((k for k in range(1, d + 1) if d % k == 0), key=lambda k: abs(k - w))],
    "LEAST_WIDTH": [lambda p: torch.linalg.matrix_rank(p.log() - p.log()[:, :1]),
                    lambda p: int((torch.linalg.svdvals(p.log() - p.log().mean(1, keepdim=True)) > 1e-8).sum())],
    "POINT_AT": [lambda t: (lambda k: (300 * len(t)**2 * k[t], k))(torch.view_as_real(torch.polar(
        torch.ones(len(t)).double(), 0.3 + 2 * torch.pi * torch.arange(len(t)).double() / len(t)))),
        lambda t: (lambda x: (torch.stack([2 * x[t], -torch.ones(len(t))], 1) * 100, torch.stack([x, x**2], 1)))(
            torch.arange(len(t)) - 2.0)],
    "WITHOUT_HEADS": [lambda x, w, h, out: sum((a @ b for i, (a, b) in enumerate(zip(x.chunk(h, -1), w.chunk(h)))
                                                if i not in out), torch.zeros(1)),
                      lambda x, w, h, out: x @ (w.unflatten(0, (h, -1)) * torch.tensor(
                          [[[float(i not in out)]] for i in range(h)])).flatten(0, 1)],
}


@pytest.mark.parametrize("name, answer", [(name, answer) for name, answers in ALSO_RIGHT.items() for answer in answers])
def test_another_right_answer_passes(name, answer):
    right, text = verdict(ALL[name], answer)
    assert right, text


def test_two_other_right_answers_for_many_exercises():
    assert sum(len(answers) >= 2 for answers in ALSO_RIGHT.values()) >= 10


@pytest.mark.parametrize("value", [[2, 5, 11], torch.Size([2, 5, 11]), np.array([2, 5, 11]), torch.tensor([2, 5, 11])])
def test_a_shape_may_be_written_in_any_way(value):
    assert verdict(ALL["ATTENTION_SHAPES"], value) == (True, "Right.")


def test_words_may_be_capital_and_numbers_rounded():
    assert verdict(ALL["CHOOSE_MASKS"], ["Causal", "padding ", "BOTH", "padding", "none"])[0]
    assert verdict(ALL["FLOAT_MASK_ROW"], (0.37, 0.37, 0.13, 0.13))[0]
    assert not verdict(ALL["FLOAT_MASK_ROW"], (0.38, 0.38, 0.12, 0.12))[0]


# Known mistakes, written differently

def by_columns(weights, p, training):
    kept = torch.rand(weights.shape[0], 1, weights.shape[2]) >= p
    return weights * kept / (1 - p) if training else weights


def the_same_for_all(weights, p, training):
    kept = torch.rand(weights.shape[1:]) >= p
    return weights * kept / (1 - p) if training else weights


def closed_by(number):
    def masked_attention(q, k, v, mask):
        scores = (q @ k.mT / q.shape[-1]**0.5).masked_fill(~mask, number)
        return (scores.softmax(-1) * mask.any(-1, keepdim=True)) @ v
    return masked_attention


def own_linear(d_model, num_heads, d_k):
    class Head(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.randn(d_k, d_model))

        def forward(self, x):
            return x @ self.weight                                 # turned round: takes d_k numbers
    return torch.nn.ModuleList(Head() for _ in range(num_heads))


SAME_MISTAKE = [("DROP", by_columns, "whole columns"), ("DROP", the_same_for_all, "same places in every sentence"),
                ("MASKED_ATTENTION", closed_by(-50), "the closed key is the best"),
                ("MASKED_ATTENTION", closed_by(-1000), "the closed key is the best"),
                ("MAKE_HEADS", own_linear, "takes the width that goes *in* first")]


@pytest.mark.parametrize("name, answer, words", SAME_MISTAKE)
def test_a_known_mistake_is_known_in_other_words(name, answer, words):
    assert words in say(ALL[name], answer)


@pytest.mark.parametrize("number", [-1e9, -1e30, torch.finfo(torch.float32).min])
def test_any_number_below_every_score_closes_a_key(number):
    assert verdict(ALL["MASKED_ATTENTION"], closed_by(number))[0]


@pytest.mark.parametrize("answer", [lambda w, p, training: F.dropout(w.detach(), p, training),
                                    lambda w, p, training: F.dropout(w, p, training).data])
def test_dropped_weights_must_pass_a_gradient(answer):
    assert say(ALL["DROP"], answer).startswith("The values are right, but no gradient flows back")


def test_an_odd_answer_to_drop_is_told_in_words():
    assert "'a tuple'; expected '0.5 of the weights become 0, each on its own" in say(ALL["DROP"], lambda *a: (a[0],))
    assert "'shape (2, 101)'" in say(ALL["DROP"], lambda w, p, training: w.sum(-1))


def test_no_exercise_that_asks_a_number_asks_one_that_its_lesson_prints():
    for exercise in ALL.values():
        if exercise.asks_value and isinstance(exercise.reference(), int) and exercise.reference() > 100:
            [path] = NOTEBOOKS.glob(f"{exercise.lesson[-2:]}_*.ipynb")
            cells = nbformat.read(path, as_version=4).cells
            said = [cell.source for cell in cells]
            said += [output.get("text", "") for cell in cells if cell.cell_type == "code" for output in cell.outputs]
            assert not any(f"{exercise.reference():,}" in words for words in said), exercise.name
