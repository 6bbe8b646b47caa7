"""The bench of pools: an arrival goes to the better of two, and where a pool refuses it, to others."""

from __future__ import annotations

import random

import pytest

from benches.shards import BETTER_OF_TWO, IN_TURN, RANDOM, EnginePool, Pools
from placer.fleet.engine import Engine
from placer.fleet.what_if import WhatIf
from placer.model.fleet import Fleet, Tenant
from placer.model.sla import Sla
from placer.testing.strategies import TOY_TRAFFIC, ToyOracle, catalogue
from profiles import Workload


def pool(nics: int = 1) -> EnginePool:
    """So many toy NICs, each of which takes two of `d`."""
    kinds = catalogue((nics, 1.0)).kinds
    engine = Engine(Fleet(kinds), [ToyOracle()])
    return EnginePool(engine, WhatIf(engine))


def tenant(number: int) -> Tenant:
    """An instance of `d`."""
    return Tenant(str(number), Workload("d", TOY_TRAFFIC), Sla(max_drop=0.9))


@pytest.mark.parametrize("way", [BETTER_OF_TWO, RANDOM, IN_TURN])
def test_an_arrival_is_rejected_only_where_all_pools_refuse_it(way: str) -> None:
    """Three NICs in three pools take six; with one try each, a pool that is full ends the search."""
    pools = Pools([pool() for _ in range(3)], way, random.Random(0), tries=3)
    assert [pools.place(tenant(number)) is not None for number in range(7)] == [True] * 6 + [False]
    assert pools.in_use == [1, 1, 1]


def test_an_arrival_goes_where_no_nic_has_to_be_opened() -> None:
    """The second of two goes to the NIC of the first, whichever pool that is."""
    for seed in range(10):
        pools = Pools([pool(), pool()], BETTER_OF_TWO, random.Random(seed), tries=2)
        assert pools.place(tenant(1)) is pools.place(tenant(2))
