"""`placer run`: place a trace with every strategy and hold each plan against the truth and the proven optimum."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from placer.evaluate.checks import check_plan
from placer.evaluate.evaluation import Evaluation, evaluate
from placer.inputs.arrivals import read_arrivals
from placer.inputs.catalogue import open_catalogue
from placer.model.arrival import Arrival
from placer.model.catalogue import Catalogue
from placer.model.oracle import Oracle
from placer.optimal import refuse_unknown
from placer.optimal.certificate import refuse_uncertifiable, write_certificate
from placer.optimal.trace_optimum import NAME as OPTIMAL
from placer.optimal.trace_optimum import Certified, find_optimum
from placer.progress import Progress
from placer.strategies import Strategy, strategies
from profiles import InputError


@dataclass(frozen=True)
class RunRequest:
    """What is asked of a run.

    Parameters
    ----------
    arrivals
        The trace: a path, or `-` for standard input.
    strategies, predictors
        Names; empty means all.
    models
        A MODELS folder; None means the models of the recorded simulated BlueField-2.
    testbed
        The SPEC of the ground truth; None means the simulated card for its own models, and no truth for others.
    fleet
        A fleet file; None means unlimited NICs of the model that the models were trained on.
    seed
        Passed on to the output.
    time_limit
        Seconds for the optimum.
    timeout
        Seconds that a testbed may take for one answer.
    risk
        The share of instances that may be expected to miss their SLA; None takes predictions at their best guess.
    solver
        The integer solver of the optimum: `cp-sat`, `highs`, `pulp` or `pulp:NAME`.
    certificate
        Where to write the optimum with its proof; None writes none.
    """

    arrivals: str
    strategies: tuple[str, ...] = ()
    predictors: tuple[str, ...] = ()
    models: Path | None = None
    testbed: str | None = None
    fleet: Path | None = None
    seed: int = 0
    time_limit: float = 60.0
    timeout: float = 60.0
    risk: float | None = None
    solver: str = "cp-sat"
    certificate: Path | None = None


@dataclass(frozen=True)
class Judged:
    """Strategies on one trace.

    Parameters
    ----------
    arrivals
        The trace.
    truth
        Who told the true throughputs: a testbed's name, or `predicted` where nobody did.
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
class Comparison(Judged):
    """All strategies on one trace, beside the optimum.

    Parameters
    ----------
    seed
        As asked.
    judge
        Whose throughputs the optimum is made of: the truth, or the predictor of this name where there is none.
    optimum
        The plan against which wastage is told.
    """

    seed: int
    judge: str
    optimum: Certified

    def wastage_pct(self, evaluation: Evaluation) -> float:
        """NICs beyond the optimum, per 100 of it; beyond the lower bound where the optimum is not proven."""
        against = self.optimum.nics if self.optimum.proven else self.optimum.nics_lower_bound
        return 100.0 * (evaluation.nics / against - 1.0) if against else 0.0


def run(request: RunRequest, progress: Progress) -> Comparison:
    """Read, place, judge.

    Raises
    ------
    InputError
        When the trace, the fleet, the models or a name is refused; nothing was placed then.
    TestbedError
        When the ground truth's testbed fails.
    BrokenPlan
        When a strategy breaks a constraint.
    """
    chosen = choose_strategies(request.strategies)
    refuse_unknown(request.solver)
    with ExitStack() as stack:
        catalogue, arrivals, predictors = _read(request, stack, progress)
        if request.certificate is not None:
            refuse_uncertifiable(arrivals)
        truth = catalogue.truth()
        judges = truth or catalogue.oracles(predictors[0])
        evaluations = list(_online(chosen, predictors, arrivals, catalogue, truth, progress))
        optimum = _optimum(arrivals, catalogue, judges, evaluations, request, progress)
        if request.certificate is not None:
            write_certificate(request.certificate, arrivals, catalogue, optimum, None if truth else predictors[0])
        if OPTIMAL in chosen:
            check_plan(optimum.plan, arrivals, catalogue.kinds)
            evaluations.append(evaluate(optimum.plan, catalogue.kinds, truth, None if truth else judges))
        told = catalogue.truth_name()
        judge = told if truth else predictors[0]
        return Comparison(tuple(arrivals), told, tuple(evaluations), catalogue, request.seed, judge, optimum)


def judge_online(request: RunRequest, progress: Progress) -> Judged:
    """Read, place online, judge: a run that seeks no optimum, which takes longest where arrivals come and go.

    Raises
    ------
    InputError, TestbedError, BrokenPlan
        As `run`; InputError where the optimum is among the strategies, too.
    """
    chosen = choose_strategies(request.strategies)
    if OPTIMAL in chosen:
        raise InputError.of("--strategy", f"{OPTIMAL} decides nothing online")
    with ExitStack() as stack:
        catalogue, arrivals, predictors = _read(request, stack, progress)
        evaluations = tuple(_online(chosen, predictors, arrivals, catalogue, catalogue.truth(), progress))
        return Judged(tuple(arrivals), catalogue.truth_name(), evaluations, catalogue)


def _read(request: RunRequest, stack: ExitStack, progress: Progress) -> tuple[Catalogue, list[Arrival], list[str]]:
    catalogue = open_catalogue(request, stack, progress.say)
    arrivals = read_arrivals(request.arrivals, catalogue.default_traffic, catalogue.check)
    return catalogue, arrivals, choose_predictors(request.predictors, catalogue)


def choose_strategies(names: Sequence[str]) -> dict[str, type[Strategy] | None]:
    """The strategies of these names, all for none; the optimum, which is no online strategy, is None."""
    known: dict[str, type[Strategy] | None] = {**strategies(), OPTIMAL: None}
    if unknown := [name for name in names if name not in known]:
        raise InputError.of("--strategy", f"unknown: {', '.join(unknown)}", hint=f"strategies are {', '.join(known)}")
    return {name: known[name] for name in known if name in names or not names}


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
    chosen: dict[str, type[Strategy] | None],
    predictors: Sequence[str],
    arrivals: Sequence[Arrival],
    catalogue: Catalogue,
    truth: Sequence[Oracle] | None,
    progress: Progress,
) -> Iterator[Evaluation]:
    for name, strategy in chosen.items():
        if strategy is None:
            continue
        for predictor in predictors if strategy.needs_predictor else [None]:
            with progress.task(name if predictor is None else f"{name}, {predictor}") as advance:
                plan = strategy(catalogue, predictor).place(arrivals, advance)
            check_plan(plan, arrivals, catalogue.kinds)
            predicted = None if predictor is None else catalogue.oracles(predictor)
            yield evaluate(plan, catalogue.kinds, truth, predicted)


def _optimum(
    arrivals: Sequence[Arrival],
    catalogue: Catalogue,
    judges: Sequence[Oracle],
    evaluations: Sequence[Evaluation],
    request: RunRequest,
    progress: Progress,
) -> Certified:
    """The optimum by the judges, improved by any strategy's plan that they find faultless."""
    seeking = f"seeking the optimum, for {request.time_limit:g} s at most (--time-limit)"
    with progress.waiting(seeking), progress.task(OPTIMAL) as advance:
        optimum = find_optimum(
            arrivals, catalogue, judges, time_limit=request.time_limit, solver=request.solver, progress=advance
        )
    for evaluation in evaluations if not optimum.proven else ():
        judged = evaluate(evaluation.plan, catalogue.kinds, judges)
        if judged.violated == 0:
            optimum = optimum.improved_by(evaluation.plan, catalogue.kinds)
    return optimum
