"""The quiz of lesson 9."""

from mhsa.exercises.quiz import Choice, Number, Option

QUESTIONS = (
    Choice(
        "A text becomes twice as long. What happens to the peak extra memory of the fused pass?",
        (
            Option("It stays", "q, k, v and the output have a row for each token: section 2."),
            Option("It doubles", "No map is stored, so all that is left grows with T: section 2.", True),
            Option("It grows fourfold", "That is the explicit pass, which stores maps of T · T numbers: section 2."),
        ),
        id="twice_the_text",
    ),
    Choice(
        "A layer without a mask is called once with `need_weights=True` and once without, on a CPU, in eval mode. What "
        "differs between the two calls?",
        (
            Option("The peak of extra memory", "Asked for the maps, it must store them: section 2.", True),
            Option(
                "The output", "Both compute the same attention, up to rounding: section 1, and section 3 for blocks."
            ),
            Option(
                "The kernel that runs",
                "If attention weights are asked for, the steps run one by one, else as one kernel: section 1.",
                True,
            ),
            Option(
                "The operations of the matrix products",
                "Without a mask the same products are computed. What is saved are bytes, and their way to memory and "
                "back: section 2.",
            ),
            Option(
                "The number of parameters", "The four matrices are the same in both calls: it is one layer, section 1."
            ),
        ),
        several=True,
        id="two_calls",
    ),
    Choice(
        "One head of 512 or eight of 64, both explicit. Which part is eight times as much work with eight heads?",
        (
            Option("The projections", "They are h · d_k = 512 wide in both cases: lesson 4, and section 5."),
            Option("The softmax", "Eight maps instead of one, each with T rows to normalise: section 5.", True),
            Option("Queries times keys", "Eight products, each an eighth as deep: the sum stays, section 5."),
            Option("Everything", "Of all parts only the softmax knows h. The products stay as they were: section 5."),
        ),
        id="eight_times_the_work",
    ),
    Number(
        "A decoder has 24 layers, 32 query heads and 4 heads of keys and values, each 64 wide, numbers of 2 bytes. "
        "How many MB (10⁶ bytes) does the cache of one text of 10,000 tokens take?",
        245.76,
        "Keys and values, 24 layers, 4 heads of 64, 2 bytes: 24,576 bytes a token. Section 9.",
        {
            1966.08: "You count the query heads. A cache keeps the heads of keys and values: section 9.",
            122.88: "That is half. Keys and values are kept, and a number has 2 bytes: section 8.",
            10.24: "That is one layer. Every layer has a cache of its own: section 9.",
            491.52: "You count 4 bytes a number, as for float32. Here it has 2: section 7.",
            245_760_000.0: "These are bytes. Asked is in MB, 10⁶ bytes: section 8.",
        },
        "Count the bytes of one token in one layer first: section 8. Then multiply.",
        tolerance=0.4,
        id="megabytes_of_a_cache",
    ),
    Choice(
        "1,000 tokens lie in the cache, and one more comes. What is true of this step?",
        (
            Option("Each projection runs over one token", "Only the new token is projected: section 8.", True),
            Option(
                "Each head computes one row of 1,001 scores", "One query, and all keys, its own too: section 8.", True
            ),
            Option(
                "It costs the same as the very first step",
                "The row of scores grows with each token, and so do the bytes that are read: section 8.",
            ),
            Option(
                "The queries of all tokens are kept",
                "The bytes of section 8 are those of keys and values alone. An old query is never asked again.",
            ),
        ),
        several=True,
        id="one_step",
    ),
    Choice(
        "The heads of a layer lie on four processes, and W_O is cut by rows to match. What do they exchange in a "
        "forward pass?",
        (
            Option("Nothing", "Each knows only what its own heads say. The output needs all of them: section 10."),
            Option("The score maps", "A map is used where it is made, by the head it belongs to: section 10."),
            Option(
                "Their parts of the output, to add them up",
                "Each has a part of every number of the output, and the sum is the layer's: section 10.",
                True,
            ),
            Option("Keys and values", "No head reads another's keys. Each process has those of its own: section 10."),
        ),
        id="what_is_exchanged",
    ),
)
