"""Workloads at an offered rate, with a promised latency."""

import pickle
from dataclasses import replace
from math import inf

from placer.model.fleet import NicKind
from placer.model.oracle import co_location_of
from placer.testing.strategies import TOY_TRAFFIC
from profiles import Workload

PLAIN = Workload("a", TOY_TRAFFIC)
SLOW, FAST = (Workload("a", TOY_TRAFFIC, 50.0, latency_us=latency) for latency in (200.0, 100.0))


def test_rate_and_promise_make_workloads_different() -> None:
    """Equal ones are equal and hash alike, also in another process; a plain workload is another one."""
    again = pickle.loads(pickle.dumps(FAST))
    assert again == FAST and hash(again) == hash(FAST) and len({PLAIN, SLOW, FAST, again}) == 3
    assert FAST != PLAIN and PLAIN != FAST


def test_workloads_of_both_sorts_have_one_order() -> None:
    """By NF, traffic, rate, cores and promise; a saturated one last."""
    expected = (FAST, SLOW, PLAIN, Workload("b", TOY_TRAFFIC))
    assert co_location_of(reversed(expected)) == expected


def test_without_rate_and_promise_they_are_plain() -> None:
    assert FAST.saturated == PLAIN.saturated == PLAIN and PLAIN.saturated is PLAIN
    assert PLAIN.latency_us == inf and FAST.latency_us == 100.0


def test_a_kind_hosts_what_it_knows_enough_of() -> None:
    """Any NF without a promise, NFs of known latency with one; a GPU none without a rate."""
    rated = replace(PLAIN, rate_kpps=5.0)
    unknown = NicKind(0, "nic", 8, {"a": 1})
    assert [unknown.hosts(one) for one in (PLAIN, rated, FAST)] == [True, True, False]
    known = NicKind(0, "server", 8, {"a": 1}, latency_of={"p99": frozenset("a")})
    assert [known.hosts(one) for one in (PLAIN, rated, FAST)] == [True, True, True]
    gpu = NicKind(0, "gpu", 8, {"a": 1}, latency_of={"p99": frozenset("a")}, paced=True)
    assert [gpu.hosts(one) for one in (PLAIN, rated, FAST)] == [False, True, True]
