"""Online admission."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placer.gpu.device import Arbitration
from placer.gpu.latency import violations
from placer.gpu.plan import Admitted, LatencySlo, Rejected
from tests.placer.gpu.devices import slos_of, small_device
from tests.reference.gpu.incremental import GpuTenants


def test_an_arrival_joins_and_leaves() -> None:
    """As many as the bus serves; after a departure, the next fits."""
    tenants = GpuTenants(small_device())
    a, b, c = slos_of(45, 45, 45)
    assert isinstance(tenants.add(a), Admitted)
    assert isinstance(tenants.add(b), Admitted)
    assert tenants.admits(c) == Rejected(c, "pcie")
    tenants.remove("a")
    assert isinstance(tenants.add(c), Admitted)
    assert sorted(one.slo.id for one in tenants.plan) == ["b", "c"]


def test_asking_changes_nothing() -> None:
    """`admits` only answers."""
    tenants = GpuTenants(small_device())
    tenants.admits(slos_of(45)[0])
    assert tenants.plan == ()


def test_an_arrival_with_an_earlier_deadline_goes_first() -> None:
    """a has time to wait, b has not."""
    tenants = GpuTenants(small_device())
    a, b = slos_of(45, 35)
    tenants.add(a)
    tenants.add(b)
    assert [one.slo.id for one in tenants.plan] == ["b", "a"]


def test_tenants_keep_their_sms_unless_they_may_move() -> None:
    """a fills an executor of both SMs; the pinned batch of b needs a whole SM, which only a's move leaves free."""
    device = small_device(sms=2, executors=3, kernel_us=(1.0, 20.0))
    a = LatencySlo("a", "ids", 10.0, 10_000.0, 20)
    b = LatencySlo("b", "ids", 10.0, 10_000.0, 60)
    tenants = GpuTenants(device)
    placed = tenants.add(a)
    assert isinstance(placed, Admitted)
    assert tenants.admits(b) == Rejected(b, "executors")
    c = replace(b, batch=40)
    assert isinstance(tenants.add(c), Admitted)
    assert next(one for one in tenants.plan if one.slo.id == "a").minibatches == placed.minibatches


def test_a_move_makes_room() -> None:
    """Penalties leave no SM for b until a gives one up."""
    device = small_device(sms=2, executors=2, kernel_us=(0.0, 20.0), beta_us=50.0)
    a = LatencySlo("a", "ids", 10.0, 2_000.0, 20)
    b = LatencySlo("b", "ids", 10.0, 65.0)
    split = GpuTenants(device).add(a)
    assert isinstance(split, Admitted)
    spread = replace(split, minibatches=(replace(split.minibatches[0], sm=0, packets=10),
                                         replace(split.minibatches[0], sm=1, packets=10)))  # fmt: skip
    tenants = GpuTenants(device, [spread])
    assert tenants.admits(b) == Rejected(b, "kernel")
    assert isinstance(tenants.add(b, may_move=True), Admitted)
    assert violations(device, tenants.plan) == []


def test_a_new_rate_changes_the_batch() -> None:
    """At 100 kpps a kernel of 20 us needs two packets; at 1,000 kpps, 20."""
    tenants = GpuTenants(small_device())
    tenants.add(LatencySlo("a", "ids", 100.0, 500.0))
    assert [one.batch for one in tenants.plan] == [2]
    assert isinstance(tenants.change_rate("a", 1000.0), Admitted)
    assert [one.batch for one in tenants.plan] == [20]
    assert isinstance(tenants.change_rate("a", 1e6), Rejected)
    assert [one.slo.rate_kpps for one in tenants.plan] == [1000.0]


def test_feasibility_has_its_reasons() -> None:
    """Two fit, three do not, and it is proven."""
    tenants = GpuTenants(small_device())
    a, b, c = slos_of(45, 45, 45)
    tenants.add(a)
    assert tenants.feasible([b])
    both = tenants.feasible([b, c])
    assert not both
    assert (both.proven, [one.cause for one in both.rejected]) == (True, ["pcie"])


def test_ids_are_unique() -> None:
    """An id joins once and leaves once."""
    tenants = GpuTenants(small_device())
    slo = slos_of(100)[0]
    tenants.add(slo)
    with pytest.raises(ValueError, match="a is on the GPU already"):
        tenants.add(slo)
    tenants.remove("a")
    with pytest.raises(KeyError):
        tenants.remove("a")


@given(st.data(), st.sampled_from(Arbitration))
@settings(max_examples=15, deadline=None)
def test_whatever_happens_everybody_keeps_the_latency(data: st.DataObject, arbitration: Arbitration) -> None:
    """Random arrivals and departures; those who stay keep their SMs."""
    device = small_device(sms=3, kernel_us=(4.0, 10.0), arbitration=arbitration, beta_us=3.0)
    tenants = GpuTenants(device, time_limit_s=0.1)
    for number in range(8):
        before = {one.slo.id: {share.sm for share in one.minibatches} for one in tenants.plan}
        if before and data.draw(st.integers(0, 2)) == 0:
            tenants.remove(data.draw(st.sampled_from(sorted(before))))
        else:
            rate, latency = data.draw(st.floats(1.0, 300.0)), data.draw(st.floats(20.0, 400.0))
            tenants.add(LatencySlo(str(number), "ids", rate, latency))
        assert violations(device, tenants.plan) == []
        after = {one.slo.id: {share.sm for share in one.minibatches} for one in tenants.plan}
        assert all(after[name] <= before[name] for name in before.keys() & after.keys())
