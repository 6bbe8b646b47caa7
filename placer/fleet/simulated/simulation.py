"""Simulates production: three fleets take the same arrivals, and NFs drift under all of them.

One keeps the models as they were trained, one learns from measurements as `placer online` does, and of one the models
are corrected by hand at the very event of each drift. The first two show what feedback is worth, the last two what
could still be gained.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TextIO

from placer.fleet.engine import Engine
from placer.fleet.learning.actions import ActionKind, ModelAction, RetrainedModel
from placer.fleet.learning.learning import Feedback, correct
from placer.fleet.learning.retraining import Retrainer, RetrainingSource
from placer.fleet.learning.versions import ModelStore
from placer.fleet.service.opening import retraining_sources
from placer.fleet.simulated.fleet_life import FleetLife, Stage
from placer.fleet.simulated.monitor import DriftingTruth, Monitor, TrueDrift
from placer.fleet.simulated.outcome import BY_HAND, COMPARED_FLEETS, WITH_FEEDBACK, FleetOutcome, Production
from placer.inputs.arrivals import STRICT_OPTIONS, TraceOptions, read_arrivals, refuse_constraints, refuse_priorities
from placer.inputs.catalogue import Cards, open_catalogue
from placer.inputs.production import ProductionFile
from placer.model.arrival import Arrival
from placer.model.catalogue import DEFAULT_PREDICTOR, Catalogue
from placer.model.fleet import Fleet
from placer.model.oracle import Oracle
from placer.policy.rules import LOOK_AHEAD, Rule
from placer.progress import Progress
from placer.strategies.online_risk import oracles_within_budget, typical_arrivals
from profiles import InputError


@dataclass(frozen=True)
class ProductionRequest:
    """What to play, and how.

    `arrivals`: the trace: a path, `-` for standard input, an open text file, or arrivals that were read already.
    `file`: how production is measured, drifts and is lied to. `cards`: the NICs, their models and their ground truth,
    which the file names where the cards do not. `seed`: in place of that of the file. `fleets`: which of
    `COMPARED_FLEETS` are compared. `trace_options`: what is skipped in a trace that is read.
    """

    arrivals: str | TextIO | Sequence[Arrival]
    file: ProductionFile
    cards: Cards = field(default_factory=Cards)
    predictor: str = DEFAULT_PREDICTOR
    rule: Rule = LOOK_AHEAD
    seed: int | None = None
    fleets: Sequence[str] = COMPARED_FLEETS
    trace_options: TraceOptions = STRICT_OPTIONS


def simulate(request: ProductionRequest, progress: Progress) -> Production:
    """Play the trace for each of the compared fleets.

    Raises InputError when the trace, the file, the models or a name is refused; nothing was played then. Raises
    TestbedError when the ground truth's testbed fails.
    """
    file, tables = request.file, request.file.tables
    seed = tables.seed if request.seed is None else request.seed
    with ExitStack() as stack:
        cards = replace(request.cards, testbed=request.cards.testbed or tables.testbed)
        catalogue = open_catalogue(cards, stack, progress.say)
        arrivals = _arrivals(request, catalogue)
        truth = _truth(request, catalogue, arrivals)
        typical = typical_arrivals(catalogue)
        with progress.waiting("choosing the risk that keeps the budget"):
            risk, oracles = oracles_within_budget(catalogue, request.predictor, typical, request.rule)
        stage = Stage(arrivals, truth, tables.sla)
        monitor = Monitor(tables.measure, tables.liar, truth, seed)
        profiles = [Path(profile) for profile in tables.retrain.profiles]
        sources = retraining_sources(catalogue, profiles, f"{file.name}: retrain.profiles")
        retraining = _Retraining(sources, request.predictor, tables.retrain.takes)
        life = _Lives(stage, catalogue, oracles, request.rule, monitor, typical, retraining)
        fleets = tuple(life.play(name, progress) for name in COMPARED_FLEETS if name in request.fleets)
        return Production(
            file, seed, len(arrivals), stage.events, request.predictor, request.rule.name, risk,
            catalogue.truth_name(), truth.drifts, fleets,
        )  # fmt: skip


@dataclass(frozen=True)
class _Retraining:
    """Retrains models, if there is anything to retrain them from."""

    sources: Mapping[str, RetrainingSource]
    predictor: str
    takes: int

    @contextmanager
    def of(self, feedback: Feedback, progress: Progress) -> Iterator[None]:
        """A time in which the models of a fleet are retrained."""
        if not self.sources:
            yield
            return
        with TemporaryDirectory(prefix="placer-retrained-") as folder:
            retrainer = Retrainer(self.sources, ModelStore(Path(folder), self.predictor), progress.say)
            feedback.actions = SimulatedRetraining(feedback, retrainer, self.takes)
            try:
                yield
            finally:
                retrainer.close()


@dataclass(frozen=True)
class _Lives:
    """Starts every fleet alike."""

    stage: Stage
    catalogue: Catalogue
    oracles: Sequence[Oracle]
    rule: Rule
    monitor: Monitor
    typical: Sequence[Arrival]
    retraining: _Retraining

    def play(self, name: str, progress: Progress) -> FleetOutcome:
        kinds = self.catalogue.kinds
        feedback, oracles = correct(kinds, self.oracles)
        expected = [arrival.tenant for arrival in self.typical]
        engine = Engine(
            Fleet(kinds), oracles, self.rule, expected=expected, feedback=feedback if name == WITH_FEEDBACK else None
        )
        monitor = self.monitor if name == WITH_FEEDBACK else None
        retrained = self.retraining.of(feedback, progress) if name == WITH_FEEDBACK else nullcontext()
        with retrained, progress.task(name) as advance:
            return FleetLife(self.stage, engine, feedback, monitor, by_hand=name == BY_HAND).play(name, advance)


def _arrivals(request: ProductionRequest, catalogue: Catalogue) -> Sequence[Arrival]:
    source = request.arrivals
    if isinstance(source, Sequence) and not isinstance(source, str):
        arrivals = source
    else:
        arrivals = read_arrivals(
            source, catalogue.default_traffic, catalogue.check, request.trace_options, kinds=catalogue.kinds
        )
    refuse_constraints(arrivals)
    refuse_priorities(arrivals)
    if any(not arrival.workload.is_saturated for arrival in arrivals):
        hint = "leave out rate_kpps and sla_latency_us"
        raise InputError.of("--production", "offered rates and promised latencies are not simulated", hint=hint)
    if any(arrival.nic is not None for arrival in arrivals):
        message = "instances that already run are not simulated: every fleet begins empty"
        raise InputError.of("--production", message, hint="leave out nic")
    known = catalogue.predictors()
    if request.predictor not in known:
        hint = f"these models have {', '.join(known)}"
        raise InputError.of("--predictor", f"not in the models: {request.predictor}", hint=hint)
    return arrivals


def _truth(request: ProductionRequest, catalogue: Catalogue, arrivals: Sequence[Arrival]) -> DriftingTruth:
    """What NICs really do; InputError without a ground truth, and where the file does not fit the trace."""
    oracles = catalogue.truth()
    if oracles is None:
        hint = 'name it in the file, as in testbed = "simulated", or with --testbed'
        raise InputError.of(
            request.file.name, "no testbed measures every NIC of the fleet", column="testbed", hint=hint
        )
    nfs = list(dict.fromkeys(arrival.workload.nf for arrival in arrivals))
    events = len(arrivals) + sum(arrival.departure is not None for arrival in arrivals)
    request.file.refuse_unknown(nfs, [arrival.id for arrival in arrivals], events)
    return DriftingTruth(oracles, list(_drifts(request.file, events)))


def _drifts(file: ProductionFile, events: int) -> Iterator[TrueDrift]:
    for table in file.tables.drift:
        yield TrueDrift(table.nf, *table.span(events), table.factor)


# Retraining in a simulated production: as `placer online --retrain`, but a training takes a fixed number of events.
#
# So the same file leads to the same versions at the same events, however fast the machine is.


class SimulatedRetraining:
    """Retrains the models of one fleet.

    `takes`: events from the start of a training to its version.
    """

    def __init__(self, feedback: Feedback, retrainer: Retrainer, takes: int) -> None:
        self._feedback, self._retrainer, self._takes = feedback, retrainer, takes
        self._models: dict[int, Mapping[str, RetrainedModel]] = {}
        self._ready_at: int | None = None

    def due(self, event: int) -> Sequence[ModelAction]:
        if self._ready_at is None:
            if self._retrainer.is_due(self._feedback):
                self._retrainer.start(self._feedback, event - 1)
                self._ready_at = event + self._takes
            return ()
        if event < self._ready_at:
            return ()
        self._ready_at = None
        self._retrainer.wait()
        trained = self._retrainer.take()
        if trained is None:
            return ()
        number = max(self._feedback.versions) + 1
        self._models[number] = trained.models
        return (ModelAction(ActionKind.CANARY, number, trained.trained_at),)

    def models(self, version: int) -> Mapping[str, RetrainedModel]:
        return self._models.get(version, {})
