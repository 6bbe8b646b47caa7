"""A hand-made admission is right, and each way to break it is named. The wait for the bus: cases by hand, and what a
simulated bus does."""

import copy
import re
from collections.abc import Callable
from fractions import Fraction
from itertools import accumulate, pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placer.verify.admission import admission_case, admission_faults, latency, latency_terms
from placer.verify.admission.latency import Stream, TooManySteps, one_shot_wait, sporadic_wait, utilisation_of
from profiles import InputError
from tests.effort import examples
from tests.placer.gpu.test_bus import longest_waits
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


def stream(transfer: float, period: float) -> Stream:
    return Stream(Fraction(str(transfer)), Fraction(str(period)))


def streams_of(*pairs: tuple[float, float]) -> list[Stream]:
    return [stream(*pair) for pair in pairs]


def waits(streams: list[Stream]) -> list[Fraction]:
    """The wait of each stream, smallest order first."""
    return [sporadic_wait(one, streams[:place], streams[place + 1 :]) for place, one in enumerate(streams)]


def test_once_each_waits_for_all_earlier() -> None:
    """2 + 3 us for the third of three transfers."""
    assert one_shot_wait(streams_of((2, 9), (3, 9))) == 5


@pytest.mark.parametrize(
    ("streams", "expected"),
    [
        ([(3, 10)], [0]),
        ([(3, 10), (2, 10)], [2, 3]),
        ([(2, 5), (1, 20), (1, 20)], [1, 3, 3]),
        # at 4, when the bus becomes free, the first arrives again and goes before the third
        ([(2, 4), (2, 9), (1, 100)], [2, 3, 6]),
        # at 4 = 2 + 2, the first arrives again and goes before the second
        ([(2, 4), (1, 8), (2, 9)], [2, 6, 3]),
        ([(0, 1), (5, 6)], [5, 0]),
    ],
)
def test_hand_cases_of_recurring_transfers(streams: list[tuple[float, float]], expected: list[int]) -> None:
    """Each bound is found by drawing the bus."""
    assert waits(streams_of(*streams)) == expected


def test_the_second_batch_of_a_busy_period_can_wait_longest() -> None:
    """Davis et al., section 3.1: three messages of 1 ms with periods 2.5, 3.5 and 3.5 ms. The third waits 2 ms in its
    first instance, and 2.5 ms in its second."""
    assert waits(streams_of((1, 2.5), (1, 3.5), (1, 3.5))) == [1, 2, Fraction("2.5")]


def test_a_bus_next_to_its_limit_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """The search ends after its number of steps."""
    monkeypatch.setattr(latency, "MOST_STEPS", 50)
    with pytest.raises(TooManySteps):
        waits(streams_of((1, 2), (1, 2.0001)))


tenths = st.integers(min_value=1, max_value=60).map(lambda number: Fraction(number, 10))


@st.composite
def buses(draw: st.DrawFn) -> list[Stream]:
    """Two to four streams that leave the bus idle at times."""
    number = draw(st.integers(2, 4))
    shares = draw(st.lists(st.integers(3, 30), min_size=number, max_size=number))
    chosen = [
        Stream(transfer, Fraction(round(transfer * share * 2), 10))
        for transfer, share in zip(draw(st.lists(tenths, min_size=number, max_size=number)), shares, strict=True)
    ]
    chosen = [Stream(one.transfer, max(one.period, one.transfer)) for one in chosen]
    while utilisation_of(chosen) >= 1:
        chosen = [Stream(one.transfer, one.period + 1) for one in chosen]
    return chosen


@settings(max_examples=examples(150))
@given(buses())
def test_the_bound_is_reached_when_all_arrive_together_behind_the_longest_later_transfer(streams: list[Stream]) -> None:
    """At the critical instant, a simulated bus lets a batch of each stream wait exactly as long as the bound."""
    for place, own in enumerate(streams):
        blocking = max((one.transfer for one in streams[place + 1 :]), default=Fraction(0))
        present = streams[: place + 1]
        horizon = (blocking + sum(one.transfer for one in present)) / (1 - utilisation_of(present)) + own.period
        arrivals = [[one.period * batch for batch in range(int(horizon / one.period) + 2)] for one in present]
        longest = longest_waits([one.transfer for one in present], arrivals, blocking)
        assert longest[place] == sporadic_wait(own, streams[:place], streams[place + 1 :])


@settings(max_examples=examples(150))
@given(buses(), st.data())
def test_no_random_arrivals_exceed_the_bound(streams: list[Stream], data: st.DataObject) -> None:
    """Batches at least a period apart, from any first instants, never wait longer than the bound."""
    arrivals = []
    for one in streams:
        extra = data.draw(st.lists(st.sampled_from([0, 0, 0, 1, 7]), min_size=2, max_size=25))
        gaps = [Fraction(more, 10) + (one.period if number else 0) for number, more in enumerate(extra)]
        arrivals.append(list(accumulate(gaps)))
        assert all(after - before >= one.period for before, after in pairwise(arrivals[-1]))
    longest = longest_waits([one.transfer for one in streams], arrivals)
    assert all(wait <= bound for wait, bound in zip(longest, waits(streams), strict=True))
