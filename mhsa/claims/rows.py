"""The claims, in groups. Texts are neutral; verdicts are about the words that stand here."""

from mhsa.claims import heads, layer
from mhsa.claims.claim import Claim

GROUPS = {
    "P": "Parameters and FLOPs",
    "M": "Memory and speed",
    "S": "Shapes and layouts",
    "H": "What heads learn",
    "N": "How many heads",
    "W": "Who and when",
}

PARAMETERS = (
    Claim(
        "P1",
        "One head of full width and eight narrow heads have the same number of parameters, 4 · d_model².",
        "holds if",
        "if h · d_k = h · d_v = d_model and there is no bias: {one:,} for both at d_model = 512. torch's "
        "default has biases, {with_biases:,}; with d_k = 16 eight heads hold {free:,}.",
        [4],
        layer.same_parameters,
    ),
    Claim(
        "P2",
        "*Per head*, layers of width 256, 512, 768 and 12,288 hold 65,536 / 262,144 / 589,824 / 150 million "
        "parameters.",
        "does not hold",
        "That is d_model², one whole matrix. A head uses 4 · d_model · d_k: {own}. Only the first agrees.",
        [4],
        layer.parameters_per_head,
    ),
    Claim(
        "P3",
        "At d_model = 512 and h = 8 the three input projections hold 786,432 numbers and W_O 262,144.",
        "holds",
        "Counted in the built layer: {heads:,} + {output:,} = {total:,}.",
        [4],
        layer.parameter_parts,
    ),
    Claim(
        "P4",
        "A head's projection has d_k × d_k numbers, and h of them make d_model².",
        "does not hold",
        "The total is right, the way to it is not. A head reads all d_model columns: d_model × d_k. W_Q holds "
        "{holds:,}; h · d_k² would be {square:,}.",
        [4],
        layer.width_of_a_projection,
    ),
    Claim(
        "P5",
        "The matrix products cost the same for every h.",
        "holds if",
        "if h · d_k = h · d_v = d_model: "
        "{flops:,} FLOPs for h = 1, 8 and 64 (T = 128, d_model = 512). Eight heads of a fixed d_k cost {kept:g} "
        "times one. The softmax is no product: its work grows {softmax} times from 1 head to 64.",
        [4],
        layer.same_products,
    ),
    Claim(
        "P6",
        "Twelve heads make a layer neither twelve times as large nor twelve times as costly.",
        "holds if",
        "if you compare with one head of the same total width: {same:g} times the parameters and the FLOPs of the "
        "products. Beside one head of the same d_k it is {kept:g} times both.",
        [4],
        layer.twelve_heads,
    ),
    Claim(
        "P7",
        "Narrow projections, one a head, reduce the computation.",
        "does not hold",
        "The products cost the "
        "same. With the softmax, eight heads take {more:.1f} % *more* FLOPs than one (T = 128, d_model = 512).",
        [4],
        layer.narrow_heads_save_nothing,
    ),
    Claim(
        "P8",
        "The cost of attention grows with T².",
        "holds if",
        "if T is well above 2 · d_model. At d_model = 512, "
        "twice the tokens cost {short:.2f} times as much from T = 64, and {long:.2f} times from T = 32,768: the "
        "projections grow with T alone.",
        [4],
        layer.growth_with_length,
    ),
)

