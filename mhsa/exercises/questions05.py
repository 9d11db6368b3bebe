"""The quiz of lesson 5."""

from mhsa.exercises.quiz import Choice, Number, Option

QUESTIONS = (
    Choice(
        "You pass `causal_mask(4)` of this course to `nn.MultiheadAttention` as attn_mask. What does the first "
        "token read?",
        (
            Option(
                "Itself alone",
                "That is what the mask means here, where True = may attend. There True = may not: section 4.",
            ),
            Option(
                "The three later tokens alone", "There True = may not, so the mask is turned round: section 4.", True
            ),
            Option("All four tokens", "A Boolean mask does close keys there, but those where it is True: section 4."),
            Option(
                "Nothing: its row is NaN",
                "That is the *last* token, whose row has True everywhere: NaN where weights are asked for. Look at the "
                "rows that section 4 prints.",
            ),
        ),
        id="first_token_in_torch",
    ),
    Number(
        "Two tokens, all scores 0. The mask `torch.tril(torch.ones(2, 2))` is added, as floats. What weight does "
        "the first token give to the second?",
        0.2689414213699951,
        "The scores become 1 and 0, and e⁰ / (e¹ + e⁰) is left for the future: section 5.",
        {
            0.0: "That is what a Boolean mask gives. A float mask is *added*, and 0 is no −∞: section 5.",
            0.5: "That is the weight with no mask at all. The mask adds 1 to one of the two scores: section 5.",
            0.7310585786300049: "That is the weight the first token gives to itself. Asked is the second: section 5.",
        },
        "Add the row (1, 0) to the scores, then take the softmax: section 5.",
        tolerance=0.006,
        id="leak",
    ),
    Choice(
        "One row may read nothing, and you leave its output out of the loss. With which does the gradient of v "
        "stay finite?",
        (
            Option(
                "Scores filled with −∞", "0 · NaN is NaN, so leaving the row out does not help: section 6 measures it."
            ),
            Option(
                "Scores filled with −10⁹",
                "It stays finite: the row reads all keys alike, which it must not, but it is left out here.",
                True,
            ),
            Option(
                "Scores filled with −∞, then nan_to_num on the output",
                "The output looks clean, but the weights behind it are NaN, and the gradient of v is a sum over their "
                "rows: section 6.",
            ),
            Option(
                "attention() of this course",
                "Such a row has weights of zero, so nothing in it is NaN: section 6.",
                True,
            ),
        ),
        several=True,
        id="finite_gradients",
    ),
    Number(
        "A cache holds 5 tokens. You read 3 new ones at once, with a causal mask. How many keys may the *first* of "
        "the three read?",
        6,
        "The five in the cache and itself: the mask is aligned at the bottom right.",
        {
            1: "That is the alignment at the top left, torch's flag. What lies before the new token? Section 7.",
            8: "The last of the three reads all 8. Two of them come after the first: section 7.",
            5: "A token may read itself too: section 1.",
            3: "You count the new tokens. Which keys come before the first of them? Section 7.",
        },
        "Write down `causal_mask(3, 8)`: its last row is all open, section 7.",
        id="keys_with_a_cache",
    ),
    Choice(
        "A query sentence attends to a source sentence: cross-attention. What must be equal?",
        (
            Option(
                "The number of tokens of the two sentences",
                "The map has a row for each query token and a column for each source token: (3, 4) in section 8.",
            ),
            Option(
                "The width of the two sentences' embeddings",
                "W_K and W_V take the source's width, W_Q the query's: 6 and 8 in section 8.",
            ),
            Option("The width of a query and of a key, in a head", "A score is their dot product: section 8.", True),
            Option(
                "The width of a key and of a value, in a head",
                "They never meet: a value is only weighted and added. Section 8 has 3 and 5.",
            ),
            Option(
                "The number of keys and of values",
                "A weight is found by a key and applied to its value, so each key needs one: section 8.",
                True,
            ),
        ),
        several=True,
        id="must_be_equal",
    ),
    Choice(
        "A batch has sentences of 4 and 2 tokens, and `padding_mask([4, 2], 4)` is used. What holds for the second "
        "sentence?",
        (
            Option("No row reads the filling", "Its keys are closed for every query: section 2.", True),
            Option(
                "The output rows of the filling are zero",
                "The mask hides *keys*. The queries of the filling still "
                "read the real words: section 2 counts the zero rows.",
            ),
            Option(
                "Every row of weights sums to 1",
                "The mask acts before the softmax, so the open keys share the 1.",
                True,
            ),
            Option(
                "The mean of the output over its 4 rows does not depend on the filling",
                "Two of the four rows belong to the filling, and their queries change with it. Leave their rows "
                "out: section 2.",
            ),
        ),
        several=True,
        id="padded",
    ),
    Choice(
        "x has the shape (2, 4, 6): two sentences. You call `nn.MultiheadAttention(6, 3)(x, x, x)`. What is the "
        "shape of the weights?",
        (
            Option(
                "(2, 4, 4)",
                "That is what you want, and batch_first=True gives it. Without it the first axis is read "
                "as tokens: the common trap.",
            ),
            Option(
                "(2, 3, 4, 4)",
                "One map a head is what this course returns. torch averages the heads, and here it "
                "also takes the first axis as tokens: the common trap.",
            ),
            Option(
                "(4, 2, 2)",
                "The two *sentences* attend to each other, once for each of four places: the common trap.",
                True,
            ),
            Option(
                "None: it raises an error",
                "Any two leading sizes fit, so nothing is noticed. That is what makes it the common trap.",
            ),
        ),
        id="not_batch_first",
    ),
)
