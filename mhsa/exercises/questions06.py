"""The quiz of lesson 6."""

from mhsa.exercises.quiz import Choice, Number, Option

QUESTIONS = (
    Number(
        "3 relations, 2 heads, 10 different tokens. Which accuracy does “one relation a head, guess the rest” predict?",
        0.7,
        "Two of three relations are answered, the third is guessed: (2 + 1/10) / 3.",
        {
            0.667: "You count the third relation as always wrong. A guess is right now and then: the "
            "formula of section 2 adds it.",
            0.4: "That is one head. The formula of section 2 gives each head a relation of its own.",
            0.778: "You guess among the three relations. What is guessed is a token: section 2.",
            0.1: "That is guessing alone, 1 / V. Two heads know something: section 2.",
            1.0: "That needs a head for each relation, by the formula of section 2.",
        },
        "Answered relations count 1 each, the others what a guess is worth; then the mean: section 2.",
        tolerance=0.004,
        id="predicted_accuracy",
    ),
    Choice(
        "A single head has two right keys and shares its weight evenly between them, whatever the tokens are. What is "
        "lost?",
        (
            Option(
                "Both answers: nothing can be read from an average",
                "Their average is still there. See section 7 for what can still be read from it.",
            ),
            Option(
                "Which answer belongs to which question",
                "Exchange the two words, and the average stays the same: the single head of section 7.",
                True,
            ),
            Option(
                "Nothing: the linear read-out can undo an average",
                "Two different sentences give the same vector. "
                "No read-out can tell them apart: lesson 2, first section.",
            ),
            Option("The smaller of the two values", "A weighted sum adds both, it does not choose: section 7."),
        ),
        id="what_a_blend_loses",
    ),
    Choice(
        "d_model = 16, two relations. You go from 2 heads to 8. What stays the same?",
        (
            Option(
                "The number of parameters",
                "Narrower heads, as many numbers: every h is a fair comparison: section 3.",
                True,
            ),
            Option("The width of a head", "16 / 2 and 16 / 8: the columns are shared out. See the count in lesson 4."),
            Option("The number of attention maps", "Every head makes a map of its own: lesson 2."),
            Option("The predicted accuracy", "Two heads answer both relations already; more cannot answer more.", True),
            Option("The bytes of the score maps", "They grow with h: lesson 4."),
        ),
        several=True,
        id="from_two_heads_to_eight",
    ),
    Choice(
        "Two relations, d_model = 16, 300 steps. With 8 heads both are answered, with 16 the accuracy falls. In what "
        "do the two runs differ?",
        (
            Option("The number of parameters", "It is the same for every h: section 3 counts."),
            Option(
                "The width of a head: two columns or one",
                "One to point with, one to carry a value, and such heads learn more slowly: sections 5 and 9.",
                True,
            ),
            Option(
                "The larger number of heads is too few for two relations",
                "There are 16 for two relations. Compare both ends of the map in section 4.",
            ),
            Option(
                "The number of training sequences",
                "Both have equally many. More of them help the narrow heads (section 9), but here they do not differ.",
            ),
        ),
        id="too_small",
    ),
    Choice(
        "With seed 0, head 0 learned relation 1. Which head learns it with seed 1?",
        (
            Option(
                "Head 0 again: the task is the same",
                "The task does not know the heads by number, and the first random "
                "weights differ: section 6 looks at ten seeds.",
            ),
            Option("Any head may", "Exchange two heads and their rows of W_O, and the layer does the same.", True),
            Option("The head with the most weights", "All heads are equally wide: lesson 2."),
            Option(
                "The first heads take the first relations", "W_O adds the heads up, in no order: lesson 2, section 6."
            ),
        ),
        id="which_head",
    ),
)
