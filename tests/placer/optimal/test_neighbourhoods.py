"""Plans where not all co-locations can be queried, and dealing: who is on which NIC changes until no group meets
itself."""

import math
import random
import time
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import placer.optimal
from placer.model.feasibility import feasible
from placer.model.groups import UNCONSTRAINED, Constraints
from placer.model.nic import Tenant
from placer.model.nic_kind import NicKind
from placer.model.plan import Plan
from placer.optimal import Optimum, dealing, optimal_plan
from placer.optimal.bounded_plan import placements_of
from placer.optimal.dealing import _Dealing, keep_groups
from placer.optimal.incumbent import Incumbent, first_incumbent
from placer.optimal.neighbourhoods import EjectionSearch
from placer.testing.strategies import CORES_BY_NF, ToyOracle, arrival
from tests.effort import examples
from tests.placer.model.test_constraints import breaks
from tests.placer.optimal.instances import CrowdingOracle, TableOracle, faults_of, tenant
from tests.properties.test_optimal import Instance, instances
from tests.properties.test_plans import draw_fleet, draw_trace

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


@given(st.integers(0, 100_000))
def test_dealt_plans_keep_groups_slas_and_every_tenant(seed: int) -> None:
    """From the optimum of the same tenants without their groups."""
    draw = random.Random(seed)
    fleet = draw_fleet(draw)
    trace = [replace(one, departure=None) for one in draw_trace(draw, fleet)]
    tenant_of = {one.id: one.tenant for one in trace}
    pools = [Constraints(tuple(pair for pair in one.constraints.values if pair[0] == "pool")) for one in trace]
    without = [replace(one.tenant, constraints=pool) for one, pool in zip(trace, pools, strict=True)]
    found = optimal_plan(without, fleet.kinds, fleet.truth())
    begun = [(kind, tuple(tenant_of[one.id] for one in tenants)) for kind, tenants in found.nics]
    nics, left = keep_groups(begun, [tenant_of[one.id] for one in found.unplaced], fleet.kinds, fleet.truth())
    ids = [one.id for _, tenants in nics for one in tenants] + [one.id for one in left]
    assert sorted(ids) == sorted(tenant_of)
    used = Counter(kind.index for kind, _ in nics)
    assert all(kind.count is None or used[kind.index] <= kind.count for kind in fleet.kinds)
    assert all(all(feasible(kind, ToyOracle(), [tenants])) for kind, tenants in nics)
    assert not breaks(Plan("dealt", None, placements_of(trace, fleet.kinds, nics), 0.0))


def tenants(*given: tuple[str, str, int]) -> list[Tenant]:
    """Tenants of these NFs, with a group of `spread` or none, and a priority."""
    return [
        replace(
            arrival(f"t{at}", at, nf, 0.5).tenant,
            constraints=Constraints((("spread", group),)) if group else UNCONSTRAINED,
            priority=priority,
        )
        for at, (nf, group, priority) in enumerate(given)
    ]


def test_two_of_a_group_change_places_with_tenants_of_the_same_nf() -> None:
    kind = NicKind(0, "toy", 4, CORES_BY_NF)
    a, b, c, d = tenants(("b", "g", 0), ("b", "g", 0), ("b", "", 0), ("b", "", 0))
    nics, left = keep_groups([(kind, (a, b)), (kind, (c, d))], [], [kind], [ToyOracle()])
    assert not left and [len({a, b}.intersection(on_nic)) for _, on_nic in nics] == [1, 1]


def test_a_higher_priority_takes_the_places_of_as_few_lower_ones_as_it_needs() -> None:
    """The only NIC has 4 cores: a tenant that takes 3 lets one of the two stay that take 1 and 2."""
    kind = NicKind(0, "toy", 4, CORES_BY_NF, 1)
    small, large, urgent = tenants(("a", "", 0), ("b", "", 0), ("d", "", 9))
    nics, left = keep_groups([(kind, (small, large))], [urgent], [kind], [ToyOracle()])
    assert {one.id for one in nics[0][1]} == {small.id, urgent.id} and left == [large]


@pytest.mark.parametrize(("looks", "placed"), [(5, 2), (dealing.MOST_LOOKS, 20)])
def test_nics_are_looked_at_for_waiting_tenants_only_so_often(
    monkeypatch: pytest.MonkeyPatch, looks: int, placed: int
) -> None:
    """Each of 20 that matter more displaces one of 20: to list the NICs counts as two looks, the NIC that it takes as
    one."""
    kind = NicKind(0, "toy", 4, CORES_BY_NF, 20)
    lower, higher = tenants(*[("d", "", 0)] * 20), tenants(*[("d", "", 9)] * 20)
    monkeypatch.setattr(dealing, "MOST_LOOKS", looks)
    higher = [replace(tenant, id=f"high-{tenant.id}") for tenant in higher]
    nics, left = keep_groups([(kind, (tenant,)) for tenant in lower], higher, [kind], [ToyOracle()])
    assert [tenant.priority for _, (tenant,) in nics].count(9) == placed and len(left) == 20


def test_a_higher_priority_takes_a_place_beside_whose_tenant_it_must_not_be() -> None:
    """The only NIC has cores for both, and is for one owner alone."""
    kind = NicKind(0, "toy", 4, CORES_BY_NF, 1)
    low, high = tenants(("a", "", 0), ("a", "", 9))
    high = replace(high, constraints=Constraints((("exclusive", "alice"),)))
    assert keep_groups([(kind, (low, high))], [], [kind], [ToyOracle()]) == ([(kind, (high,))], [low])


def test_tenants_that_cannot_share_any_nic_are_not_sought_a_common_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of the NICs, which are many, would be tried for them again and again."""
    kind = NicKind(0, "toy", 8, CORES_BY_NF)
    together = Constraints((("together", "g"),))
    pair = [replace(arrival(f"p{at}", at, "c", 0.0).tenant, constraints=together) for at in range(2)]
    monkeypatch.setattr(_Dealing, "_gather", lambda *_: pytest.fail("is tried"))
    _, left = keep_groups([(kind, (tenant,)) for tenant in pair], [], [kind], [ToyOracle()])
    assert len(left) == 1


def test_a_large_group_that_fits_no_nic_takes_no_time_without_end() -> None:
    """It has a million parts, of which one tenant alone keeps its SLA."""
    kind = NicKind(0, "toy", 64, CORES_BY_NF)
    together = Constraints((("together", "g"),))
    group = [replace(arrival(f"p{at}", at, "a", 0.01).tenant, constraints=together) for at in range(20)]
    begun = time.process_time()
    nics, left = keep_groups([(kind, (tenant,)) for tenant in group], [], [kind], [ToyOracle()])
    assert (len(nics), len(left)) == (1, 19) and time.process_time() < begun + 20.0
