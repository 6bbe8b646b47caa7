"""The outlook, on worlds small enough to be priced by hand."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from placer.fleet import NicKind, Tenant
from placer.oracle import Company, Oracle
from placer.outlook import outlook
from placer.sla import Sla
from profiles import TrafficProfile, Workload

BIG, SMALL = (Workload(nf, TrafficProfile(1, 64)) for nf in ("big", "small"))
KIND = NicKind(0, "toy", 4, {"big": 3, "small": 1})


class Quiet(Oracle):
    """Company costs nothing, except that small beside small loses 20 %."""

    def _ask(self, companies: Sequence[Company]) -> Sequence[Sequence[float]]:
        return [[80.0 if w == SMALL and company.count(SMALL) > 1 else 100.0 for w in company] for company in companies]


def tenants(workload: Workload, count: int, drop: float) -> list[Tenant]:
    """Some tenants alike."""
    return [Tenant(f"{workload.nf}-{drop}-{i}", workload, Sla(max_drop=drop)) for i in range(count)]


def test_an_empty_nic_is_worth_its_cost_and_a_full_one_nothing() -> None:
    """Whatever the prices, they are scaled to a NIC; three cores and one are all there is."""
    seen = outlook(tenants(BIG, 10, 0.5) + tenants(SMALL, 10, 0.5), KIND, Quiet())
    assert seen is not None
    assert seen.worth([]) == pytest.approx(1.0)
    assert seen.worth([(BIG, 0.5), (SMALL, 0.5)]) == 0.0


def test_who_cannot_be_together_is_worth_less_than_anything() -> None:
    """Two small ones that bear no drop are nowhere, with 20 % they are somewhere, and five have no cores."""
    seen = outlook(tenants(SMALL, 10, 0.5), KIND, Quiet())
    assert seen is not None
    assert seen.worth([(SMALL, 0.1), (SMALL, 0.5)]) == -float("inf")
    assert seen.worth([(SMALL, 0.2), (SMALL, 0.5)]) > 0
    assert seen.worth([(SMALL, 0.5)] * 5) == -float("inf")


def test_tight_small_ones_make_room_beside_big_ones_scarce() -> None:
    """When small ones bear no company of their kind, each needs a NIC, and the room beside a big one is worth having;
    when four of them share gladly, the big ones need the NICs, and room for three cores is what is worth having."""
    tight = outlook(tenants(BIG, 5, 0.5) + tenants(SMALL, 40, 0.0), KIND, Quiet())
    loose = outlook(tenants(BIG, 40, 0.5) + tenants(SMALL, 5, 0.5), KIND, Quiet())
    assert tight is not None
    assert loose is not None
    assert tight.worth([(BIG, 0.5)]) > 0.9
    assert loose.worth([(BIG, 0.5)]) < 0.1


def test_too_many_workloads_have_no_outlook() -> None:
    """Where the co-locations are too many to ask for, there is none, and nothing was asked."""
    kind = NicKind(0, "wide", 12, {"small": 1})
    many = [Tenant(str(i), Workload("small", TrafficProfile(i, 64)), Sla(max_drop=0.1)) for i in range(1, 60)]
    oracle = Quiet()
    assert outlook(many, kind, oracle) is None
