"""The quiz of lesson 7."""

from mhsa.exercises.quiz import Choice, Number, Option

QUESTIONS = (
    Choice(
        "A head gives the first token 0.9 of its weight in every row. Which of these would make it add almost "
        "nothing to the output?",
        (
            Option(
                "The values of the other tokens are zero",
                "Then what it adds comes from the first token alone. That "
                "token has 0.9 of the weight: the common trap.",
            ),
            Option(
                "The value of the first token is zero, the others are large",
                "A tenth of the weight still reaches the large values, and the trap measures that they fill most of "
                "what the head adds.",
            ),
            Option(
                "Its block of W_O is zero",
                "W_O has the last word on what a head adds: zeroing it is the ablation of section 7.",
                True,
            ),
            Option("All its values are zero", "Weights times zero are zero, however sharp the map.", True),
        ),
        several=True,
        id="adds_almost_nothing",
    ),
    Number(
        "A row spreads its weight evenly over 4 of 16 tokens. What is its entropy, as a share of the maximum?",
        0.5,
        "log 4 / log 16 = 1/2.",
        {
            0.25: "That is the share of the tokens. Entropy takes logarithms: the score defined in section 3.",
            2.0: "That is the entropy in bits. Divide it by its maximum, log₂ 16: section 3.",
            1.3862943611198906: "That is the entropy itself, log 4. The score divides by log 16: section 3.",
            1.0: "The maximum takes an even spread over *all* 16 tokens: section 3.",
        },
        "An even row over n tokens has the entropy log n. Divide by log 16: section 3.",
        tolerance=0.004,
        id="even_over_four",
    ),
    Choice(
        "A head gives the token before 0.99 of its weight, on sentences and, at the same lengths, on shuffled words. "
        "What follows?",
        (
            Option("At these lengths it goes by position", "The words changed and the map did not: section 4.", True),
            Option(
                "It goes by what the words mean",
                "Then a shuffle of the words would move its weight, as it does for "
                "the head of section 4 that looks for the same word.",
            ),
            Option(
                "The output would change much without it",
                "A pattern tells where a head looks. Whether the output needs it is another measurement: section 7.",
            ),
        ),
        id="keeps_its_pattern",
    ),
    Choice(
        "Two heads, each with rows of its own. Which sentences about their *mean* map are always true?",
        (
            Option("Each of its rows sums to 1", "A mean of rows that sum to 1 does, too.", True),
            Option(
                "It shows a pattern that at least one head has",
                "Two opposite one-hot rows give a mean that neither has: the common traps of lessons 2 and 6.",
            ),
            Option(
                "Its row is never sharper than the sharper of the two",
                "The largest weight of a mean is at most the largest weight of the two.",
                True,
            ),
            Option("From it you can tell the two heads", "Many pairs have the same mean: the common trap of lesson 6."),
        ),
        several=True,
        id="mean_of_two",
    ),
    Number(
        "The word *trombonist* is cut in four pieces. The word *played* gives them 0.25, 0.125, 0.0625 and 0.0625. "
        "How much does *played* give to the word?",
        0.5,
        "A word gets what its pieces get, added up.",
        {
            0.125: "That is the mean of the pieces. A mean is for the rows, where pieces *ask*; what they *get* adds "
            "up: section 2.",
            0.25: "That is the first piece alone. The word has four: section 2.",
            1.0: "That would be the whole row of *played*: section 2.",
        },
        "Add what the pieces get: section 2.",
        tolerance=0.001,
        id="weight_of_a_word",
    ),
)
