"""Dealing: who is on which NIC changes until no group meets itself, and higher priorities have the places."""

import random
import time
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placer.model.feasibility import feasible
from placer.model.fleet import NicKind, Tenant
from placer.model.groups import UNCONSTRAINED, Constraints
from placer.model.plan import Plan
from placer.optimal import dealing, optimal_plan
from placer.optimal.bounded_plan import placements_of
from placer.optimal.dealing import _Dealing, keep_groups
from placer.testing.strategies import CORES_BY_NF, ToyOracle, arrival
from tests.placer.model.test_constraints import breaks
from tests.properties.test_every_plan import draw_fleet, draw_trace


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
