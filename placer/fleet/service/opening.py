"""Opens the online engine: on an empty fleet, or as it was when its state was last written."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from placer.fleet.engine import Engine
from placer.fleet.event_lines import decision_line
from placer.fleet.events import Arrive, Refused
from placer.fleet.learning.learning import Feedback, correct
from placer.fleet.learning.retraining import Retrainer, RetrainingSource
from placer.fleet.protocol import Reader
from placer.fleet.service.expiring import expire_due
from placer.fleet.state.model_actions import LiveActions, RecordedActions
from placer.fleet.state.saved import SavedState
from placer.fleet.state.saved_learning import SETTINGS_ROW, recorded_actions
from placer.model.arrival import Arrival
from placer.model.catalogue import Catalogue
from placer.model.feasibility import below_sla
from placer.model.fleet import Fleet
from placer.model.nic import Tenant
from placer.model.nic_kind import NicKind
from placer.model.oracle import Oracle, PredictorOracle
from placer.model.plan import Plan
from placer.policy.rules import Rule
from placer.progress import Progress
from placer.strategies.online_risk import oracles_within_budget, typical_arrivals
from profiles import InputError
from profiles.profile import read_profile

SINCE_ROW = "since"

Announce = Callable[[float | None, str], None]  # called with a risk and the arrivals that it suits


@dataclass(frozen=True)
class OnlineSettings:
    """By what an engine decides.

    `predictor`, `rule`, `when_full`, `repairs`: as of `Engine`. `budget_pct`, `risk`: as of `Cards`; the risk is chosen
    where none is given.
    """

    predictor: str
    rule: Rule
    when_full: str
    budget_pct: float | None = None
    risk: float | None = None
    repairs: int = 0

    def as_dict(self) -> dict[str, Any]:
        """As a state records them."""
        return {
            "predictor": self.predictor, "rule": self.rule.name, "when_full": self.when_full,
            "budget_pct": self.budget_pct, "given_risk": self.risk, "repairs": self.repairs,
        }  # fmt: skip


def open_engine(
    catalogue: Catalogue,
    settings: OnlineSettings,
    saved: SavedState | None,
    retrain: Sequence[Path],
    stack: ExitStack,
    progress: Progress,
    announce: Announce,
    kinds: Sequence[NicKind] | None = None,
) -> Engine:
    """The engine, with all that its state has learnt.

    `saved`: the state; None for an empty fleet that is not kept. `retrain`: profiles to retrain models from. `stack`:
    ends what runs in the background. `announce`: called with a risk that was chosen. `kinds`: those of the fleet, where
    other counts hold than in the catalogue.

    Raises InputError when a profile is refused, versions of the models are missing, or a tenant has a rate or a number
    of cores that the predictor does not know.
    """
    tenants = chain(saved.fleet.all_tenants(), saved.waiting) if saved else ()
    catalogue.refuse_without_loads(settings.predictor, (tenant.workload for tenant in tenants))
    sources = retraining_sources(catalogue, retrain, "--retrain") if retrain else {}
    with progress.waiting("choosing the risk"):
        risk, oracles, typical = _within_budget(catalogue, settings, saved, announce)
    if saved is None:
        return _Opening(catalogue, settings, oracles, typical).make(Fleet(catalogue.kinds), [], 0)
    opening = _Opening(catalogue, settings, oracles, typical, kinds or catalogue.kinds)
    store = saved.models(settings.predictor)
    nic_models = tuple(dict.fromkeys(kind.model for kind in catalogue.kinds))
    before = RecordedActions(recorded_actions(saved.learnt), store, nic_models)
    engine = opening.engine_of(saved, before, {**settings.as_dict(), "risk": risk}, progress)
    if engine.due_reservations(now := time.time()):
        saved.decide(engine, partial(expire_due, engine, saved, now))
    retrainer = Retrainer(sources, store, progress.say) if sources else None
    if retrainer is not None:
        stack.callback(retrainer.close)
    if engine.feedback is not None:
        engine.feedback.actions = LiveActions(saved, store, engine.feedback, retrainer)
    return engine


@dataclass(frozen=True)
class _Opening:
    """Makes engines that decide alike."""

    catalogue: Catalogue
    settings: OnlineSettings
    oracles: Sequence[Oracle]
    typical: Sequence[Arrival]
    kinds: Sequence[NicKind] = ()

    def make(self, fleet: Fleet, waiting: Sequence[Tenant], events: int) -> Engine:
        """The engine of a fleet, its queue, and the number of its last event."""
        feedback, oracles = correct(self.catalogue.kinds, self.oracles)
        expected = [arrival.tenant for arrival in self.typical]
        return Engine(
            fleet, oracles, self.settings.rule, when_full=self.settings.when_full, waiting=waiting, expected=expected,
            feedback=feedback, events=events, repairs=self.settings.repairs,
        )  # fmt: skip

    def engine_of(
        self, saved: SavedState, before: RecordedActions, settings: dict[str, Any], progress: Progress
    ) -> Engine:
        """The engine after the last event of a state."""
        known = saved.learnt.get(SETTINGS_ROW)
        engine = None
        whole = not saved.shared and saved.log_from == 1 and saved.events <= MAX_REPLAYED_EVENTS
        if not saved.events or (known == {**settings, SINCE_ROW: 0} and whole):
            with progress.waiting("predicting usual co-locations"):
                fresh = self.make(Fleet(self.kinds), [], 0)
            engine = replay(saved, fresh, before, self.catalogue, progress)
        if engine is None:
            with progress.waiting("predicting the co-locations of the fleet"):
                engine = self.make(saved.fleet, saved.waiting, saved.events)
            feedback: Feedback | None = engine.feedback
            if feedback is not None:
                feedback.actions = before
                with progress.waiting(f"learning {len(saved.readings):,} readings once more"):
                    feedback.restore(saved.readings)
                engine.follow_readings(drifted=False)
        if known is None or {**known, SINCE_ROW: 0} != {**settings, SINCE_ROW: 0}:
            if known is not None and saved.used_elsewhere:
                hint = "start every agent with the same settings, or stop the others first"
                raise InputError.of("--state", f"{saved.name} is used by an agent that decides otherwise", hint=hint)
            saved.note(SETTINGS_ROW, {**settings, SINCE_ROW: saved.events})
            saved.commit()
        return engine


def keep_named_kinds(kinds: Sequence[NicKind]) -> list[NicKind]:
    """Kinds of which there are only NICs that join by name."""
    return [replace(kind, count=0, names=()) for kind in kinds]


def _within_budget(
    catalogue: Catalogue, settings: OnlineSettings, saved: SavedState | None, announce: Announce
) -> tuple[float | None, Sequence[Oracle], Sequence[Arrival]]:
    """The risk, the oracles at it, and typical arrivals; a state keeps the risk while it is asked for the same."""
    known = saved.learnt.get(SETTINGS_ROW) if saved else None
    if known is not None and {**known, **settings.as_dict()} == known:
        risk = known["risk"]
        return risk, replace(catalogue, risk=risk).oracles(settings.predictor), typical_arrivals(catalogue)
    tenants = [*saved.fleet.all_tenants(), *saved.waiting] if saved else []
    typical = typical_arrivals(catalogue, tenants)
    risk, oracles = oracles_within_budget(catalogue, settings.predictor, typical, settings.rule)
    announce(risk, "arrivals like its tenants" if tenants else "typical arrivals")
    return risk, oracles, typical


def retraining_sources(catalogue: Catalogue, profiles: Sequence[Path], named: str) -> dict[str, RetrainingSource]:
    """By NIC model, what it is retrained from.

    `named`: what messages call the profiles.

    Raises InputError when a profile is refused, or is of no NIC model of the fleet.
    """
    learnt = {
        kind.model: models
        for kind, models, oracle in zip(
            catalogue.kinds, catalogue.models, catalogue.oracles(catalogue.predictors()[0]), strict=True
        )
        if type(oracle) is PredictorOracle
    }
    found: dict[str, RetrainingSource] = {}
    for path in profiles:
        testbed = read_profile(path).testbed
        names = list(learnt) if testbed is None else [testbed.nic.model]
        if len(names) != 1 or names[0] not in learnt or names[0] in found:
            known = ", ".join(learnt) or "no NIC model"
            raise InputError.of(
                named, f"{path} is not a profile of another NIC model of the fleet", hint=f"one of {known}"
            )
        found[names[0]] = RetrainingSource(path, learnt[names[0]])
    return found


# Replay: the events of a log are decided on once more, so that an engine is what it was, to the last bit.
#
# What it forecasts, its ledger and the evidence of a trial depend on the whole history, and are nowhere else.


MAX_REPLAYED_EVENTS = 20_000


def replay(
    saved: SavedState, engine: Engine, before: RecordedActions, catalogue: Catalogue, progress: Progress
) -> Engine | None:
    """The engine, whose fleet is empty, after all events of a state.

    None where it decides otherwise than before, as after a change of models or of this program.
    """
    if engine.feedback is not None:
        engine.feedback.actions = before
    reader = Reader(catalogue.default_traffic, catalogue.check, engine.workload_of, of_log=True)
    with progress.task("deciding once more") as advance:
        for number, (line, answer) in enumerate(saved.log(), start=1):
            if not _decides(engine, reader, line, answer):
                progress.say(f"event {number} would be decided otherwise now: the fleet is continued as it is")
                return None
            advance(number, saved.events)
    if engine.feedback is not None:
        engine.feedback.take_rows()
    return engine


def _decides(engine: Engine, reader: Reader, line: str, answer: str) -> bool:
    """Whether the engine decides on an event as it did."""
    try:
        event = reader.read(line)
        return decision_line(event, engine.handle(event)) == answer
    except Refused:
        return False


# Gives an empty fleet the instances of a trace: where its rule has them, or where a plan has them.


ARRIVALS_PER_WRITE = 1_000


def place_all(arrivals: Sequence[Arrival], engine: Engine, state: SavedState | None, progress: Progress) -> int:
    """Place all instances of a trace as if none ever departed; returns how many found a NIC.

    An instance that is in the fleet already stays where it is, so that a second call after a kill completes the first.
    """
    with progress.task("placing") as advance:
        for first in range(0, len(arrivals), ARRIVALS_PER_WRITE):
            some = [Arrive(arrival.tenant) for arrival in arrivals[first : first + ARRIVALS_PER_WRITE]]
            _decide(partial(_place, some, engine, state), engine, state)
            advance(first + len(some), len(arrivals))
    return sum(engine.fleet.nic_of(arrival.tenant.id) is not None for arrival in arrivals)


def take_over(plan: Plan, engine: Engine, state: SavedState | None, trace: Sequence[Arrival] = ()) -> int | None:
    """Place the instances of a plan on its NICs, all of them or none; what it rejects stays out.

    Cores that the plan gives an instance and the trace does not were chosen, and change where the instance changes.
    Returns how many are predicted to violate their SLA; None where another agent has begun the fleet meanwhile.
    """
    asked = {arrival.id: arrival.workload for arrival in trace}
    events = []
    for placement in plan.placements:
        if placement.kind is not None:
            tenant = placement.arrival.tenant
            chosen = tenant.workload != asked.get(tenant.id, tenant.workload)
            events.append(Arrive(replace(tenant, free_cores=chosen), placement.nic, placement.kind.index))

    taken = False

    def place() -> None:
        nonlocal taken
        taken = engine.events == 0
        if taken:
            _place(events, engine, state)

    _decide(place, engine, state)
    if not taken:
        return None
    return sum(len(below_sla(engine.oracles[nic.kind.index], nic.tenants)) for nic in engine.fleet.nics.values())


def _decide(work: Callable[[], None], engine: Engine, state: SavedState | None) -> None:
    """Let `work` decide and record; what it decides is kept where there is a state."""
    if state is None:
        work()
    else:
        state.decide(engine, work)


def _place(events: Iterable[Arrive], engine: Engine, state: SavedState | None) -> None:
    for event in events:
        decision = engine.handle(event)
        if state is not None:
            state.record(event, decision, engine.fleet)
