"""Deciding online, from 1,000 to 100,000 NICs, beside a plain loop over NICs and first fit without any predictor.

The fleet is filled by arrivals and then kept busy by arrivals and departures in turn. The peers go on from the same
fleet: the plain loop asks scikit-learn, once per NF, about every NIC with cores enough, and takes the first that keeps
all SLAs, or the best of all; first fit looks at cores only.
"""

from __future__ import annotations

import gc
import random
import resource
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import as_file, files
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from numpy.typing import NDArray

from benches.bench import register
from benches.co_locations import RECORDED, Loop
from placer.model.fleet import Fleet, Nic, NicKind, Tenant
from placer.model.oracle import Oracle, PredictorOracle
from placer.model.sla import Sla
from placer.online.engine import Engine
from placer.online.events import Arrive, Depart
from predictor import Models, train
from profiles import TrafficProfile, Workload
from profiles.profile import read_profile
from traces.arrivals import TABLE_2_NFS

SIZES = (1_000, 3_000, 10_000, 30_000, 100_000)
EVENTS = {100_000: 1_000_000}
FEWER_EVENTS = 200_000
DIFFERENT = (1_000, 10_000, 100_000)
DIFFERENT_EVENTS = 2_000
LOOPED_AT = 10_000
LOOPED = 5
PLOT = Path("build") / "online.svg"

Times = NDArray[np.float64]


@register("online")
def run() -> pd.DataFrame:
    """Per case and size: decisions/s of all events and of arrivals, percentiles (us), longest (ms), peak MB."""
    with as_file(files("traces") / RECORDED) as recorded:
        profile = read_profile(recorded)
    models = train(profile, ["tomur"])
    kind = _kind(models)
    rows: list[dict[str, object]] = []
    defaults = [Workload(nf, models.default_traffic) for nf in TABLE_2_NFS]
    for size in SIZES:
        busy = _Busy(Fleet([kind]), PredictorOracle(models.predictors["tomur"]), lambda draw: draw.choice(defaults))
        times = busy.live(size, EVENTS.get(size, FEWER_EVENTS))
        rows.append(_row("default traffic", "placer", size, times))
        rows.append(_row("default traffic", "first fit by cores", size, busy.first_fit()))
        if size == LOOPED_AT:
            rows += busy.looped(Loop(profile, models, defaults), defaults)
    for size in DIFFERENT:
        busy = _Busy(Fleet([kind]), PredictorOracle(models.predictors["tomur"]), lambda draw: _any(models, draw))
        busy.settle(size)
        rows.append(_row("all traffic different", "placer", size, busy.live(0, DIFFERENT_EVENTS)))
    table = pd.DataFrame(rows)
    _plot(table)
    return table


def _kind(models: Models) -> NicKind:
    assert models.testbed is not None
    nic = models.testbed.nic
    return NicKind(0, nic.model, nic.cores, {nf: models.cores(nf) for nf in models.nfs})


def _any(models: Models, draw: random.Random) -> Workload:
    traffic = TrafficProfile(draw.randint(1, 500_000), draw.randint(64, 1500), draw.randint(0, 1100))
    return Workload(draw.choice(TABLE_2_NFS), traffic)


@dataclass(frozen=True)
class _Times:
    """Seconds of each decision, and which were of arrivals."""

    all: Times
    arrivals: Times


