"""The quiz of lesson 3."""

from mhsa.exercises.quiz import Choice, Number, Option

QUESTIONS = (
    Choice(
        "`torch.arange(24).view(1, 4, 6)` is split into 2 heads. Which numbers does head 1 hold?",
        (
            Option(
                "[12, 13, 14], [15, 16, 17], [18, 19, 20], [21, 22, 23]",
                "These are the last two tokens, whole: a bare view mixes tokens, section 10. A head holds a part of "
                "*every* token.",
            ),
            Option(
                "[0, 1, 2], [6, 7, 8], [12, 13, 14], [18, 19, 20]",
                "The right pattern, for head 0. Heads are counted from 0: section 1.",
            ),
            Option(
                "[3, 4, 5], [9, 10, 11], [15, 16, 17], [21, 22, 23]",
                "Columns 3 to 5 of each token: the rows jump by 6, from token to token.",
                True,
            ),
            Option(
                "[1, 3, 5], [7, 9, 11], [13, 15, 17], [19, 21, 23]",
                "These are the tokens in order, but every other column: the order (d h) of section 8. A head owns "
                "neighbours.",
            ),
        ),
        id="head_1",
    ),
    Number(
        "q has the shape (1, 5, 12) and lies in order. 4 heads are split off by view and transpose. How many places "
        "from the start of the memory is head 2, token 3, column 1?",
        43,
        "The strides of (B, h, T, d_k) are (60, 3, 12, 1): 2 · 3 + 3 · 12 + 1.",
        {
            40: "There it would lie if the numbers were stored head by head. The split moved no number: section 4.",
            42: "You took column 1 of head 2 as number 1 · 4 + 2 of its token, the order (d h). A head owns "
            "neighbouring columns: section 8.",
            16: "You step 3 places from token to token. How many numbers of *other* heads lie in between? Section 4.",
            44: "You count the first place as 1. The number at the very start lies 0 places from it: section 4.",
        },
        "Find the number's column in its token first, then count the tokens before it: section 4.",
        id="offset",
    ),
    Choice(
        "Two sentences of 5 tokens, 3 heads, no fused kernel; k and v are split like q. Which of these copy numbers to "
        "new memory?",
        (
            Option(
                "q.view(2, 5, 3, 4).transpose(1, 2)",
                "view and transpose write new strides and move nothing: section 4. Who needs other strides pays later.",
            ),
            Option(
                "q @ k.mT, after the split",
                "Before it multiplies: sentences and heads become one axis, and no single stride fits. It copies q and "
                "k: section 5.",
                True,
            ),
            Option("z.transpose(1, 2), z = weights @ v", "It swaps two strides and moves nothing: section 4."),
            Option(
                "z.transpose(1, 2).reshape(2, 5, 12)",
                "No stride fits the joined axis, so reshape must copy, and does not say so: section 7.",
                True,
            ),
        ),
        several=True,
        id="copies",
    ),
    Choice(
        "Your layer has heads of d_model / h columns, and you test it with one head only. Which mistakes go unnoticed?",
        (
            Option(
                "The split is view(B, h, T, d_k), without a transpose",
                "With h = 1 both shapes are the same view: the common trap.",
                True,
            ),
            Option(
                "The softmax runs over queries",
                "One head has a whole map, and its rows no longer sum to 1. This one "
                "needs several *tokens* to show, not heads: lesson 1, the trap.",
            ),
            Option(
                "A head takes its columns in the order (d h)",
                "A single head owns all columns, in the same order.",
                True,
            ),
            Option("The scores are divided by √d_model", "With one head d_k is d_model.", True),
            Option(
                "W_O is left out",
                "W_O mixes the columns of one head as of many: lesson 2, section 11. The loop would differ at once.",
            ),
        ),
        several=True,
        id="one_head",
    ),
    Choice(
        "Split and merge are both a bare view, without a transpose. The layer is causal. Which test fails?",
        (
            Option(
                "The output has the input's shape",
                "Both views have the right number of elements and the right "
                "shape: the first column of the table in section 10.",
            ),
            Option(
                "merge(split(x)) equals x",
                "The merge undoes the very split, right or wrong: the round trip of section 10.",
            ),
            Option(
                "Changing the last token changes no earlier output",
                "It sounds like proof, but this pair passes: later tokens stay at later places in memory. See *no "
                "leak* in section 10.",
            ),
            Option(
                "The output equals that of a loop over heads",
                "The loop never splits, so it cannot share the mistake: section 10.",
                True,
            ),
        ),
        id="bare_views",
    ),
    Choice(
        "A file stores W_Q, W_K and W_V as one matrix in the order (h 3 d), with h = 2. Your code reads it as (3 h d). "
        "What happens?",
        (
            Option("An error, since the rows do not fit", "Both are 3 · h · d rows, so nothing can notice: section 9."),
            Option(
                "The right output: only the heads change their numbers",
                "Renumbered heads keep q, k and v together. Here k of head 0 is read as a query, and q of head 1 as a "
                "key: section 9 compares the outputs.",
            ),
            Option(
                "The right shape, and other numbers",
                "Of the six blocks q0 k0 v0 q1 k1 v1 only q0 and v1 keep their part: section 9.",
                True,
            ),
            Option(
                "The right maps, and wrong values",
                "The blocks for q and k are cut at the wrong rows too, so the maps "
                "differ as well. Write the six blocks of section 9 down.",
            ),
        ),
        id="fused_orders",
    ),
)
