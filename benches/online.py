"""Online decisions on 1,000 to 100,000 NICs, compared with a plain loop over NICs and with first fit by cores.

Arrivals fill the fleet, then arrivals and departures alternate at random. The peers decide on the same fleet. The plain
loop predicts each NIC with enough cores by scikit-learn, once per NF; it stops at the first NIC that meets all SLAs, or
evaluates all NICs to find the best. First fit counts cores only.
"""

import gc
import random
import resource
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from benches.bench import register, take_any
from benches.co_locations import Loop
from benches.recorded_card import kind_of, recorded_profile
from placer.fleet.engine import Engine
from placer.fleet.events import Arrive, Depart
from placer.model.fleet import Fleet
from placer.model.nic import Nic, Tenant
from placer.model.oracle import Oracle, PredictorOracle
from placer.model.sla import Sla
from predictor import Models, train
from profiles import TrafficProfile, Workload
from profiles.arrays import Floats
from traces.arrivals import TABLE_2_NFS

SIZES = (1_000, 3_000, 10_000, 30_000, 100_000)
EVENTS = {100_000: 1_000_000}
FEWER_EVENTS = 200_000
DIFFERENT = (1_000, 10_000, 100_000)
DIFFERENT_EVENTS = 2_000
LOOPED_AT = 10_000
LOOSEST = 0.20
LOOPED = 5
PLOT = Path("build") / "online.svg"


@register("online")
def run() -> pd.DataFrame:
    """Per case and fleet size: decisions/s of all events and of arrivals, latencies (us, ms), and peak memory (MB)."""
    profile = recorded_profile()
    models = train(profile, ["tomur"])
    kind = kind_of(models)
    rows: list[dict[str, object]] = []
    defaults = [Workload(nf, models.default_traffic) for nf in TABLE_2_NFS]
    expected = [Tenant(nf.nf, nf, Sla(max_drop=LOOSEST)) for nf in defaults]
    for size in SIZES:
        oracle = PredictorOracle(models.predictors["tomur"])
        load = _FleetLoad(Fleet([kind]), oracle, lambda draw: draw.choice(defaults), expected)
        times = load.run(size, EVENTS.get(size, FEWER_EVENTS))
        rows.append(_row("default traffic", "placer", size, times))
        rows.append(_row("default traffic", "first fit by cores", size, load.first_fit()))
        if size == LOOPED_AT:
            rows += load.plain_loop(Loop(profile, models, defaults), defaults)
    for size in DIFFERENT:
        load = _FleetLoad(
            Fleet([kind]), PredictorOracle(models.predictors["tomur"]), lambda draw: _random_workload(models, draw)
        )
        load.fill(size)
        rows.append(_row("all traffic different", "placer", size, load.run(0, DIFFERENT_EVENTS)))
    table = pd.DataFrame(rows)
    _plot(table)
    return table


def _random_workload(models: Models, draw: random.Random) -> Workload:
    traffic = TrafficProfile(draw.randint(1, 500_000), draw.randint(64, 1500), draw.randint(0, 1100))
    return Workload(draw.choice(TABLE_2_NFS), traffic)


@dataclass(frozen=True)
class _Times:
    """Seconds of every decision, and of the decisions on arrivals."""

    all: Floats
    arrivals: Floats


