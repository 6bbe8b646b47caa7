"""Online admission to a GPU, judged by the verifier and by the exhaustive search."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from placer.gpu.plan import Admission, LatencySlo, Rejected
from placer.inputs.gpu.slos import device_of, write_slo
from placer.report.text.admission import answer
from placer.verify.admission import admission_case, admission_faults
from tests.placer.gpu.exhaustive import most_admitted
from tests.placer.gpu.random_instances import ARBITRATIONS, Generator, contended, unseen
from tests.reference.gpu.incremental import GpuTenants

GENERATORS = pytest.mark.parametrize("generator", [contended, unseen])
BUSES = pytest.mark.parametrize("arbitration", ARBITRATIONS)


def faults_of(device: dict[str, Any], tenants: GpuTenants) -> list[str]:
    """What is wrong with the plan of those on the GPU."""
    plan = answer(Admission(tenants.plan, (), len(tenants.plan), True, 0.0))
    return list(admission_faults(admission_case(device, [write_slo(one.slo) for one in tenants.plan], plan)))


@GENERATORS
@BUSES
def test_the_plan_keeps_the_model_whatever_happens(generator: Generator, arbitration: str) -> None:
    """After every arrival, departure and new rate."""
    for seed in range(5):
        rng = Random(seed)
        device, slos = generator(rng, arbitration, 6)
        tenants = GpuTenants(device_of(device, "DEVICE"), time_limit_s=5.0)
        for slo in slos:
            tenants.add(LatencySlo(**slo), may_move=rng.random() < 0.5)
            assert faults_of(device, tenants) == [], seed
            if tenants.plan and rng.random() < 0.4:
                one = rng.choice(tenants.plan).slo
                if rng.random() < 0.5:
                    tenants.remove(one.id)
                else:
                    tenants.change_rate(one.id, round(one.rate_kpps * rng.choice((0.5, 0.9, 1.1, 2.0)), 4))
                assert faults_of(device, tenants) == [], seed


@GENERATORS
@BUSES
def test_an_arrival_that_others_may_move_for_is_admitted_if_any_plan_has_it(
    generator: Generator, arbitration: str
) -> None:
    """With those on the GPU and itself, by the exhaustive search."""
    for seed in range(8):
        device, slos = generator(Random(seed), arbitration, 4)
        tenants = GpuTenants(device_of(device, "DEVICE"), time_limit_s=5.0)
        present: list[dict[str, Any]] = []
        for slo in slos:
            joins = not isinstance(tenants.add(LatencySlo(**slo), may_move=True), Rejected)
            assert joins == (most_admitted(device, [*present, slo]) == len(present) + 1), seed
            present += [slo] if joins else []
