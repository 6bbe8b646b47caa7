"""Ejection search on cases worked by hand and with random oracles."""

from __future__ import annotations

import math
import random

from hypothesis import given, settings

from placer.model.fleet import NicKind
from placer.optimal import Optimum
from placer.optimal.incumbent import Incumbent, first_incumbent
from placer.optimal.neighbourhoods import EjectionSearch
from tests.effort import examples
from tests.placer.optimal.instances import TableOracle, faults_of, tenant
from tests.properties.test_optimal import Instance, instances

KIND = NicKind(0, "bluefield-2", 4, {"acl": 2, "lb": 2, "nat": 2, "nids": 2})


def test_a_blocking_tenant_moves_to_another_nic() -> None:
    """LB fits only with ACL, NIDS only with NAT: the LB replaces the NAT, which moves to the NIDS."""
    acl, nat, lb, nids = (tenant(nf, nf, drop=0.1) for nf in ("acl", "nat", "lb", "nids"))
    oracle = TableOracle({"lb nids": [50, 50], "acl nids": [50, 50], "lb nat": [50, 50]})
    incumbent = Incumbent(((0, (acl, nat)), (0, (lb,)), (0, (nids,))), ())
    emptied = EjectionSearch([KIND], [oracle], random.Random(0)).with_one_nic_fewer(
        incumbent, steps=10, deadline=math.inf
    )
    assert emptied is not None
    assert sorted(sorted(t.id for t in on_nic) for _, on_nic in emptied.nics) == [
        ["acl", "lb"],
        ["nat", "nids"],
    ]


def test_a_nic_that_is_needed_is_not_emptied() -> None:
    """Two ACLs that cannot share a NIC need two."""
    incumbent = Incumbent(tuple((0, (tenant(identity, "acl", drop=0.1),)) for identity in "ab"), ())
    search = EjectionSearch([KIND], [TableOracle({"acl acl": [50, 50]})], random.Random(0))
    assert search.with_one_nic_fewer(incumbent, steps=10, deadline=math.inf) is None
    assert search.with_one_nic_fewer(Incumbent((), ()), steps=10, deadline=math.inf) is None


@given(instances())
@settings(max_examples=examples(100))
def test_a_plan_with_one_nic_fewer_is_valid(given_: Instance) -> None:
    """Whatever the oracle: one NIC fewer or one tenant more, no tenant lost, no SLA violation."""
    tenants, kinds, oracles = given_
    incumbent = first_incumbent(tenants, kinds, oracles, math.inf)
    emptied = EjectionSearch(kinds, oracles, random.Random(0)).with_one_nic_fewer(
        incumbent, steps=20, deadline=math.inf
    )
    if emptied is None:
        return
    saved = len(incumbent.nics) - len(emptied.nics), len(incumbent.unplaced) - len(emptied.unplaced)
    assert saved in ((1, 0), (0, 1))
    cost = float(emptied.cost(kinds))
    nics = [(kinds[number], on_nic) for number, on_nic in emptied.nics]
    assert faults_of(Optimum(nics, list(emptied.unplaced), cost, 0.0, 0, False), tenants, kinds, oracles) == []
