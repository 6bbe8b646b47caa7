"""The exhaustive search against all answers there are, and against itself on changed instances."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import permutations, product
from random import Random
from typing import Any

import pytest

from placer.verify.admission import admission_case, admission_faults
from tests.placer.gpu.exhaustive import best_answer, most_admitted
from tests.placer.gpu.random_instances import (
    ARBITRATIONS,
    Generator,
    Instance,
    contended,
    relaxed,
    renamed,
    unseen,
    with_another_sm,
)

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


@pytest.mark.slow
@GENERATORS
@BUSES
def test_nothing_left_out_is_better_full(generator: Generator, arbitration: str) -> None:
    """400 instances of each kind, against every answer."""
    compare_with_all_answers(generator, arbitration, 400)


@GENERATORS
@BUSES
def test_nothing_left_out_is_better(generator: Generator, arbitration: str) -> None:
    """Two SLOs on one or two SMs of one or two executors: both are admitted if any answer keeps the model."""
    compare_with_all_answers(generator, arbitration, 8)


def compare_with_all_answers(generator: Generator, arbitration: str, instances: int) -> None:
    for seed in range(instances):
        rng = Random(seed)
        device, slos = generator(rng, arbitration, 2)
        device |= {"sms": rng.choice((1, 2)), "workers": 2, "packets_per_executor": rng.choice((1, 2))}
        device["executors_per_sm"] = 2 if device["sms"] * device["packets_per_executor"] < 4 else 1
        for wanted in (slos[:1], slos):
            assert (most_admitted(device, wanted) == len(wanted)) == all_admitted(device, wanted), seed


@GENERATORS
@BUSES
@pytest.mark.parametrize("slos", range(6))
def test_what_it_admits_keeps_the_model(generator: Generator, arbitration: str, slos: int) -> None:
    """Nobody's latency is above the SLO, by the verifier."""
    for seed in range(5):
        device, requests = generator(Random(seed), arbitration, slos)
        answer = best_answer(device, requests)
        assert list(admission_faults(admission_case(device, requests, answer))) == [], seed


@GENERATORS
@BUSES
def test_easier_instances_admit_no_fewer(generator: Generator, arbitration: str) -> None:
    """A longer latency, another SM or one request less never lowers the most; new names change nothing."""
    for seed in range(12):
        rng = Random(seed)
        instance = generator(rng, arbitration, 4)
        most = most_admitted(*instance)
        assert most_admitted(*relaxed(instance, rng)) >= most
        assert most_admitted(*with_another_sm(instance)) >= most
        assert most_admitted(*renamed(instance, rng)) == most
        assert most_admitted(*without_one(instance)) >= most - 1


def without_one(instance: Instance) -> Instance:
    device, slos = instance
    return device, slos[:-1]


def test_the_generators_mix_easy_and_hard() -> None:
    """Some instances admit everything, most do not, and few admit nothing."""
    for generator in (contended, unseen):
        shares = []
        for seed in range(60):
            device, slos = generator(Random(seed), ARBITRATIONS[seed % 2], 4)
            shares.append(most_admitted(device, slos) / len(slos))
        assert 0.05 < sum(share == 1 for share in shares) / len(shares) < 0.7
        assert sum(share == 0 for share in shares) / len(shares) < 0.2
