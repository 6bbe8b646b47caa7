"""Exact admission: cases worked by hand, and the exhaustive search that `test_methods.py` compares it with."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import permutations, product
from random import Random
from typing import Any

import pytest

from placer.gpu.device import Arbitration
from placer.gpu.exact import admit_exactly
from placer.gpu.plan import LatencySlo
from placer.verify.admission import admission_case, admission_faults
from tests.placer.gpu.exhaustive import most_admitted
from tests.placer.gpu.instances import ARBITRATIONS, Generator, contended, slos_of, small_device, unseen

pytestmark = pytest.mark.long  # the kernels of admission take half a minute to compile

LONG_S = 30.0  # more than any of these cases needs


def test_the_later_deadline_goes_second() -> None:
    """Alone each takes 35 us; b has 10 us for a's transfer, so a goes first."""
    admission = admit_exactly(small_device(), slos_of(35, 45), LONG_S)
    assert [(one.slo.id, one.batch, one.order) for one in admission.admitted] == [("a", 1, 0), ("b", 1, 1)]
    assert (admission.bound, admission.proven, admission.rejected) == (2, True, ())


@pytest.mark.parametrize(
    ("device", "latency", "cause"),
    [
        (small_device(), 45, "pcie"),  # three cannot all start within 10 us
        (small_device(executors=1), 100, "executors"),  # two SMs with one executor each serve two SLOs
    ],
)
def test_bus_and_executors_limit_who_joins(device, latency, cause) -> None:  # type: ignore[no-untyped-def]
    admission = admit_exactly(device, slos_of(latency, latency, latency), LONG_S)
    assert len(admission.admitted) == admission.bound == 2
    assert [slo.cause for slo in admission.rejected] == [cause]


def test_recurring_transfers_admit_fewer() -> None:
    """The first is blocked for 10 us by the second, so both need 45 us."""
    device = small_device(arbitration=Arbitration.SPORADIC)
    assert len(admit_exactly(device, slos_of(35, 45), LONG_S).admitted) == 1
    assert len(admit_exactly(device, slos_of(45, 45), LONG_S).admitted) == 2


def test_a_larger_batch_saves_bus_time_where_transfers_recur() -> None:
    """At 50 kpps, a packet at a time takes half of the bus, so two take all; two packets a quarter each."""
    device = small_device(arbitration=Arbitration.SPORADIC, kernel_us=(0.0, 1.0), pre_post_us=1.0)
    slos = slos_of(100, 100, rate_kpps=50.0)
    admission = admit_exactly(device, slos, LONG_S)
    assert len(admission.admitted) == 2 and max(slo.batch for slo in admission.admitted) > 1
    assert len(admit_exactly(device, [replace(slo, batch=1) for slo in slos], LONG_S).admitted) == 1


def test_a_batch_is_split_where_one_sm_is_too_slow() -> None:
    """Twenty packets take 40 us on one SM, 20 us on two."""
    device = small_device(kernel_us=(20.0, 0.0))
    slo = LatencySlo("a", "ids", 1000.0, 19.0 + 5.0 + 10.0 + 20.0, 20)
    one = admit_exactly(device, [slo], LONG_S).admitted[0]
    assert sorted((share.sm, share.packets) for share in one.minibatches) == [(0, 10), (1, 10)]
    assert admit_exactly(device, [replace(slo, latency_us=slo.latency_us - 1.0)], LONG_S).admitted == ()


def test_penalties_keep_slos_apart() -> None:
    """Nobody has time for a penalty of 4 us: one SLO per SM."""
    admission = admit_exactly(small_device(beta_us=4.0), slos_of(35, 45, 55), LONG_S)
    assert len(admission.admitted) == admission.bound == 2
    assert len({one.minibatches[0].sm for one in admission.admitted}) == 2
    assert [slo.cause for slo in admission.rejected] == ["kernel"]


@pytest.mark.parametrize(
    ("device", "slos", "cause"),
    [
        (small_device(workers=0), slos_of(100), "workers"),
        (small_device(), slos_of(4), "batching"),
        # 900 us to collect ten packets.
        (small_device(), slos_of(500, batch=10), "batching"),
        (small_device(), slos_of(24), "kernel"),
        # A packet every 10 us, a kernel of 20 us.
        (small_device(), slos_of(500, rate_kpps=100.0, batch=1), "kernel"),
        (small_device(), slos_of(34), "pcie"),
        (small_device(sms=1, executors=1), slos_of(100_000, rate_kpps=1.0, batch=11), "executors"),
    ],
)
def test_causes_name_what_is_in_the_way_of_one_slo(device, slos, cause) -> None:  # type: ignore[no-untyped-def]
    """Alone on an empty GPU."""
    admission = admit_exactly(device, slos, LONG_S)
    assert [slo.cause for slo in admission.rejected] == [cause]
    assert (admission.bound, admission.proven) == (0, True)


Json = dict[str, Any]
GENERATORS = pytest.mark.parametrize("generator", [contended, unseen])
BUSES = pytest.mark.parametrize("arbitration", ARBITRATIONS)


def all_answers(device: Json, slos: Sequence[Json]) -> Iterator[list[Json]]:
    """Every way to admit all SLOs: orders, batches, and packets on each SM."""
    an_sm = device["executors_per_sm"] * device["packets_per_executor"]
    splits = [split for split in product(range(an_sm + 1), repeat=device["sms"]) if any(split)]
    for chosen in product(splits, repeat=len(slos)):
        for order in permutations(range(len(slos))):
            yield [
                {
                    "id": slo["id"],
                    "batch": sum(split),
                    "order": place,
                    "minibatches": [{"sm": sm, "packets": packets} for sm, packets in enumerate(split) if packets],
                }
                for slo, split, place in zip(slos, chosen, order, strict=True)
            ]


def all_admitted(device: Json, slos: Sequence[Json]) -> bool:
    """Whether any answer admits all SLOs."""
    for admitted in all_answers(device, slos):
        answer = {"admitted": admitted, "rejected": [], "bound": len(slos), "proven": True, "seconds": 0}
        if not any(admission_faults(admission_case(device, slos, answer))):
            return True
    return False


@pytest.mark.parametrize("seeds", [range(8), pytest.param(range(8, 400), marks=pytest.mark.slow)], ids=str)
@GENERATORS
@BUSES
def test_nothing_left_out_is_better(generator: Generator, arbitration: str, seeds: range) -> None:
    """Two SLOs on one or two SMs of one or two executors: both are admitted if any answer keeps the model."""
    for seed in seeds:
        rng = Random(seed)
        device, slos = generator(rng, arbitration, 2)
        device |= {"sms": rng.choice((1, 2)), "workers": 2, "packets_per_executor": rng.choice((1, 2))}
        device["executors_per_sm"] = 2 if device["sms"] * device["packets_per_executor"] < 4 else 1
        for wanted in (slos[:1], slos):
            assert (most_admitted(device, wanted) == len(wanted)) == all_admitted(device, wanted), seed


def test_the_generators_mix_easy_and_hard() -> None:
    """Some instances admit everything, most do not, and few admit nothing."""
    for generator in (contended, unseen):
        shares = []
        for seed in range(60):
            device, slos = generator(Random(seed), ARBITRATIONS[seed % 2], 4)
            shares.append(most_admitted(device, slos) / len(slos))
        assert 0.05 < sum(share == 1 for share in shares) / len(shares) < 0.7
        assert sum(share == 0 for share in shares) / len(shares) < 0.2
