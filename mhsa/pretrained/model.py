"""A real, pretrained encoder whose heads are our MultiHeadAttention: all-MiniLM-L6-v2, a BERT of 6 layers × 12 heads.

`python -m mhsa.pretrained` fetches its data files once; load_minilm() reads them without network, and checks them.
Source: Devlin et al. 2019 (BERT), Wang et al. 2020 (MiniLM), Reimers and Gurevych 2019 (sentence embeddings).
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import torch
from jaxtyping import Bool, Float
from safetensors.torch import load_file
from tokenizers import Tokenizer
from torch import Tensor, nn
from torch.nn import functional as F

from mhsa.checks import short
from mhsa.layers import MultiHeadAttention
from mhsa.masks import padding_mask
from mhsa.pretrained.files import ModelFilesError, find
from mhsa.pretrained.patterns import ablate_heads

# Names of Hugging Face's BERT -> ours, replaced in this order
NAMES = {
    "bert.": "",
    "LayerNorm.gamma": "LayerNorm.weight",
    "LayerNorm.beta": "LayerNorm.bias",
    "embeddings.word_embeddings": "words",
    "embeddings.position_embeddings": "positions",
    "embeddings.token_type_embeddings": "types",
    "embeddings.LayerNorm": "norm",
    "encoder.layer.": "layers.",
    "attention.self.query": "attention.w_q",
    "attention.self.key": "attention.w_k",
    "attention.self.value": "attention.w_v",
    "attention.output.dense": "attention.w_o",
    "attention.output.LayerNorm": "attention_norm",
    "intermediate.dense": "widen",
    "output.dense": "narrow",
    "output.LayerNorm": "output_norm",
}


@dataclass(frozen=True, repr=False)
class Encoding:
    """What the model made of B texts, the longest of T tokens; rows of padding hold numbers without meaning.

    tokens: B lists, "[CLS]" first and "[SEP]" last, a piece inside a word begins with "##"; no padding
    hidden: (B, T, d_model) each: the embeddings, then the output of every layer
    weights: (B, h, T, T) each, one a layer, rows = queries: layer l is weights[l - 1]
    mask: (B, T), True = a real token
    """

    tokens: list[list[str]]
    hidden: list[Float[Tensor, "B T d_model"]]
    weights: list[Float[Tensor, "B h T T"]]
    mask: Bool[Tensor, "B T"]

    @property
    def embedding(self) -> Float[Tensor, "B d_model"]:
        """One vector a text, of length 1: the direction of the mean over its real tokens."""
        return F.normalize((self.hidden[-1] * self.mask[..., None]).sum(1), dim=-1)

    def __repr__(self):
        B, T = self.mask.shape
        return f"Encoding: B={B}, T={T}, {len(self.weights)} layers of {self.weights[0].shape[1]} heads"


class Layer(nn.Module):
    """x -> y = norm(x + attention(x)) -> norm(y + narrow(gelu(widen(y))))."""

    def __init__(self, config: dict):
        super().__init__()
        d_model, wide, eps = config["hidden_size"], config["intermediate_size"], config["layer_norm_eps"]
        self.attention = MultiHeadAttention(d_model, config["num_attention_heads"], bias=True)
        self.attention_norm, self.output_norm = nn.LayerNorm(d_model, eps), nn.LayerNorm(d_model, eps)
        self.widen, self.narrow = nn.Linear(d_model, wide), nn.Linear(wide, d_model)

    def forward(self, x: Tensor, mask: Tensor, heads: Mapping[int, str]) -> tuple[Tensor, Tensor]:
        out, weights = ablate_heads(self.attention, x, heads, mask=mask)
        x = self.attention_norm(x + out)
        return self.output_norm(x + self.feed_forward(x)), weights

    def feed_forward(self, x: Tensor) -> Tensor:
        return self.narrow(F.gelu(self.widen(x)))


class MiniLM(nn.Module):
    """A BERT encoder: embeddings of words and positions, then `layers`, each with our MultiHeadAttention."""

    def __init__(self, config: dict, tokenizer: Tokenizer):
        super().__init__()
        self.num_layers, self.num_heads = config["num_hidden_layers"], config["num_attention_heads"]
        self.d_model, self.max_tokens = config["hidden_size"], config["max_position_embeddings"]
        self.tokenizer = tokenizer
        self.words = nn.Embedding(config["vocab_size"], self.d_model)
        self.positions = nn.Embedding(self.max_tokens, self.d_model)
        self.types = nn.Embedding(config["type_vocab_size"], self.d_model)
        self.norm = nn.LayerNorm(self.d_model, config["layer_norm_eps"])
        self.layers = nn.ModuleList(Layer(config) for _ in range(self.num_layers))

    @torch.no_grad()
    def encode(self, texts: str | Sequence[str], *, ablate: Mapping[tuple[int, int], str] | None = None) -> Encoding:
        """Read one text or several. ablate: {(layer from 1, head from 0): "zero" or "mean"}, see ablate_heads().

        Raises ValueError for what is no text, a text above max_tokens, and a layer or head that does not exist.
        """
        ablate = {} if ablate is None else ablate
        for place in ablate:
            if place not in product(range(1, self.num_layers + 1), range(self.num_heads)):
                raise ValueError(
                    f"ablate names {place!r}; (layer, head) from (1, 0) to "
                    f"({self.num_layers}, {self.num_heads - 1}) is needed"
                )
        read = [self.tokenizer.encode(text) for text in check_texts(texts)]
        lengths = [len(text.ids) for text in read]
        T = max(lengths)
        if self.max_tokens < T:
            raise ValueError(f"texts[{lengths.index(T)}] has {T} tokens; the model reads at most {self.max_tokens}")
        ids = torch.tensor([text.ids + [0] * (T - len(text.ids)) for text in read])  # (B, T)
        mask = padding_mask(lengths, T)  # (B, 1, 1, T)
        hidden = [self.norm(self.words(ids) + self.positions.weight[:T] + self.types.weight[0])]  # (B, T, d_model)
        weights = []
        for number, layer in enumerate(self.layers, 1):
            x, maps = layer(hidden[-1], mask, {head: how for (at, head), how in ablate.items() if at == number})
            hidden.append(x)
            weights.append(maps)
        return Encoding([text.tokens for text in read], hidden, weights, mask[:, 0, 0])


def check_texts(texts: str | Sequence[str]) -> list[str]:
    texts = [texts] if isinstance(texts, str) else texts
    if not isinstance(texts, Sequence) or not texts or not all(isinstance(text, str) for text in texts):
        raise ValueError(f"texts={short(texts)} is neither a text nor a list of texts")
    return [text.encode(errors="replace").decode() for text in texts]  # half a character becomes "?"


def load_minilm(path: str | Path | None = None) -> MiniLM:
    """all-MiniLM-L6-v2 in float32, or any BERT encoder from a local folder in the Hugging Face layout.

    The folder holds config.json, tokenizer.json and model.safetensors; no other file is read, and no code is run.
    Raises ModelFilesError, one sentence, if the files are missing or damaged, or hold another kind of model.
    """
    folder = find() if path is None else Path(path)
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        stored = load_file(folder / "model.safetensors")
        if config["model_type"] != "bert" or config["hidden_act"] != "gelu":
            raise ValueError(f"its config.json says {config['model_type']} with {config['hidden_act']}")
        with torch.device("meta"):  # the weights are filled in below
            model = MiniLM(config, tokenizer)
        for theirs, ours in NAMES.items():
            stored = {name.replace(theirs, ours): weight for name, weight in stored.items()}
        model.load_state_dict({name: stored[name].float() for name in model.state_dict()}, assign=True)
    except Exception as error:  # tokenizers raises no narrower one
        raise ModelFilesError(
            f"path={folder} is no folder with config.json, tokenizer.json and model.safetensors of a "
            f"BERT: {type(error).__name__}, {' '.join(str(error).split())[:300]}"
        ) from None
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return model.eval().requires_grad_(False)
