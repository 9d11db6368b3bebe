"""The one list of lessons: whoever needs a file's name, a title or the minutes reads it here."""

from typing import NamedTuple


class Lesson(NamedTuple):
    """A lesson: `notebooks/{stem}.ipynb`, whose first cell says the same title and minutes."""

    stem: str
    title: str
    minutes: int  # to read and run; exercises come on top

    @property
    def name(self) -> str:
        """Of its exercises' module, and in a learner's progress: "lesson03"."""
        return f"lesson{self.stem[:2]}"


LESSONS = (  # LESSONS[n] is lesson n
    Lesson("00_start_here", "0 · Start here", 10),
    Lesson("01_one_head", "1 · One head", 20),
    Lesson("02_many_heads", "2 · Many heads", 25),
    Lesson("03_split_and_merge", "3 · Split and merge", 30),
    Lesson("04_counting", "4 · Counting", 25),
    Lesson("05_masks_and_cross_attention", "5 · Masks and cross-attention", 30),
    Lesson("06_one_vs_many", "6 · One head against many", 35),
    Lesson("07_heads_in_a_real_model", "7 · Heads in a real model", 35),
    Lesson("08_how_many_heads", "8 · How many heads?", 35),
    Lesson("09_fast_attention", "9 · Fast attention", 35),
    Lesson("10_claims_checked", "10 · Claims checked", 45),
)
WITH_EXERCISES = LESSONS[1:]  # and a quiz; lesson 0 shows how they work
