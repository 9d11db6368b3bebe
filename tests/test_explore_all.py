"""Every explorer of tests/explorers.py, without a browser; what only one of them does stands in its own file."""

import re
from pathlib import Path

import pytest
from explorers import EXPLORERS, TIED
from helpers import controls

from mhsa import explore
from mhsa.draw.svg import describe

HERE = Path(__file__).parent
each_explorer = pytest.mark.parametrize("name", EXPLORERS)


def test_the_table_holds_each_explorer():
    assert [*EXPLORERS] == explore.__all__ == sorted(explore.__all__)


@each_explorer
def test_an_explorer_has_tests_of_its_own(name):
    own = [path for path in HERE.glob("test_explore_*.py") if f"explore.{name}(" in path.read_text(encoding="utf-8")]
    assert own


@each_explorer
def test_the_picture_says_what_the_sliders_show(name):
    explorer, row = EXPLORERS[name].make(), EXPLORERS[name]
    sliders = [controls(explorer)[label] for label in row.sliders]
    assert row.saying(*(slider.value for slider in sliders)) in describe(explorer.view.svg)


@pytest.mark.parametrize("name", TIED)
@pytest.mark.parametrize("trait", ["d_model", "num_heads"])
def test_a_size_beyond_all_use_is_refused_at_once(name, trait):
    """The divisors of 10^30 would take longer than the universe is old."""
    explorer = EXPLORERS[name].make()
    setattr(explorer.state, trait, 10**30)
    said = describe(explorer.view.svg)
    assert said.startswith("No picture. ") and f"={10**30} is too large for a picture; up to 1,000,000 will do" in said
    explorer.state.num_heads = explorer.state.d_model = 8
    explorer.state.num_heads = 2
    assert "No picture" not in describe(explorer.view.svg)


@pytest.mark.parametrize("name", TIED)
def test_one_head_is_not_called_heads(name):
    explorer = EXPLORERS[name].make()
    explorer.state.d_model, explorer.state.num_heads = 8, 1
    assert not re.search(r"\b1 (?:key-value )?heads|No picture", explorer.view.svg)
