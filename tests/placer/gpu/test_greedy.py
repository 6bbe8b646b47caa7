"""Greedy admission, compiled: as the readable version, within the model, and one arrival after another."""

from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from placer.gpu.device import Arbitration, GpuNf
from placer.gpu.greedy import admit_greedily
from placer.gpu.plan import Admission, Admitted, LatencySlo
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
    small_gpu,
    unseen,
)
from tests.reference.gpu.greedy import admit_readably
from tests.reference.gpu.greedy_gpu import FastGpu


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
    slow = replace(small_gpu(), nfs={"acl": GpuNf("header", 5.0, (0.0, 1e12))}, sharing_us={})
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
    assert broken_rules(device, slos, Admission(admitted, rejected, 80, len(admitted) == 80, 0.0)) == []


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
        assert broken_rules(device, accepted, Admission(admitted, (), 20, len(admitted) == 20, 0.0)) == []


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
    assert 8 < len(admitted) < 32 and [one.slo for one in (*admitted, *rejected)] == slos


def test_slos_become_arrays() -> None:
    """NFs by number, 0 where no batch is fixed."""
    arrays = slo_arrays(small_gpu(), [LatencySlo("a", "ids", 4.0, 50.0, 7), LatencySlo("b", "acl", 5.0, 60.0)])
    assert [column.tolist() for column in arrays] == [[1, 0], [4.0, 5.0], [50.0, 60.0], [7, 0]]
