"""Lesson 4, counting: parameters, per head and in all, FLOPs, and bytes of scores and of a cache."""

import math

import torch

from mhsa.exercises.exercise import Exercise
from mhsa.exercises.quiz import quiz_of

quiz = quiz_of(__name__)


def layer_parameters():
    d_model = 640
    return 4 * d_model**2


LAYER_PARAMETERS = Exercise(
    title="Count a layer",
    difficulty=1,
    minutes=3,
    reference=layer_parameters,
    task="Multi-head attention with d_model=640, h=10, d_k = d_v = 64, no biases. How many numbers does it learn?",
    hints=["Four matrices. What are the two sizes of each?", "W_Q maps 640 columns to h·d_k. How many are these?"],
    mistakes=[
        (640**2, "That is one of the matrices. How many are there?"),
        (3 * 640**2, "You have W_Q, W_K and W_V. One matrix comes after the heads."),
        (4 * 640 * 64, "That is the part of a single head. How many heads are there?"),
        (
            10 * 4 * 640**2,
            "You give every head four matrices of full width. A head's W_Q has d_k columns, not d_model.",
        ),
        (
            3 * 64**2 + 640**2,
            "You let each head read its own piece of the embedding, with shared matrices. Heads split the "
            "*projection*: every head reads all 640 columns, through parameters of its own.",
        ),
        (
            10 * 3 * 64**2 + 640**2,
            "You let each head read its own 64 columns of the embedding. Every head reads all 640.",
        ),
        (4 * 640**2 + 4 * 640, "Your count includes biases, torch's default. Here there are none."),
        (4 * 640, "A matrix has rows *and* columns."),
        (4 * 4 * 640**2, "That is four times too many: are you counting bytes? Asked are numbers."),
        (
            10 * 3 * 640 * 640 + 640**2,
            "Each of your heads projects to 640 columns. With h = 10 it projects to d_k = 64.",
        ),
    ],
    also_right=[
        10 * 3 * 640 * 64 + 10 * 64 * 640,
        1.6384e6,
    ],
)


