"""Generated programs, run by interpreters of their texts, do what the reference does: random chains and placements."""

import multiprocessing
import os
from collections.abc import Sequence

import pytest

from placer.rack.compiler.library.nf_kind import NF_KINDS
from tests.placer.rack.compiler.ebpf.programs import require_clang
from tests.placer.rack.compiler.rack_packets import rack_packets, timed
from tests.placer.rack.compiler.rack_runs import Coverage, compiled_or_none, emulated_outcome, require_libpcap
from tests.placer.rack.compiler.racks import ALL_KINDS, random_plan
from tests.reference.compare import ReferenceRun

FEW, FEW_WITH_SMARTNICS, MANY = range(30), range(100, 110), range(10_040)
PARTS = 4
AT_A_TIME = 20
EMULATION_WORKERS = int(os.environ.get("TEST_WORKERS") or os.cpu_count() or 1)
EMULATED_SMARTNICS = 0.1  # chance of a server to have one
MOST_REFUSED = 0.01

Findings = tuple[Coverage, dict[int, list[str]]]  # what was covered, and differences by seed


def run_racks(seeds: Sequence[int], smartnics: float = EMULATED_SMARTNICS, *, shares: bool = False) -> Findings:
    """Random racks beside the reference."""
    coverage, wrong = Coverage(), dict[int, list[str]]()
    for seed in seeds:
        plan = random_plan(seed, ALL_KINDS, smartnics=smartnics)
        rack = compiled_or_none(plan, coverage, shares=shares)
        if rack is None:
            continue
        frames = rack_packets(plan.chains, seed)
        reference = ReferenceRun(plan.chains, timed(frames))
        differences = reference.differences(emulated_outcome(rack, frames))
        coverage.add(rack.routing, reference)
        if differences:
            wrong[seed] = differences
    return coverage, wrong


@pytest.mark.parametrize("shares", [False, True], ids=["one table per NF", "one table per kind"])
def test_programs_of_random_racks_do_what_chains_say(shares: bool) -> None:
    """Frames byte for byte, order per flow, counters, and a reason for each frame that did not leave."""
    require_libpcap()
    coverage, wrong = run_racks(FEW, 0, shares=shares)
    assert not wrong
    assert coverage.branches > 20
    assert coverage.merges > 10
    assert coverage.refused == 0


@pytest.mark.long
def test_programs_of_random_racks_with_smartnics_do_what_chains_say() -> None:
    require_libpcap()
    require_clang()
    coverage, wrong = run_racks(FEW_WITH_SMARTNICS, 1)
    assert not wrong
    assert coverage.refused <= 1


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_programs_of_ten_thousand_random_racks_do_what_chains_say(part: int) -> None:
    """The same for all 14 kinds of NFs, wherever they run."""
    require_libpcap()
    require_clang()
    total, wrong = Coverage(), dict[int, list[str]]()
    seeds = MANY[part * len(MANY) // PARTS : (part + 1) * len(MANY) // PARTS]
    pieces = [seeds[at : at + AT_A_TIME] for at in range(0, len(seeds), AT_A_TIME)]
    with multiprocessing.get_context("spawn").Pool(EMULATION_WORKERS) as pool:
        for coverage, differences in pool.imap_unordered(run_racks, pieces):
            total.merge(coverage)
            wrong |= differences
            if differences:
                print(f"\nafter {total.pairs} pairs: {differences}", flush=True)
    print(f"\n{total.text()}\ndifferences: {wrong or 'none'}")
    assert not wrong
    assert total.pairs * PARTS >= 10_000
    assert total.refused <= MOST_REFUSED * total.pairs
    places = {(kind, place) for kind in NF_KINDS for place in NF_KINDS[kind].platforms}
    assert set(total.nfs) == {(kind, place) for kind, place in places if place != "openflow"}
