"""Which lessons are meant. Only the standard library: course.py asks before it has set anything up."""

from pathlib import Path

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"


def paths_of(names: list[str]) -> list[Path]:
    """The notebooks of these numbers (2 or 02), names or files; all of them if none is named."""
    stems = sorted(path.stem for path in NOTEBOOKS.glob("*.ipynb"))
    found = []
    for name in names:
        meant = [stem for stem in stems if stem == Path(name).stem or (name.isdecimal() and stem[:2] == name.zfill(2))]
        if not meant:
            raise SystemExit(f"{name} is no lesson; these are: {', '.join(stems)}")
        found += meant
    return [NOTEBOOKS / f"{stem}.ipynb" for stem in dict.fromkeys(found or stems)]
