"""Methods of admission: small cases by hand, and that no answer violates the model."""

from collections.abc import Iterator
from random import Random

import pytest

from placer.gpu.latency import latency_of
from placer.gpu.plan import Admission, LatencySlo
from placer.gpu.registry import METHODS, MethodSetting
from tests.effort import examples
from tests.placer.gpu.exhaustive import most_admitted
from tests.placer.gpu.instances import (
    ARBITRATIONS,
    BY_FORMULA,
    Generator,
    Instance,
    broken_rules,
    contended,
    judged,
    relaxed,
    renamed,
    small_gpu,
    uneven,
    unseen,
    with_another_sm,
)

pytestmark = pytest.mark.long  # the kernels of admission take half a minute to compile

PRINTED = "grus-printed"
HEURISTICS = ("grus", "grus-ns", "g-net", "baymax", "fixed-batch")


def admit(method: str, *slos: LatencySlo, **gpu: object) -> Admission:
    """The answer for the small GPU."""
    return METHODS[method](small_gpu(**gpu), slos, MethodSetting())  # type: ignore[arg-type]


def names(admission: Admission) -> dict[str, str]:
    """`admitted` or the cause by id."""
    found = {one.slo.id: "admitted" for one in admission.admitted}
    return found | {one.slo.id: one.cause for one in admission.rejected}


def test_the_batch_is_the_smallest_that_keeps_up() -> None:
    """At 1,000 kpps a kernel of 10 us needs 10 packets; batching takes 9 us, and 9 + 5 + 4 + 10 us are kept."""
    (one,) = admit("grus", LatencySlo("a", "acl", 1000.0, 28.0)).admitted
    assert (one.batch, one.order, len(one.minibatches)) == (10, 0, 1)
    assert names(admit("grus", LatencySlo("a", "acl", 1000.0, 27.9)))["a"] == "kernel"


def test_each_slo_waits_for_those_before_it() -> None:
    """Three transfers of 4 us: the third is over after 12 us, so that 36 us are enough and 35.9 us are not."""
    first, second = LatencySlo("a", "acl", 1000.0, 28.0), LatencySlo("b", "acl", 1000.0, 32.0)
    kept = admit("grus", LatencySlo("c", "acl", 1000.0, 36.0), second, first)
    assert [(one.slo.id, one.order) for one in kept.admitted] == [("a", 0), ("b", 1), ("c", 2)]
    assert (kept.bound, kept.proven) == (3, True)
    short = admit("grus", LatencySlo("c", "acl", 1000.0, 35.9), second, first)
    assert names(short) == {"a": "admitted", "b": "admitted", "c": "pcie"}
    assert (short.bound, short.proven) == (2, True)


def test_penalties_are_avoided_while_there_are_free_sms() -> None:
    """Two ids on two SMs have none; a third one shares, and all three pay 3 us."""
    slos = [LatencySlo(name, "ids", 200.0, 400.0) for name in "abc"]
    two, three = admit("grus", *slos[:2]), admit("grus", *slos)
    assert {share.sm for one in two.admitted for share in one.minibatches} == {0, 1}
    assert sorted([parts.kernel for parts in latency_of(small_gpu(), three.admitted).values()]) == [30.0, 33.0, 33.0]


def test_a_batch_too_large_for_an_sm_is_split() -> None:
    """4,000 kpps for 34 us are 136 packets: 14 executors on four SMs of four."""
    (one,) = admit("grus", LatencySlo("a", "acl", 4000.0, 200.0), sms=4).admitted
    assert len(one.minibatches) > 1 and sum(share.packets for share in one.minibatches) == one.batch


@pytest.mark.parametrize(
    ("slo", "cause"),
    [
        (LatencySlo("a", "acl", 100.0, 600.0, 64), "batching"),
        (LatencySlo("a", "ids", 2000.0, 9000.0), "pcie"),
        (LatencySlo("a", "acl", 9000.0, 9000.0), "executors"),
        (LatencySlo("a", "acl", 10.0, 8.0), "kernel"),
        (LatencySlo("a", "ids", 1000.0, 900.0, 8), "workers"),
        (LatencySlo("a", "ids", 1000.0, 900.0, 20), "kernel"),
    ],
)
def test_the_cause_of_an_slo_that_an_empty_gpu_rejects(slo: LatencySlo, cause: str) -> None:
    """64 packets at 100 kpps take 630 us; 0.5 us a packet carry 2,000 kpps at most; 80 packets take 16 us. A kernel
    takes 10 us at least. The CPU needs 10 us for a batch that comes every 8 us; the kernel 36 us for 20."""
    answered = admit("grus", slo)
    assert names(answered) == {"a": cause} and (answered.bound, answered.proven) == (0, True)


