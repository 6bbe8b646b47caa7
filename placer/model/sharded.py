"""Dictionaries of many entries that never stop to grow all at once."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, MutableMapping, ValuesView
from copy import deepcopy
from itertools import chain
from typing import Any, Generic, TypeVar, cast

SHARDS = 256  # each grows by itself: one dictionary of 350,000 entries takes 17 ms to make room for more
KEYS_PER_CHUNK = 1_024  # keys of one part; it is given up when all of them are gone

_K = TypeVar("_K", bound=Hashable)
_V = TypeVar("_V")


def copied_values(found: dict[_K, _V], memo: dict[int, Any]) -> dict[_K, _V]:
    """As `deepcopy` with this memo, of a dictionary whose keys never change, in a fifth of its time."""
    known = memo.get
    return {
        key: value if type(value) is int else known(id(value)) or deepcopy(value, memo) for key, value in found.items()
    }


class ShardedDict(Generic[_K, _V]):
    """Values by key, in `SHARDS` dictionaries."""

    def __init__(self) -> None:
        self._shards: list[dict[_K, _V]] = [{} for _ in range(SHARDS)]

    def __deepcopy__(self, memo: dict[int, object]) -> ShardedDict[_K, _V]:
        made = memo[id(self)] = ShardedDict[_K, _V]()
        made._shards = [copied_values(shard, memo) for shard in self._shards]
        return made

    def __len__(self) -> int:
        return sum(map(len, self._shards))

    def __setitem__(self, key: _K, value: _V) -> None:
        self._shards[hash(key) % SHARDS][key] = value

    def __getitem__(self, key: _K) -> _V:
        return self._shards[hash(key) % SHARDS][key]

    def get(self, key: _K) -> _V | None:
        """The value of the key; None where there is none."""
        return self._shards[hash(key) % SHARDS].get(key)

    def part_with(self, key: _K) -> dict[_K, _V]:
        """The dictionary in which the key is, or would be."""
        return self._shards[hash(key) % SHARDS]

    def pop(self, key: _K) -> _V:
        """Remove the key, which is there; returns its value."""
        return self._shards[hash(key) % SHARDS].pop(key)

    def discard(self, key: _K) -> None:
        """Remove the key if it is there."""
        self._shards[hash(key) % SHARDS].pop(key, None)


class OrderedShards(MutableMapping[str, _V]):
    """Values by text in the order in which keys came, in dictionaries of `KEYS_PER_CHUNK` successive keys."""

    def __init__(self) -> None:
        self._chunk_of: ShardedDict[str, int] = ShardedDict()
        self._chunks: dict[int, dict[str, _V]] = {}
        self._came = self._size = 0

    def __deepcopy__(self, memo: dict[int, object]) -> OrderedShards[_V]:
        made = memo[id(self)] = OrderedShards[_V]()
        made._chunk_of = deepcopy(self._chunk_of, memo)
        made._chunks = {number: copied_values(chunk, memo) for number, chunk in self._chunks.items()}
        made._came, made._size = self._came, self._size
        return made

    def __len__(self) -> int:
        return self._size

    def __contains__(self, key: object) -> bool:
        return self._chunk_of.get(cast("str", key)) is not None

    def __getitem__(self, key: str) -> _V:
        return self._chunks[self._chunk_of[key]][key]

    def find(self, key: str) -> _V | None:
        """The value of the key; None where there is none."""
        number = self._chunk_of.get(key)
        return None if number is None else self._chunks[number][key]

    def __setitem__(self, key: str, value: _V) -> None:
        number = self._chunk_of.get(key)
        if number is None:
            number = self._chunk_of[key] = self._came // KEYS_PER_CHUNK
            self._came += 1
            self._size += 1
        self._chunks.setdefault(number, {})[key] = value

    def __delitem__(self, key: str) -> None:
        number = self._chunk_of.pop(key)
        chunk = self._chunks[number]
        del chunk[key]
        if not chunk:
            del self._chunks[number]
        self._size -= 1

    def __iter__(self) -> Iterator[str]:
        return chain.from_iterable(self._chunks.values())

    def values(self) -> ValuesView[_V]:
        """The values in the order in which their keys came."""
        return _Values(self)


class _Values(ValuesView[_V]):
    """The values of `OrderedShards`, without looking each one up."""

    _mapping: OrderedShards[_V]

    def __iter__(self) -> Iterator[_V]:
        return chain.from_iterable(chunk.values() for chunk in self._mapping._chunks.values())
