"""A claim as data: what is said, the verdict, what decides it, and the lesson that shows it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from mhsa.lessons import LESSONS

VERDICTS = {"holds": "✓", "holds if": "◐", "does not hold": "✗", "not shown": "?"}

HUB = "https://github.com/huggingface/transformers/blob/main/src/transformers/models/"
PAPERS = {
    "Bahdanau": ("Bahdanau et al. 2014", "https://arxiv.org/abs/1409.0473"),
    "Bhojanapalli": ("Bhojanapalli et al. 2020", "https://arxiv.org/abs/2002.07028"),
    "MobileBERT": ("MobileBERT's configuration", HUB + "mobilebert/configuration_mobilebert.py"),
    "Brown": ("Brown et al. 2020", "https://arxiv.org/abs/2005.14165"),
    "Clark": ("Clark et al. 2019", "https://arxiv.org/abs/1906.04341"),
    "Dao": ("Dao et al. 2022", "https://arxiv.org/abs/2205.14135"),
    "Devlin": ("Devlin et al. 2019", "https://arxiv.org/abs/1810.04805"),
    "Gemma": (
        "Gemma's configurations",
        "https://github.com/google/gemma_pytorch/blob/main/gemma/config.py",
    ),
    "Grattafiori": ("Grattafiori et al. 2024", "https://arxiv.org/abs/2407.21783"),
    "Jain": ("Jain and Wallace 2019", "https://arxiv.org/abs/1902.10186"),
    "LinTanFrank": ("Lin, Tan and Frank 2019", "https://arxiv.org/abs/1906.01698"),
    "LinZ": ("Lin et al. 2017", "https://arxiv.org/abs/1703.03130"),
    "Liu": ("Liu et al. 2021", "https://arxiv.org/abs/2106.09650"),
    "Luong": ("Luong et al. 2015", "https://arxiv.org/abs/1508.04025"),
    "Michel": ("Michel et al. 2019", "https://arxiv.org/abs/1905.10650"),
    "NVIDIA": (
        "NVIDIA's note of February 2017",
        "https://developer.nvidia.com/blog/cublas-strided-batched-matrix-multiply/",
    ),
    "Peters": ("Peters et al. 2018", "https://arxiv.org/abs/1802.05365"),
    "Radford": (
        "Radford et al. 2019",
        "https://cdn.openai.com/better-language-models/language_models_are_unsupervised_multitask_learners.pdf",
    ),
    "T5": ("T5's code", HUB + "t5/modeling_t5.py"),
    "Torch": (
        "torch's source",
        "https://github.com/pytorch/pytorch/blob/main/aten/src/ATen/native/transformers/cuda/sdp_utils.cpp",
    ),
    "Vaswani": ("Vaswani et al. 2017", "https://arxiv.org/abs/1706.03762"),
    "Voita": ("Voita et al. 2019", "https://arxiv.org/abs/1905.09418"),
    "Wiegreffe": ("Wiegreffe and Pinter 2019", "https://arxiv.org/abs/1908.04626"),
}
LINKS = {key: f"[{name}]({address})" for key, (name, address) in PAPERS.items()}

Evidence = tuple[bool, dict]  # whether the verdict follows, and figures


@dataclass(frozen=True)
class Claim:
    """One claim.

    id:       its group's letter and its number
    verdict:  one of VERDICTS, about the claim as it is written here
    why:      what decides it, in Markdown; {Clark} stands for a source, {ratio:.1f} for a figure that measure returns
    lessons:  numbers of the lessons that show it
    measure:  cheap, the same each time, without a network or a clock; None where only papers, or nobody, can say
    published: measure runs nothing: it compares figures that others published
    """

    id: str
    text: str
    verdict: str
    why: str
    lessons: Sequence[int]
    measure: Callable[[], Evidence] | None = None
    published: bool = False

    @property
    def mark(self) -> str:
        """measured, looked up, or nothing where nobody gives a figure or a source."""
        if self.measure and not self.published:
            return "measured"
        return "looked up" if self.measure or any(f"{{{source}}}" in self.why for source in PAPERS) else ""

    def decide(self) -> str:
        """Measure again, and say what decides it. Raises AssertionError if the verdict does not follow any more."""
        with torch.random.fork_rng(devices=[]):  # the session's random numbers stay as they are
            follows, figures = self.measure() if self.measure else (True, {})
        if not follows:
            raise AssertionError(f"{self.id}: “{self.verdict}” does not follow any more; measured: {figures}")
        return self.why.format(**LINKS, **figures)


class Markdown(str):
    """Text that a notebook shows as Markdown, and any other place as it is."""

    def _repr_markdown_(self) -> str:
        return self

    def __repr__(self) -> str:
        return self


def table_of(claims: Sequence[Claim]) -> Markdown:
    lines = ["| | claim | verdict | what decides it | lesson |", "|---|---|---|---|---|"]
    for claim in claims:
        mark = f" *({claim.mark})*" if claim.mark else ""
        lessons = ", ".join(f"[{n}]({LESSONS[n].stem}.ipynb)" for n in claim.lessons)
        verdict = f"{VERDICTS[claim.verdict]} **{claim.verdict}**".replace(" ", "\N{NO-BREAK SPACE}")
        lines.append(f"| {claim.id} | {claim.text} | {verdict} | {claim.decide()}{mark} | {lessons or '–'} |")
    return Markdown("\n".join(lines))
