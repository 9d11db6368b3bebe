"""Every explorer, once, for all tests of explorers and for latency.py."""

from typing import Any, NamedTuple

from mhsa import explore


class Row(NamedTuple):
    """An explorer as a cell calls it, and what its picture says when sliders are moved.

    sliders:  one, or two of which the second divides the first
    says:     {0}, {1} stand for the sliders' values, and with two of them {2} for their quotient
    """

    call: str
    sliders: list[str]
    says: str

    @property
    def name(self) -> str:
        return self.call.partition("(")[0]

    @property
    def source(self) -> str:
        return f"from mhsa import explore\nexplore.{self.call}"

    def make(self) -> Any:
        return eval(self.call, vars(explore))

    def saying(self, *values: int) -> str:
        return self.says.format(*values, *([values[0] // values[1]] if len(values) == 2 else []))


EXPLORERS = {
    row.name: row
    for row in (
        Row("cost(d_model=512, num_heads=8)", ["d_model", "heads"], "d_model {0:,}, {1} head"),
        Row("flow(3, numbers='random')", ["d_model", "heads"], " {2} of {0} numbers wide"),
        Row("heads(24, 4)", ["d_model", "heads"], "d_model = {0} = {1} head"),
        Row("masks(length=3)", ["padding length"], "padding_mask([{0}], 4)"),
        Row("one_vs_many()", ["heads"], "with 1 head and with {0} head"),
        Row("parameters(768, 12)", ["d_model", "heads"], "d_model {0:,}, {1} head"),
        Row("real_heads(head=3)", ["head"], "Layer 1, head {0}"),
        Row("shapes(1, 3, 12, 3, step=3)", ["d_model", "heads"], "Shape (1, 3, {1}, {2})"),
    )
}
TIED = [name for name, row in EXPLORERS.items() if len(row.sliders) == 2]  # heads that must divide d_model
