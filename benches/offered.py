"""The engine where instances have rates and cores of their own: decisions per second of processor time.

Arrivals have one of so many loads, a few of them a number of cores, too. They fill the NICs; then, again and again, an
instance leaves, another arrives, and the rate of a third changes. The last row says how full the NICs are then, and how
many instances violate their SLA: the models take some NFs to be a little slower after a neighbour has left.
"""

import json
import random
import time
from collections import Counter, defaultdict
from contextlib import ExitStack
from math import exp, log

import pandas as pd

from benches.bench import register
from benches.service import NFS
from placer.fleet.engine import Engine
from placer.fleet.events import Decision
from placer.fleet.protocol import Reader
from placer.fleet.service.http.server import short_searches
from placer.fleet.service.opening import OnlineSettings, open_engine
from placer.inputs.catalogue import Cards, open_online
from placer.model.catalogue import Catalogue
from placer.model.feasibility import below_sla
from placer.policy.rules import LOOK_AHEAD
from placer.progress import Progress
from profiles import Workload

NICS, CHANGES, LOADS = 2_000, 2_000, 1_000
RISK = 0.05
CORES = (0, 0, 0, 0, 1, 2, 4)  # cores that are given, as often as they stand here; 0 for none
LEAST_SHARE, MOST_SHARE = 0.05, 0.9  # rates, as shares of what the NF carries alone on these cores, or on 4

CHANGED_BY = (0.7, 0.9, 1.1, 1.3)


@register("offered")
def run(nics: int = NICS, changes: int = CHANGES, loads: int = LOADS) -> pd.DataFrame:
    """Per kind of event: decisions, per second of processor time, the median (ms), and what was answered how often."""
    with short_searches(), ExitStack() as stack:
        catalogue = open_online(Cards(risk=RISK), stack, lambda message: None)
        settings = OnlineSettings("tomur", LOOK_AHEAD, "reject", risk=RISK)
        engine = open_engine(catalogue, settings, None, (), stack, Progress(quiet=True), lambda risk, arrivals: None)
        fleet = _Busy(catalogue, engine, loads)
        while len(engine.fleet.nics) < nics:
            fleet.arrive("filling: arrive")
        for _ in range(changes):
            fleet.send("depart", event="depart", id=fleet.present.pop(fleet.draw.randrange(len(fleet.present))))
            fleet.arrive("arrive")
            fleet.change()
        below = sum(len(below_sla(engine.oracles[nic.kind.index], nic.tenants)) for nic in engine.fleet.nics.values())
        cores = sum(kind.cores * engine.fleet.in_use(kind) for kind in engine.fleet.kinds)
        taken = sum(map(engine.fleet.cores_taken, engine.fleet.kinds))
        last = (
            f"{engine.fleet.tenants} on {len(engine.fleet.nics)} NICs, {taken / cores:.1%} of cores, {below} below SLA"
        )
        return pd.DataFrame([*fleet.rows(), {"events": "instances", "answers": last}]).fillna("")


class _Busy:
    """A fleet whose instances come, go and change."""

    def __init__(self, catalogue: Catalogue, engine: Engine, loads: int) -> None:
        self.draw, self.engine = random.Random(1), engine
        self.present: list[str] = []
        self.reader = Reader(catalogue.default_traffic, catalogue.check, engine.workload_of)
        alone = [Workload(nf, catalogue.default_traffic, cores=cores) for nf in NFS for cores in set(CORES) - {0}]
        kpps = catalogue.main_models.predictors["tomur"].solo(alone).tolist()
        self.alone = {(one.nf, one.cores): most for one, most in zip(alone, kpps, strict=True)}
        found: dict[tuple[str, float, int], None] = {}
        while len(found) < loads:
            nf, cores = self.draw.choice(NFS), self.draw.choice(CORES)
            share = exp(self.draw.uniform(log(LEAST_SHARE), log(MOST_SHARE)))
            found[nf, round(share * self.most(nf, cores), 1), cores] = None
        self.loads = list(found)
        self.seconds: defaultdict[str, list[float]] = defaultdict(list)
        self.statuses: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self.number = 0

    def most(self, nf: str, cores: int) -> float:
        """What the NF carries alone on so many cores (kpps)."""
        return float(self.alone[nf, cores or max(CORES)])

    def send(self, kind: str, **event: object) -> Decision:
        """Decide; the time counts from when the line is read."""
        line, begun = json.dumps(event), time.thread_time()
        decision = self.engine.handle(self.reader.read(line))
        self.seconds[kind].append(time.thread_time() - begun)
        self.statuses[kind][decision.status] += 1
        return decision

    def arrive(self, kind: str) -> None:
        self.number += 1
        nf, rate, cores = self.draw.choice(self.loads)
        given = {"cores": cores} if cores else {}
        if self.send(kind, event="arrive", id=f"{self.number}", nf=nf, rate_kpps=rate, **given).nic is not None:
            self.present.append(f"{self.number}")

    def change(self) -> None:
        identity = self.draw.choice(self.present)
        workload = self.engine.workload_of(identity)
        assert workload is not None
        most = 0.97 * self.most(workload.nf, workload.cores)
        rate = round(min(workload.rate_kpps * self.draw.choice(CHANGED_BY), most), 1)
        self.send("change", event="change", id=identity, rate_kpps=rate)

    def rows(self) -> list[dict[str, object]]:
        return [
            {
                "events": kind, "decisions": len(seconds), "per_cpu_s": round(len(seconds) / sum(seconds)),
                "median_ms": round(1e3 * sorted(seconds)[len(seconds) // 2], 2),
                "answers": ", ".join(f"{count} {status}" for status, count in self.statuses[kind].items()),
            }
            for kind, seconds in self.seconds.items()
        ]  # fmt: skip
