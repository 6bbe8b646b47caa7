"""Why random instances are infeasible, judged by an exhaustive search with exact fractions, not by a solver.

Each change that is named makes its instance feasible, and 1 % less of it does not; of whole numbers, one less does not.
Where no change of a limit is named, none is enough. Of a conflict, no limit can be left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placer.rack.files.json_twins import chains_of, rack_of
from placer.rack.place import best_plan
from placer.rack.plan import answer
from placer.rack.reasons.infeasible import explain_infeasible
from tests.effort import examples
from tests.placer.rack import instances
from tests.placer.rack.exhaustive import is_feasible

Json = dict[str, Any]
GENERATORS = [instances.everyday, instances.edges, instances.openflow, instances.racks]
IN_CHUNKS = [range(begin, begin + 100) for begin in range(3000, 4000, 100)]
"""Ten hundreds of each generator, of which a third is infeasible."""
OF_CHAINS = {"t_min": "t_min_mbps", "d_max": "d_max_us"}
ENOUGH = {"t_min": 0, "d_max": None, "cores": 1024, "nic_mbps": 10**9, "blocks": 1024}
"""Values at which a limit never matters."""
WHOLE = ("cores", "blocks")
ENOUGH_S = 600.0
"""On a busy machine too; what is not known in time is left out."""


def limits(chains: Json, rack: Json) -> Iterator[tuple[str, str, Any]]:
    """Kind, name and value of each limit that can be changed."""
    for chain in chains["chains"]:
        if chain["t_min_mbps"]:
            yield "t_min", chain["name"], chain["t_min_mbps"]
        if chain["d_max_us"] is not None:
            yield "d_max", chain["name"], chain["d_max_us"]
    for server in rack["servers"]:
        yield "cores", server["name"], server["cores"]
        yield "nic_mbps", server["name"], server["nic_mbps"]
        if nic := server.get("smartnic"):
            yield "cores", nic["name"], nic["cores"]
    if rack["switch"].get("stages") is not None:
        yield "blocks", "switch", rack["switch"]["blocks_per_stage"]


def changed(chains: Json, rack: Json, kind: str, of: str, to: object) -> tuple[Json, Json]:
    """The instance with another value of one limit."""
    if kind in OF_CHAINS:
        each = [one | {OF_CHAINS[kind]: to} if one["name"] == of else one for one in chains["chains"]]
        return {"chains": each}, rack
    if kind == "blocks":
        return chains, rack | {"switch": rack["switch"] | {"blocks_per_stage": to}}
    return chains, rack | {"servers": [_server(one, kind, of, to) for one in rack["servers"]]}


def _server(server: Json, kind: str, of: str, to: object) -> Json:
    if server["name"] == of:
        return server | {kind: to}
    nic = server.get("smartnic")
    return server | {"smartnic": nic | {kind: to}} if nic and nic["name"] == of else server


def freed(chains: Json, rack: Json, kept: Sequence[tuple[str, str]]) -> tuple[Json, Json]:
    """The instance in which no other limits matter."""
    for kind, of, _ in list(limits(chains, rack)):
        if (kind, of) in kept:
            continue
        if kind == "blocks":
            rack = rack | {"switch": rack["switch"] | {"stages": None}}
        else:
            chains, rack = changed(chains, rack, kind, of, ENOUGH[kind])
    return chains, rack


def less(kind: str, now: float, to: float) -> object:
    """A value that relaxes 1 % less, or one less; at least as it was."""
    if kind in WHOLE:
        return int(to) - 1
    if kind == "t_min":
        return min(Fraction(to) * Fraction(101, 100), Fraction(str(now)))
    return max(Fraction(to) * Fraction(99, 100), Fraction(str(now)))


def faults_of_changes(chains: Json, rack: Json, found: Json) -> Iterator[str]:
    """Changes that are not enough, that are larger than need be, or that are missing."""
    named = {(one["kind"], one["of"]): one["to"] for one in found["relaxations"]}
    values = {(kind, of): value for kind, of, value in limits(chains, rack)}
    for kind, of in named.keys() - values.keys():
        yield f"{kind} of {of} is changed, and there is no such limit"
    for (kind, of), now in values.items():
        to = named.get((kind, of))
        if to is None:
            if kind != "t_min" and is_feasible(*changed(chains, rack, kind, of, ENOUGH[kind])):
                yield f"{kind} of {of} is not named, and a change of it is enough"
            elif kind == "t_min" and is_feasible(*changed(chains, rack, kind, of, min(1e-3, float(now)))):
                yield f"{kind} of {of} is not named, and a lower one is enough"
            continue
        if not is_feasible(*changed(chains, rack, kind, of, int(to) if kind in WHOLE else to)):
            yield f"{kind} of {of}: {to} is not enough"
        if is_feasible(*changed(chains, rack, kind, of, less(kind, now, to))):
            yield f"{kind} of {of}: less than {to} is enough"


def faults_of_conflict(chains: Json, rack: Json, found: Json) -> Iterator[str]:
    """Whether the limits cannot be kept together, and each would if another was left out."""
    conflict = [(one["kind"], one["of"]) for one in found["conflict"]]
    if is_feasible(*freed(chains, rack, conflict)):
        yield f"{conflict} can be kept together"
    for limit in conflict:
        if not is_feasible(*freed(chains, rack, [one for one in conflict if one != limit])):
            yield f"{conflict} is a conflict without {limit}"


def faults_of_reasons(chains: Json, rack: Json) -> list[str]:
    """What is wrong with the reasons of an instance; nothing where it is feasible."""
    if is_feasible(chains, rack):
        return []
    read = chains_of(chains, "chains")
    found = json.loads(
        json.dumps(answer(explain_infeasible(best_plan(read, rack_of(rack, "rack")), read, seconds=ENOUGH_S)))
    )
    if found["status"] != "infeasible":
        return [f"{found['status']}, and no plan is possible"]
    return [*faults_of_changes(chains, rack, found), *faults_of_conflict(chains, rack, found)]


def faulty(generator: instances.Generator, seeds: range) -> dict[int, list[str]]:
    """What is wrong, by seed."""
    each = {seed: faults_of_reasons(*generator(seed)) for seed in seeds}
    return {seed: wrong for seed, wrong in each.items() if wrong}


@pytest.mark.parametrize("generator", GENERATORS)
def test_reasons_of_infeasible_instances_are_exact(generator: instances.Generator) -> None:
    """Changes are enough and no larger than need be, and conflicts are minimal."""
    assert faulty(generator, range(examples(12))) == {}


@pytest.mark.slow
@pytest.mark.parametrize("seeds", IN_CHUNKS, ids=str)
@pytest.mark.parametrize("generator", GENERATORS)
def test_reasons_of_a_thousand_infeasible_instances_are_exact(generator: instances.Generator, seeds: range) -> None:
    """As above, for instances that no other test draws."""
    assert faulty(generator, seeds) == {}


@pytest.mark.long
@given(st.sampled_from(GENERATORS), st.integers(10_000, 10**9))
@settings(max_examples=examples(5))
def test_reasons_of_any_instance_are_exact(generator: instances.Generator, seed: int) -> None:
    """Instances of `make test-all` change from run to run; the seed is named where one is wrong."""
    assert faults_of_reasons(*generator(seed)) == []
