"""Whether NFs can share a NIC or a GPU, and by what margin, on cases worked by hand."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from placer.model.feasibility import (
    Violation,
    below_sla,
    feasible,
    fits,
    margin,
    smallest_margin,
    tenant_margin,
    violations,
)
from placer.model.nic import Tenant
from placer.model.nic_kind import NicKind
from placer.model.oracle import co_location_of
from placer.model.sla import Sla
from placer.testing.strategies import CORES_BY_NF, TOY_TRAFFIC, ToyOracle, arrival
from profiles import Workload
from tests.placer.toy_gpu import CURVES, ToyAdmission, mixed, promised

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


FLEET = mixed()
NIC, GPU = FLEET.kinds
ON_NIC, ON_GPU = FLEET.oracles("toy")


def test_a_gpu_keeps_all_promises_or_names_who_and_why() -> None:
    """Transfers take turns of 10 us after which kernels take 20: three within 50 us, of two within 30 us only one."""
    three = [promised(str(n), "a", 100.0, 50.0).tenant for n in range(3)]
    assert feasible(GPU, ON_GPU, [three]) == [True] and violations(ON_GPU, three) == []
    urgent, other = promised("urgent", "a", 100.0, 30.0).tenant, promised("other", "b", 100.0, 30.5).tenant
    assert feasible(GPU, ON_GPU, [[urgent, other]]) == [False]
    assert violations(ON_GPU, [urgent, other]) == [Violation(other, "pcie")]
    busy = [promised(str(n), "b", 600.0, 500.0 + n).tenant for n in range(2)]
    assert violations(ON_GPU, busy) == [Violation(busy[1], "kernel")]


def test_what_a_gpu_does_not_run_is_not_feasible_there() -> None:
    """NF c is on no GPU, an NF without a rate neither, and five NFs need five workers."""
    five = [promised(str(n), "a", 1.0, 900.0).tenant for n in range(5)]
    groups = [[promised("c", "c", 1.0, 90.0).tenant], [arrival("a", 0, "a").tenant], five]
    assert feasible(GPU, ON_GPU, groups) == [False, False, False]


def test_a_gpu_is_asked_once_for_each_co_location() -> None:
    """Three equal tenants, two of them, and one alone, whatever is asked of them and how often."""
    oracle = mixed().gpus[1]
    tenants = [promised(str(n), "a", 1.0, 90.0).tenant for n in range(3)]
    for _ in range(2):
        assert feasible(GPU, oracle, [tenants, tenants[1:]]) == [True, True] and violations(oracle, tenants) == []
    assert isinstance(oracle.test, ToyAdmission) and oracle.test.asked == 3


def test_latency_on_a_nic_follows_from_utilisation_beside_others() -> None:
    """a has 100 kpps alone, 95 beside b: 57 kpps are 57 % alone and 60 % beside b, so 67 and 70 us."""
    strict, loose = promised("1", "a", 57.0, 68.0).tenant, promised("2", "a", 57.0, 71.0).tenant
    b = arrival("b", 0, "b").tenant
    assert feasible(NIC, ON_NIC, [[strict], [strict, b], [loose, b]]) == [True, False, True]
    assert violations(ON_NIC, [strict, b]) == [Violation(strict, "latency")]
    of_a, of_b = ON_NIC.latency(co_location_of([loose.workload, b.workload]))
    assert of_a == pytest.approx(70.0) and of_b is None


def test_a_promise_does_not_replace_the_throughput_of_an_sla() -> None:
    """60 kpps within 90 us are kept next to b, and 98 kpps are not."""
    within = promised("1", "a", 60.0, 90.0).tenant
    demanding = Tenant("1", within.workload, Sla(min_kpps=98.0))
    b = arrival("b", 0, "b").tenant
    assert feasible(NIC, ON_NIC, [[within, b], [demanding, b]]) == [True, False]


def test_without_a_curve_no_latency_is_promised() -> None:
    assert not mixed(curves={"c": CURVES["c"]}).kinds[0].hosts(promised("1", "a", 57.0, 68.0).workload)


@pytest.mark.parametrize(
    ("workload", "fault"),
    [
        # c runs on NICs, which have no curve of it in this fleet
        (Workload("c", TOY_TRAFFIC, 5.0, latency_us=90.0), ("sla_latency_us", "the latency of 'c' cannot be promised")),
        (Workload("a", TOY_TRAFFIC, 5.0, latency_us=90.0), None),
        (Workload("x", TOY_TRAFFIC), ("nf", "'x' is not profiled, and no GPU runs it")),
        (Workload("c", TOY_TRAFFIC), None),
    ],
)
def test_what_no_device_can_promise_is_refused(workload: Workload, fault: tuple[str, str] | None) -> None:
    """The fault names the column, and says what is missing; the models of the NICs know a and c."""
    models = SimpleNamespace(models={"a": None, "c": None}, check=lambda workload: [], predictors={})
    found = replace(mixed(curves={}), models=(models, models)).check(workload)  # type: ignore[arg-type]
    assert len(found) == (fault is not None)
    if fault is not None:
        assert found[0][0] == fault[0] and found[0][1].startswith(fault[1])
