"""A fleet in pools, each with an engine of its own, compared with one engine for the whole fleet.

An arrival goes to the better of two pools drawn at random, by the score that each answers when it is asked, and of two
equal ones to that with fewer NICs in use; to one pool drawn at random; or to the next pool in turn. Where a pool
refuses it, others are tried, at most `--tries` in all. All ways get the same arrivals until the fleet is nearly full,
then as many arrivals and departures at random. Each way has a process of its own.
"""

import gc
import math
import multiprocessing
import random
import resource
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

import pandas as pd

from benches.bench import register, take_any
from benches.recorded_card import kind_of, recorded_profile
from placer.fleet.engine import Engine
from placer.fleet.events import Arrive, Depart
from placer.fleet.what_if import WhatIf, complete
from placer.model.fleet import Fleet
from placer.model.nic import Tenant
from placer.model.nic_kind import NicKind
from placer.model.oracle import PredictorOracle
from placer.model.sla import Sla
from predictor import train
from profiles import Workload
from traces.arrivals import TABLE_2_NFS

ONE, BETTER_OF_TWO, RANDOM, IN_TURN = "one engine", "better of two pools", "one random pool", "pools in turn"
WAYS = (ONE, BETTER_OF_TWO, RANDOM, IN_TURN)
DROPS = (0.05, 0.1, 0.15, 0.2)
PER_NIC = 3.8  # arrivals per NIC, with which one engine fills nearly the whole fleet
TRIES = 4  # pools that an arrival tries before it is rejected


@register("shards")
def run(
    nics: int = 100_000,
    pool: int = 10_000,
    per_nic: float = PER_NIC,
    churn: float = 1.0,
    ways: str = ",".join(WAYS),
    tries: int = TRIES,
) -> pd.DataFrame:
    """Per way: NICs in use and rejections, full and after churn (events per arrival), decisions/s, MB per pool."""
    rows = []
    for way in ways.split(","):
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as process:
            rows.append(process.submit(play, way, nics, pool, per_nic, churn, tries).result())
    return pd.DataFrame(rows)


@dataclass
class EnginePool:
    """Some NICs with an engine of their own."""

    engine: Engine
    what_if: WhatIf

    def bid(self, tenant: Tenant) -> tuple[bool, float, int]:
        """What the pool answers to a question: whether it opens a NIC, the score, and its NICs in use; low is good."""
        places, in_use = complete(self.what_if.places(tenant)), len(self.engine.fleet.nics)
        if not places:
            return True, math.inf, in_use
        score = places[0].score
        return places[0].opens, 0.0 if score is None else score, in_use


class Pools:
    """Pools, and the order in which an arrival tries them."""

    def __init__(self, pools: list[EnginePool], way: str, draw: random.Random, tries: int) -> None:
        self.pools = pools
        self._draw = draw
        self._tries = min(tries, len(pools))
        self._turn = 0
        ways: dict[str, Callable[[Tenant], Iterator[EnginePool]]] = {
            ONE: self._random, BETTER_OF_TWO: self._better_of_two, RANDOM: self._random, IN_TURN: self._in_turn,
        }  # fmt: skip
        self._order = ways[way]

    def place(self, tenant: Tenant) -> EnginePool | None:
        """The pool that has taken the arrival; None where all that were tried refuse it."""
        for pool in self._order(tenant):
            if pool.engine.handle(Arrive(tenant)).status == "placed":
                return pool
        return None

    def _random(self, tenant: Tenant) -> Iterator[EnginePool]:
        yield from self._draw.sample(self.pools, self._tries)

    def _better_of_two(self, tenant: Tenant) -> Iterator[EnginePool]:
        drawn = self._draw.sample(self.pools, self._tries)
        yield from sorted(drawn[:2], key=lambda pool: pool.bid(tenant))
        yield from drawn[2:]

    def _in_turn(self, tenant: Tenant) -> Iterator[EnginePool]:
        self._turn += 1
        return (self.pools[(self._turn + number) % len(self.pools)] for number in range(self._tries))

    @property
    def in_use(self) -> list[int]:
        """NICs in use, by pool."""
        return [len(pool.engine.fleet.nics) for pool in self.pools]


def play(way: str, nics: int, pool: int, per_nic: float, churn: float, tries: int) -> dict[str, object]:
    """One way's row."""
    kind, oracle, workloads = _card()
    expected = [Tenant(workload.nf, workload, Sla(max_drop=max(DROPS))) for workload in workloads]
    size = nics if way == ONE else pool
    _pool(_sized(kind, 10), oracle, expected)  # what all pools share is not counted as a pool's
    before = _memory_mb()
    engines = [_pool(_sized(kind, size), oracle, expected) for _ in range(nics // size)]
    pools = Pools(engines, way, random.Random(1), tries)
    draw, where = random.Random(0), dict[str, EnginePool]()
    gc.disable()  # the service leaves the fleet out of searches, too
    seconds = time.process_time()
    arrivals = round(per_nic * nics)
    rejected = sum(not _arrive(one, pools, where) for one in _tenants(draw, workloads, arrivals))
    full, fullest = sum(pools.in_use), max(pools.in_use)
    present, rejected_later, events = list(where), 0, round(churn * arrivals)
    new = _tenants(draw, workloads, events, first=arrivals)
    for _ in range(events):
        if draw.random() < 0.5:
            one = next(new)
            if _arrive(one, pools, where):
                present.append(one.id)
            else:
                rejected_later += 1
        else:
            leaving = take_any(present, draw)
            where.pop(leaving).engine.handle(Depart(leaving))
    seconds = time.process_time() - seconds
    return {
        "way": way, "pools": len(pools.pools), "pool_nics": size, "arrivals": arrivals, "in_use": full,
        "fullest_pool": round(fullest / size, 4), "rejected": rejected, "in_use_later": sum(pools.in_use),
        "rejected_later": rejected_later, "tenants_later": len(present),
        "tenants_per_nic": round(len(present) / sum(pools.in_use), 4),
        "decisions_per_s": round((arrivals + events) / seconds),
        "mb_per_pool": round((_memory_mb() - before) / len(pools.pools)),
    }  # fmt: skip


def _arrive(tenant: Tenant, pools: Pools, where: dict[str, EnginePool]) -> bool:
    pool = pools.place(tenant)
    if pool is not None:
        where[tenant.id] = pool
    return pool is not None


def _tenants(draw: random.Random, workloads: list[Workload], count: int, first: int = 0) -> Iterator[Tenant]:
    slas = [Sla(max_drop=drop) for drop in DROPS]
    return (Tenant(str(first + number), draw.choice(workloads), draw.choice(slas)) for number in range(count))


def _pool(kind: NicKind, oracle: PredictorOracle, expected: list[Tenant]) -> EnginePool:
    engine = Engine(Fleet([kind]), [oracle], expected=expected)
    return EnginePool(engine, WhatIf(engine))


def _sized(kind: NicKind, nics: int) -> NicKind:
    return NicKind(kind.index, kind.model, kind.cores, kind.cores_of, nics)


def _card() -> tuple[NicKind, PredictorOracle, list[Workload]]:
    models = train(recorded_profile(), ["tomur"])
    workloads = [Workload(nf, models.default_traffic) for nf in TABLE_2_NFS]
    return kind_of(models), PredictorOracle(models.predictors["tomur"]), workloads


def _memory_mb() -> float:
    """The largest memory of this process until now."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
