"""Whether NFs can share a NIC, and by what margin, on cases worked by hand."""

import pytest

from placer.model.feasibility import below_sla, feasible, fits, margin, smallest_margin, tenant_margin
from placer.model.fleet import NicKind
from placer.model.oracle import co_location_of
from placer.testing.strategies import CORES_BY_NF, ToyOracle, arrival

KIND = NicKind(0, "toy", 8, CORES_BY_NF)
ORACLE = ToyOracle()


def test_the_margin_is_relative_to_what_is_required() -> None:
    assert margin(100.0, 110.0) == pytest.approx(0.1) and margin(100.0, 90.0) == pytest.approx(-0.1)
    assert margin(0.0, 5.0) == float("inf")


def test_a_shortfall_below_rounding_is_still_a_violation() -> None:
    assert margin(1e18, 1e18 * (1 - 1e-15)) < 0


def test_the_tenant_nearest_to_its_sla_decides() -> None:
    """Next to b, c gets 360 of 400 kpps and requires 320; b gets 192 of 200 kpps and requires 190."""
    c, b = arrival("c", 0, "c", 0.2).tenant, arrival("b", 0, "b", 0.05).tenant
    assert tenant_margin(ORACLE, co_location_of([c.workload, b.workload]), c) == pytest.approx(360 / 320 - 1)
    assert smallest_margin(ORACLE, [c, b]) == pytest.approx(192 / 190 - 1)
    assert smallest_margin(ORACLE, []) == float("inf")


def test_only_the_tenants_below_their_sla_are_named() -> None:
    c, b = arrival("c", 0, "c", 0.05).tenant, arrival("b", 0, "b", 0.05).tenant
    assert below_sla(ORACLE, [c, b]) == [c]


def test_cores_and_known_nfs_decide_what_fits() -> None:
    two, three = [arrival(str(i), 0, "d").workload for i in range(2)], [arrival("x", 0, "c").workload]
    assert fits(KIND, two + three) and not fits(KIND, two + three + three[:1])
    assert not fits(NicKind(0, "other", 8, {"a": 1}), two)


def test_groups_are_answered_in_order_and_in_one_batch() -> None:
    """A pair that keeps both SLAs, one that does not, and one without the cores, which is not queried."""
    oracle = ToyOracle()
    loose, tight = arrival("1", 0, "c", 0.2).tenant, arrival("2", 0, "c", 0.01).tenant
    full = [arrival(str(i), 0, "d").tenant for i in range(3)]
    assert feasible(KIND, oracle, [[loose, loose], [loose, tight], full]) == [True, False, False]
    assert oracle.queries == 2  # both pairs are one co-location; c alone is the other
