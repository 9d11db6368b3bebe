"""The quiz of lesson 1."""

from mhsa.exercises.quiz import Choice, Number, Option

QUESTIONS = (
    Choice(
        "A layer has d_model = 1024 and 16 heads. By what do you divide the scores of one head?",
        (
            Option(
                "√1024 = 32",
                "That is the width of the whole model. A score of this head adds up fewer products; "
                "section 6 runs this slip, and the spread falls far below 1.",
            ),
            Option(
                "64",
                "64 products are added up, but their spread grows like the root of 64. The table in section 6 "
                "has a column spread / √d_k.",
            ),
            Option("√64 = 8", "One head is 1024 / 16 = 64 wide, and the spread of a sum of 64 products is √64.", True),
            Option(
                "√16 = 4",
                "The number of heads is not in a score: it adds up one product for each number of a query. "
                "How many are these? See section 6.",
            ),
        ),
        id="scale",
    ),
    Choice(
        "What holds for the attention weights of a head without a mask?",
        (
            Option("Each row sums to 1", "The softmax of a row divides by the sum of that row.", True),
            Option(
                "Each column sums to 1",
                "Keys do not share out a fixed amount: one key may be read by all, another by "
                "nobody. Only a softmax over queries does this, the trap at the end.",
            ),
            Option(
                "In exact arithmetic, no weight is 0",
                "An exponential is never 0; only a mask makes it so. (A computer may round a tiny weight to 0: "
                "section 4.)",
                True,
            ),
            Option(
                "The key with the highest score gets weight 1",
                "The softmax is soft: in section 4 the two best keys of *lost* get 0.40 each, the others 0.10.",
            ),
            Option(
                "Adding 3 to all scores of a row changes no weight",
                "A softmax sees only differences. So [1, 2] and [3, 4] have the same weights, in the trap.",
                True,
            ),
        ),
        several=True,
        id="row_of_weights",
    ),
    Number(
        "All four scores of a row are 0, and a mask closes one of the four keys. What is the weight of each open key?",
        1 / 3,
        "The closed score becomes −∞ before the softmax, so three equal keys share the 1.",
        {
            0.25: "That row sums to 0.75. You closed the key after the softmax; section 7 sets the score before it.",
            1.0: "That would be the weight if one key alone were open, as for *Mia* in section 7. Here three are.",
            0.0: "0 is the weight of the closed key. A *score* of 0 has the exponential 1: section 4.",
        },
        "The four exponentials are 1, 1, 1 and 0 for the closed key. Divide by their sum, as in section 4.",
        tolerance=0.005,
        id="open_weight",
    ),
    Choice(
        "The values of a head are (0, 0), (4, 0) and (0, 4). Which output can no row of weights give?",
        (
            Option(
                "(1, 2)",
                "The weights 0.25, 0.25 and 0.5 give it. Draw the triangle of section 9: the point lies in it.",
            ),
            Option(
                "(3, 3)",
                "It lies outside the triangle of the three values: it would take weights that sum to 1.5.",
                True,
            ),
            Option(
                "(3.5, 0.2)",
                "It is close to a corner, not outside: the weights 0.075, 0.875 and 0.05 give it. "
                "Section 9 draws where outputs can lie.",
            ),
            Option(
                "(0.1, 0.1)",
                "Most of the weight on (0, 0) brings an output close to it: 0.95, 0.025 and 0.025. In "
                "section 9 that is a place near a corner.",
            ),
        ),
        id="outside",
    ),
    Choice(
        "You swap *Mia* and *keys* in the sentence. There is no mask and no position in the tokens. What happens "
        "to the outputs?",
        (
            Option(
                "Every word keeps its output, in its new row",
                "Each word meets the same keys and values as before. Section 5 gives the sentence backwards.",
                True,
            ),
            Option(
                "No row changes",
                "The first row is now that of another word. What stays is the output of a *word*, "
                "not of a place: see section 5.",
            ),
            Option(
                "The rows of the two words take new numbers, the others stay",
                "Their rows change places, but no word gets new numbers: a sum of values does not depend on their "
                "order. See section 5.",
            ),
            Option(
                "All four rows take new numbers",
                "It is tempting, since the sentence means something else now. But "
                "this head does not see the order: section 5.",
            ),
        ),
        id="swapped",
    ),
    Choice(
        "*lost* has one row of weights and two questions, who and what. What holds?",
        (
            Option(
                "With 0.5 on each, “Mia lost keys” and “keys lost Mia” give the same output",
                "Both answers are there, and nothing tells which is which: section 10.",
                True,
            ),
            Option(
                "With 0.7 and 0.3 the two sentences give different outputs",
                "The sizes now mark the roles, and the second answer is weak: section 10.",
                True,
            ),
            Option(
                "Doubling the 0.5 and 0.5 output tells again who is who",
                "Doubling mends the size. In section 10 the two sentences have equal outputs, and twice the same is "
                "the same.",
            ),
            Option(
                "The other words must share this row",
                "Each word has a row of its own: in section 10 *her* looks at *Mia* and *keys* at *her*. The limit is "
                "one row with two answers.",
            ),
        ),
        several=True,
        id="two_answers",
    ),
)
