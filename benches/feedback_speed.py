"""Decisions per second of the online engine that learns from measurements, beside one that does not.

Arrivals and departures alternate at random on a fleet of a given size. After every few decisions, a NIC is measured:
its tenants reach what the ground truth says, with 1 % noise. Measured events are not counted among the decisions; what
one takes is `measurement_ms`. Rates are of processor time, so that other work on the machine counts less.

`ratio` compares with an engine that never waits for measurements. Learning from one takes milliseconds, after which
the processor has forgotten what decisions need; so `ratio_beside` compares with an engine without feedback between
whose decisions another fleet, in the same process, learns from as many measurements.
"""

import gc
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from statistics import median
from typing import Annotated

import pandas as pd
import typer

from benches.bench import register
from benches.recorded_card import kind_of, recorded_profile
from placer.fleet.engine import Engine
from placer.fleet.events import Arrive, Depart, FleetEvent, Measure, MeasuredInstance
from placer.fleet.learning.learning import Feedback, correct
from placer.model.fleet import Fleet
from placer.model.nic import Nic, Tenant
from placer.model.oracle import DEFAULT_RISK, PredictorOracle, TestbedOracle
from placer.model.sla import Sla
from predictor import Models, train
from profiler.testbeds import open_testbed
from profiles import Workload
from traces.arrivals import TABLE_2_NFS

Nics = Annotated[str, typer.Option(help="Fleet sizes: instances at first, divided by four.")]
Decisions = Annotated[int, typer.Option(min=100, help="Decisions that are timed.")]
Every = Annotated[int, typer.Option(min=1, help="Decisions per measurement.")]
Repeats = Annotated[int, typer.Option(min=1, help="Repeats, of which the median counts.")]
LOOSEST = 0.20
NOISE = 0.01
PLAIN, BESIDE, WITH = "without", "beside", "with"


@register("feedback-speed")
def run(
    nics: Nics = "100,1000,10000", decisions: Decisions = 4_000, every: Every = 10, repeats: Repeats = 3
) -> pd.DataFrame:
    """Per fleet size: decisions/s without measurements, beside another fleet's, and with feedback; and their ratios."""
    models = train(recorded_profile(), ["tomur"])
    with open_testbed("simulated") as testbed:
        truth = TestbedOracle(testbed)
        rows = [_row(models, truth, size, decisions, every, repeats) for size in map(int, nics.split(","))]
    return pd.DataFrame(rows)


def _row(
    models: Models, truth: TestbedOracle, size: int, decisions: int, every: int, repeats: int
) -> dict[str, object]:
    runs = [
        {case: _timed(models, truth, size, case, decisions, every) for case in (PLAIN, BESIDE, WITH)}
        for _ in range(repeats)
    ]

    def rate(case: str) -> int:
        return round(median(decisions / run[case].seconds for run in runs))

    def ratio(case: str) -> float:
        return round(median(run[case].seconds / run[WITH].seconds for run in runs), 3)

    return {
        "nics": size, "without_per_s": rate(PLAIN), "beside_per_s": rate(BESIDE), "with_per_s": rate(WITH),
        "ratio": ratio(PLAIN), "ratio_beside": ratio(BESIDE),
        "measurement_ms": round(1e3 * median(median(run[WITH].measurements) for run in runs), 2),
        "slowest_without_ms": round(1e3 * median(max(run[PLAIN].decisions) for run in runs), 2),
        "slowest_with_ms": round(1e3 * median(max(run[WITH].decisions) for run in runs), 2),
    }  # fmt: skip


@dataclass
class Timed:
    """Processor time (s) of all decisions, of each, and of each measurement."""

    decisions: list[float] = field(default_factory=list)
    measurements: list[float] = field(default_factory=list)

    @property
    def seconds(self) -> float:
        """Of all decisions."""
        return sum(self.decisions)


def _timed(models: Models, truth: TestbedOracle, size: int, case: str, decisions: int, every: int) -> Timed:
    """Decisions in one case."""
    load = FeedbackLoad(models, truth, size, case == WITH)
    measured = {PLAIN: None, BESIDE: FeedbackLoad(models, truth, size, True), WITH: load}[case]
    return load.decided(decisions, every, measured)


class FeedbackLoad:
    """A fleet of about this size, and what happens to it; the same with and without feedback."""

    def __init__(self, models: Models, truth: TestbedOracle, nics: int, learns: bool) -> None:
        kind = kind_of(models)
        self.truth, self.draw = truth, Random(nics)
        self.workloads = [Workload(nf, models.default_traffic) for nf in TABLE_2_NFS]
        expected = [Tenant(one.nf, one, Sla(max_drop=LOOSEST)) for one in self.workloads]
        oracles: Sequence[PredictorOracle] = [PredictorOracle(models.predictors["tomur"], DEFAULT_RISK)]
        feedback: Feedback | None = None
        used: Sequence[object] = oracles
        if learns:
            feedback, used = correct([kind], oracles)
        self.engine = Engine(Fleet([kind]), used, expected=expected, feedback=feedback)  # type: ignore[arg-type]
        self.present: list[str] = []
        self.number = 0
        while len(self.engine.fleet.nics) < nics:
            self.engine.handle(self._arrival())

    def decided(self, decisions: int, every: int, measured: "FeedbackLoad | None") -> Timed:
        """Times of decisions; after every few of them, a NIC of a fleet is measured."""
        draw, timed = Random(1), Timed()
        gc.disable()
        for number in range(decisions):
            if not number % every and measured is not None:
                timed.measurements.append(measured.timed(measured.any_measured(draw)))
            timed.decisions.append(self.timed(self.next_decision()))
        gc.enable()
        return timed

    def timed(self, event: FleetEvent) -> float:
        """What an event takes, s."""
        begun = time.thread_time()
        self.engine.handle(event)
        return time.thread_time() - begun

    def any_measured(self, draw: Random) -> Measure:
        """A measurement of a NIC drawn at random."""
        return self.measured(draw.choice(list(self.engine.fleet.nics.values())), draw)

    def next_decision(self) -> Arrive | Depart:
        """An arrival or a departure, at random."""
        return self._arrival() if self.draw.random() < 0.5 else self._departure()

    def _arrival(self) -> Arrive:
        self.number += 1
        self.present.append(str(self.number))
        sla = Sla(max_drop=round(self.draw.uniform(0.05, LOOSEST), 2))
        return Arrive(Tenant(self.present[-1], self.draw.choice(self.workloads), sla))

    def _departure(self) -> Depart:
        return Depart(self.present.pop(self.draw.randrange(len(self.present))))

    def measured(self, nic: Nic, draw: Random) -> Measure:
        """What its tenants reach, with noise."""
        reached = self.truth.by_workload(nic.co_location)
        kpps = {one.id: reached[one.workload] * draw.gauss(1.0, NOISE) for one in nic.tenants}
        return Measure(nic.id, 1.0, tuple(MeasuredInstance(one, value, 2 * value) for one, value in kpps.items()))