def head_parameters():
    d_model, num_heads = 1600, 25
    return 4 * d_model * (d_model // num_heads)


HEAD_PARAMETERS = Exercise(
    title="Count one head",
    difficulty=2,
    minutes=3,
    reference=head_parameters,
    task="GPT-2 XL: d_model=1600, h=25. How many numbers of the four matrices does *one* head use? Leave biases out.",
    hints=["How wide is a head?", "d_k columns of W_Q, W_K and W_V, and d_k rows of W_O. How long is each?"],
    mistakes=[
        (
            1600**2,
            "That is one whole matrix, d_model². Some published tables print it as 'per head'. How much of each matrix "
            "does a head use?",
        ),
        (4 * 1600**2, "That is the whole layer. One head uses a slice of each matrix."),
        (3 * 1600 * 64, "You have the slices of W_Q, W_K and W_V. Which rows of W_O belong to the head?"),
        (
            4 * 64**2,
            "That is d_k × d_k four times. A head reads all d_model columns: how long is a slice of W_Q? (Did you "
            "divide by h twice?)",
        ),
        (3 * 64**2, "You count d_k × d_k, without W_O. A head reads all d_model columns: how long is a slice of W_Q?"),
        (1600 * 64, "That is the slice of one matrix. How many matrices are there?"),
        (3 * 1600 * 64 + 1600**2, "W_O is shared between the heads: only d_k of its rows belong to one."),
        (4 * 1600 * 25, "You took h as the width of a head. How wide is each of the 25?"),
    ],
    also_right=[
        3 * 1600 * 64 + 64 * 1600,
        4 * 1600**2 / 25,
    ],
)


def parameters(d_model, num_heads, d_k, bias):
    """Three sizes, with d_v = d_k; bias: True if each of the four layers has one -> a whole number."""
    width = num_heads * d_k
    return 4 * d_model * width + (3 * width + d_model if bias else 0)


PARAMETERS = Exercise(
    title="Count any layer",
    difficulty=3,
    minutes=6,
    extra=True,
    reference=parameters,
    task="Count all numbers of a layer whose d_k is chosen freely, with or without biases. d_v = d_k.",
    inputs=[[512, 8, 64, False], [1024, 128, 128, False], [512, 7, 64, True], [5, 1, 3, True], [7, 2, 3, False]],
    fresh=[[11, 3, 5, True], [13, 4, 2, False], [768, 12, 32, True], [3, 5, 7, True]],
    hints=[
        "W_Q, W_K and W_V: d_model × h·d_k each. W_O the other way round.",
        "A bias has as many numbers as the layer has *outputs*. What does W_O put out?",
    ],
    mistakes=[
        (
            lambda d, h, d_k, bias: 4 * d * d + (4 * d if bias else 0),
            "Your count does not depend on d_k. That holds only while h·d_k = d_model; T5-11B has 16 times as much.",
        ),
        (lambda d, h, d_k, bias: 4 * d * h * d_k, "The matrices are right. Where do the biases come in?"),
        (
            lambda d, h, d_k, bias: 4 * d * h * d_k + (4 if bias else 0),
            "The matrices are right. A bias is a number for each *output* of its layer, not one number.",
        ),
        (
            lambda d, h, d_k, bias: 4 * d * h * d_k + (4 * d if bias else 0),
            "The matrices are right. A bias is as long as the output of its layer: is that d_model for all four?",
        ),
        (
            lambda d, h, d_k, bias: 4 * d * h * d_k + (4 * h * d_k if bias else 0),
            "The matrices are right. A bias is as long as the output of its layer: what does W_O put out?",
        ),
        (
            lambda d, h, d_k, bias: 4 * d * h * d_k + (3 * h * d_k if bias else 0),
            "The matrices are right. W_O has a bias, too.",
        ),
        (
            lambda d, h, d_k, bias: 3 * d * h * d_k + (3 * h * d_k if bias else 0),
            "W_Q, W_K and W_V are there. Which matrix is missing?",
        ),
        (lambda d, h, d_k, bias: 4 * d * d_k + (3 * d_k + d if bias else 0), "You count one head. How many are there?"),
        (
            lambda d, h, d_k, bias: 4 * h * d_k**2 + (3 * h * d_k + d if bias else 0),
            "You count d_k × d_k for a head. It reads all d_model columns: its W_Q is d_model × d_k.",
        ),
        (lambda d, h, d_k, bias: 4 * d * h * d_k + 3 * h * d_k + d, "You count biases even where `bias` is False."),
        (
            lambda d, h, d_k, bias: 3 * d * h * d_k + d * d + (3 * h * d_k + d if bias else 0),
            "Your W_O is d_model × d_model. It takes what the heads put out: h·d_k columns.",
        ),
    ],
    also_right=[
        lambda d, h, d_k, bias: 4 * d * h * d_k + bias * (3 * h * d_k + d),
        lambda d, h, d_k, bias: sum((n + bias) * out for n, out in [(d, h * d_k)] * 3 + [(h * d_k, d)]),
    ],
)


def product_flops(T, d_model, num_heads):
    """T tokens, one sentence; d_k = d_model / num_heads -> a whole number of FLOPs."""
    projections = 4 * 2 * T * d_model * d_model
    scores = 2 * T * T * d_model  # h maps, each T × T × d_k: h·d_k = d_model
    mix = 2 * T * T * d_model
    return projections + scores + mix


PRODUCT_FLOPS = Exercise(
    title="Count the products",
    difficulty=3,
    minutes=7,
    reference=product_flops,
    task="Count the FLOPs of all matrix products of one layer: four projections, scores, mix. A product of (n, m) and "
    "(m, p) takes 2·n·m·p. Leave out the softmax.",
    inputs=[[128, 512, 8], [128, 512, 64], [1, 6, 3], [7, 10, 5], [11, 13, 1]],
    fresh=[[17, 6, 2], [3, 21, 7], [64, 40, 4]],
    hints=[
        "A projection: (T, d_model) times (d_model, d_model).",
        "The scores of one head: (T, d_k) times (d_k, T). There are h of them.",
        "The mix costs as much as the scores.",
    ],
    mistakes=[
        (
            lambda T, d, h: 4 * T * d * d + 2 * T * T * d,
            "That is half: you count multiply-adds. A multiplication and an addition are two FLOPs.",
        ),
        (
            lambda T, d, h: 8 * T * d * d + 4 * T * T * d * h,
            "Your products between tokens grow with h. A head is d_k wide, not d_model: what is h·d_k?",
        ),
        (
            lambda T, d, h: 8 * T * d * d + 2 * T * T * d * h,
            "Two things: your product of scores grows with h, though a head is only d_k wide; and the mix is missing.",
        ),
        (
            lambda T, d, h: h * (8 * T * d * d + 4 * T * T * d),
            "You count every head at full width. The heads share d_model between them.",
        ),
        (
            lambda T, d, h: 6 * T * d * d + 4 * T * T * d,
            "Three projections are there. Which product comes after the heads?",
        ),
        (
            lambda T, d, h: 8 * T * d * d + 2 * T * T * d,
            "The projections and one product between tokens are there. Which is the other?",
        ),
        (
            lambda T, d, h: 8 * T * d * d,
            "You have the projections. What about queries times keys, and attention weights times values?",
        ),
        (
            lambda T, d, h: 8 * T * d * d + 4 * T * T * d // h,
            "You count the products between tokens for one head. There are h of them.",
        ),
        (lambda T, d, h: 8 * d * d + 4 * T * d, "You count one token. There are T."),
        (
            lambda T, d, h: 8 * T * d * d + 4 * T * d,
            "Every token meets every token: does your count of the scores grow with T²?",
        ),
        (
            lambda T, d, h: 8 * T * d * d + 4 * T * T * d + 5 * h * T * T,
            "You added the softmax. It is the only part that depends on h; leave it out here.",
        ),
        (
            lambda T, d, h: 8 * T * d * d + 4 * T * T * d + 3 * h * T * T,
            "You added the softmax, at 3 a score. It is the only part that depends on h; leave it out here.",
        ),
        (lambda T, d, h: 4 * T * T * d, "You have the two products between tokens. Where are the projections?"),
        (
            lambda T, d, h: 8 * d * d + 4 * T * T * d,
            "The products between tokens are right. A projection is made for each of the T tokens.",
        ),
        (
            lambda T, d, h: 8 * T * d * d * h + 4 * T * T * d,
            "The products between tokens are right. You count the projections for each head at full width.",
        ),
    ],
    also_right=[
        lambda T, d, h: 4 * T * d * (2 * d + T),
        lambda T, d, h: 8 * T * d**2 + 4.0 * h * T**2 * (d / h),
    ],
)


def score_bytes(B, T, num_heads, bytes_per_number):
    """B sentences, T tokens, num_heads, bytes_per_number (4 for float32) -> a whole number of bytes."""
    return B * num_heads * T * T * bytes_per_number


SCORE_BYTES = Exercise(
    title="Bytes of the score maps",
    difficulty=2,
    minutes=4,
    reference=score_bytes,
    task="How many bytes do the explicit score maps of one layer take?",
    inputs=[[32, 512, 8, 4], [32, 512, 1, 4], [1, 1, 3, 2], [2, 7, 5, 2], [3, 5, 1, 8]],
    fresh=[[5, 11, 3, 4], [7, 2, 13, 2], [1, 17, 2, 8]],
    hints=["How many maps are there? How many numbers has one?", "Then multiply by the bytes of a number."],
    mistakes=[
        (
            lambda B, T, h, n: B * h * T * T,
            "That is a number of *elements*. Some texts print it as bytes, or as MB. How many bytes has an element?",
        ),
        (lambda B, T, h, n: B * T * T * n, "Each head has a map of its own. Where is h?"),
        (lambda B, T, h, n: h * T * T * n, "Each sentence has maps of its own. Where is B?"),
        (lambda B, T, h, n: B * h * T * n, "A map has a row for each query *and* a column for each key."),
        (lambda B, T, h, n: 8 * B * h * T * T * n, "That is eight times too much: are you counting bits?"),
        (lambda B, T, h, n: B * h * T * T * n / 1e6, "That is in MB. Asked are bytes."),
        (lambda B, T, h, n: B * h * T * T * n / 2**20, "That is in MiB. Asked are bytes."),
        (lambda B, T, h, n: 4 * B * h * T * T, "Four bytes hold for float32 only. The size of a number is given."),
        (
            lambda B, T, h, n: B * h * T * T // n,
            "You divide by the bytes of a number. More bytes a number, more bytes in all.",
        ),
        (
            lambda B, T, h, n: 2 * B * h * T * T * n,
            "That is twice too much. Scores *and* attention weights? Asked are the scores alone.",
        ),
    ],
    also_right=[
        lambda B, T, h, n: float(n * B * h * T**2),
        lambda B, T, h, n: torch.tensor([B * h * T * T * n]),
    ],
)


def cache_bytes(B, T, num_layers, num_heads, num_kv_heads, d_k, bytes_per_number):
    """Sizes of a model that has read T tokens of B sentences, d_v = d_k -> a whole number of bytes."""
    return 2 * B * T * num_layers * num_kv_heads * d_k * bytes_per_number


CACHE_BYTES = Exercise(
    title="Bytes of a KV cache",
    difficulty=3,
    minutes=5,
    reference=cache_bytes,
    task="A model that writes keeps keys and values of all tokens so far, in every layer: the KV cache of section 6. "
    "Query heads may share the heads of keys and values. How many bytes does it keep?",
    inputs=[[1, 8192, 80, 64, 8, 128, 2], [2, 7, 3, 10, 5, 11, 4], [1, 1, 2, 3, 3, 7, 2], [3, 5, 1, 6, 1, 2, 4]],
    fresh=[[5, 11, 2, 12, 3, 7, 4], [3, 1, 7, 8, 2, 5, 2], [2, 13, 4, 6, 6, 3, 8]],
    hints=[
        "One token, one layer, one head of keys and values: how many numbers?",
        "A key *and* a value. And which kind of head is counted?",
    ],
    mistakes=[
        (lambda B, T, L, h, g, d, n: B * T * L * g * d * n, "That is half of it: what is kept besides the keys?"),
        (
            lambda B, T, L, h, g, d, n: 2 * B * T * L * h * d * n,
            "You count the query heads. With grouped heads, several of them share one head of keys and values: which "
            "number says how many are kept?",
        ),
        (lambda B, T, L, h, g, d, n: 2 * B * T * g * d * n, "That is one layer. Every layer keeps its own."),
        (lambda B, T, L, h, g, d, n: 2 * T * L * g * d * n, "That is one sentence. Where is B?"),
        (
            lambda B, T, L, h, g, d, n: 2 * B * T * T * L * g * d * n,
            "Yours grows with T². A cache keeps vectors, not maps: what does one more token add?",
        ),
        (lambda B, T, L, h, g, d, n: 2 * B * T * L * g * d, "That is a number of elements. How many bytes has one?"),
        (
            lambda B, T, L, h, g, d, n: 2 * B * T * L * g * d * n / 1024,
            "That is in KiB. Asked are bytes.",
        ),
        (
            lambda B, T, L, h, g, d, n: B * L * h * T * T * n,
            "Those are score maps. A cache keeps keys and values, from which maps are made anew.",
        ),
        (
            lambda B, T, L, h, g, d, n: 2 * B * T * L * g * n,
            "The width of a head does not enter. How many numbers has one key?",
        ),
        (
            lambda B, T, L, h, g, d, n: 3 * B * T * L * g * d * n,
            "You keep the queries as well. An old query is never asked again.",
        ),
        (
            lambda B, T, L, h, g, d, n: 2 * B * T * L * (h // g) * d * n,
            "h / g says how many query heads *share* one. How many are kept?",
        ),
        (lambda B, T, L, h, g, d, n: 2 * B * T * L * d * n, "That is one head of keys and values. How many are kept?"),
    ],
    also_right=[
        lambda B, T, L, h, g, d, n: B * L * g * T * (d + d) * n,
        lambda B, T, L, h, g, d, n: math.prod([2, B, T, L, g, d, n]),
    ],
)


def grouped_parameters():
    d_model, num_heads, num_kv_heads, d_k = 4096, 32, 8, 128
    return 2 * d_model * num_heads * d_k + 2 * d_model * num_kv_heads * d_k  # W_Q and W_O; W_K and W_V


GROUPED_PARAMETERS = Exercise(
    title="Count a layer with grouped heads",
    difficulty=2,
    minutes=4,
    extra=True,
    reference=grouped_parameters,
    task="Llama-3-8B: d_model=4096, 32 query heads, 8 heads of keys and values, d_k=128, no biases. How many numbers "
    "has one layer?",
    hints=[
        "Which of the four matrices belong to the query heads, which to the heads of keys and values?",
        "W_K maps d_model to 8·d_k.",
    ],
    mistakes=[
        (4 * 4096**2, "You count 32 heads for all four matrices. Which two are made for 8 only?"),
        (4 * 4096 * 8 * 128, "You count 8 heads for all four matrices. Queries and output still have 32."),
        (3 * 4096 * 32 * 128 + 4096 * 8 * 128, "You shrank one matrix. Keys *and* values are shared."),
        (4096**2 + 3 * 4096 * 8 * 128, "You shrank three matrices. W_O takes what the 32 query heads put out."),
        (4096**2 + 2 * 4096 * 8 * 128, "W_Q, W_K and W_V are there. Which matrix is missing?"),
        (2 * 4096**2 + 2 * 4096 * 128, "You made W_K and W_V for a single head. There are 8."),
        (2 * 4096**2 + 4096 * 8 * 128, "One small matrix is there. Keys *and* values have one."),
        (2 * 4096**2, "You left keys and values out. They are fewer, not gone."),
    ],
    also_right=[
        4096 * 128 * (32 + 8 + 8 + 32),
        2 * 4096**2 + 2 * 4096 * 1024.0,
    ],
)
