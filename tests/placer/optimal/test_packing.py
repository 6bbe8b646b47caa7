"""Vector packing: cases worked by hand, and published instances with known optima."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placer.optimal.packing import Packed, Packing, pack, read_vbp
from profiles import InputError


def packing_of(capacities: list[int], sizes: list[list[int]]) -> Packing:
    return Packing(np.array(capacities), np.array(sizes).reshape(len(sizes), len(capacities)))


def faults_of(packed: Packed, packing: Packing) -> Iterator[str]:
    """All that is wrong with an answer."""
    if sorted(item for members in packed.assignment for item in members) != list(range(len(packing.sizes))):
        yield "not every item is packed exactly once"
    for members in packed.assignment:
        if np.any(packing.sizes[members].sum(axis=0) > packing.capacities):
            yield f"{members} do not fit"
    if packed.lower_bound > len(packed.assignment) or packed.proven != (packed.lower_bound == len(packed.assignment)):
        yield "bound and bins disagree"


def fewest_bins(packing: Packing) -> int:
    """The optimum by trying every partition, for a few items."""
    best = len(packing.sizes)

    def put(item: int, bins: list[list[int]]) -> None:
        nonlocal best
        if item == len(packing.sizes):
            if all(np.all(packing.sizes[members].sum(axis=0) <= packing.capacities) for members in bins):
                best = min(best, len(bins))
            return
        for i in range(len(bins)):
            put(item + 1, [*bins[:i], [*bins[i], item], *bins[i + 1 :]])
        put(item + 1, [*bins, [item]])

    put(0, [])
    return best


def test_first_fit_decreasing_is_improved() -> None:
    """5 5 4 4 3 3 in bins of 12: first fit decreasing needs three, the optimum is two."""
    packing = packing_of([12], [[5], [5], [4], [4], [3], [3]])
    packed = pack(packing)
    assert (len(packed.assignment), packed.lower_bound, packed.proven) == (2, 2, True)
    assert list(faults_of(packed, packing)) == []


def test_nothing_needs_no_bin() -> None:
    """No items, no bins, proven."""
    packed = pack(Packing(np.array([5]), np.zeros((0, 1), dtype=np.int64)))
    assert (packed.assignment, packed.lower_bound, packed.proven) == ([], 0, True)


@given(st.lists(st.tuples(st.integers(-1, 6), st.integers(0, 6)), max_size=6))
@settings(max_examples=100, deadline=None)
def test_packing_agrees_with_trying_everything(sizes: list[tuple[int, int]]) -> None:
    """Whatever the sizes, some negative, the answer is the optimum and says so."""
    packing = packing_of([7, 7], [list(size) for size in sizes])
    packed = pack(packing)
    assert list(faults_of(packed, packing)) == []
    assert packed.proven
    assert len(packed.assignment) == fewest_bins(packing)


@pytest.mark.parametrize(
    "text",
    [
        "",  # nothing at all
        "two dimensions",  # not numbers
        "1 10 2 3 1",  # an item is missing
        "1 10 1 11 1",  # an item is larger than a bin
        "1 10 1 3 -1",  # a negative quantity
        "1 -10 1 3 1",  # a negative capacity
        f"1 {2**80} 1 3 1",  # more than can be added up
        "1 10 1 3 1000000000",  # more items than can be told one by one
    ],
)
def test_what_is_no_instance_is_refused(tmp_path: Path, text: str) -> None:
    """A file that is not a packing instance is refused with its name."""
    file = tmp_path / "bad.vbp"
    file.write_text(text)
    with pytest.raises(InputError, match=r"bad\.vbp"):
        read_vbp(file)


def test_quantities_are_items(tmp_path: Path) -> None:
    """An item of quantity three is three items."""
    file = tmp_path / "three.vbp"
    file.write_text("2\n10 10\n2\n6 1 3\n1 1 1\n")
    assert read_vbp(file).sizes.tolist() == [[6, 1], [6, 1], [6, 1], [1, 1]]


def test_published_optima_are_proven(shared_data: Path) -> None:
    """Of the published instances up to 40 items, all but the slowest are proven at the published optimum."""
    with (shared_data / "vectorpack" / "optima.csv").open() as rows:
        optima = {row["instance"]: int(row["optimum"]) for row in csv.DictReader(rows)}
    checked = 0
    for name, optimum in optima.items():
        packing = read_vbp(shared_data / "vectorpack" / f"{name}.vbp")
        if len(packing.sizes) <= 41 and name != "new-class2_40_5_4":
            packed = pack(packing)
            assert list(faults_of(packed, packing)) == []
            assert (name, len(packed.assignment), packed.proven) == (name, optimum, True)
            checked += 1
    assert checked > 10
