"""The compiled algorithm gives the same answers as the readable one."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from placer.gpu.device import Arbitration
from placer.gpu.fast.admit import in_order
from placer.gpu.fast.grus import GpuArrays, admit_fast
from placer.gpu.fast.online import FastGpu
from placer.gpu.greedy.admit import admit_greedily
from placer.gpu.plan import Admission
from placer.gpu.slo import LatencySlo
from tests.placer.gpu.small_gpu import random_gpu, random_slos, small_gpu, violations


@pytest.mark.parametrize("arbitration", Arbitration)
def test_both_give_the_same_answers(arbitration: Arbitration) -> None:
    """Batches, SMs, orders and causes, on random GPUs and SLOs."""
    for seed in range(150):
        rng = Random(f"{arbitration} {seed}")
        device = random_gpu(rng, arbitration)
        slos = random_slos(rng, device, rng.randint(0, 25))
        assert admit_fast(device, slos) == admit_greedily(device, slos), seed


@pytest.mark.parametrize("arbitration", Arbitration)
def test_a_set_of_many_slos_keeps_the_model(arbitration: Arbitration) -> None:
    """Eighty SLOs on twelve SMs, many of which are shared."""
    rng = Random(1)
    device = small_gpu(arbitration, sms=12, executors=12, workers=80)
    slos = [
        LatencySlo(f"{number}", rng.choice(("acl", "ids")), rng.uniform(2, 10), rng.uniform(600, 4000))
        for number in range(80)
    ]
    admitted, rejected = admit_fast(device, slos)
    assert len(admitted) > 12
    assert list(violations(device, slos, Admission(admitted, rejected, 80, len(admitted) == 80, 0.0))) == []


@pytest.mark.parametrize("arbitration", Arbitration)
def test_arrivals_one_by_one_keep_the_model(arbitration: Arbitration) -> None:
    """Each arrival is admitted beside those before it, or has a cause."""
    for seed in range(20):
        rng = Random(f"online {arbitration} {seed}")
        device = random_gpu(rng, arbitration)
        slos = random_slos(rng, device, 20)
        gpu = FastGpu(device, most=20)
        causes = [gpu.arrive(slo) for slo in slos]
        admitted = gpu.admitted()
        assert [one.slo.id for one in sorted(admitted, key=lambda one: slos.index(one.slo))] == [
            slo.id for slo, cause in zip(slos, causes, strict=True) if cause is None
        ]
        kept = Admission(admitted, (), len(slos), len(admitted) == len(slos), 0.0)
        assert list(violations(device, [one.slo for one in admitted], kept)) == []


def test_a_full_gpu_takes_no_more() -> None:
    """There is room for as many SLOs as were announced; a later one is refused, and nothing changes."""
    gpu = FastGpu(small_gpu(workers=3), most=2)
    slos = [LatencySlo(name, "acl", 10.0, 500.0) for name in "abc"]
    assert [gpu.arrive(slo) for slo in slos[:2]] == [None, None]
    with pytest.raises(ValueError, match="2 SLOs"):
        gpu.arrive(slos[2])
    assert len(gpu.admitted()) == 2


def test_equal_keys_keep_their_order() -> None:
    """Sorting is stable at every length around those of runs and merges."""
    for count in (0, 1, 7, 8, 9, 16, 17, 100, 1000):
        keys = np.random.default_rng(count).integers(0, 5, count).astype(float)
        assert in_order(keys).tolist() == sorted(range(count), key=lambda one: keys[one])


def test_slos_become_arrays() -> None:
    """NFs by number, 0 where no batch is fixed."""
    gpu = GpuArrays(small_gpu())
    arrays = gpu.arrays([LatencySlo("a", "ids", 4.0, 50.0, 7), LatencySlo("b", "acl", 5.0, 60.0)])
    assert [column.tolist() for column in arrays] == [[1, 0], [4.0, 5.0], [50.0, 60.0], [7, 0]]
