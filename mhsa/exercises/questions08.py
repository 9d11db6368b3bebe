"""The quiz of lesson 8."""

from mhsa.exercises.quiz import Choice, Number, Option

QUESTIONS = (
    Number(
        "d_model = 48, 16 heads, T = 12. What is the highest rank that a head's *scores* can have?",
        3,
        "d_k = 48 / 16 = 3, and the scores are a product of matrices with d_k columns and d_k rows.",
        {
            12: "That is T, the size of the map. Q has fewer columns than that: section 4.",
            16: "That is the number of heads. Look for the width of one: section 4.",
            48: "That is d_model. A head projects to fewer columns: section 1.",
            11: "T - 1 is enough for every *pattern* of weights, section 6. How many columns has this head?",
        },
        "How many columns have Q and K of one head? Section 4.",
        id="highest_rank",
    ),
    Choice(
        "Scores of rank 3, from random q and k, T = 12, float64. Which rank have the weights after the softmax?",
        (
            Option("3", "The softmax takes an exponential of every cell, and that does not keep the rank: section 4."),
            Option(
                "4", "One more holds for the *logarithm* of the weights: section 6. The weights are something else."
            ),
            Option("12", "Full rank, as for every d_k in the table of section 4.", True),
            Option(
                "1",
                "Rank 1 means that all queries read alike, up to a factor. These have different queries: section 4.",
            ),
        ),
        id="rank_after_softmax",
    ),
    Choice(
        "Which changes leave all weights of a head as they are?",
        (
            Option("Adding 7 to all scores of one row", "The softmax divides by the sum of the row: section 6.", True),
            Option(
                "Adding 7 to all scores of one column",
                "One key then wins against all others, in every row. The freedom of section 6 is one number a *row*.",
            ),
            Option(
                "Doubling all scores",
                "Differences within a row double, and the rows become sharper: section 7 makes long queries for that.",
            ),
            Option("Subtracting from each row its mean", "That is the centring of section 6.", True),
            Option(
                "Exchanging q and k", "The scores are turned round then, rows for columns. In section 4 q comes first."
            ),
        ),
        several=True,
        id="what_changes_no_weight",
    ),
    Choice(
        "A pattern P has 10 rows, and its centred logarithm has rank 4. The tokens are independent. Which is the "
        "smallest d_k that makes it?",
        (
            Option("3", "Scores of rank 3 at most: centring takes nothing away that could be missing. See section 6."),
            Option("4", "The scores need rank 4, and four columns give it: section 6.", True),
            Option("9", "T - 1 is enough for every pattern; this one needs less: section 6."),
            Option("10", "The theorem of section 5 says that T is enough. It does not say that it is needed."),
        ),
        id="smallest_width",
    ),
    Choice(
        "You train a layer with 2 heads and one with 8, d_model = 512, d_k = 64 in both. The second is better. What "
        "is wrong with “8 heads beat 2”?",
        (
            Option(
                "Nothing: d_model and d_k are equal",
                "But h · d_k is not. Count the parameters, as in lesson 4: "
                "section 1 keeps them equal by narrower heads.",
            ),
            Option(
                "The second has four times as many parameters",
                "4 · d_model · h · d_k. A sweep over h keeps h · d_k, as in sections 1 and 8.",
                True,
            ),
            Option(
                "d_k must be d_model / h, so the layers are not valid",
                "d_k may be chosen freely, T5-11B does it: section 10.",
            ),
            Option("The second has less memory for its maps", "It has more maps, not less: section 1."),
        ),
        id="eight_beat_two",
    ),
    Choice(
        "Which of these models have heads wider than 64?",
        (
            Option("GPT-2 XL", "1600 columns and 25 heads: divide, as the table in section 10 does."),
            Option("BERT-large", "1024 columns and 16 heads. It follows the rule of section 10."),
            Option("GPT-3 175B", "128: 12,288 columns, 96 heads.", True),
            Option("T5-11B", "128, although d_model / h would be 8: its d_k is chosen freely.", True),
            Option("Llama-3-70B", "128: 8,192 columns, 64 query heads.", True),
        ),
        several=True,
        id="wider_than_64",
    ),
)
