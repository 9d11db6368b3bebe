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
    "not shown",
    "{Vaswani} report two translation tasks and parsing.",
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
