"""Greedy admission, compiled: as the readable version, within the model, and one arrival after another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placer.gpu.device import Arbitration, GpuNf
from placer.gpu.greedy import admit_greedily
from placer.gpu.latency import violations
from placer.gpu.plan import Admission, Admitted, LatencySlo, Rejected
from placer.gpu.tables import BY_DUE, SERIAL, UNORDERED, slo_arrays
from placer.inputs.gpu.slos import device_of
from placer.report.text.admission import answer
from placer.verify.admission import admission_case, admission_faults
from tests.placer.gpu.instances import (
    ARBITRATIONS,
    Generator,
    broken_rules,
    contended,
    random_gpu,
    random_slos,
    slos_of,
    small_device,
    small_gpu,
    unseen,
)
from tests.reference.gpu.greedy import admit_readably
from tests.reference.gpu.greedy_gpu import FastGpu
from tests.reference.gpu.incremental import GpuTenants


@pytest.mark.parametrize("arbitration", Arbitration)
@pytest.mark.parametrize(("exclusive", "rule"), [(False, BY_DUE), (True, BY_DUE), (True, UNORDERED), (False, SERIAL)])
def test_the_readable_version_gives_the_same_answers(arbitration: Arbitration, exclusive: bool, rule: int) -> None:
    """Batches, SMs, orders and causes, on random GPUs and SLOs; as Grus, Grus-NS, G-NET and Baymax admit."""
    for seed in range(150):
        rng = Random(f"{arbitration} {seed}")
        device = random_gpu(rng, arbitration)
        slos = random_slos(rng, device, rng.randint(0, 25))
        expected = admit_readably(device, slos, exclusive=exclusive, rule=rule)
        assert admit_greedily(device, slos, exclusive=exclusive, rule=rule) == expected, seed


def test_times_of_a_million_years_are_no_batch() -> None:
    """A kernel in which more packets arrive than an integer counts is too slow, as in the readable version."""
    device = small_gpu()
    nfs = {"acl": GpuNf("header", 5.0, (0.0, 1e12))}
    slow = replace(device, nfs=nfs, sharing_us={})
    slos = [LatencySlo("a", "acl", 1e12, 1e12)]
    assert admit_greedily(slow, slos) == admit_readably(slow, slos)
    assert [one.cause for one in admit_greedily(slow, slos)[1]] == ["executors"]


@pytest.mark.parametrize("arbitration", Arbitration)
def test_a_set_of_many_slos_keeps_the_model(arbitration: Arbitration) -> None:
    """Eighty SLOs on twelve SMs, many of which are shared."""
    rng = Random(1)
    device = small_gpu(arbitration, sms=12, executors=12, workers=80)
    slos = [
        LatencySlo(f"{number}", rng.choice(("acl", "ids")), rng.uniform(2, 10), rng.uniform(600, 4000))
        for number in range(80)
    ]
    admitted, rejected = admit_greedily(device, slos)
    assert len(admitted) > 12
    assert list(broken_rules(device, slos, Admission(admitted, rejected, 80, len(admitted) == 80, 0.0))) == []


def faults_of(device: dict[str, Any], slos: Sequence[dict[str, Any]], admitted: Sequence[Admitted]) -> list[str]:
    """What is wrong with what is admitted; all other SLOs are left out."""
    names = {one.slo.id for one in admitted}
    document = answer(Admission(tuple(admitted), (), len(names), True, 0.0))
    return list(admission_faults(admission_case(device, [slo for slo in slos if slo["id"] in names], document)))


@pytest.mark.parametrize("generator", [contended, unseen])
@pytest.mark.parametrize("arbitration", ARBITRATIONS)
def test_sets_and_arrivals_keep_the_model(generator: Generator, arbitration: str) -> None:
    """By the verifier, with 1 to 12 SLOs on up to six SMs; each arrival is admitted or has a cause."""
    for seed in range(40):
        rng = Random(seed)
        device, slos = generator(rng, arbitration, rng.randint(1, 12))
        device |= {"sms": rng.randint(1, 6)}
        gpu, requests = device_of(device, "DEVICE"), [LatencySlo(**slo) for slo in slos]
        admitted, rejected = admit_greedily(gpu, requests)
        assert len(admitted) + len(rejected) == len(slos)
        assert faults_of(device, slos, admitted) == [], seed
        online = FastGpu(gpu, len(slos))
        accepted = {slo.id for slo in requests if online.arrive(slo) is None}
        assert {one.slo.id for one in online.admitted()} == accepted
        assert faults_of(device, slos, online.admitted()) == [], seed


@pytest.mark.parametrize("arbitration", Arbitration)
def test_arrivals_beside_penalties_keep_the_model(arbitration: Arbitration) -> None:
    """Twenty arrivals on other GPUs, of which many are full."""
    for seed in range(20):
        rng = Random(f"online {arbitration} {seed}")
        device = random_gpu(rng, arbitration)
        gpu = FastGpu(device, most=20)
        accepted = [slo for slo in random_slos(rng, device, 20) if gpu.arrive(slo) is None]
        admitted = gpu.admitted()
        assert {one.slo.id for one in admitted} == {slo.id for slo in accepted}
        kept = Admission(admitted, (), 20, len(admitted) == 20, 0.0)
        assert list(broken_rules(device, accepted, kept)) == []


def test_a_full_gpu_takes_no_more() -> None:
    """There is room for as many SLOs as were announced; a later one is refused, and nothing changes."""
    gpu = FastGpu(small_gpu(workers=3), most=2)
    slos = [LatencySlo(name, "acl", 10.0, 500.0) for name in "abc"]
    assert [gpu.arrive(slo) for slo in slos[:2]] == [None, None]
    with pytest.raises(ValueError, match="2 SLOs"):
        gpu.arrive(slos[2])
    assert len(gpu.admitted()) == 2


@pytest.mark.parametrize("arbitration", Arbitration)
def test_of_equal_slos_the_first_are_admitted(arbitration: Arbitration) -> None:
    """A hundred that differ in their names only: as many as fit, from the first one on, in this order."""
    slos = [LatencySlo(f"{number}", "acl", 10.0, 130.0) for number in range(100)]
    admitted, rejected = admit_greedily(small_gpu(arbitration, sms=8, workers=100), slos)
    assert 8 < len(admitted) < 32
    assert [one.slo for one in (*admitted, *rejected)] == slos


def test_slos_become_arrays() -> None:
    """NFs by number, 0 where no batch is fixed."""
    arrays = slo_arrays(small_gpu(), [LatencySlo("a", "ids", 4.0, 50.0, 7), LatencySlo("b", "acl", 5.0, 60.0)])
    assert [column.tolist() for column in arrays] == [[1, 0], [4.0, 5.0], [50.0, 60.0], [7, 0]]


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
