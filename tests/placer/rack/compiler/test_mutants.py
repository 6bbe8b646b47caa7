"""The comparison with the reference catches faults of the generator: mutants, one fault each."""

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import pytest

from placer.rack.chain import Chain
from placer.rack.compiler.compile import compile_rack
from placer.rack.files.plan_file import PlanFile
from profiles import InputError
from tests.placer.rack.compiler.ebpf.programs import require_clang
from tests.placer.rack.compiler.mutants import of_servers, of_smartnics, of_switch
from tests.placer.rack.compiler.mutants.mutant import Mutant
from tests.placer.rack.compiler.rack_packets import rack_packets, timed
from tests.placer.rack.compiler.rack_runs import emulated_outcome, require_libpcap
from tests.placer.rack.compiler.racks import ALL_KINDS, SAME_BYTES, every_placement, made_chain, rack_of, random_plan
from tests.reference.compare import ReferenceRun

TAGS = made_chain(
    ["Match", "Detunnel", "Tunnel", "Monitor", "ACL"],
    [
        (0, 1, "1", "vlan"),
        (0, 2, "1", ""),
        *((tail, at, "1/2", "vlan" * (at == 3)) for tail in (1, 2) for at in (3, 4)),
    ],
    aggregates=["vlan", "udp"],
)
PORTS = made_chain(
    ["Match", "Tunnel", "Monitor", "LB"],
    [(0, 1, "1/3", "tcp dst portrange 1024-40000"), (0, 2, "1/3", "udp src port 53"), (0, 3, "1/3", "")],
)
MADE = {-1: TAGS, -2: PORTS}  # chains on the switch, as far as that is possible, for what random ones rarely have
SWITCHES = (*MADE, 0, 1, 2, 4, 5, 7, 11, 13)
SMARTNICS = (100, 101, 103)


class MadeRack(NamedTuple):
    """A plan with its packets, and what the reference makes of them."""

    plan: PlanFile
    frames: Sequence[bytes]
    reference: ReferenceRun


@cache
def rack_of_seed(seed: int) -> MadeRack:
    kinds = ALL_KINDS if seed % 5 == 4 else SAME_BYTES
    if seed in MADE:
        plan = placed_on_switch(MADE[seed])
    else:
        plan = random_plan(seed, kinds, smartnics=float(seed >= SMARTNICS[0]))
    frames = rack_packets(plan.chains, seed)
    return MadeRack(plan, frames, ReferenceRun(plan.chains, timed(frames)))


def placed_on_switch(chain: Chain) -> PlanFile:
    """The placement with the most NFs on the switch."""
    plans = every_placement(chain, rack_of([False], ALL_KINDS))
    return max(plans, key=lambda plan: sum(nf.on == "switch" for nf in plan.places[chain.name].values()))


def first_caught(seeds: Sequence[int]) -> int | None:
    """The first rack whose programs do something else than the reference, or fail; None if none does."""
    for seed in seeds:
        made = rack_of_seed(seed)
        try:
            rack = compile_rack(made.plan, "plan")
        except InputError:
            continue  # refused: such programs never run
        try:
            outcome = emulated_outcome(rack, made.frames)
        except (AssertionError, LookupError, TypeError, ValueError):
            return seed
        if made.reference.differences(outcome):
            return seed
    return None


def test_the_generator_passes() -> None:
    require_libpcap()
    assert first_caught(SWITCHES) is None


def test_the_generator_for_smartnics_passes() -> None:
    require_libpcap()
    require_clang()
    assert first_caught(SMARTNICS) is None


@pytest.mark.parametrize("mutant", [*of_switch.MUTANTS, *of_servers.MUTANTS], ids=lambda mutant: mutant.fault)
def test_mutants_of_switch_and_servers_are_caught(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    require_libpcap()
    mutant.patch(monkeypatch)
    assert first_caught(SWITCHES) is not None


@pytest.mark.parametrize("mutant", of_smartnics.MUTANTS, ids=lambda mutant: mutant.fault)
def test_mutants_of_smartnics_are_caught(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    require_libpcap()
    require_clang()
    mutant.patch(monkeypatch)
    assert first_caught(SMARTNICS) is not None


def test_there_are_at_least_forty_mutants() -> None:
    mutants = [*of_switch.MUTANTS, *of_servers.MUTANTS, *of_smartnics.MUTANTS]
    assert len({one.fault for one in mutants}) == len(mutants) >= 40
