"""`placer run`: place a trace with every strategy, and compare each plan with the proven optimum."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import TextIO

from placer.evaluate.checks import check_plan
from placer.evaluate.evaluation import Evaluation, evaluate
from placer.gpu_checks import check_gpus
from placer.inputs.arrivals import read_arrivals
from placer.inputs.catalogue import Cards, open_catalogue
from placer.measuring.measured_plan import refuse_unmeasurable
from placer.model.arrival import Arrival
from placer.model.catalogue import PREDICTED, Catalogue
from placer.model.oracle import Oracle
from placer.optimal import refuse_unknown
from placer.optimal.bounded_plan import NAME as OPTIMAL
from placer.optimal.bounded_plan import BoundedPlan
from placer.optimal.certificate import certificate_json, refuse_uncertifiable
from placer.optimal.trace_optimum import find_optimum
from placer.placing import BudgetVariation, Placing, with_expected
from placer.progress import Progress
from placer.strategies import STRATEGIES, VARIANT, NamedStrategy, find_strategy
from profiles import Fault, InputError
from profiles.faults import suggestion


@dataclass(frozen=True)
class RunRequest:
    """What to place, on which NICs, and how.

    Parameters
    ----------
    arrivals
        The trace: a path, `-` for standard input, an open text file, or arrivals that were read already.
    strategies, predictors
        Names, or strategies of one's own; empty means all.
    cards
        The NICs, their models and their ground truth.
    seed
        Copied to the output.
    time_limit
        Seconds for the optimum.
    solver
        The integer solver of the optimum: `cp-sat`, `highs`, `pulp` or `pulp:NAME`.
    certificate
        Whether the optimum is to be certified: a trace that has no certificate is refused before it is placed.
    vary_budget
        Whether strategies that keep a budget of SLA violations are also placed without one, and where they miss it
        with smaller ones.
    measure
        Runs to spend at most on a plan whose co-locations are measured on the testbed; None makes no such plan.
    """

    arrivals: str | TextIO | Sequence[Arrival]
    strategies: tuple[str | NamedStrategy, ...] = ()
    predictors: tuple[str, ...] = ()
    cards: Cards = field(default_factory=Cards)
    seed: int = 0
    time_limit: float = 60.0
    solver: str = "cp-sat"
    certificate: bool = False
    vary_budget: bool = False
    measure: int | None = None


@dataclass(frozen=True)
class Evaluations:
    """Strategies on one trace.

    Parameters
    ----------
    arrivals
        The trace.
    truth
        The ground truth: a testbed's name, or `predicted` where there is none.
    evaluations
        One per strategy and predictor.
    catalogue
        The NICs and what is predicted of them; its testbeds are closed.
    """

    arrivals: tuple[Arrival, ...]
    truth: str
    evaluations: tuple[Evaluation, ...]
    catalogue: Catalogue


@dataclass(frozen=True)
class Comparison(Evaluations):
    """All strategies on one trace, with the optimum.

    Parameters
    ----------
    seed
        As requested.
    judge
        Whose throughputs the optimum uses: the ground truth, or the predictor of this name where there is none.
    optimum
        The plan that wastage is measured against.
    variations
        Per strategy that keeps a budget of SLA violations, its plans at other budgets; empty unless requested.
    """

    seed: int
    judge: str
    optimum: BoundedPlan
    variations: tuple[BudgetVariation, ...] = ()

    @property
    def plans(self) -> tuple[Evaluation, ...]:
        """Every plan that can be chosen: of each strategy the requested one, followed by the more careful ones."""
        careful = {id(one.asked): [plan for _, plan in one.more_careful] for one in self.variations}
        return tuple(plan for one in self.evaluations for plan in (one, *careful.get(id(one), ())))

    def certificate(self) -> str:
        """The optimum with its proof, as `placer verify` reads it."""
        predictor = self.judge if self.truth == PREDICTED else None
        return certificate_json(self.arrivals, self.catalogue, self.optimum, predictor)

    def wastage_pct(self, evaluation: Evaluation) -> float | None:
        """NICs beyond the optimum, or beyond its lower bound where it is not proven, in %; None where that is 0."""
        return _beyond(evaluation.nics, self.optimum.nics if self.optimum.proven else self.optimum.nics_lower_bound)

    def cost_wastage_pct(self, evaluation: Evaluation) -> float | None:
        """Cost beyond the optimum, or beyond its lower bound where it is not proven, in %; None where that is 0."""
        return _beyond(evaluation.cost, self.optimum.cost if self.optimum.proven else self.optimum.lower_bound)


def _beyond(value: float, least: float) -> float | None:
    return 100.0 * (value / least - 1.0) if least else None


def run(request: RunRequest, progress: Progress) -> Comparison:
    """Read, place, evaluate.

    Raises
    ------
    InputError
        When the trace, the fleet, the models or a name is refused; nothing was placed then.
    TestbedError
        When the ground truth's testbed fails.
    InvalidPlan
        When a strategy violates a constraint.
    """
    chosen = choose_strategies(request.strategies)
    refuse_unknown(request.solver)
    with ExitStack() as stack:
        catalogue, arrivals, predictors = _read(request, stack, progress)
        if request.certificate:
            refuse_uncertifiable(arrivals, catalogue)
        by_measuring = None if request.measure is None else refuse_unmeasurable(catalogue, predictors)
        truth = catalogue.truth()
        judges = catalogue.judges(predictors[0], truth)
        placing = Placing(arrivals, truth, progress)
        evaluations = list(_online(chosen, predictors, catalogue, placing))
        variations = tuple(_variations(evaluations if request.vary_budget else (), chosen, catalogue, placing))
        if request.measure is not None and by_measuring is not None:
            evaluations.append(placing.measured(catalogue, by_measuring, request.measure, request.seed))
        optimum = _optimum(arrivals, catalogue, judges, evaluations, request, progress)
        if None in chosen:
            check_plan(optimum.plan, arrivals, catalogue.kinds)
            check_gpus(optimum.plan, catalogue)
            best = evaluate(optimum.plan, catalogue.kinds, truth, None if truth else judges)
            evaluations.append(with_expected(best, catalogue))
        name = catalogue.truth_name()
        judge = name if truth else predictors[0]
        plans = tuple(evaluations)
        return Comparison(tuple(arrivals), name, plans, catalogue, request.seed, judge, optimum, variations)


def run_online(request: RunRequest, progress: Progress) -> Evaluations:
    """Read, place online, evaluate: a run without the optimum, which takes longest where arrivals come and go.

    Raises
    ------
    InputError, TestbedError, InvalidPlan
        As `run`; InputError where the optimum is among the strategies, too.
    """
    chosen = choose_strategies(request.strategies)
    if None in chosen:
        raise InputError.of("--strategy", f"{OPTIMAL} is not an online strategy")
    with ExitStack() as stack:
        catalogue, arrivals, predictors = _read(request, stack, progress)
        placing = Placing(arrivals, catalogue.truth(), progress)
        evaluations = tuple(_online(chosen, predictors, catalogue, placing))
        return Evaluations(tuple(arrivals), catalogue.truth_name(), evaluations, catalogue)


def _read(request: RunRequest, stack: ExitStack, progress: Progress) -> tuple[Catalogue, Sequence[Arrival], list[str]]:
    catalogue = open_catalogue(request.cards, stack, progress.say)
    source = request.arrivals
    if isinstance(source, Sequence) and not isinstance(source, str):
        arrivals = source
    else:
        arrivals = read_arrivals(source, catalogue.default_traffic, catalogue.check)
    predictors = choose_predictors(request.predictors, catalogue)
    for predictor in predictors:
        for warning in catalogue.risk_warnings(predictor):
            progress.say(warning)
    return catalogue, arrivals, predictors


def choose_strategies(names: Sequence[str | NamedStrategy]) -> list[NamedStrategy | None]:
    """The strategies of these names, all for none, each once; the optimum, which is not an online strategy, is None.

    Raises
    ------
    InputError
        With every name that is unknown.
    """
    chosen: list[NamedStrategy | None] = []
    faults: list[Fault] = []
    for name in dict.fromkeys(names or (*STRATEGIES, OPTIMAL)):
        try:
            chosen.append(None if name == OPTIMAL else find_strategy(name) if isinstance(name, str) else name)
        except InputError as refused:
            hint = suggestion(str(name), (*STRATEGIES, OPTIMAL))
            faults += [replace(fault, hint=hint) if VARIANT not in str(name) else fault for fault in refused.faults]
    if faults:
        raise InputError(faults)
    order = {name: place for place, name in enumerate(STRATEGIES)}
    last = len(order)
    return sorted(chosen, key=lambda one: last + 1 if one is None else order.get(one.definition.name, last))


def strategy_names(names: Sequence[str]) -> tuple[str, ...]:
    """The names of `choose_strategies`, the optimum's included."""
    return tuple(OPTIMAL if one is None else one.name for one in choose_strategies(names))


