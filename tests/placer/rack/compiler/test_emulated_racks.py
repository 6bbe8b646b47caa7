"""Generated programs, run by interpreters of their texts, do what the reference does: random chains and placements."""

import multiprocessing
import os
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import pytest

from placer.rack.compiler.compile import compile_rack
from placer.rack.compiler.library.nf_kind import NF_KINDS
from tests.placer.rack.compiler import rack_runs
from tests.placer.rack.compiler.ebpf.programs import require_clang
from tests.placer.rack.compiler.library.frames import ipv4_frame
from tests.placer.rack.compiler.rack_packets import rack_packets, timed
from tests.placer.rack.compiler.racks import ALL_KINDS, made_chain, made_plan, random_plan
from tests.reference.compare import ReferenceRun
from tests.reference.emulate import emulated

FEW, FEW_WITH_SMARTNICS, MANY = range(30), range(100, 110), range(10_040)
PARTS = 4
AT_A_TIME = 20
EMULATION_WORKERS = int(os.environ.get("TEST_WORKERS") or os.cpu_count() or 1)
EMULATED_SMARTNICS = 0.1  # chance of a server to have one
MOST_REFUSED = 0.01

Findings = tuple[rack_runs.Coverage, dict[int, list[str]]]  # what was covered, and differences by seed


def run_racks(seeds: Sequence[int], smartnics: float = EMULATED_SMARTNICS, *, shares: bool = False) -> Findings:
    """Random racks beside the reference."""
    coverage, wrong = rack_runs.Coverage(), dict[int, list[str]]()
    for seed in seeds:
        plan = random_plan(seed, ALL_KINDS, smartnics=smartnics)
        rack = rack_runs.compiled_or_none(plan, coverage, shares=shares)
        if rack is None:
            continue
        frames = rack_packets(plan.chains, seed)
        reference = ReferenceRun(plan.chains, timed(frames))
        differences = reference.differences(rack_runs.emulated_outcome(rack, frames))
        coverage.add(rack.routing, reference)
        if differences:
            wrong[seed] = differences
    return coverage, wrong


@pytest.mark.parametrize("shares", [False, True], ids=["one table per NF", "one table per kind"])
def test_programs_of_random_racks_do_what_chains_say(shares: bool) -> None:
    """Frames byte for byte, order per flow, counters, and a reason for each frame that did not leave."""
    rack_runs.require_libpcap()
    coverage, wrong = run_racks(FEW, 0, shares=shares)
    assert not wrong
    assert coverage.branches > 20
    assert coverage.merges > 10
    assert coverage.refused == 0


@pytest.mark.long
def test_programs_of_random_racks_with_smartnics_do_what_chains_say() -> None:
    rack_runs.require_libpcap()
    require_clang()
    coverage, wrong = run_racks(FEW_WITH_SMARTNICS, 1)
    assert not wrong
    assert coverage.refused <= 1


def test_a_smartnic_keeps_the_t_max_of_a_chain_that_begins_there() -> None:
    """Of 2.5 Mbps, 1 passes, over 2 s after the first second; packets of another chain all pass."""
    require_clang()
    limited = made_chain(["Tunnel"], name="a", aggregates=["udp"])
    limited = replace(limited, slo=replace(limited.slo, t_max_mbps=Fraction(1)))
    rack = compile_rack(made_plan((limited, "n0"), (made_chain(["Tunnel"], name="b"), "n0")), "plan")
    assert rack.without_limit == []
    frames = [ipv4_frame(payload=bytes(1500 - headers), protocol=protocol) for protocol, headers in ((17, 42), (6, 54))]
    packets = [(4800 * at + 1, frame) for at in range(625) for frame in frames]
    found = emulated(rack, packets, rack_runs.object_of, rack_runs.sorted_by_libpcap)
    assert {len(frame) for frame in frames} == {1500}
    later = [packets[number][1] for number, _ in found.outputs if packets[number][0] >= 1_000_000]
    rates = {kind: 8 * 1500 * later.count(frame) / 2e6 for kind, frame in zip("ab", frames, strict=True)}
    assert rates == {"a": pytest.approx(1, rel=0.02), "b": pytest.approx(2.5, rel=0.02)}
    assert found.dropped == {"rate_limit": len(packets) - len(found.outputs)}


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_programs_of_ten_thousand_random_racks_do_what_chains_say(part: int) -> None:
    """The same for all 14 kinds of NFs, wherever they run."""
    rack_runs.require_libpcap()
    require_clang()
    total, wrong = rack_runs.Coverage(), dict[int, list[str]]()
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