def test_workers_and_executors_run_out() -> None:
    slos = [LatencySlo(f"{number}", "acl", 100.0, 500.0) for number in range(9)]
    assert list(names(admit("grus", *slos, workers=3)).values()).count("workers") == 6
    assert list(names(admit("grus", *slos, executors=2)).values()).count("executors") == 5
    assert list(names(admit("grus-ns", *slos)).values()).count("executors") == 7


def test_rivals_admit_less_of_the_same() -> None:
    """Six SLOs of 80 us: whole SMs hold two, without order all transfers count, serial kernels run one by one."""
    slos = [LatencySlo(f"{number}", "acl", 500.0, 52.0) for number in range(6)]
    counts = {method: len(admit(method, *slos).admitted) for method in HEURISTICS}
    assert counts["grus"] == 6 and counts["grus-ns"] == counts["g-net"] == 2
    assert counts["baymax"] == 1 and counts["fixed-batch"] == 0


def test_the_printed_batch_takes_the_whole_latency() -> None:
    """As printed, b = T * L: nothing is left for the other stages."""
    printed = admit(PRINTED, LatencySlo("a", "acl", 1000.0, 60.0))
    assert (printed.admitted, names(printed)) == ((), {"a": "batching"})


def test_the_printed_algorithm_never_resets_accepted() -> None:
    """With fixed batches it accepts the first SLO, and then each other one, however late."""
    slos = [LatencySlo("a", "acl", 1000.0, 28.0, 10), LatencySlo("b", "acl", 1000.0, 28.5, 10)]
    printed = admit(PRINTED, *slos)
    assert names(printed) == {"a": "admitted", "b": "admitted"}
    assert any("b" in found for found in broken_rules(small_gpu(), slos, printed))
    assert (printed.bound, printed.proven) == (1, False)


def test_no_slos_have_an_empty_answer() -> None:
    for method in BY_FORMULA:
        answered = admit(method)
        assert (answered.admitted, answered.rejected, answered.bound, answered.proven) == ((), (), 0, True)


@pytest.mark.parametrize("method", BY_FORMULA)
def test_a_batch_far_larger_than_the_gpu_is_answered_at_once(method: str) -> None:
    """Two thousand million packets: no method splits them before it knows that they do not fit."""
    admission = admit(method, LatencySlo("a", "acl", 2e6, 1e9, 2_000_000_000), LatencySlo("b", "acl", 2e6, 1e6))
    assert names(admission)["a"] != "admitted"


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


@pytest.mark.parametrize("number", [examples(12), pytest.param(2_500, marks=pytest.mark.slow)])
@GENERATORS
@BUSES
def test_admissions_keep_the_model_and_exact_admits_the_most(
    generator: Generator, arbitration: str, number: int
) -> None:
    """No method admits a set that breaks the model or states a bound that is too low; `exact` proves the most."""
    for name, _, (device, slos) in instances(generator, arbitration, number):
        most = most_admitted(device, slos)
        for method in KEEPING:
            found = judged(method, device, slos)
            assert found.faults == [], (name, method)
            assert found.admitted <= most <= found.answer["bound"], (name, method)
            assert method != "exact" or (found.admitted, found.answer["proven"]) == (most, True), name


@pytest.mark.parametrize("generator", [contended, unseen, uneven])
@BUSES
def test_larger_instances_keep_the_model_and_all_bounds(generator: Generator, arbitration: str) -> None:
    """With 6 to 40 SLOs, no method admits more than the bound of another."""
    for seed in range(10):
        rng = Random(seed)
        device, slos = generator(rng, arbitration, rng.choice((rng.randint(6, 16), 40)))
        device |= {"sms": rng.randint(1, 8), "workers": rng.choice((5, 20, 40))}
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
