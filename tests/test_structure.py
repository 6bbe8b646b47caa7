"""The structure of the packages: few floors, no circles, one name for one thing, plain words."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from functools import cache
from pathlib import Path

import grimp
import pytest

REPO = Path(__file__).parents[1]
PACKAGES = ("benches", "experiments", "placer", "predictor", "profiler", "profiles", "traces")

FLOORS = {"placer": 9, "predictor": 7}

NOT_PLAIN = re.compile(
    r"\b(told|tells?|compan(?:y|ies)|newcomers?|berths?|housed|befall\w*|whoever|of late|room is worth)\b",
    re.IGNORECASE,
)
"""Words that a network engineer would not use for what is meant."""

FIXED = re.compile(r"""["'`]compan(?:y|ies)["'`]|companies\.csv""")
"""Keys and file names that other programs read."""


def floors(package: str) -> int:
    """The longest import path among the rooms of a package: its files and folders."""
    graph = grimp.build_graph(package, exclude_type_checking_imports=True)
    rooms = graph.find_children(package)
    for room in rooms:
        graph.squash_module(room)

    @cache
    def height(room: str) -> int:
        below = [other for other in graph.find_modules_directly_imported_by(room) if other in rooms and other != room]
        return 1 + max(map(height, below), default=0)

    return max(map(height, rooms))


@pytest.mark.parametrize("package", FLOORS)
def test_rooms_stand_on_few_floors(package: str) -> None:
    assert floors(package) <= FLOORS[package]


def test_no_two_public_classes_share_a_name() -> None:
    places = defaultdict(list)
    for path in sources("*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(str(path.relative_to(REPO)))
    assert {name: files for name, files in places.items() if len(files) > 1} == {}


def test_words_are_plain() -> None:
    pages = [REPO / "README.md", *(REPO / "docs").rglob("*.md"), *(REPO / "nfs").rglob("*.[ch]")]
    found = [
        f"{path.relative_to(REPO)}:{number}: {line.strip()}"
        for path in [*sources("*.py"), *(REPO / "tests").rglob("*.py"), *(REPO / "examples").rglob("*.py"), *pages]
        if path != Path(__file__)
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        if NOT_PLAIN.search(FIXED.sub("", line))
    ]
    assert found == []


def sources(pattern: str) -> list[Path]:
    """Files of the packages."""
    return [path for package in PACKAGES for path in (REPO / package).rglob(pattern)]
