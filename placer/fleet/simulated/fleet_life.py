"""The life of one fleet: every event of a trace goes through the online engine, and after it NICs are measured."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from placer.fleet.engine import Engine
from placer.fleet.events import Arrive, Decision, Depart, Learned, Measure
from placer.fleet.learning.learning import Feedback
from placer.fleet.simulated.monitor import DriftingTruth, Monitor
from placer.fleet.simulated.outcome import LATE_AFTER, DriftAlarm, FleetOutcome, ProductionPoint
from placer.inputs.production import SLA_PROMISED
from placer.model.arrival import Arrival
from placer.model.nic import Nic, Tenant
from placer.model.plan import Event, events_of
from placer.model.sla import Sla
from placer.progress import Advance
from profiles import CoLocation, Workload

CURVE_POINTS = 200
SAME_FACTOR = 1e-9


@dataclass(frozen=True)
class Stage:
    """What compared fleets share: the trace, what NICs really do, and what a largest drop is relative to."""

    arrivals: Sequence[Arrival]
    truth: DriftingTruth
    sla: str

    @property
    def events(self) -> int:
        return len(self.arrivals) + sum(arrival.departure is not None for arrival in self.arrivals)


class FleetLife:
    """Plays a trace.

    `monitor`: measures the fleet; None for a fleet that is not measured. `by_hand`: whether the true factor of each
    drift is set at once.
    """

    def __init__(
        self, stage: Stage, engine: Engine, feedback: Feedback, monitor: Monitor | None, *, by_hand: bool = False
    ) -> None:
        self.stage, self.truth = stage, stage.truth
        self.engine, self.feedback, self.monitor = engine, feedback, monitor
        self.by_hand = by_hand
        self.slas = SlaTally(stage.truth)
        self.alarms = AlarmTally(stage.truth)
        self.points: list[ProductionPoint] = []
        self.peak = self.rejected = self.measurements = self.readings = self.moves = 0
        self._changed: dict[str, None] = {}

    def play(self, name: str, progress: Advance) -> FleetOutcome:
        """Play the whole trace; returns what came of it."""
        events, total = list(events_of(self.stage.arrivals)), self.stage.events
        every = max(1, total // CURVE_POINTS)
        for number, event in enumerate(events, start=1):
            if self.truth.turns(number):
                self._turn(number)
            self._happen(event, number)
            if number == total or events[number].time != event.time:
                self._judge(number)
            self._measure(number)
            if number % every == 0 or number == total:
                self.points.append(self._point(number, event.time))
                progress(number, total)
        return self._outcome(name)

    def _turn(self, number: int) -> None:
        """Some NF changes: every NIC may, and who retrains by hand does."""
        self._changed.update(dict.fromkeys(self.engine.fleet.nics))
        self.alarms.turn(number)
        if self.by_hand:
            for model in self.feedback.oracles:
                for nf in {drift.nf for drift in self.truth.drifts}:
                    for alone in (True, False):
                        self.feedback.corrections.set_drift(model, nf, alone, self.truth.factor(nf, number))

    def _happen(self, event: Event, number: int) -> None:
        arrival = self.stage.arrivals[event.index]
        if not event.departs:
            decision = self.engine.handle(Arrive(self._tenant(arrival, number)))
            if decision.nic is None:
                self.rejected += 1
            else:
                self.slas.note_placement(arrival.id, number)
        elif arrival.id in self.slas.arrived:
            decision = self.engine.handle(Depart(arrival.id))
            self.slas.left(arrival.id)
        else:
            return
        self._move(decision)
        self.peak = max(self.peak, len(self.engine.fleet.nics))

    def _tenant(self, arrival: Arrival, number: int) -> Tenant:
        """The instance with its SLA as it is promised: in kpps, where that is not relative to what it reaches later."""
        drop = arrival.sla.max_drop
        if self.stage.sla != SLA_PROMISED or drop is None:
            return arrival.tenant
        kind = next(kind for kind in self.engine.fleet.kinds if kind.hosts(arrival.workload))
        solo = self.truth.solo(kind, arrival.workload, number)
        return Tenant(arrival.id, arrival.workload, Sla(min_kpps=(1.0 - drop) * solo))

    def _measure(self, number: int) -> None:
        if self.monitor is None:
            return
        for event in self.monitor.measure(number, self.engine.fleet):
            nic = self.engine.fleet.nics.get(event.nic)
            if nic is not None and nic.kind.model in self.feedback.oracles:
                self._learn(event, nic, number)

    def _learn(self, event: Measure, nic: Nic, number: int) -> None:
        workloads = {instance.id: nic.tenants_by_id[instance.id].workload for instance in event.instances}
        self.alarms.read(workload.nf for workload in workloads.values())
        before = self._find_factors(nic.kind.model, workloads.values())
        learned = self.engine.handle(event)
        assert isinstance(learned, Learned)
        self.measurements += 1
        self.readings += len(event.instances)
        self.slas.note_measurement(nic, learned)
        after = self._find_factors(nic.kind.model, workloads.values())
        changed = {
            nf: after[nf, alone] for nf, alone in after if abs(after[nf, alone] - before[nf, alone]) > SAME_FACTOR
        }
        if learned.status == "drift":
            self.alarms.note_factors(number, changed)
        if learned.moves:
            self._move(learned)
            self._judge(number)

    def _find_factors(self, model: str, workloads: Iterable[Workload]) -> dict[tuple[str, bool], float]:
        corrections = self.feedback.corrections
        nfs = sorted({workload.nf for workload in workloads})
        return {(nf, alone): corrections.drift(model, nf, alone) for nf in nfs for alone in (True, False)}

    def _move(self, decision: Decision) -> None:
        for move in decision.moves:
            self._changed.update(dict.fromkeys(nic for nic in (move.source, move.target) if nic is not None))
            self.moves += move.source is not None and move.target is not None

    def _judge(self, number: int) -> None:
        nics = self.engine.fleet.nics
        self.slas.judge((nics[name] for name in self._changed if name in nics), number)
        self._changed.clear()

    def _point(self, number: int, time: float) -> ProductionPoint:
        fleet = self.engine.fleet
        believed = {}
        for nf in sorted({drift.nf for drift in self.truth.drifts} | {alarm.nf for alarm in self.alarms.alarms}):
            factors = [self.feedback.corrections.drift(model, nf, False) for model in self.feedback.oracles]
            believed[nf] = min(factors, default=1.0)
        violating = len(self.slas.now)
        return ProductionPoint(number, time, len(fleet.nics), fleet.tenants, violating, self.feedback.model, believed)

    def _outcome(self, name: str) -> FleetOutcome:
        arrived, violated = self.slas.arrived, self.slas.violated
        first = min((drift.start for drift in self.truth.drifts), default=None)
        late = None if first is None else {one for one, event in arrived.items() if event >= first + LATE_AFTER}
        return FleetOutcome(
            name=name,
            nics=self.peak,
            placed=len(arrived),
            rejected=self.rejected,
            violated=len(violated),
            late_placed=None if late is None else len(late),
            late_violated=None if late is None else len(late & violated),
            measurements=self.measurements,
            readings=self.readings,
            moves=self.moves,
            repeated=self.slas.count_repeated(),
            model=self.feedback.model,
            alarms=tuple(self.alarms.alarms),
            points=tuple(self.points),
        )


# Counts over a simulated production: who is below the SLA, what was measured of it, and which drifts were reported.


Place = tuple[str, CoLocation, Workload]


@dataclass
class SlaTally:
    """Who is below the SLA by the ground truth.

    `arrived`: per placed instance, the event of its arrival. `violated`: instances that ever were below their SLA.
    `now`: those that are.
    """

    truth: DriftingTruth
    arrived: dict[str, int] = field(default_factory=dict)
    violated: set[str] = field(default_factory=set)
    now: set[str] = field(default_factory=set)
    _nics: dict[Place, dict[str, None]] = field(default_factory=lambda: defaultdict(dict))
    _known: dict[Place, int] = field(default_factory=dict)

    def note_placement(self, tenant_id: str, event: int) -> None:
        """An instance was placed."""
        self.arrived[tenant_id] = event

    def left(self, tenant_id: str) -> None:
        """An instance departed."""
        self.now.discard(tenant_id)

    def judge(self, nics: Iterable[Nic], event: int) -> None:
        """Compare the tenants of NICs that changed, or whose NFs did, with their SLAs."""
        for nic in nics:
            reached = self.truth.throughput(nic, event)
            for tenant in nic.tenants:
                self._judge(tenant, nic, reached[tenant.workload], event)

    def note_measurement(self, nic: Nic, learned: Learned) -> None:
        """A measurement showed who is below the SLA."""
        for instance in learned.instances:
            if instance.below_sla and instance.id in self.now:
                place = _place(nic, nic.tenants_by_id[instance.id])
                self._known.setdefault(place, len(self._nics[place]))

    def count_repeated(self) -> int:
        """Of the places that were measured below an SLA, the most NICs that violated there only afterwards."""
        return max((len(self._nics[place]) - before for place, before in self._known.items()), default=0)

    def _judge(self, tenant: Tenant, nic: Nic, kpps: float, event: int) -> None:
        solo = self.truth.solo(nic.kind, tenant.workload, event)
        if tenant.is_met(kpps, solo):
            self.now.discard(tenant.id)
            return
        self.now.add(tenant.id)
        self.violated.add(tenant.id)
        self._nics[_place(nic, tenant)][nic.id] = None


@dataclass
class AlarmTally:
    """Which drifts were reported."""

    truth: DriftingTruth
    alarms: list[DriftAlarm] = field(default_factory=list)
    _readings: Counter[str] = field(default_factory=Counter)

    def turn(self, event: int) -> None:
        """NFs may change at this event: readings of those that do are counted anew."""
        for nf in [reading for reading in self._readings if self.truth.last_turn(reading, event) == event]:
            del self._readings[nf]

    def read(self, nfs: Iterable[str]) -> None:
        """Readings came, of these NFs."""
        self._readings.update(nfs)

    def note_factors(self, event: int, factors: dict[str, float]) -> None:
        """After an event, NFs are believed to have drifted by these factors."""
        for nf, factor in factors.items():
            false = self.truth.last_turn(nf, event) is None
            self.alarms.append(DriftAlarm(event, nf, factor, self._readings[nf], false))


def _place(nic: Nic, tenant: Tenant) -> Place:
    return nic.kind.model, nic.co_location, tenant.workload