class _FleetLoad:
    """Arrivals and departures on a fleet. `fleet`: the fleet; empty at first. `oracle`: predicts throughput.
    `draw_workload`: draws the workload of an arrival. `expected`: tenants like those that will come, as the service
    knows them."""

    def __init__(
        self,
        fleet: Fleet,
        oracle: Oracle,
        draw_workload: Callable[[random.Random], Workload],
        expected: Sequence[Tenant] = (),
    ) -> None:
        self.expected = expected
        self.fleet = fleet
        self.oracle = oracle
        self.draw_workload = draw_workload
        self.random = random.Random(0)
        self.placed: list[str] = []
        self.created = 0
        self.engine: Engine | None = None

    def new_tenant(self) -> Tenant:
        """A tenant with an id of its own."""
        self.created += 1
        return Tenant(
            str(self.created),
            self.draw_workload(self.random),
            Sla(max_drop=round(self.random.uniform(0.05, LOOSEST), 3)),
        )

    def run(self, nics: int, events: int) -> _Times:
        """Arrivals until so many NICs are in use, then arrivals and departures at random; the times of all events."""
        if self.engine is None and self.expected:
            self.place_typical()
        engine = self.engine = self.engine or Engine(self.fleet, [self.oracle], expected=self.expected)
        seconds, is_arrival = np.zeros(events), np.zeros(events, dtype=bool)
        gc.disable()  # as the service does
        for number in range(events):
            is_arrival[number] = len(self.fleet.nics) < nics or self.random.random() < 0.5
            event = Arrive(self.new_tenant()) if is_arrival[number] else Depart(take_any(self.placed, self.random))
            started = time.perf_counter()
            engine.handle(event)
            seconds[number] = time.perf_counter() - started
            if isinstance(event, Arrive):
                self.placed.append(event.tenant.id)
        return _Times(seconds, seconds[is_arrival])

    def place_typical(self) -> None:
        """Place a few arrivals on another fleet: the service places a typical trace before its first event, too."""
        engine = Engine(Fleet(self.fleet.kinds), [self.oracle], expected=self.expected)
        for tenant in self.expected * 5:
            engine.handle(Arrive(Tenant(str(engine.fleet.tenants), tenant.workload, tenant.sla)))

    def fill(self, nics: int) -> None:
        """Place three tenants on each of so many NICs, with SLAs that are met there."""
        kind = self.fleet.kinds[0]
        co_locations = [tuple(sorted(self.draw_workload(self.random) for _ in range(3))) for _ in range(nics)]
        self.oracle.throughput([(workload,) for co_location in co_locations for workload in co_location])
        throughputs = self.oracle.throughput(co_locations)
        for number, (co_location, rates) in enumerate(zip(co_locations, throughputs, strict=True), start=1):
            tenants = []
            for workload, kpps in zip(co_location, rates, strict=True):
                self.created += 1
                drop = 1 - kpps / self.oracle.solo(workload)
                tenants.append(
                    Tenant(str(self.created), workload, Sla(max_drop=min(drop + self.random.uniform(0, 0.1), 0.99)))
                )
                self.placed.append(str(self.created))
            self.fleet.adopt(Nic(f"nic-{number}", kind, number), tenants)

    def first_fit(self) -> _Times:
        """Times of arrivals by first fit: a loop over all NICs up to the first with enough cores."""
        kind, seconds = self.fleet.kinds[0], []
        free = [kind.cores - kind.cores_taken(t.workload for t in nic.tenants) for nic in self.fleet.nics.values()]
        for _ in range(200):
            cores = kind.cores_of[self.draw_workload(self.random).nf]
            started = time.perf_counter()
            next((at for at, left in enumerate(free) if left >= cores), None)
            seconds.append(time.perf_counter() - started)
        return _Times(np.array(seconds), np.array(seconds))

    def plain_loop(self, loop: Loop, workloads: Sequence[Workload]) -> Iterator[dict[str, object]]:
        """Rows of the plain loop over NICs, up to the first feasible NIC and over all of them."""
        number_of = {workload: number for number, workload in enumerate(workloads)}
        alone = {workload: self.oracle.solo(workload) for workload in workloads}
        for name, stops in (("loop, first NIC that meets SLAs", True), ("loop, best NIC that meets SLAs", False)):
            seconds = []
            for _ in range(LOOPED):
                arrival = self.new_tenant()
                started = time.perf_counter()
                for nic in self.fleet.nics.values():
                    if _is_feasible(nic, arrival, loop, number_of, alone) and stops:
                        break
                seconds.append(time.perf_counter() - started)
            yield _row("default traffic", name, len(self.fleet.nics), _Times(np.array(seconds), np.array(seconds)))


def _is_feasible(
    nic: Nic, arrival: Tenant, loop: Loop, number_of: dict[Workload, int], alone: dict[Workload, float]
) -> bool:
    """Whether the NIC has enough cores and meets the SLA of every tenant, the arrival included."""
    tenants = [*nic.tenants, arrival]
    if nic.kind.cores_taken(tenant.workload for tenant in tenants) > nic.kind.cores:
        return False
    rates = loop.throughput([[number_of[tenant.workload] for tenant in tenants]])[0]
    return all(tenant.is_met(kpps, alone[tenant.workload]) for tenant, kpps in zip(tenants, rates, strict=True))


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
        "p9999_us": round(1e6 * float(np.percentile(times.all, 99.99)), 1),
        "longest_ms": round(1e3 * float(times.all.max()), 1),
        "peak_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
    }


def _plot(table: pd.DataFrame) -> None:
    """Decisions per second over NICs, a line per method."""
    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.subplots()
    for (case, method), rows in table.groupby(["case", "method"], sort=False):
        axes.loglog(rows["nics"], rows["decisions_per_s"], marker="o", label=f"{method}, {case}")
    axes.set(xlabel="NICs in use", ylabel="decisions per second")
    axes.legend(frameon=False, fontsize=7)
    PLOT.parent.mkdir(exist_ok=True)
    figure.savefig(PLOT)
