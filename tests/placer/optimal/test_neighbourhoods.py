"""Plans where not all co-locations can be queried."""

from __future__ import annotations

import pytest

import placer.optimal
from placer.model.fleet import NicKind
from placer.optimal import optimal_plan
from tests.placer.optimal.instances import CrowdingOracle, TableOracle, faults_of, tenant

NFS = [f"nf-{i:02d}" for i in range(40)]
BLUEFIELD = NicKind(0, "bluefield-2", 8, dict.fromkeys(NFS, 2))


@pytest.fixture
def few_queries(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes every instance one with too many co-locations."""
    monkeypatch.setattr(placer.optimal, "MOST_CO_LOCATIONS", 0)


def test_a_plan_that_fills_all_cores_is_proven() -> None:
    """Forty NFs that do not slow one another down fill ten NICs, which the bound by cores proves."""
    tenants = [tenant(nf, nf, drop=0.1) for nf in NFS]
    optimum = optimal_plan(tenants, [BLUEFIELD], [TableOracle({})], time_limit=5)
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
