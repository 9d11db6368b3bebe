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
    head_similarity,
    pattern_scores,
    whole_words,
)
from mhsa.pretrained.sentences import FIRST, NEW

__all__ = [
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
    "head_similarity",
    "load_minilm",
    "pattern_scores",
    "whole_words",
]