MEMORY = (
    Claim(
        "M1",
        "For B = 32, T = 512 in float32 the score maps take 8.4 MB with one head, 67.1 MB with eight.",
        "does not hold",
        "These are millions of *numbers*, {n_one:.1f} and {n_eight:.1f}. A float32 takes 4 bytes: "
        "{one:.1f} MB and {eight:.1f} MB.",
        [4],
        layer.maps_in_bytes,
    ),
    Claim(
        "M2",
        "All heads in one batch take less memory than one head after another.",
        "does not hold",
        "The other way round: {ratio:.1f} times the peak of the loop (T = 1024, h = 8), since all maps are alive at "
        "once. A fused kernel needs less than both.",
        [9],
        layer.batch_against_loop,
    ),
    Claim(
        "M3",
        "Eight heads run faster than one head of the same total width.",
        "does not hold",
        "The products "
        "are equal, and there are {scores} times as many scores to normalise: on the CPU recorded for lesson 9 eight "
        "explicit heads are slower. On a GPU whose fast kernel refuses wide heads it may hold; that is not recorded "
        "here.",
        [9],
        layer.scores_to_normalise,
    ),
    Claim(
        "M4",
        "A fused kernel (FlashAttention) saves some 20 % of the memory, or 50 %.",
        "does not hold",
        "No fixed share. From T = 1024 to 2048 (d_model = 64, h = 8) the explicit peak grows {explicit:.1f} times, "
        "the fused one at most 2.2 times: it stores no T × T map ({Dao}), so the saving grows with T.",
        [9],
        layer.fused_growth,
    ),
    Claim(
        "M5",
        "All heads can be computed at the same time.",
        "holds",
        "No head reads another. New queries for heads 1 and 2 leave the map of head 0 as it was, to the last bit.",
        [2],
        layer.heads_are_independent,
    ),
    Claim(
        "M6",
        "The products of all sentences and heads run as one batched product.",
        "holds",
        "`q @ k.mT` on (2, 12, 4, 64) makes {calls} call of torch's batched product, for {maps} maps.",
        [3],
        layer.one_batched_product,
    ),
    Claim(
        "M7",
        "Narrow heads make the attention maps smaller.",
        "does not hold",
        "A map is T × T, whatever d_k is: "
        "{wide:,} bytes at T = 512 with d_k = 64 and with 512. Eight heads hold {eight:,}.",
        [4],
        layer.map_ignores_width,
    ),
    Claim(
        "M8",
        "More heads cost more memory.",
        "holds if",
        "if the maps are stored: from 1 head to 8 the explicit "
        "peak grows {explicit:.1f} times (T = 1024), the fused one by less than half.",
        [9],
        layer.price_of_more_heads,
    ),
    Claim(
        "M9",
        "While decoding, the queries, keys and values of earlier tokens are worth keeping.",
        "does not hold",
        "Keys and values are. An old query is never asked again: a cache of {kept} · T · d_model numbers gives what "
        "one causal pass gives.",
        [5, 9],
        layer.keys_and_values_suffice,
    ),
)

SHAPES = (
    Claim(
        "S1",
        "h must divide d_model.",
        "holds if",
        "if d_k = d_model / h, which is a convention. With d_k = 4, "
        "three heads work at d_model = 10: W_O brings {inner} columns back to 10.",
        [2],
        layer.divisibility,
    ),
    Claim(
        "S2",
        "Divisibility is what gives all heads the same capacity.",
        "does not hold",
        "One d_k for all does. At d_model = 10 three heads of width 4 are equal, too.",
        [2],
        layer.equal_heads,
    ),
    Claim(
        "S3",
        "W_O has the shape h × d_v × d_model.",
        "does not hold",
        "It is one matrix, (h · d_v) × d_model: {shape} for h = 3, d_v = 5, d_model = 10.",
        [2],
        layer.output_weight,
    ),
    Claim(
        "S4",
        "The way into heads and back copies nothing.",
        "does not hold",
        "The split copies nothing. With the "
        "explicit product the merge copies once, at `{code}`; with one head or one token it does not.",
        [3],
        layer.copies,
    ),
    Claim(
        "S5",
        "The transpose to (B, h, T, d_k) cannot be left out.",
        "holds if",
        "if you multiply by `@`: without it "
        "the scores are {without}, a map of head by head. einsum takes (B, T, h, d) as it is, and gives {right}.",
        [3],
        layer.transpose_or_einsum,
    ),
    Claim(
        "S6",
        "(B, h, T, d_k) is the one layout.",
        "does not hold",
        "(B·h, T, d) and (B, T, h, d) give the same "
        "numbers. What must agree is the order of fused weights: torch keeps (3 h d), and read as (h 3 d) they give "
        "others.",
        [3],
        layer.layouts,
    ),
    Claim(
        "S7",
        "For B = 2, T = 4, d_model = 768, h = 12 the shapes are (2, 4, 12, 64), then (2, 12, 4, 64), scores "
        "(2, 12, 4, 4), and out (2, 12, 4, 64).",
        "holds",
        "Traced step by step on tensors; scores {scores}.",
        [3],
        layer.shapes_on_the_way,
    ),
    Claim(
        "S8",
        "Scores are divided by √d_k before the softmax.",
        "holds",
        "With d_k the width of *one head*: at "
        "d_model = 512, h = 8 the spread is {right:.2f}. Divided by √d_model it would be {wrong:.2f}.",
        [1],
        layer.scale,
    ),
    Claim(
        "S9",
        "The softmax runs over the last axis, the keys.",
        "holds",
        "Then the weights of each query sum to 1; those of a key do not.",
        [1],
        layer.softmax_axis,
    ),
    Claim(
        "S10",
        "A causal mask before the softmax keeps the future out.",
        "holds",
        "Another last token changes the last output, and no other.",
        [5],
        layer.nothing_from_the_future,
    ),
    Claim(
        "S11",
        "With h = 1, multi-head attention is plain attention, then W_O.",
        "holds",
        "Equal within 1e-10. Here "
        "one d_model × d_model matrix can do the work of W_V and W_O; several heads need one each.",
        [2],
        layer.one_head_is_plain,
    ),
    Claim(
        "S12",
        "Heads split the embedding: each reads d_model / h of its columns.",
        "does not hold",
        "They split the *projection*. One of 3 heads reads {read} of 12 columns. At d_model = 512, h = 8 the layer "
        "holds {real:,} numbers; one that split the embedding and shared the matrices, {split:,}.",
        [2],
        layer.columns_read,
    ),
)

