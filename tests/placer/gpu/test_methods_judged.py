"""Every method on random small instances: nothing admitted breaks the model, and exact finds the most there is."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest

from placer.gpu.registry import MethodSetting
from tests.effort import examples
from tests.placer.gpu.exhaustive import most_admitted
from tests.placer.gpu.judged import BY_FORMULA, judged
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

PRINTED = "grus-printed"
"""The algorithm as the paper prints it does not keep its own model."""
KEEPING = [name for name in BY_FORMULA if name != PRINTED]
SIZES = (0, 1, 2, 3, 4, 4, 5, 5, 5)

GENERATORS = pytest.mark.parametrize("generator", [contended, unseen])
BUSES = pytest.mark.parametrize("arbitration", ARBITRATIONS)


@pytest.fixture(scope="module", autouse=True)
def compiled() -> None:
    """Every method has run before: compiling takes longer than the time limit where nothing is cached."""
    for arbitration in ARBITRATIONS:
        for _, _, instance in instances(contended, arbitration, 4):
            for method in BY_FORMULA:
                judged(method, *instance)


def instances(generator: Generator, arbitration: str, number: int) -> Iterator[tuple[str, Random, Instance]]:
    """Instances of up to five SLOs, more of them large than small; each with a name and randomness of its own."""
    for seed in range(number):
        name = f"{generator.__name__}, {arbitration}, {seed}"
        rng = Random(name)
        yield name, rng, generator(rng, arbitration, rng.choice(SIZES))


def check(generator: Generator, arbitration: str, number: int) -> None:
    """Judge all methods on so many instances."""
    for name, _, (device, slos) in instances(generator, arbitration, number):
        most = most_admitted(device, slos)
        for method in KEEPING:
            found = judged(method, device, slos)
            assert found.faults == [], (name, method)
            assert found.admitted <= most <= found.answer["bound"], (name, method)
            assert method != "exact" or (found.admitted, found.answer["proven"]) == (most, True), name


@pytest.mark.slow
@GENERATORS
@BUSES
def test_10_000_instances_keep_the_model(generator: Generator, arbitration: str) -> None:
    """2,500 instances of each generator and bus."""
    check(generator, arbitration, 2_500)


@GENERATORS
@BUSES
def test_admissions_keep_the_model_and_exact_admits_the_most(generator: Generator, arbitration: str) -> None:
    """No method admits a set that breaks the model or states a bound that is too low; `exact` proves the most."""
    check(generator, arbitration, examples(12))


@GENERATORS
@BUSES
def test_larger_instances_keep_the_model_and_all_bounds(generator: Generator, arbitration: str) -> None:
    """With 6 to 16 SLOs, no method admits more than the bound of another."""
    for seed in range(8):
        rng = Random(seed)
        device, slos = generator(rng, arbitration, rng.randint(6, 16))
        device |= {"sms": rng.randint(1, 6), "workers": rng.choice((5, 20))}
        found = {method: judged(method, device, slos, MethodSetting(time_limit_s=0.2)) for method in KEEPING}
        assert [one.faults for one in found.values()] == [[]] * len(found), seed
        most = max(one.admitted for one in found.values())
        assert {method: one.answer["bound"] for method, one in found.items() if one.answer["bound"] < most} == {}, seed


@BUSES
def test_the_printed_algorithm_often_breaks_its_own_model(arbitration: str) -> None:
    """On contended instances, many of the sets that it admits violate the latency of one of them."""
    found = [judged(PRINTED, *instance) for _, _, instance in instances(contended, arbitration, 150)]
    several = [one for one in found if one.admitted > 1]
    assert sum(bool(one.faults) for one in several) > len(several) / 10


@GENERATORS
@BUSES
def test_easier_instances_admit_no_fewer(generator: Generator, arbitration: str) -> None:
    """A longer latency, another SM or one request less never lowers the optimum; new names change nothing."""
    for name, rng, instance in instances(generator, arbitration, 6):
        device, slos = instance
        if not slos:
            continue
        most = judged("exact", *instance).admitted
        assert judged("exact", *relaxed(instance, rng)).admitted >= most, name
        assert judged("exact", *with_another_sm(instance)).admitted >= most, name
        assert judged("exact", *renamed(instance, rng)).admitted == most, name
        assert judged("exact", device, slos[:-1]).admitted in (most - 1, most), name


@pytest.mark.parametrize("method", BY_FORMULA)
def test_the_same_instance_gets_the_same_answer(method: str) -> None:
    """Nothing but the time it took differs."""
    for _, _, instance in instances(contended, "sporadic", 6):
        first, second = (judged(method, *instance).answer | {"seconds": 0.0} for _ in range(2))
        assert first == second
