"""Oracles cache their answers, within limits; dictionaries in parts, against those of Python."""

import random
import tracemalloc

import pytest

from placer.model import oracle
from placer.model.oracle import co_location_of
from placer.model.sharded import KEYS_PER_CHUNK, OrderedShards
from placer.testing.strategies import TOY_TRAFFIC, ToyOracle
from profiles import Workload

A, B, C, D = (co_location_of([Workload(nf, TOY_TRAFFIC)]) for nf in "abcd")


def test_a_co_location_is_queried_once() -> None:
    """Whether it occurs twice in one query or in two."""
    cached = ToyOracle()
    assert cached.throughput([A, B, A]) == [(100.0,), (200.0,), (100.0,)]
    assert cached.throughput([B, C]) == [(200.0,), (400.0,)] and cached.queries == 3


def test_only_recent_answers_are_cached(monkeypatch: pytest.MonkeyPatch) -> None:
    """With two answers per generation, a third drops none yet, and an answer used again outlives the others."""
    monkeypatch.setattr(oracle, "CACHED_ANSWERS", 2)
    cached = ToyOracle()
    for co_location in (A, B, C, A, D):
        cached.throughput([co_location])
    assert cached.queries == 4
    cached.throughput([A])
    assert cached.queries == 4
    cached.throughput([B])
    assert cached.queries == 5


def test_keys_keep_the_order_in_which_they_came() -> None:
    """Whatever is set, set again and removed; a key that comes back is the last."""
    shards: OrderedShards[int] = OrderedShards()
    expected: dict[str, int] = {}
    draw = random.Random(0)
    for step in range(5 * KEYS_PER_CHUNK):
        key = f"nic-{draw.randrange(2 * KEYS_PER_CHUNK)}"
        if key in expected and draw.random() < 0.5:
            del shards[key], expected[key]
        else:
            shards[key] = expected[key] = step
        assert (key in shards) == (key in expected) and shards.get(key) == expected.get(key)
        assert len(shards) == len(expected)
    assert list(shards) == list(expected) and list(shards.values()) == list(expected.values())
    assert list(shards.items()) == list(expected.items())


@pytest.mark.long
def test_keys_that_left_take_no_memory() -> None:
    """A hundred parts of keys that came and left, beside one that stays."""
    shards: OrderedShards[int] = OrderedShards()
    shards["stays"] = 0
    tracemalloc.start()
    for number in range(100 * KEYS_PER_CHUNK):
        shards[f"nic-{number}"] = number
        del shards[f"nic-{number}"]
    grown = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert grown < 1e5 and list(shards) == ["stays"]
