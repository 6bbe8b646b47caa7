"""`placer online`."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from placer.commands import options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from placer.fleet.engine import Engine
    from placer.fleet.state.saved import SavedState
    from placer.model.arrival import Arrival
    from placer.model.catalogue import Catalogue
    from placer.model.plan import Plan
    from placer.progress import Progress

StateFile = Annotated[
    Path | None, options.take_option("Keep the fleet in this SQLite file, and continue from it.", "--state")
]
Backup = Annotated[
    Path | None, options.take_option("Copy the state to this new file and exit, even while a service uses the state.")
]
Retrain = Annotated[
    list[Path] | None,
    options.take_option(
        "Retrain the models on measurements and on this profile of the NIC model; repeatable, one per NIC model. "
        "A retrained version becomes active when it has proved better. Versions are stored next to the state.",
        metavar="PROFILE",
    ),
]
Repair = Annotated[
    int,
    typer.Option(
        metavar="N",
        min=0,
        help="Per measurement, move at most N instances that were measured below their SLA twice in their co-location.",
    ),
]
Arrivals = Annotated[
    Path | None,
    options.take_option(
        "Start an empty fleet with the instances of this trace; departures are ignored.", metavar="TRACE"
    ),
]
PlanFile = Annotated[
    Path | None,
    options.take_option(
        "Place the instances of --arrivals on the NICs of this plan, written by `placer run --plan`.",
        "--plan",
        metavar="FILE",
    ),
]
PlanStrategy = Annotated[
    str | None,
    options.take_option(
        "The strategy whose plan is used if the file has several; by default planned. Of several predictors, the "
        "plan of --predictor is used.",
        metavar="NAME",
    ),
]
WhenFull = Annotated[str, typer.Option(help="What happens to an arrival that fits on no NIC: reject or queue.")]


def command(
    state: StateFile = None,
    backup: Backup = None,
    models: options.ModelsDir = None,
    predictor: options.OnePredictor = "tomur",
    testbed: options.RecordedCard = None,
    fleet: options.Fleet = None,
    arrivals: Arrivals = None,
    plan: PlanFile = None,
    plan_strategy: PlanStrategy = None,
    rule: options.RuleName = "look-ahead",
    when_full: WhenFull = "reject",
    retrain: Retrain = None,
    repair: Repair = 0,
    budget: options.Budget = None,
    risk: options.Risk = None,
    ignore_columns: options.IgnoreColumns = False,
    skip_empty_stays: options.SkipEmptyStays = False,
    quiet: options.Quiet = False,
) -> None:
    """Place NFs online: read events from stdin, one JSON object per line, and answer each with a line on stdout.

    Events are arrive, reserve, group, depart, change, fail, drain, return, cordon, uncordon, join, leave, rebalance,
    measured and where. With --state, an event is answered after it is on disk. At the start, the risk is chosen at
    which typical arrivals are expected to stay within the budget; a state keeps its risk until another budget is given.
    """
    from placer.fleet.protocol import Reader
    from placer.fleet.queued_fleet import WHEN_FULL
    from placer.fleet.service.jsonlines import serve
    from placer.fleet.service.opening import OnlineSettings, open_engine
    from placer.fleet.state.backup import back_up
    from placer.fleet.state.store import State
    from placer.inputs.catalogue import Cards, open_online
    from placer.policy.rules import rule_of
    from placer.progress import Progress
    from profiles import InputError

    options.one_of("--when-full", when_full, WHEN_FULL)
    options.refuse_bad_budget(budget, risk)
    beginning = Beginning(arrivals, plan, plan_strategy, predictor, ignore_columns, skip_empty_stays)
    settings, progress = (
        OnlineSettings(predictor, rule_of(rule), when_full, budget, risk, repair),
        Progress(quiet=quiet),
    )
    options.refuse_unwritable("--state", state)
    if backup is not None:
        if state is None:
            raise InputError.of("--backup", "there is no state to copy", hint="name it: --state FILE")
        back_up(state, backup)
        return
    if retrain and state is None:
        raise InputError.of("--retrain", "there is no state to keep versions beside", hint="name it: --state FILE")
    with ExitStack() as stack:
        cards = Cards(models, fleet, testbed, risk, budget_pct=budget)
        catalogue = open_online(cards, stack, progress.say, predictor)
        saved = stack.enter_context(State(state, catalogue.kinds, catalogue.check)) if state else None
        said = partial(announce, catalogue, progress)
        engine = open_engine(catalogue, settings, saved, retrain or (), stack, progress, said)
        beginning.place(catalogue, engine, saved, progress)
        reader = Reader(catalogue.default_traffic, catalogue.check, engine.workload_of)
        serve(sys.stdin.buffer, sys.stdout, engine, reader, saved)


@dataclass(frozen=True)
class Beginning:
    """What an empty fleet begins with: nothing, or the instances of a trace, placed online or by a plan. `arrivals`,
    `plan`: the trace, and the plan file for it. `strategy`, `predictor`: whose plan. `ignore_columns`,
    `skip_empty_stays`: what is skipped in the trace."""

    arrivals: Path | None
    plan: Path | None
    strategy: str | None
    predictor: str
    ignore_columns: bool = False
    skip_empty_stays: bool = False

    def __post_init__(self) -> None:
        from profiles import InputError

        if self.plan is not None and self.arrivals is None:
            hint = "give the trace that it was made for: --arrivals TRACE"
            raise InputError.of("--plan", "a plan has no NFs, traffic and SLAs", hint=hint)
        if self.strategy is not None and self.plan is None:
            raise InputError.of("--plan-strategy", "there is no plan", hint="name it: --plan FILE")
        if self.arrivals is None:
            options.refuse_without_arrivals("--arrivals", self.ignore_columns, self.skip_empty_stays)

    def place(self, catalogue: Catalogue, engine: Engine, saved: SavedState | None, progress: Progress) -> None:
        """Place the instances, unless the fleet has events already."""
        from placer.evaluate.checks import running_kept
        from placer.fleet.event_shapes import CONSTRAINT_KEYS
        from placer.fleet.service.opening import place_all, take_over
        from placer.inputs.arrivals import read_arrivals, refuse_constraints
        from placer.inputs.plans import read_plan
        from profiles import Fault, InputError

        if self.arrivals is None:
            return
        trace = str(self.arrivals)
        reading = options.trace_options(self.ignore_columns, self.skip_empty_stays, progress.say)
        arrivals = read_arrivals(
            trace, catalogue.default_traffic, catalogue.check, reading, kinds=catalogue.kinds,
            may_run=self.plan is not None,  # only a plan says where all others go
        )  # fmt: skip
        refuse_constraints(arrivals, CONSTRAINT_KEYS)
        refuse_unknown_latencies(trace, arrivals)
        catalogue.refuse_without_loads(self.predictor, (arrival.workload for arrival in arrivals))
        if engine.events:
            self._report_continued(saved, progress)
        elif self.plan is None:
            placed = place_all(arrivals, engine, saved, progress)
            nics = len(engine.fleet.nics)
            progress.say(f"{placed} of {len(arrivals)} instances of {trace} are placed on {nics} NICs")
        else:
            plan = read_plan(str(self.plan), self.strategy, self.predictor, trace, arrivals, engine.fleet)
            if moved := list(running_kept(plan, catalogue.kinds)):
                raise InputError([Fault(str(self.plan), None, "nic", message) for message in moved])
            violated = take_over(plan, engine, saved, arrivals)
            if violated is None:
                self._report_continued(saved, progress)
            else:
                self._report(plan, len(engine.fleet.nics), violated, progress)

    def _report_continued(self, saved: SavedState | None, progress: Progress) -> None:
        without = self.arrivals if self.plan is None else f"{self.arrivals} and {self.plan}"
        name = "" if saved is None else saved.name
        progress.say(f"{name} already has a fleet; ignored: {without}")

    def _report(self, plan: Plan, nics: int, violated: int, progress: Progress) -> None:
        by = plan.strategy if plan.predictor is None else f"{plan.strategy}, {plan.predictor}"
        placed, rejected = len(plan.placed), plan.rejected
        left_out = f"; {rejected} that it rejects are left out" if rejected else ""
        progress.say(
            f"{placed} of {len(plan.placements)} instances of {self.arrivals} are placed on {nics} NICs by the plan of "
            f"{by} in {self.plan}{left_out}"
        )
        if violated:
            progress.say(
                f"{violated} of them are predicted to violate their SLA there: no arrival is placed next to them"
            )


def announce(catalogue: Catalogue, progress: Progress, risk: float | None, arrivals: str) -> None:
    """Say the risk that was chosen, and for which arrivals."""
    from placer.report.text.table import describe_risk

    progress.say(describe_risk(catalogue, risk, arrivals))


def refuse_unknown_latencies(trace: str, arrivals: Sequence[Arrival]) -> None:
    """InputError where an instance of the trace has a kind of latency SLA that a running fleet does not keep."""
    from placer.fleet.event_shapes import LOAD_KEYS
    from placer.model.sla import latency_sla_of
    from profiles import InputError

    promised = {latency_sla_of(arrival.workload).column for arrival in arrivals if arrival.workload.promises_latency}
    for column in sorted(promised.difference(LOAD_KEYS)):
        message = "a running fleet does not know this latency SLA"
        raise InputError.of(trace, message, column=column, hint="leave out this column")
