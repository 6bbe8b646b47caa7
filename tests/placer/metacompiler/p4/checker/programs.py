"""P4 programs written by hand, and changes to them."""

from __future__ import annotations

from functools import cache
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "programs"
NAMES = sorted(path.stem for path in FOLDER.glob("*.p4"))


@cache
def program(name: str) -> str:
    """The text of a program."""
    return (FOLDER / f"{name}.p4").read_text(encoding="utf-8")


def changed(name: str, old: str, new: str) -> str:
    """The text of a program where `old`, which must stand there, is replaced once."""
    text = program(name)
    assert old in text, f"{name}: {old}"
    return text.replace(old, new, 1)