class _Busy:
    """A fleet that somebody keeps busy."""

    def __init__(self, fleet: Fleet, oracle: Oracle, some: Callable[[random.Random], Workload]) -> None:
        self.fleet = fleet
        self.oracle = oracle
        self.some = some
        self.draw = random.Random(0)
        self.here: list[str] = []
        self.came = 0
        self.engine: Engine | None = None

    def arriving(self) -> Tenant:
        """One that nobody has seen."""
        self.came += 1
        return Tenant(str(self.came), self.some(self.draw), Sla(max_drop=round(self.draw.uniform(0.05, 0.20), 3)))

    def live(self, nics: int, events: int) -> _Times:
        """Arrivals until so many NICs are busy, then arrivals and departures in turn."""
        engine = self.engine = self.engine or Engine(self.fleet, [self.oracle])
        seconds, arrived = np.zeros(events), np.zeros(events, dtype=bool)
        gc.disable()  # as the service does
        for number in range(events):
            arrived[number] = len(self.fleet.nics) < nics or self.draw.random() < 0.5
            event = Arrive(self.arriving()) if arrived[number] else Depart(self.somebody())
            began = time.perf_counter()
            engine.handle(event)
            seconds[number] = time.perf_counter() - began
            if isinstance(event, Arrive):
                self.here.append(event.tenant.id)
        return _Times(seconds, seconds[arrived])

    def somebody(self) -> str:
        """One who leaves."""
        at = self.draw.randrange(len(self.here))
        self.here[at], self.here[-1] = self.here[-1], self.here[at]
        return self.here.pop()

    def settle(self, nics: int) -> None:
        """Three on each of so many NICs, with SLAs that they keep there."""
        kind = self.fleet.kinds[0]
        co_locations = [tuple(sorted(self.some(self.draw) for _ in range(3))) for _ in range(nics)]
        self.oracle.throughput([(workload,) for co_location in co_locations for workload in co_location])
        answers = self.oracle.throughput(co_locations)
        for number, (co_location, answer) in enumerate(zip(co_locations, answers, strict=True), start=1):
            tenants = []
            for workload, kpps in zip(co_location, answer, strict=True):
                self.came += 1
                drop = 1 - kpps / self.oracle.solo(workload)
                tenants.append(
                    Tenant(str(self.came), workload, Sla(max_drop=min(drop + self.draw.uniform(0, 0.1), 0.99)))
                )
                self.here.append(str(self.came))
            self.fleet.adopt(Nic(f"nic-{number}", kind, number), tenants)

    def first_fit(self) -> _Times:
        """Of arrivals: the first NIC with cores enough, looked for one by one."""
        kind, seconds = self.fleet.kinds[0], []
        free = [kind.cores - kind.cores_taken(t.workload for t in nic.tenants) for nic in self.fleet.nics.values()]
        for _ in range(200):
            cores = kind.cores_of[self.some(self.draw).nf]
            began = time.perf_counter()
            next((place for place, left in enumerate(free) if left >= cores), None)
            seconds.append(time.perf_counter() - began)
        return _Times(np.array(seconds), np.array(seconds))

    def looped(self, loop: Loop, workloads: Sequence[Workload]) -> Iterator[dict[str, object]]:
        """The plain loop over NICs, for the first that does and for the best."""
        seat = {workload: place for place, workload in enumerate(workloads)}
        alone = {workload: self.oracle.solo(workload) for workload in workloads}
        for name, stops in (("loop, first that keeps SLAs", True), ("loop, best that keeps SLAs", False)):
            seconds = []
            for _ in range(LOOPED):
                arriving = self.arriving()
                began = time.perf_counter()
                for nic in self.fleet.nics.values():
                    if _does(nic, arriving, loop, seat, alone) and stops:
                        break
                seconds.append(time.perf_counter() - began)
            yield _row("default traffic", name, len(self.fleet.nics), _Times(np.array(seconds), np.array(seconds)))


def _does(nic: Nic, arriving: Tenant, loop: Loop, seat: dict[Workload, int], alone: dict[Workload, float]) -> bool:
    everybody = [*nic.tenants, arriving]
    if nic.kind.cores_taken(tenant.workload for tenant in everybody) > nic.kind.cores:
        return False
    got = loop.throughput([[seat[tenant.workload] for tenant in everybody]])[0]
    return all(tenant.sla.is_met(kpps, alone[tenant.workload]) for tenant, kpps in zip(everybody, got, strict=True))


def _row(case: str, method: str, nics: int, times: _Times) -> dict[str, object]:
    return {
        "case": case,
        "method": method,
        "nics": nics,
        "events": len(times.all),
        "decisions_per_s": round(len(times.all) / times.all.sum()),
        "arrivals_per_s": round(len(times.arrivals) / times.arrivals.sum()),
        "median_us": round(1e6 * float(np.median(times.all)), 1),
        "p99_us": round(1e6 * float(np.percentile(times.all, 99)), 1),
        "longest_ms": round(1e3 * float(times.all.max()), 1),
        "peak_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
    }


def _plot(table: pd.DataFrame) -> None:
    """Decisions per second against NICs, for all methods."""
    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.subplots()
    for (case, method), rows in table.groupby(["case", "method"], sort=False):
        axes.loglog(rows["nics"], rows["decisions_per_s"], marker="o", label=f"{method}, {case}")
    axes.set_xlabel("NICs busy")
    axes.set_ylabel("decisions per second")
    axes.legend(frameon=False, fontsize=7)
    PLOT.parent.mkdir(exist_ok=True)
    figure.savefig(PLOT)
