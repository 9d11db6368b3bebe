"""The quiz of lesson 2."""

from mhsa.exercises.quiz import Choice, Number, Option

QUESTIONS = (
    Choice(
        "d_model = 12, 3 heads, d_k = d_v = 4, no mask. On which numbers of x does one row of head 0's output depend?",
        (
            Option(
                "On columns 0 to 3, of all tokens",
                "That would split the embedding. Heads split the *projection*: "
                "section 5 takes the gradient, and all columns are read.",
            ),
            Option(
                "On all 12 columns, of all tokens",
                "W_Q, W_K and W_V of each head are 12 rows high, and the weights of a row reach every token.",
                True,
            ),
            Option(
                "On all 12 columns, of its own token",
                "The query is its own. Keys and values come from every token: "
                "that is what attention is for. See the shapes in section 2.",
            ),
            Option(
                "On the 4 columns that training gave to head 0",
                "4 is the width of what the head *makes*. Training "
                "sets parameters; it does not hand out columns. See section 5.",
            ),
        ),
        id="columns_read",
    ),
    Number(
        "d_model = 10, 3 heads, d_k = 4, d_v = 5, no biases. How many numbers does W_O hold?",
        150,
        "Three heads of 5 stand side by side, 15 numbers, and come back to 10.",
        {
            100: "Square only if h · d_v = d_model, as in section 3. Section 10 has one that is not.",
            120: "You took d_k. What is laid side by side are sums of *values*: how wide is one? See section 3.",
            50: "That is the block of one head, in section 6. How many heads are there?",
            450: "The three heads are in 15 = 3 · 5 already. W_O has two axes, not three: section 3.",
        },
        "W_O maps the concatenation, h · d_v numbers, to d_model numbers: section 3.",
        id="size_of_w_o",
    ),
    Choice(
        "You double the matrix W_K of head 0 alone. What changes?",
        (
            Option("The map of head 0", "Its scores double, so the softmax gives other weights: section 4.", True),
            Option(
                "The map of head 1",
                "Head 1 has its own W_Q and W_K, and heads do not see each other before W_O: "
                "section 2 builds one head alone.",
            ),
            Option(
                "The values of head 0", "W_V makes them. W_K says by what a token is found: the table in section 4."
            ),
            Option(
                "The output, in its first columns alone",
                "The head's numbers stand in the first columns of the "
                "*concatenation*. Then W_O spreads them: section 6.",
            ),
            Option(
                "The output, in all columns",
                "Each head writes into all d_model columns, through its block of W_O: section 6.",
                True,
            ),
        ),
        several=True,
        id="double_w_k",
    ),
    Choice(
        "To what is Concat(head_1, …, head_h) · W_O equal?",
        (
            Option(
                "Each head times a square block of W_O, laid side by side",
                "Then every head would own some columns of the output. But each term is d_model wide: look at the "
                "shape of one in section 6.",
            ),
            Option(
                "The mean of the heads, times W_O",
                "A mean would be d_v wide, and W_O takes h · d_v. Adding comes "
                "after the product, not before: section 6.",
            ),
            Option(
                "Each head times its block of rows of W_O, added up",
                "A product with a matrix cut into blocks is a sum of products: section 6.",
                True,
            ),
            Option(
                "The heads side by side: W_O only orders them anew",
                "W_O is learned, and mixes: every output column gets something of each head. See the shape of one "
                "term in section 6.",
            ),
        ),
        id="concat",
    ),
    Choice(
        "Two heads start with equal matrices, and so do their blocks of W_O. You train for 100 steps, in exact "
        "arithmetic and without dropout. Then the two heads …",
        (
            Option(
                "… are still equal",
                "Equal heads get equal gradients, step by step. Rounding or dropout would part them: section 12.",
                True,
            ),
            Option(
                "… differ, since the loss punishes doubles",
                "The loss sees the sum of the heads only. It does not ask for difference; it lets one grow, once "
                "there is one: section 12.",
            ),
            Option(
                "… have cancelled each other",
                "That takes blocks of W_O of opposite sign, as in section 7. Equal blocks add up.",
            ),
            Option(
                "… are where they began: they cannot learn",
                "They learn, and move together: section 12 measures both, that they moved and that they stayed equal.",
            ),
        ),
        id="twins",
    ),
    Choice(
        "A tool shows the map averaged over 2 heads. One row reads [0.5, 0.5, 0, 0]. What do you know?",
        (
            Option(
                "Each head reads both tokens",
                "It can be so, and it need not: in the trap at the end no head has the averaged row.",
            ),
            Option(
                "One head reads the first token, the other one the second",
                "It can be so, as in the trap at the end. Two heads with 0.5 and 0.5 each give the same average.",
            ),
            Option(
                "No head reads the last two tokens",
                "No weight is negative, so a mean of 0 takes two zeros. It is "
                "the only thing that the average tells for sure.",
                True,
            ),
            Option(
                "The heads agree",
                "Two opposite heads give this average, and so do two equal ones. The average hides "
                "which: see the trap at the end.",
            ),
        ),
        id="averaged",
    ),
)