HEADS = (
    Claim(
        "H1",
        "A single head that needs two targets can only average them.",
        "holds if",
        "if one layer and a linear "
        "read-out are all there is. Of 100,000 random rows none gives both targets more than {weaker:.2f}. Trained "
        "on two relations (lesson 6), one head is right in {one:.2f}; one answer and one guess make {predicted:.2f}. "
        "Two heads: {two:.2f}. One head in each of two layers: {deep:.2f}.",
        [1, 6],
        heads.one_row_averages,
    ),
    Claim(
        "H2",
        "h heads give each token h distributions over the sentence.",
        "holds",
        "{maps} heads, {maps} different maps, and every row sums to 1.",
        [2],
        heads.own_distributions,
    ),
    Claim(
        "H3",
        "Heads must learn different things, since each has its own weights.",
        "does not hold",
        "Nothing forces it: two equal heads stay equal through 50 steps of training. And trained heads can be "
        "redundant: {Michel} removed a fifth (WMT) to two fifths (BERT) with little loss, {Voita} 38 of 48 encoder "
        "heads for 0.15 BLEU.",
        [2, 8],
        heads.twins_stay_twins,
    ),
    Claim(
        "H4",
        "Each head is trained on its own.",
        "does not hold",
        "The loss sees their sum. Other values in head 0 change the gradient of head 1.",
        [2],
        heads.trained_together,
    ),
    Claim(
        "H5",
        "One transformation for all positions is a limit of the single head.",
        "does not hold",
        "It is no difference: with 1 head and with 3, tokens in another order give the same outputs in that order.",
        [1],
        heads.shared_over_places,
    ),
    Claim(
        "H6",
        "Head 1 looks at neighbours, head 2 at rare words, head 3 at grammar, heads 4 to 8 at abstract things.",
        "does not hold",
        "The number of a head means nothing: reorder heads and blocks of W_O, and the layer "
        "computes the same. Positional, syntactic and rare-word heads exist ({Voita}), but in no fixed place.",
        [7],
        heads.numbers_mean_nothing,
    ),
    Claim(
        "H7",
        "Some heads look at the token before, the next one, or the first.",
        "holds",
        "In the encoder of lesson "
        "7 some head gives over 0.9 of its weight to the token before, some over half to the next, and more than a "
        "quarter of its 72 heads over half to the first.",
        [7],
        heads.heads_of_a_real_model,
    ),
    Claim(
        "H8",
        "In BERT, head 8-10 finds direct objects, 7-6 possessives, 9-6 punctuation.",
        "does not hold",
        "Two of three. {Clark}, BERT-base, heads counted from 1: 8-10 direct object 86.8 % (a fixed offset 40.0), "
        "7-6 possessive 80.5 (47.7), but 9-6 the object of a preposition, 76.3 (34.6).",
        [7],
    ),
    Claim(
        "H9",
        "Head 2 of layer 4 finds direct objects, head 8 of layer 7 coreference over paragraphs.",
        "not shown",
        "No model is named. In BERT-base {Clark} find direct objects at 8-10, coreference at 5-4 (65.1 %).",
        [7],
    ),
    Claim(
        "H10",
        "“Attention is not Explanation” shows what the layers of BERT do.",
        "does not hold",
        "{Jain} argue against reading weights as explanations, and do not look at BERT; {Wiegreffe} answer that it "
        "depends on the definition. What BERT's heads look at: {Clark}.",
        [7],
    ),
    Claim(
        "H11",
        "Layers go from local patterns to abstract ones.",
        "holds if",
        "if read as a tendency: {LinTanFrank} "
        "find positional information in BERT's lower layers, hierarchical information in its higher ones.",
        [7],
    ),
    Claim(
        "H12",
        "Heads live in orthogonal subspaces and cannot disturb each other.",
        "does not hold",
        "The largest cosine between two of four random heads (16 of 64 dimensions) lies between {smallest:.2f} and "
        "{largest:.2f}; orthogonal is 0. W_O then adds all heads up in one space.",
        [2],
        heads.subspaces,
    ),
    Claim(
        "H13",
        "The subspaces of the heads make up the whole space as a direct sum.",
        "holds if",
        "if W_V has full rank, as random weights have ({rank} of 64). It does not follow that they are orthogonal: "
        "H12.",
        [2],
        heads.subspaces,
    ),
    Claim(
        "H14",
        "h heads are h times as expressive, for free.",
        "does not hold",
        "The scores of a head have rank d_k at most, and d_k shrinks: rank {ranks} for h = 1, 4, 16 at d_model = 16.",
        [8],
        heads.rank_of_scores,
    ),
    Claim(
        "H15",
        "Many heads help because they force diverse features, or strengthen gradients.",
        "not shown",
        "No measurement comes with it. {Liu} find 384 layers of one head no worse than 24 of 16 at like size, and "
        "put the advantage of many heads down mostly to stable training.",
        [6],
    ),
    Claim(
        "H16",
        "Removing heads costs quality.",
        "holds if",
        "if they matter; most do little alone. In lesson 7's "
        "encoder head 2.9 or 3.11 can go, and the sentence embedding keeps a cosine above 0.999. Without the twelve "
        "of layer 6 it falls below 0.9. {Michel}: 8 of 96 encoder heads mattered alone.",
        [7, 8],
        heads.heads_that_do_not_matter,
    ),
    Claim(
        "H17",
        "Removing heads hurts more than reducing the width.",
        "not shown",
        "No comparison is given. {Michel} "
        "removed many heads with little loss; yet cutting one layer's encoder-decoder attention to a single head "
        "cost 13.56 BLEU.",
        [8],
    ),
    Claim(
        "H18",
        "Some heads follow open quotation marks, indentation or rhyme.",
        "not shown",
        "No model, data or paper is named. The scores of lesson 7 could be extended to measure it.",
        [7],
    ),
    Claim(
        "H19",
        "Few heads are easier to interpret.",
        "not shown",
        "No measurement is given. A clear map is not yet an important one: H16.",
        [7],
    ),
)

