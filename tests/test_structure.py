"""The structure of the packages: few floors, no circles, one name for one thing, plain words."""

import ast
import re
from collections import defaultdict
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path, PurePath

import grimp
import pytest

REPO = Path(__file__).parents[1]
PACKAGES = ("benches", "experiments", "placer", "predictor", "profiler", "profiles", "traces")

PRODUCT = ("experiments", "placer", "predictor", "profiler", "profiles", "traces")
ROOTS = ("placer.__main__", "placer.cli", "placer.commands.", "placer.testing.", "experiments.")  # where users come in

FLOORS = {"placer": 10, "predictor": 7, "profiler": 8}

NOT_PLAIN = re.compile(
    r"\b(told|tells?|compan(?:y|ies)|newcomers?|berths?|housed|befall\w*|whoever|of late|room is worth)\b",
    re.IGNORECASE,
)
"""Words that a network engineer would not use for what is meant."""

FIXED = re.compile(r"""["'`]compan(?:y|ies)["'`]|companies\.csv|^    company: """)
"""Keys and file names that other programs read."""


def floors(package: str) -> int:
    """The longest import path among the rooms of a package: its files and folders."""
    graph = grimp.build_graph(package, exclude_type_checking_imports=True, cache_dir=None)
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


def c_files_by_include() -> dict[str, set[str]]:
    """The C files of `nfs/`, a header and its .c as one, each with those whose headers it includes."""
    arrows = defaultdict(set)
    for path in (REPO / "nfs").rglob("*.[ch]"):
        file = str(path.relative_to(REPO / "nfs").with_suffix(""))
        headers = re.findall(r'^#include "([^"]+)"', path.read_text(encoding="utf-8"), re.MULTILINE)
        arrows[file] |= {str(PurePath(header).with_suffix("")) for header in headers} - {file}
    return arrows


def test_c_files_include_in_no_circle() -> None:
    """A C file can be read after those that it includes: none of them leads back to it."""
    arrows = c_files_by_include()
    assert "core/metadata" in arrows["core/nf"]
    try:
        TopologicalSorter(arrows).prepare()
    except CycleError as error:
        pytest.fail(" <- ".join(error.args[1]))


def unreached() -> set[str]:
    """Modules of the product that no command, no Python API, no service and no registry reaches by imports.

    A registry reaches the files of its room; a module that is named in a string is loaded by name (`python -m`).
    """
    graph = grimp.build_graph(*PRODUCT, cache_dir=None)
    named = {module: named_in(module, graph.modules) for module in graph.modules}
    waiting = {module for module in graph.modules if module in PRODUCT or module.startswith(ROOTS)}
    found: set[str] = set()
    while waiting:
        module = waiting.pop()
        found.add(module)
        parents = {module.rpartition(".")[0]} - {""}
        waiting |= (graph.find_modules_directly_imported_by(module) | named[module] | parents) - found
    return graph.modules - found


def named_in(module: str, modules: set[str]) -> set[str]:
    """Modules whose names are strings in this one, and those in the rooms of its registries."""
    path = REPO.joinpath(*module.split("."))
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    found: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Constant) and node.value in modules:
            found.add(node.value)
        if isinstance(node, ast.Call) and "Registry" in ast.unparse(node.func):
            given = [*node.args, *(keyword.value for keyword in node.keywords)]
            rooms = [one.value for one in given if isinstance(one, ast.Constant) and "." in str(one.value)]
            found |= {one for one in modules for room in rooms if one.startswith(f"{room}.")}
    return found


@pytest.mark.long
def test_everything_is_reached() -> None:
    """What only tests run stands in `tests/reference`, what nothing runs nowhere."""
    assert unreached() == set()


@pytest.mark.long
def test_no_two_public_classes_share_a_name() -> None:
    places = defaultdict(list)
    for path in sources("*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(str(path.relative_to(REPO)))
    assert {name: files for name, files in places.items() if len(files) > 1} == {}


@pytest.mark.long
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
