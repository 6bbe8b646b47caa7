"""A hand-made admission is right, and each way to break it is named."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable
from typing import Any

import pytest

from placer.verify.admission import admission_case, admission_faults, latency_terms
from profiles import InputError
from tests.placer.verify.admission.hand import ANSWER, DEVICE, SLOS

Json = dict[str, Any]
Tamper = Callable[[Json], object]


def honest() -> Json:
    return copy.deepcopy({"device": DEVICE, "slos": SLOS, "answer": ANSWER})


def faults_in(document: Json) -> list[str]:
    return list(admission_faults(admission_case(document["device"], document["slos"], document["answer"])))


def admitted(document: Json, number: int) -> Json:
    one: Json = document["answer"]["admitted"][number]
    return one


def terms_of(document: Json) -> dict[str, list[float | None]]:
    """Batching, pre/post, wait, transfer and kernel of each admitted SLO, us."""
    case = admission_case(document["device"], document["slos"], document["answer"])
    found = latency_terms(case.device, {slo.id: slo for slo in case.slos}, case.answer.admitted)
    return {one.id: [None if part is None else float(part) for part in terms[:5]] for one, terms in found}


def test_an_admission_by_hand_has_no_fault() -> None:
    """Two of three SLOs, one of them on two SMs."""
    assert faults_in(honest()) == []


def test_latencies_once_each() -> None:
    """`a` is first on the bus and shares SM 0 with `b`; `b` waits for its 12 us."""
    assert terms_of(honest()) == {"a": [63.0, 3.0, 0.0, 12.0, 47.0], "b": [70.0, 2.0, 12.0, 16.0, 50.0]}


def test_latencies_of_batches_that_recur() -> None:
    """`a` waits for the transfer of `b` that just began; `b` for one transfer of `a`, for 64 us bring no second."""
    document = honest()
    document["device"]["arbitration"] = "sporadic"
    document["slos"][0]["latency_us"] = 141.0
    assert terms_of(document) == {"a": [63.0, 3.0, 16.0, 12.0, 47.0], "b": [70.0, 2.0, 12.0, 16.0, 50.0]}
    assert faults_in(document) == []


def test_the_same_nf_is_another_sharer() -> None:
    """Two SLOs of one NF on an SM pay its penalty with itself."""
    document = honest()
    document["slos"][1]["nf"] = "firewall"
    document["device"]["sharing_us"]["firewall"]["firewall"] = 9.5
    assert [parts[4] for parts in terms_of(document).values()] == [49.5, 39.5]


@pytest.mark.parametrize(
    ("tamper", "message"),
    [
        (lambda x: x["slos"][0].update(latency_us=124.9), "a: its latency is 125 us (batching 63, pre/post 3, wait 0"),
        (lambda x: x["slos"][1].update(latency_us=149.9), "b: its latency is 150 us (batching 70, pre/post 2, wait 12"),
        (lambda x: x["slos"][0].update(batch=63), "a: its batch is 64, and is fixed at 63"),
        (lambda x: x["device"].update(executors_per_sm=2), "executors: SM 0 has 2, its minibatches take 3"),
        (lambda x: x["device"].update(packets_per_executor=10), "executors: SM 0 has 4, its minibatches take 11"),
        (lambda x: x["device"].update(sms=1), "b: SM 1 is not one of 0 to 0"),
        (lambda x: x["device"].update(workers=1), "workers: 2 SLOs are admitted, there are 1 workers"),
        (
            lambda x: x["device"]["nfs"]["firewall"].update(pre_post_us=64.5),
            "a: its pre/post takes 64.5 us, its period",
        ),
        (lambda x: x["device"]["nfs"]["firewall"].update(kernel_us=[10, 40]), "a: its kernel takes 67 us, its period"),
        (lambda x: admitted(x, 0).update(id="b"), "ids: b is answered 2 times"),
        (lambda x: admitted(x, 0).update(id="b"), "ids: a is neither admitted nor rejected"),
        (lambda x: admitted(x, 0).update(id="d"), "ids: d is not one of the SLOs"),
        (lambda x: x["answer"]["rejected"].clear(), "ids: c is neither admitted nor rejected"),
        (lambda x: admitted(x, 1).update(order=1), "orders: a and b all have order 1"),
        (lambda x: admitted(x, 0).update(order=3), "a: its latency is 141 us"),
        (lambda x: admitted(x, 0).update(batch=65), "a: its minibatches are 64 packets together, its batch is 65"),
        (lambda x: admitted(x, 0).update(batch=0), "a: its batch is 0, below 1"),
        (lambda x: admitted(x, 1)["minibatches"][1].update(sm=0), "b: it has 2 minibatches on SM 0"),
        (lambda x: admitted(x, 1)["minibatches"][0].update(packets=0), "b: a minibatch on SM 0 has 0 packets"),
        (lambda x: admitted(x, 1)["minibatches"].clear(), "b: its minibatches are 0 packets together"),
        (lambda x: x["answer"].update(bound=1), "bound: 1 is below the 2 admitted"),
        (lambda x: x["answer"].update(proven=True), "bound: 3 is said to be reached, and 2 are admitted"),
    ],
)
def test_each_broken_constraint_is_named(tamper: Tamper, message: str) -> None:
    document = honest()
    tamper(document)
    assert any(message in fault for fault in faults_in(document)), faults_in(document)


@pytest.mark.parametrize(
    ("fixed_us", "message"),
    [
        (40.0, "b: with all earlier transfers it takes 1.3"),
        (64.0 - 6.4, "a: with all earlier transfers it takes 1 of the bus, which must be below 1"),
    ],
)
def test_a_bus_that_never_rests_is_named(fixed_us: float, message: str) -> None:
    """Where batches recur, transfers that take the whole bus are refused."""
    document = honest()
    document["device"]["arbitration"] = "sporadic"
    for slo in document["slos"]:
        slo["latency_us"] = 1e6
    document["device"]["transfer_us"]["header"] = [0.1, fixed_us]
    document["device"]["transfer_us"]["payload"] = [0.1, fixed_us]
    assert any(message in fault for fault in faults_in(document)), faults_in(document)


def test_rounding_of_floating_point_numbers_is_no_fault() -> None:
    """A latency 1e-10 above its SLO keeps it, 1e-8 does not."""
    document = honest()
    document["slos"][0]["latency_us"] = 125 * (1 - 1e-10)
    assert faults_in(document) == []
    document["slos"][0]["latency_us"] = 125 * (1 - 1e-8)
    assert len(faults_in(document)) == 1


@pytest.mark.parametrize(
    ("tamper", "message"),
    [
        (lambda x: x["device"].pop("workers"), "device.workers: is missing"),
        (lambda x: x["device"].update(arbitration="fair"), "device.arbitration: 'fair' is not one of"),
        (
            lambda x: x["device"]["nfs"]["firewall"].update({"class": "tail"}),
            "device.nfs.firewall.class: 'tail' has no",
        ),
        (lambda x: x["device"]["transfer_us"].update(header=[1.0]), "device.transfer_us.header: is too short"),
        (lambda x: x["slos"][0].update(nf="nat"), "slos.0.nf: the device has no NF 'nat'"),
        (lambda x: x["slos"][0].update(rate_kpps=0), "slos.0.rate_kpps: "),
        (lambda x: x["slos"][0].update(id="b"), "slos: id 'b' is given 2 times"),
        (lambda x: x["answer"]["rejected"][0].update(cause="bad luck"), "answer.rejected.0.cause: 'bad luck' is not"),
        (lambda x: admitted(x, 0).update(batch=1.5), "answer.admitted.0.batch: 1.5 is not a whole number"),
    ],
)
def test_what_is_no_admission_is_refused(tamper: Tamper, message: str) -> None:
    document = honest()
    tamper(document)
    with pytest.raises(InputError, match=re.escape(message)):
        faults_in(document)