NUMBER = (
    Claim(
        "N1",
        "One head does 3 to 5 % worse than eight (elsewhere: 5 to 10 %).",
        "holds if",
        "if you say of what. "
        "{Vaswani}, table 3, rows A, one experiment, English to German: {one} against {eight} BLEU is {bleu:.1f} % "
        "less; a perplexity of {ppl_one} against {ppl_eight} is {perplexity:.1f} % more.",
        [8],
        heads.one_head_in_the_paper,
    ),
    Claim(
        "N2",
        "16 heads or more are slightly worse.",
        "does not hold",
        "Same table: {eight} BLEU with 8, {sixteen} with 16, {more} with 32. GPT-3 has 96 heads, Llama-3-70B 64.",
        [8],
        heads.more_than_sixteen,
    ),
    Claim(
        "N3",
        "One to four heads are for toys.",
        "does not hold",
        "Same table: {four} BLEU with 4 heads, "
        "{points:.1f} below 8. And a task of one relation needs one head ({one_relation:.2f} right).",
        [6, 8],
        heads.few_heads,
    ),
    Claim(
        "N4",
        "h = d_model / 64, at most 16.",
        "holds if",
        "if the model is one of {fits}: Transformer base, the two "
        "BERTs, GPT-2 small. Of our {models} presets it does not fit {others}.",
        [8],
        heads.the_64_rule,
    ),
    Claim(
        "N5",
        "BERT-large has d_model = 768 and 12 heads.",
        "does not hold",
        "That is BERT-base. Large has {d_model:,} and {heads} ({Devlin}, section 3).",
        [4],
        heads.bert_sizes,
    ),
    Claim(
        "N6",
        "GPT-2 has d_model = 1600 and 25 heads.",
        "holds if",
        "if you mean GPT-2 XL. GPT-2 small has "
        "{small_width} and {small}, so “16 heads or more” does not fit it either.",
        [4],
        heads.gpt2_sizes,
    ),
    Claim(
        "N7",
        "GPT-2 small is 768 = 12 · 64, GPT-3 12,288 = 96 · 128, Llama-3-70B 8,192 = 64 · 128.",
        "holds",
        "{Brown}, table 2.1; {Grattafiori}, table 3. In Llama-3-70B the 64 query heads share {kv} heads of keys and "
        "values.",
        [4],
        heads.published_sizes,
    ),
    Claim(
        "N8",
        "The number of heads grows in proportion to the model.",
        "does not hold",
        "From GPT-2 XL to GPT-3 d_model grows {width:.1f} times, h {heads:.1f} times: the heads became wider.",
        [8],
        heads.heads_against_width,
    ),
    Claim(
        "N9",
        "A d_k of 32 to 128 is reasonable.",
        "holds",
        "In {Vaswani}, table 3, 128, 64 and 32 have the "
        "three best BLEU scores of five widths; our presets have {widths}.",
        [8],
        heads.head_widths,
    ),
    Claim(
        "N10",
        "All modern transformers have 8 heads or more.",
        "not shown",
        "{models} presets with {fewest} or more "
        "do not prove *all*. And of keys and values Llama-3-70B has 8 heads for 64 queries, multi-query attention "
        "one.",
        [8, 9],
        heads.eight_or_more,
    ),
    Claim(
        "N11",
        "8 to 16 heads are best for most tasks, 8 to 12 on GLUE.",
        "not shown",
        "No sweep is named. In lesson "
        "6 the task decides: the fewest heads above 0.95 are {best} for 1, 2 and 4 relations.",
        [6, 8],
        heads.best_number_depends_on_the_task,
    ),
    Claim(
        "N12",
        "More heads make training less stable.",
        "not shown",
        "No measurement is given. {Liu} report the "
        "opposite: many heads in few layers train more stably than single heads in many layers.",
        [6],
    ),
    Claim(
        "N13",
        "With as many heads as tokens the result is terrible.",
        "does not hold",
        "In lesson 6's map T = 8, "
        "and 8 heads are right in {means} for 1, 2 and 4 relations. What counts is the width of a head, not h = T.",
        [6, 8],
        heads.as_many_heads_as_tokens,
    ),
    Claim(
        "N14",
        "With d_k = 1 a score is a product of two numbers, and much is lost.",
        "holds if",
        "if "
        "you mean one head: the scores have rank {rank}, and at most two keys can be a favourite. On two relations 8 "
        "heads 2 wide are right in {eight:.2f}, 16 of d_k = d_v = 1 in {sixteen:.2f}; with d_v = 4 the 16 manage "
        "(lesson 6, section 5).",
        [6, 8],
        heads.too_narrow,
    ),
    Claim(
        "N15",
        "With h = T the maps become sparse.",
        "not shown",
        "Before training they do not: at h = T = 16 "
        "(d_model = 64) the rows have {many:.2f} of the largest entropy, with one head {one:.2f}. For trained layers "
        "no measurement comes with the claim.",
        [8],
        heads.not_sparse,
    ),
    Claim(
        "N16",
        "With h = T gradients vanish.",
        "not shown",
        "Before training the gradient of W_Q at h = T = 16 is "
        "{ratio:.2f} times that at h = 8. No measurement comes with the claim.",
        [8],
        heads.gradients_do_not_vanish,
    ),
    Claim(
        "N17",
        "Heads with d_k below T cannot make every attention map.",
        "holds if",
        "if any tokens are allowed: "
        "theorem 1 of {Bhojanapalli}. For independent tokens T - 1 is enough: a random map of T = 8 needs d_k = 7. "
        "A trap: rank ≤ d_k is a fact of the *scores*; at d_k = 2 they have rank {scores}, the weights rank "
        "{weights}.",
        [8],
        heads.width_of_any_map,
    ),
)

HISTORY = (
    Claim(
        "W1",
        "Multi-head attention was introduced by Vaswani and others in 2017.",
        "holds",
        "{Vaswani}, section 3.2.2. Several distributions over one sentence are a little older: {LinZ}.",
        [],
    ),
    Claim(
        "W2",
        "Attention before that used one distribution at a time.",
        "holds if",
        "if you mean translation: "
        "{Bahdanau} and {Luong} have one softmax over the source for each word that is written. {LinZ} have several "
        "over one sentence.",
        [],
    ),
    Claim(
        "W3",
        "It replaced recurrent and convolutional models in all of language processing.",
        "not shown",
        "{Vaswani} report two translation tasks and parsing.",
        [],
    ),
    Claim(
        "W4",
        "The layout (B, h, T, d_k) was introduced in 2017 to fit `gemmStridedBatched`.",
        "not shown",
        "{NVIDIA} describes the function, and M6 shows one batched product. That the layout was made for it stands "
        "in no document named.",
        [3],
    ),
    Claim("W5", "FlashAttention is by Dao and others, 2022.", "holds", "{Dao}.", [9]),
)

CLAIMS = (*PARAMETERS, *MEMORY, *SHAPES, *HEADS, *NUMBER, *HISTORY)
