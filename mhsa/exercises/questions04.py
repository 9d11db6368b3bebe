"""The quiz of lesson 4."""

from mhsa.exercises.quiz import Choice, Number, Option

QUESTIONS = (
    Choice(
        "You go from 8 heads to 16, with d_k = d_model / h, and d_model = 512 and T = 128 kept. What grows?",
        (
            Option(
                "The number of parameters",
                "Sixteen heads are half as wide: h · d_k stays 512. Section 1 counts five values of h.",
            ),
            Option("The bytes of the score maps", "Each head has a map of T · T numbers: section 5.", True),
            Option(
                "The operations of the matrix products",
                "More products, each smaller: their sum stays. Section 5 measures four values of h.",
            ),
            Option(
                "The operations of the softmax",
                "One softmax for each row of each map: it grows with h, section 5.",
                True,
            ),
            Option("The bytes of q, k and v", "They are h · d_k = 512 wide in all, however they are cut: section 6."),
        ),
        several=True,
        id="twice_the_heads",
    ),
    Number(
        "d_model = 5,120, 40 heads of 128, no biases counted. How many numbers of the four matrices does *one* "
        "head use?",
        2_621_440,
        "Four slices of d_model · d_k numbers each: section 3.",
        {
            26_214_400: "That is d_model², one whole matrix. Some tables print it as “per head”; see section 3.",
            104_857_600: "That is the whole layer. One head uses a 40th of it: section 3.",
            65_536: "You count d_k · d_k for each slice. A head reads all 5,120 columns: section 3.",
            1_966_080: "You have the slices of W_Q, W_K and W_V. Some rows of W_O belong to the head too: section 3.",
            655_360: "That is the slice of one matrix. How many matrices are there? Section 3.",
        },
        "One head uses d_k columns of W_Q, W_K and W_V and d_k rows of W_O. How long is each? Section 3.",
        id="one_head_of_forty",
    ),
    Number(
        "d_model = 1024, 8 heads, d_k = d_v = 64, no biases. How many times 4 · d_model² numbers does the layer hold?",
        0.5,
        "h · d_k = 512 is half of d_model, and each matrix has it as one of its sides: section 2.",
        {
            1: "That holds while h · d_k = d_model. Here 8 · 64 = 512: section 2.",
            2: "Turned round: the heads are narrower in all than d_model. Which way did T5-11B go in section 2?",
            0.25: "Only one side of each matrix shrinks. The other one stays d_model: section 1.",
        },
        "Write down the two sides of W_Q and of W_O, as in section 1.",
        id="narrow_heads",
    ),
    Number(
        "B = 8, T = 1024, 16 heads, float32. How many MB (10⁶ bytes) do the score maps take?",
        536.870912,
        "8 · 16 maps of 1024 · 1024 numbers of 4 bytes: section 6.",
        {
            134.217728: "These are millions of *numbers*. A float32 takes 4 bytes: the common trap.",
            33.554432: "You have one map for each sentence. Each head has one of its own: section 5.",
            67.108864: "That is one sentence. There are B = 8: section 6.",
            536_870_912.0: "These are bytes. Asked is in MB, 10⁶ bytes: the common trap.",
            512.0: "That is in MiB, 2²⁰ bytes. Asked is MB, 10⁶ bytes: the common trap.",
            268.435456: "You count 2 bytes a number, as for bfloat16. A float32 takes 4: section 6.",
        },
        "Count the maps, the numbers in one map, and the bytes of one number: section 6 and the trap.",
        tolerance=0.9,
        id="megabytes",
    ),
    Choice(
        "d_model = 768, and h · d_k = d_model. At which T do the products between tokens (scores and mix) cost as much "
        "as the four projections?",
        (
            Option(
                "384",
                "There they cost a quarter: they grow with T², the projections with T. The last row of the "
                "table in section 5 is at 2 · d_model.",
            ),
            Option(
                "768",
                "Then T and d_model are alike, but there are four projections and two products. Compare the "
                "terms 8 · T · d² and 4 · T² · d of section 5.",
            ),
            Option("1536", "4 · T² · d = 8 · T · d² holds at T = 2 · d_model: section 5.", True),
            Option(
                "It depends on h",
                "Both sums hold h · d_k, which is d_model for each h. What grows with h is the softmax: section 5.",
            ),
        ),
        id="equal_cost",
    ),
    Choice(
        "`nn.MultiheadAttention(512, 8)` holds 2,048 parameters more than `MultiHeadAttention(512, 8)` of this "
        "course. Why?",
        (
            Option(
                "Its heads are wider",
                "Both have 8 heads of 64: the row bias=False in section 1 matches to the last number.",
            ),
            Option(
                "It has biases, 512 for each of four projections",
                "4 · 512 = 2,048, and bias=False takes them away: section 1.",
                True,
            ),
            Option(
                "It holds a scale for each head",
                "The scale 1/√d_k is computed, never learned, and 8 scales would be "
                "8 numbers. See the two rows of torch in section 1.",
            ),
            Option(
                "It holds a layer norm",
                "A layer norm stands beside attention in a transformer, not in this module, "
                "and 512 wide it has 1,024 numbers. See section 1.",
            ),
        ),
        id="more_in_torch",
    ),
)
