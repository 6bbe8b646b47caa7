"""Grus on arrays, whole sets and one arrival after another, judged by the verifier."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

import pytest

from placer.gpu.fast.grus import admit_fast
from placer.gpu.fast.online import FastGpu
from placer.gpu.plan import Admission, Admitted
from placer.gpu.slo import LatencySlo
from placer.inputs.slos import device_of
from placer.report.text.admission import answer
from placer.verify.admission import admission_case, admission_faults
from tests.placer.gpu.random_instances import ARBITRATIONS, Generator, contended, unseen

GENERATORS = pytest.mark.parametrize("generator", [contended, unseen])
BUSES = pytest.mark.parametrize("arbitration", ARBITRATIONS)


def faults_of(device: dict[str, Any], slos: Sequence[dict[str, Any]], admitted: Sequence[Admitted]) -> list[str]:
    """What is wrong with what is admitted; all other SLOs are left out."""
    names = {one.slo.id for one in admitted}
    document = answer(Admission(tuple(admitted), (), len(names), True, 0.0))
    return list(admission_faults(admission_case(device, [slo for slo in slos if slo["id"] in names], document)))


@GENERATORS
@BUSES
def test_sets_and_arrivals_keep_the_model(generator: Generator, arbitration: str) -> None:
    """With 1 to 12 SLOs on up to six SMs."""
    for seed in range(40):
        rng = Random(seed)
        device, slos = generator(rng, arbitration, rng.randint(1, 12))
        device |= {"sms": rng.randint(1, 6)}
        gpu, requests = device_of(device, "DEVICE"), [LatencySlo(**slo) for slo in slos]
        admitted, rejected = admit_fast(gpu, requests)
        assert len(admitted) + len(rejected) == len(slos)
        assert faults_of(device, slos, admitted) == [], seed
        online = FastGpu(gpu, len(slos))
        causes = [online.arrive(slo) for slo in requests]
        assert causes.count(None) == len(online.admitted())
        assert faults_of(device, slos, online.admitted()) == [], seed
