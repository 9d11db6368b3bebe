"""What is said about multi-head attention: `table("P")` measures a group of claims again, `show("P1")` one of them.

Texts are neutral; verdicts are about the words that stand there.
"""

import inspect
from textwrap import fill

from mhsa.claims import heads, history, memory, number, parameters, shapes
from mhsa.claims.claim import VERDICTS, Claim, Markdown, table_of

__all__ = ["CLAIMS", "GROUPS", "VERDICTS", "Claim", "group", "show", "table"]

GROUPS = {
    "P": "Parameters and FLOPs",
    "M": "Memory and speed",
    "S": "Shapes and layouts",
    "H": "What heads learn",
    "N": "How many heads",
    "W": "Who and when",
}
MODULES = (parameters, memory, shapes, heads, number, history)  # one a group
CLAIMS = tuple(value for module in MODULES for value in vars(module).values() if isinstance(value, Claim))


def group(letter: str) -> list[Claim]:
    """The claims of a group of GROUPS, in order. Raises ValueError for any other letter."""
    if letter not in GROUPS:
        raise ValueError(f"letter={letter!r} is no group; these are: {', '.join(GROUPS)}")
    return [claim for claim in CLAIMS if claim.id.startswith(letter)]


def table(letter: str) -> Markdown:
    """The group as a table. Every figure that is not a paper's is measured while you wait."""
    return table_of(group(letter))


def show(id: str) -> None:
    """Print one claim, the code that measures it, and what it finds now. Raises ValueError for an id that is no row."""
    found = [claim for claim in CLAIMS if claim.id == id]
    if not found:
        raise ValueError(f"id={id!r} is no claim; these are: {', '.join(claim.id for claim in CLAIMS)}")
    [claim] = found
    print(f"{claim.id}: {claim.text}\n")
    if claim.measure:
        print(inspect.getsource(claim.measure))
    print(fill(f"{claim.verdict}: {claim.decide()}", 100, break_on_hyphens=False))
