"""The latency that admission computes, against the verifier's, which is exact and shares no code with it."""

from __future__ import annotations

from math import inf
from random import Random

import pytest

from placer.gpu.plan import Admission, Admitted, SmShare
from placer.gpu.slo import LatencySlo
from placer.gpu.waiting import latency_of
from placer.inputs.slos import device_of
from placer.report.text.admission import answer
from placer.verify.admission import admission_case, latency_terms
from tests.placer.gpu.random_instances import ARBITRATIONS, Generator, contended, unseen


def some_plan(rng: Random, slos: list[LatencySlo], sms: int) -> Admission:
    """All SLOs, with any batches, orders and SMs; it may break every limit."""
    orders = rng.sample(range(100), len(slos))
    admitted = []
    for slo, order in zip(slos, orders, strict=True):
        shares = [SmShare(sm, rng.randint(1, 4)) for sm in rng.sample(range(sms), rng.randint(1, sms))]
        admitted.append(Admitted(slo, sum(share.packets for share in shares), order, tuple(shares)))
    return Admission(tuple(admitted), (), len(slos), True, 0.0)


@pytest.mark.parametrize("generator", [contended, unseen])
@pytest.mark.parametrize("arbitration", ARBITRATIONS)
def test_every_part_of_every_latency_is_the_same(generator: Generator, arbitration: str) -> None:
    """At any plan, feasible or not; where the bus has no idle time, the wait has no bound."""
    for seed in range(60):
        rng = Random(seed)
        device, slos = generator(rng, arbitration, 4)
        plan = some_plan(rng, [LatencySlo(**slo) for slo in slos], device["sms"])
        found = latency_of(device_of(device, "DEVICE"), plan.admitted)
        case = admission_case(device, slos, answer(plan))
        for one, terms in latency_terms(case.device, {slo.id: slo for slo in case.slos}, case.answer.admitted):
            wait = inf if terms.wait is None else float(terms.wait)
            parts = [float(terms.batching), float(terms.pre_post), wait, float(terms.transfer), float(terms.kernel)]
            ours = found[one.id]
            assert [ours.batching, ours.pre_post, ours.transfer_wait, ours.transfer, ours.kernel] == pytest.approx(
                parts
            )
