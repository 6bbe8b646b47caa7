"""NIC kinds that differ in nothing but their number."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings

from placer.model.arrival import Arrival
from placer.model.catalogue import Catalogue
from placer.model.fleet import NicKind
from placer.model.sla import Sla
from placer.optimal import optimal_plan
from placer.optimal.certificate import certificate
from placer.optimal.merged_kinds import MergedKinds
from placer.optimal.trace_optimum import find_optimum
from tests.effort import examples
from tests.placer.optimal.exhaustive import exhaustive_plan
from tests.placer.optimal.instances import TableOracle, faults_of, workload
from tests.properties.test_optimal import Instance, instances

KIND = NicKind(0, "bluefield-2", 8, {"acl": 2, "nids": 4}, count=1)
FIVE = [
    Arrival(str(i), float(i), workload(nf), Sla(max_drop=0.1))
    for i, nf in enumerate(("acl", "acl", "nids", "nids", "acl"))
]


@pytest.mark.parametrize("lasts", [None, 3.0])
def test_a_thousand_nics_of_a_kind_each_are_one_kind(lasts: float | None) -> None:
    """Five arrivals and 1,000 fleet tables of one NIC each: two different NICs, proven within the time limit."""
    kinds = tuple(replace(KIND, index=i) for i in range(1_000))
    trace = [replace(one, departure=None if lasts is None else one.time + lasts) for one in FIVE]
    catalogue = Catalogue(kinds, (), (), specs=("none",) * len(kinds))
    found = find_optimum(trace, catalogue, [TableOracle({})] * len(kinds), time_limit=60)
    assert (found.nics, found.proven) == (2, True)
    used = {(placement.nic, placement.kind.index) for placement in found.plan.placed if placement.kind}
    assert len(used) == len({kind for _, kind in used}) == 2
    if lasts is None:
        prices = certificate(trace, catalogue, found)["bound"]["nic_prices"]
        assert len(prices) == len(kinds)


def test_kinds_of_different_cost_or_oracle_stay_apart() -> None:
    """Owned NICs and bought ones, or NICs that another oracle predicts, are different kinds; counts add up."""
    oracle = TableOracle({})
    kinds = [KIND, replace(KIND, index=1, cost=2), replace(KIND, index=2), replace(KIND, index=3, count=4)]
    merged = MergedKinds.of(kinds, [oracle, oracle, TableOracle({}), oracle])
    assert [(kind.index, kind.count) for kind in merged.kinds] == [(0, 5), (1, 1), (2, 1)]
    assert [merged.kind_of(0, number).index for number in range(5)] == [0, 3, 3, 3, 3]


@given(instances())
@settings(max_examples=examples(60))
def test_listing_kinds_twice_is_doubling_their_number(given_: Instance) -> None:
    """Whatever the oracle, the optimum over kinds that are listed twice is that of exhaustive search."""
    tenants, kinds, oracles = given_
    twice = [*kinds, *(replace(kind, index=len(kinds) + kind.index) for kind in kinds)]
    optimum = optimal_plan(tenants, twice, [*oracles, *oracles])
    expected = exhaustive_plan(tenants, twice, [*oracles, *oracles])
    assert faults_of(optimum, tenants, twice, [*oracles, *oracles]) == []
    assert (len(optimum.unplaced), optimum.proven) == (len(expected.unplaced), True)
    assert optimum.cost == pytest.approx(expected.cost)
    assert all(count <= (kind.count or 99) for kind, count in Counter(kind for kind, _ in optimum.nics).items())
