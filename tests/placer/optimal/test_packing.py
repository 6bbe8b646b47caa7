"""Vector packing: cases worked by hand, and published instances with known optima."""

import csv
import itertools
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placer.optimal.packing import Packed, Packing, first_fit_decreasing, pack, read_vbp, size_bound
from profiles import InputError
from tests.effort import examples


def packing_of(capacities: list[int], sizes: list[list[int]]) -> Packing:
    return Packing(np.array(capacities), np.array(sizes).reshape(len(sizes), len(capacities)))


def faults_of(packed: Packed, packing: Packing) -> Iterator[str]:
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


def test_no_items_need_no_bin() -> None:
    packed = pack(Packing(np.array([5]), np.zeros((0, 1), dtype=np.int64)))
    assert (packed.assignment, packed.lower_bound, packed.proven) == ([], 0, True)


@given(st.lists(st.tuples(st.integers(-1, 6), st.integers(0, 6)), max_size=6))
@settings(max_examples=examples(100))
def test_packing_agrees_with_exhaustive_search(sizes: list[tuple[int, int]]) -> None:
    """Whatever the sizes, some negative, the packing is optimal and proven."""
    packing = packing_of([7, 7], [list(size) for size in sizes])
    packed = pack(packing)
    assert list(faults_of(packed, packing)) == [] and packed.proven
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
        "1 10 1 3 1000000000",  # more items than are allowed
    ],
)
def test_a_file_that_is_no_instance_is_refused(tmp_path: Path, text: str) -> None:
    """A file that is not a packing instance is refused with its name."""
    file = tmp_path / "bad.vbp"
    file.write_text(text)
    with pytest.raises(InputError, match=r"bad\.vbp"):
        read_vbp(file)


def test_quantities_are_items(tmp_path: Path) -> None:
    file = tmp_path / "three.vbp"
    file.write_text("2\n10 10\n2\n6 1 3\n1 1 1\n")
    assert read_vbp(file).sizes.tolist() == [[6, 1], [6, 1], [6, 1], [1, 1]]


@pytest.mark.long
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


@pytest.mark.long
@pytest.mark.parametrize(
    ("items", "dimensions", "smallest", "largest", "readings"),
    [
        (3_000, 2, 1, 700, 10), (3_000, 2, 1, 700, 3_500), (12_000, 1, 1, 1_000, 3_000), (12_000, 1, 501, 1_000, 3_000),
        (30_000, 2, -50, 300, 3_000), (100_000, 2, 1, 700, 3_000),
    ],
)  # fmt: skip
def test_packing_ends_at_the_time_limit(
    items: int, dimensions: int, smallest: int, largest: int, readings: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many items there are, the clock is read a few times after the time limit, where the packing ends. It is
    sound and has a valid bound. The clock moves on by a second when it is read."""
    clock = itertools.count()
    monkeypatch.setattr(time, "monotonic", lambda: float(next(clock)))
    sizes = np.random.default_rng(0).integers(smallest, largest + 1, (items, dimensions))
    packing = Packing(np.full(dimensions, 1_000), sizes)
    packed = pack(packing, time_limit=readings)
    assert next(clock) - readings < 15 and list(faults_of(packed, packing)) == []
    assert -(-sizes.sum(axis=0).max() // 1_000) <= packed.lower_bound <= len(packed.assignment)


def test_items_larger_than_half_a_bin_need_a_bin_each() -> None:
    """12,000 items of 501 to 1,000 in bins of 1,000: 12,000 bins, proven without a search."""
    sizes = np.random.default_rng(0).integers(501, 1_001, (12_000, 1))
    packed = pack(Packing(np.array([1_000]), sizes), time_limit=1)
    assert (len(packed.assignment), packed.proven) == (12_000, True)


@given(st.lists(st.tuples(st.integers(-1, 9), st.integers(0, 9)), max_size=7))
@settings(max_examples=examples(100))
def test_the_size_bound_is_never_above_the_optimum(sizes: list[tuple[int, int]]) -> None:
    """Whatever the sizes, no packing has fewer bins than their bound."""
    packing = packing_of([9, 9], [list(size) for size in sizes])
    assert size_bound(packing.capacities, packing.sizes) <= fewest_bins(packing)


@given(st.lists(st.tuples(st.integers(-2, 9), st.integers(0, 9)), max_size=400))
@settings(max_examples=examples(50))
def test_first_fit_takes_the_first_bin_with_room(sizes: list[tuple[int, int]]) -> None:
    """Blocks of bins change nothing: each item is in the first bin that had room for it, bin by bin."""
    packing = packing_of([9, 9], [list(size) for size in sizes])
    share = packing.sizes / np.maximum(packing.sizes.sum(axis=0), 1)
    bins: list[list[int]] = []
    for item in np.argsort(-share.sum(axis=1), kind="stable").tolist():
        with_room = (b for b in bins if np.all(packing.sizes[[*b, item]].sum(axis=0) <= packing.capacities))
        if (first := next(with_room, None)) is None:
            bins.append([item])
        else:
            first.append(item)
    assert first_fit_decreasing(packing.capacities, packing.sizes, float("inf")) == bins
