"""A real encoder on our MultiHeadAttention, what its heads do, and sentences to look at.

`python -m mhsa.pretrained` fetches the model's data files once.
"""

from mhsa.pretrained.files import ModelFilesError
from mhsa.pretrained.model import Encoding, MiniLM, check_texts, load_minilm
from mhsa.pretrained.patterns import (
    SHARES,
    SPECIAL,
    ablate_heads,
    ablation_effects,
    direct_effects,
    head_similarity,
    pattern_scores,
    wanted_keys,
    whole_words,
)
from mhsa.pretrained.sentences import AGAIN, FIRST, NEW

__all__ = [
    "AGAIN",
    "FIRST",
    "NEW",
    "SHARES",
    "SPECIAL",
    "Encoding",
    "MiniLM",
    "ModelFilesError",
    "ablate_heads",
    "ablation_effects",
    "check_texts",
    "direct_effects",
    "head_similarity",
    "load_minilm",
    "pattern_scores",
    "wanted_keys",
    "whole_words",
]
