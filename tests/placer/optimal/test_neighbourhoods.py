"""Plans where not all co-locations can be queried. Ejection search on cases worked by hand and with random oracles."""

import math
import random

import pytest
from hypothesis import given, settings

import placer.optimal
from placer.model.fleet import NicKind
from placer.optimal import Optimum, optimal_plan
from placer.optimal.incumbent import Incumbent, first_incumbent
from placer.optimal.neighbourhoods import EjectionSearch
from tests.effort import examples
from tests.placer.optimal.instances import CrowdingOracle, TableOracle, faults_of, tenant
from tests.properties.test_optimal import Instance, instances

NFS = [f"nf-{i:02d}" for i in range(40)]
BLUEFIELD = NicKind(0, "bluefield-2", 8, dict.fromkeys(NFS, 2))


@pytest.fixture
def few_queries(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes every instance one with too many co-locations."""
    monkeypatch.setattr(placer.optimal, "MOST_CO_LOCATIONS", 0)


def test_a_plan_that_fills_all_cores_is_proven() -> None:
    """Forty NFs that do not slow one another down fill ten NICs, which the bound by cores proves."""
    optimum = optimal_plan([tenant(nf, nf, drop=0.1) for nf in NFS], [BLUEFIELD], [TableOracle({})], time_limit=5)
    assert (optimum.cost, optimum.lower_bound, optimum.nics_lower_bound, optimum.proven) == (10, 10, 10, True)


def test_without_time_there_is_a_valid_plan_and_a_bound() -> None:
    """With hardly any time there is still a plan without violations, and the bound from cores."""
    tenants = [tenant(nf, nf, drop=0.1) for nf in NFS]
    oracle = CrowdingOracle(0)
    optimum = optimal_plan(tenants, [BLUEFIELD], [oracle], time_limit=0.0)
    assert faults_of(optimum, tenants, [BLUEFIELD], [oracle]) == []
    assert (optimum.lower_bound, optimum.proven) == (10, False)


def test_neighbours_are_rearranged(few_queries: None) -> None:
    """First fit pairs ACL with NAT and needs three NICs; placing the tenants again finds two pairs that fit."""
    kind = NicKind(0, "bluefield-2", 4, {"acl": 2, "nat": 2, "nids": 2, "tunnel": 2})
    table = {"acl nat": [90, 90], "acl tunnel": [95, 95], "nat nids": [95, 95], "nids tunnel": [50, 50]}
    oracle = TableOracle({**table, "acl nids": [50, 50], "nat tunnel": [50, 50]})
    tenants = [tenant(nf, nf, drop=0.1) for nf in ("acl", "nat", "nids", "tunnel")]
    optimum = optimal_plan(tenants, [kind], [oracle], time_limit=5)
    assert (optimum.cost, optimum.proven) == (2, True)


def test_a_plan_that_leaves_out_tenants_is_not_proven(few_queries: None) -> None:
    """One NIC carries four of five tenants; as one is left out, nothing is proven."""
    kind = NicKind(0, "bluefield-2", 8, {"acl": 2}, count=1)
    tenants = [tenant(str(i), "acl", drop=0.1) for i in range(5)]
    optimum = optimal_plan(tenants, [kind], [TableOracle({})], time_limit=0.1)
    assert faults_of(optimum, tenants, [kind], [TableOracle({})]) == []
    assert (len(optimum.unplaced), optimum.proven) == (1, False)


def test_a_valid_start_is_returned_when_time_is_short(few_queries: None) -> None:
    """A given plan without violations is returned when there is no time to find a better one; an invalid one is not."""
    kind = NicKind(0, "bluefield-2", 4, {"acl": 2, "nat": 2, "nids": 2, "tunnel": 2})
    oracle = TableOracle({"acl nat": [90, 90], "acl tunnel": [95, 95], "nat nids": [95, 95], "nids tunnel": [50, 50]})
    a, b, c, d = tenants = [tenant(nf, nf, drop=0.1) for nf in ("acl", "nat", "nids", "tunnel")]
    valid, invalid = [(kind, (a, d)), (kind, (b, c))], [(kind, (a, b)), (kind, (c, d))]
    assert optimal_plan(tenants, [kind], [oracle], time_limit=0.0, start=valid).cost == 2
    assert optimal_plan(tenants, [kind], [oracle], time_limit=0.0, start=invalid).cost == 4


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
    assert sorted(sorted(t.id for t in on_nic) for _, on_nic in emptied.nics) == [["acl", "lb"], ["nat", "nids"]]


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
