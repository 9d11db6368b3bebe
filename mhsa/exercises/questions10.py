"""The quiz of lesson 10, and the interview questions that its answers belong to."""

from mhsa.exercises.quiz import Choice, Number, Option

INTERVIEW = (
    "Why several heads rather than one wide head?",
    "How many heads would you take?",
    "What happens with one head, and with as many heads as tokens?",
    "You double the number of heads and keep d_model. What grows?",
    "Must the number of heads divide d_model?",
    "Why are scores divided by √d_k, and not by √d_model?",
    "What does the last matrix, W_O, do?",
    "A split by view(B, h, T, d_k) has the right shape. What is wrong, and which test sees it?",
    "Which step of multi-head attention copies, and when?",
    "Memory runs out at long sentences. Which part is it, and what helps?",
    "What are multi-query and grouped-query attention for?",
    "Do heads specialise, and how would you show it?",
    "Do attention weights explain what a model does?",
    "Can you remove heads from a trained model?",
    "A mask works in one library and fails in another. What do you look at?",
)

QUESTIONS = (
    Choice(
        "A page says: *eight heads hold as many parameters as one*. Which addition makes it true?",
        (
            Option(
                "If h · d_k = h · d_v = d_model, and without biases",
                "Then all four matrices are d_model · d_model: row P1.",
                True,
            ),
            Option("If T stays the same", "No weight has an axis of tokens, so T never matters here: section 2."),
            Option(
                "If every head is as wide as the single one",
                "Then eight heads hold eight times as much: row P1 in section 2, and T5-11B in lesson 4.",
            ),
            Option("None, it is false", "Count both at d_model = 512: row P1 in section 2."),
        ),
        id="same_parameters_if",
    ),
    Choice(
        "Which of these questions can be settled without training anything?",
        (
            Option("Has W_O three axes?", "Look at the built layer: row S3.", True),
            Option("Do 8 heads translate better than 1?", "That takes trained models. Row N1 in section 6 cites some."),
            Option(
                "Can the scores of a head have a rank above d_k?",
                "A product through d_k columns has rank d_k at most: row H14.",
                True,
            ),
            Option("Does some head follow pronouns?", "Only a trained model has such a head, or has none: section 5."),
            Option("Does the split into heads copy?", "Strides and addresses tell: row S4.", True),
        ),
        several=True,
        id="settled_without_training",
    ),
    Number(
        "A course prints 18.9 MB for the float32 score maps of B = 8, T = 384, h = 16. It counted numbers. How many "
        "MB (10⁶ bytes) is it?",
        75.497472,
        "8 · 16 · 384 · 384 numbers of 4 bytes.",
        {
            18.874368: "That is the printed figure, in millions of *numbers*. How many bytes has a float32? Row M1 in "
            "section 3.",
            4.718592: "You divided by 4. Numbers of 4 bytes make more bytes than numbers: row M1 in section 3.",
            72.0: "That is in MiB, 2²⁰ bytes. Asked is MB, 10⁶ bytes: lesson 4, the common trap.",
            37.748736: "You took 2 bytes a number, as for bfloat16. Row M1 in section 3 has float32.",
            150.994944: "You took 8 bytes a number, as for float64. Row M1 in section 3 is about float32.",
        },
        "Numbers in all: B · h · T · T. Then bytes a number: row M1 in section 3.",
        tolerance=0.3,
        id="megabytes_of_a_course",
    ),
    Choice(
        "On 20 sentences, head 5 of layer 2 gives 0.9 of its weight to the next word. What does this show?",
        (
            Option(
                "That the head does so on these sentences",
                "That was measured, and no more. New sentences, and random words, tell more: lesson 7.",
                True,
            ),
            Option(
                "That the model needs the head",
                "A clear map is not yet an important one: row H16 in section 5 removes heads.",
            ),
            Option(
                "That head 5 of layer 2 does so in other models", "A head's number means nothing: row H6, section 5."
            ),
            Option(
                "That this explains what the model answers",
                "A weight says where a head reads, not what is made of it: row H10 in section 5.",
            ),
        ),
        id="one_clear_head",
    ),
    Choice(
        "By convention d_k = d_model / h. Which of these sentences are true then, but not if every head has 64 "
        "columns, whatever h is?",
        (
            Option(
                "Twelve heads are no larger than one",
                "With 64 columns each they are twelve times as large: rows P1 and P6.",
                True,
            ),
            Option("h must divide d_model", "With 64 columns each, any h will do: row S1.", True),
            Option(
                "The softmax runs over the keys", "It does so for each width. Row S9 in section 4 needs no d_model."
            ),
            Option(
                "A causal mask keeps the future out", "A mask closes pairs of tokens, not columns: row S10, section 4."
            ),
            Option(
                "The products cost the same for 1 and for 8 heads",
                "With 64 columns each, every head adds its own: row P5.",
                True,
            ),
        ),
        several=True,
        id="when_the_heads_are_wide",
    ),
    Choice(
        "From T to 2 · T, kernel a goes from 2 MB to 4 MB of extra memory, kernel b from 8 MB to 32 MB. What do you "
        "report?",
        (
            Option("a grows like T, b like T²", "Twice and four times for twice the tokens: row M4.", True),
            Option(
                "a saves 75 %", "At T it does, at 2 · T it saves 87.5 %. Row M4 in section 3 is about such figures."
            ),
            Option("a saves 28 MB", "At 2 · T it does, at T it is 6 MB. Without T, a saving says little: section 3."),
            Option("Both grow like T²", "a only doubles. Compare the two ratios, as row M4 in section 3 does."),
        ),
        id="growth_of_two_kernels",
    ),
)
