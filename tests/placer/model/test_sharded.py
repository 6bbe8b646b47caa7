"""Dictionaries in parts, against those of Python."""

import random
import tracemalloc

import pytest

from placer.model.sharded import KEYS_PER_CHUNK, OrderedShards


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
