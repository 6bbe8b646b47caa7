"""Online decisions on 10,000 named NICs where a third of the arrivals have constraints.

NICs are in racks, which are domains, and the last fifth of the racks is the pool `edge`. Of the groups a third each is
`spread` with 5 members, `apart` with 3, and `together` with 2, which come one after the other; a fifth of the arrivals
asks for `edge`. They fill nine tenths of the NICs, then arrivals and departures alternate at random.
"""

import gc
import random
import time
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pandas as pd

from benches.bench import register
from benches.online import LOOSEST
from benches.recorded_card import kind_of, recorded_profile
from placer.fleet.engine import Engine
from placer.fleet.events import Arrive, Depart
from placer.model.fleet import Fleet
from placer.model.groups import Constraints
from placer.model.nic import Tenant
from placer.model.nic_kind import NicKind
from placer.model.oracle import PredictorOracle
from placer.model.sla import Sla
from predictor import Models, train
from profiles import Workload
from traces.arrivals import TABLE_2_NFS

RACKS = (1, 10, 100)
GROUPS = (("spread", 5), ("apart", 3), ("together", 2))  # the members of each group
CONSTRAINED, EDGE_SHARE, FILLED = 1 / 3, 0.2, 0.9  # shares of arrivals, and of NICs


@register("constrained")
def run(nics: int = 10_000, events: int = 60_000, racks: str = ",".join(map(str, RACKS))) -> pd.DataFrame:
    """Per number of racks, with and without constraints: decisions per CPU second, latencies (us, ms)."""
    models = train(recorded_profile(), ["tomur"])
    cases = [(int(number), constrained) for number in racks.split(",") for constrained in (False, True)]
    return pd.DataFrame([_measure(models, nics, events, *case) for case in cases])


def _measure(models: Models, nics: int, events: int, racks: int, constrained: bool) -> dict[str, object]:
    oracle = PredictorOracle(models.predictors["tomur"])
    kinds = _racks(kind_of(models), nics, racks, pools=constrained and racks > 1)
    defaults = [Workload(nf, models.default_traffic) for nf in TABLE_2_NFS]
    expected = [Tenant(nf.nf, nf, Sla(max_drop=LOOSEST)) for nf in defaults]
    engine = Engine(Fleet(kinds), [oracle for _ in kinds], expected=expected)
    draw = random.Random(0)
    arriving = _arrivals(draw, defaults, constrained=constrained, pools=constrained and racks > 1)
    placed: list[str] = []
    seconds, rejected = [], 0
    gc.disable()  # as the service does
    while len(seconds) < events:
        full = len(engine.fleet.nics) >= FILLED * nics
        if full and draw.random() < 0.5:
            at = draw.randrange(len(placed))
            placed[at], placed[-1] = placed[-1], placed[at]
            event: Arrive | Depart = Depart(placed.pop())
        else:
            event = Arrive(next(arriving))
        started = time.thread_time()
        decision = engine.handle(event)
        taken = time.thread_time() - started
        if isinstance(event, Arrive) and decision.nic is not None:
            placed.append(event.tenant.id)
        rejected += decision.status == "rejected"
        if full or seconds:
            seconds.append(taken)
    gc.enable()
    taken_us = 1e6 * np.array(seconds)
    return {
        "racks": racks, "constraints": constrained, "nics": len(engine.fleet.nics), "events": len(seconds),
        "rejected": rejected, "decisions_per_cpu_s": round(1e6 / taken_us.mean()),
        "median_us": round(float(np.median(taken_us)), 1), "p99_us": round(float(np.percentile(taken_us, 99)), 1),
        "longest_ms": round(float(taken_us.max()) / 1e3, 1),
    }  # fmt: skip


def _racks(kind: NicKind, nics: int, racks: int, *, pools: bool) -> list[NicKind]:
    """A kind for each rack, but a single one is no domain; with `pools`, the last racks are in the pool."""
    found = []
    for rack in range(racks):
        names = tuple(f"rack{rack}-{at}" for at in range(nics // racks))
        pool = "edge" if pools and rack >= (1 - EDGE_SHARE) * racks else ""
        found.append(
            replace(
                kind, index=rack, count=len(names), names=names, pool=pool, domain=f"rack{rack}" if racks > 1 else ""
            )
        )
    return found


def _arrivals(draw: random.Random, workloads: list[Workload], *, constrained: bool, pools: bool) -> Iterator[Tenant]:
    """Members of a group come one after the other, as replicas do."""
    number, size_of = 0, dict(GROUPS)
    mean = sum(size_of.values()) / len(size_of)
    while True:
        given = {"pool": "edge"} if pools and draw.random() < EDGE_SHARE else {}
        members = 1
        if constrained and draw.random() < CONSTRAINED / (CONSTRAINED + (1 - CONSTRAINED) * mean):
            name = draw.choice([*size_of])
            given[name], members = str(number), size_of[name]
        constraints = Constraints(tuple(sorted(given.items())))
        for _ in range(members):
            number += 1
            sla = Sla(max_drop=round(draw.uniform(0.05, LOOSEST), 3))
            yield Tenant(str(number), draw.choice(workloads), sla, constraints=constraints)
