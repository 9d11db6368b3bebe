"""Claims about who and when: only papers can decide them."""

from mhsa.claims.claim import Claim

W1 = Claim(
    "W1",
    "Multi-head attention was introduced by Vaswani and others in 2017.",
    "holds",
    "{Vaswani}, section 3.2.2. Several distributions over one sentence are a little older: {LinZ}.",
    lessons=[],
)

W2 = Claim(
    "W2",
    "Attention before that used one distribution at a time.",
    "holds if",
    "if you mean translation: {Bahdanau} and {Luong} have one softmax over the source for each word that is written. "
    "{LinZ} have several over one sentence.",
    lessons=[],
)

W3 = Claim(
    "W3",
    "It replaced recurrent and convolutional models in all of language processing.",
    "does not hold",
    "Not in 2017, and not in all: {Vaswani} report two translation tasks and parsing, and ELMo, recurrent, came a "
    "year later ({Peters}).",
    lessons=[],
)

W4 = Claim(
    "W4",
    "The layout (B, h, T, d_k) was introduced in 2017 to fit `gemmStridedBatched`.",
    "not shown",
    "{NVIDIA} describes the function, and M6 shows one batched product. That the layout was made for it stands in no "
    "document named.",
    lessons=[3],
)

W5 = Claim(
    "W5",
    "FlashAttention is by Dao and others, 2022.",
    "holds",
    "{Dao}.",
    lessons=[9],
)

W6 = Claim(
    "W6",
    "Vaswani and others observed that several heads *significantly* outperform one.",
    "holds if",
    "if 0.9 BLEU is enough to say so: {Vaswani}, section 6.2, one run each, and no test of significance.",
    lessons=[8],
)