def choose_predictors(names: Sequence[str], catalogue: Catalogue) -> list[str]:
    """The predictors of these names, all in the models for none."""
    known = catalogue.predictors()
    if not known:
        raise InputError.of("--models", "the fleet's models have no predictor in common")
    if unknown := [name for name in names if name not in known]:
        hint = f"these models have {', '.join(known)}"
        raise InputError.of("--predictor", f"not in the models: {', '.join(unknown)}", hint=hint)
    return [name for name in known if name in names or not names]


def _online(
    chosen: Sequence[NamedStrategy | None],
    predictors: Sequence[str],
    catalogue: Catalogue,
    placing: Placing,
) -> Iterator[Evaluation]:
    for strategy in filter(None, chosen):
        for predictor in predictors if strategy.needs_predictor else [None]:
            evaluation = placing.evaluated(strategy, predictor, catalogue)
            check_gpus(evaluation.plan, catalogue)
            yield evaluation


def _variations(
    evaluations: Sequence[Evaluation], chosen: Sequence[NamedStrategy | None], catalogue: Catalogue, placing: Placing
) -> Iterator[BudgetVariation]:
    """The variations of the plans that were made for the catalogue's budget."""
    strategies = {one.name: one for one in chosen if one is not None}
    for asked in evaluations:
        if catalogue.budget_pct is not None and asked.plan.risk is not None:
            varied = placing.varied(asked, strategies[asked.plan.strategy], catalogue)
            for one in (varied.without_margin, *(careful for _, careful in varied.more_careful)):
                check_gpus(one.plan, catalogue)
            yield varied


def _optimum(
    arrivals: Sequence[Arrival],
    catalogue: Catalogue,
    judges: Sequence[Oracle],
    evaluations: Sequence[Evaluation],
    request: RunRequest,
    progress: Progress,
) -> BoundedPlan:
    """The optimum by the judges' throughputs, or a strategy's plan that is better and violates no SLA."""
    seeking = f"seeking the optimum, for {request.time_limit:g} s at most (--time-limit)"
    with progress.waiting(seeking), progress.task(OPTIMAL) as advance:
        optimum = find_optimum(
            arrivals, catalogue, judges, time_limit=request.time_limit, solver=request.solver, progress=advance
        )
    for evaluation in evaluations if not optimum.proven else ():
        if evaluate(evaluation.plan, catalogue.kinds, judges).violated == 0:
            optimum = optimum.improved_by(evaluation.plan, catalogue.kinds)
    return optimum
