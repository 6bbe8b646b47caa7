"""A run of a study: one trace on one fleet for one budget, with everything that its results depend on."""

import io
import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path

from placer.evaluate.columns import RESULT_COLUMNS
from placer.evaluate.evaluation import Evaluation, to_buy
from placer.inputs.arrivals import STRICT_OPTIONS, TraceOptions, read_arrivals
from placer.inputs.catalogue import Cards, open_catalogue
from placer.inputs.models import Say, capacities_of
from placer.model.arrival import have_loads
from placer.model.catalogue import DEFAULT_BUDGET_PCT, Catalogue
from placer.model.plan import OPTIMAL
from placer.progress import Progress
from placer.run import Comparison, Evaluations, RunRequest, choose_predictors, run, run_online, strategy_names
from placer.strategies import find_strategy
from placer.studies.growth import arrivals_csv, loads_by_name
from placer.studies.statistics import SPARE_COLUMN
from placer.studies.study import UNLIMITED_FLEET, Study, TraceSpec
from profiles import InputError
from profiles.faults import suggestion
from traces.arrivals import Recipe, generate

TO_BUY = "to_buy "
"""Begins the columns of NICs to buy, before the model."""

Value = str | float | int | bool | None
Row = dict[str, Value]


@dataclass(frozen=True)
class RunTask:
    """One run of a study.

    `trace`: the arrivals as CSV text, because a task may run on another machine. `loads`: those over the day that it
    names. `cards`: the NICs, their models, the
    ground truth, and the budget of SLA violations or the risk. `strategies`, `predictors`: names; empty means all.
    `with_optimum`: whether wastage is needed; without it the optimum is computed only if it is among the strategies.
    `spare`, `spare_domains`: how many NICs and domains may fail; `nics` and `cost` then include the spare NICs."""

    labels: Mapping[str, Value]
    trace: str
    cards: Cards = field(default_factory=Cards)
    strategies: tuple[str, ...] = ()
    predictors: tuple[str, ...] = ()
    time_limit: float = 60.0
    with_optimum: bool = True
    spare: int = 0
    spare_domains: int = 0
    loads: Mapping[str, tuple[float, ...]] = field(default_factory=dict)


def run_task(task: RunTask) -> list[Row]:
    """A row per strategy and predictor: the labels, then results. Times are left out, because they vary.

    Raises InputError, TestbedError, InvalidPlan as `run`."""
    request = RunRequest(
        arrivals=io.StringIO(task.trace, newline=""), strategies=task.strategies, predictors=task.predictors,
        cards=task.cards, time_limit=task.time_limit, spare=task.spare, spare_domains=task.spare_domains,
        trace_options=TraceOptions(loads=task.loads) if task.loads else STRICT_OPTIONS,
    )  # fmt: skip
    with_optimum = task.with_optimum or not task.strategies or OPTIMAL in task.strategies
    evaluations = (run if with_optimum else run_online)(request, Progress(quiet=True))
    return [{**task.labels, **_results(evaluations, evaluation)} for evaluation in evaluations.evaluations]


def variants(
    task: RunTask, catalogue: Catalogue, *, budgets: Sequence[float] = (), risks: Sequence[float] = ()
) -> Iterator[RunTask]:
    """The task for each budget, the largest first, then at each risk; for the default budget where none is given.

    Strategies and predictors on which neither has an effect run once."""
    asked: list[tuple[float | None, float | None]] = [(budget, None) for budget in sorted(set(budgets), reverse=True)]
    asked += [(None, risk) for risk in dict.fromkeys(risks)]
    for number, (budget, risk) in enumerate(asked or [(DEFAULT_BUDGET_PCT, None)]):
        if number == 1:
            strategies = tuple(name for name in task.strategies if uses_predictor(name))
            predictors = tuple(name for name in task.predictors if catalogue.supports_risk(name))
            task = replace(task, strategies=strategies, predictors=predictors)
        if task.strategies and task.predictors:
            yield replace(task, cards=replace(task.cards, budget_pct=budget, risk=risk))


def uses_predictor(strategy: str) -> bool:
    """Whether the plan of the strategy depends on predictor and risk."""
    return strategy != OPTIMAL and find_strategy(strategy).needs_predictor


def _results(evaluations: Evaluations, one: Evaluation) -> Row:
    catalogue = evaluations.catalogue
    given = catalogue.risk if _supports_risk(evaluations, one) else None
    return {
        "strategy": one.plan.strategy,
        "predictor": one.plan.predictor,
        "budget_pct": catalogue.budget_pct,
        "risk": given if one.plan.risk is None else one.plan.risk,
        "arrivals": len(evaluations.arrivals),
        "nics": one.nics + (one.spare_nics or 0),
        **({} if one.spare is None else {SPARE_COLUMN: one.spare_nics}),
        "cost": float(one.whole_cost),
        "rejected": one.plan.rejected,
        "violated": one.violated,
        "violations_pct": one.violations_pct,
        "expected_violations_pct": one.expected_violations_pct,
        **_against_optimum(evaluations, one),
        "truth": evaluations.truth,
        **_to_buy(evaluations, one),
        **{column.key: column.in_studies(catalogue.kinds, one) for column in RESULT_COLUMNS if column.in_studies},
    }


def _to_buy(evaluations: Evaluations, one: Evaluation) -> Row:
    """A column per model where the fleet says what is owned."""
    kinds = evaluations.catalogue.kinds
    if all(kind.owned is None for kind in kinds):
        return {}
    return {f"{TO_BUY}{model}": count for model, count in to_buy(one.plan, kinds, one.spare).items()}


def _supports_risk(evaluations: Evaluations, one: Evaluation) -> bool:
    strategy, predictor = one.plan.strategy, one.plan.predictor
    return predictor is not None and uses_predictor(strategy) and evaluations.catalogue.supports_risk(predictor)


def _against_optimum(evaluations: Evaluations, one: Evaluation) -> Row:
    if not isinstance(evaluations, Comparison):
        return dict.fromkeys(("wastage_pct", "optimal_nics", "lower_bound", "proven"))
    optimum = evaluations.optimum
    return {
        "wastage_pct": evaluations.wastage_pct(one),
        "optimal_nics": optimum.nics,
        "lower_bound": optimum.nics_lower_bound,
        "proven": optimum.proven,
    }


# The runs of a study: its traces, generated or read, on every fleet for every budget.


def tasks_of_study(study: Study, say: Say, options: TraceOptions = STRICT_OPTIONS) -> list[RunTask]:
    """Every run of the study, ordered by fleet, trace, draw, and budget or risk; all input is read and checked first.

    Raises InputError when a name, a trace, a fleet or the models are refused."""
    strategies = strategy_names(study.strategies)
    if options.loads is not None and all(trace.file is None for trace in study.trace):
        raise InputError.of("--loads", "no trace of the study is a file", hint="leave it out")
    refuse_same_names("fleets", [Path(fleet) for fleet in study.fleets])
    tasks: list[RunTask] = []
    for fleet in study.fleets or (None,):
        cards = Cards(models=_path(study.models), testbed=study.testbed, fleet=_path(fleet))
        with ExitStack() as stack:
            catalogue = open_catalogue(cards, stack, say)
        every = tuple(choose_predictors(study.predictors, catalogue))
        able = tuple(name for name in every if catalogue.supports_loads(name))
        for trace in study.trace:
            for draw, (text, loads, offered) in enumerate(_texts(trace, study.seed, catalogue, options)):
                predictors = able if offered and able and not study.predictors else every
                if len(predictors) < len(every):
                    left_out = ", ".join(name for name in every if name not in able)
                    say(f"{left_out} is left out of {trace.label}: it knows no offered rates and no numbers of cores")
                labels: dict[str, Value] = {"trace": trace.label, "draw": draw, "fleet": fleet_name(cards.fleet)}
                task = RunTask(labels, text, cards, strategies, predictors, study.time_limit, loads=loads)
                tasks += variants(task, catalogue, budgets=study.budgets, risks=study.risks)
    return tasks


def fleet_name(fleet: Path | None) -> str:
    return fleet.stem if fleet else UNLIMITED_FLEET


def refuse_same_names(option: str, fleets: Sequence[Path]) -> None:
    """InputError when two fleets would have the same name in results."""
    names = [fleet_name(fleet) for fleet in fleets]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise InputError.of(option, f"two fleets are called {twice}", hint="results name a fleet after its file")


def _texts(
    trace: TraceSpec, seed: int, catalogue: Catalogue, options: TraceOptions
) -> Iterator[tuple[str, Mapping[str, tuple[float, ...]], bool]]:
    """The draws of a trace, as CSV text that the catalogue accepts, each with the loads over the day that it names, and
    whether it has rates or numbers of cores."""
    if trace.file is not None:
        read = read_arrivals(trace.file, catalogue.default_traffic, catalogue.check, options, kinds=catalogue.kinds)
        yield arrivals_csv(read), loads_by_name(read), have_loads(read)
        return
    described = catalogue.main_models.testbed
    known = catalogue.main_models.nfs
    if unknown := [nf for nf in trace.nfs if nf not in known]:
        hint = suggestion(unknown[0], known)
        raise InputError.of("trace.nfs", f"not profiled: {', '.join(unknown)}", hint=hint)
    if trace.traffic != "default" and described is None:
        raise InputError.of("trace.traffic", "the models came from a profile that declares no range of traffic")
    for draw in range(trace.draws):
        recipe = Recipe(
            count=trace.count,
            nfs=trace.nfs,
            sla=trace.sla if trace.loads is None or "sla" in trace.model_fields_set else None,
            traffic=trace.traffic,
            attributes=dict(described.attributes) if described else None,
            mean_stay_s=trace.mean_stay_s,
            seed=random.Random(f"{seed}/{trace.label}/{draw}").getrandbits(32),
        )
        if trace.loads:
            recipe = replace(recipe, loads=trace.loads, capacity_kpps=capacities_of(catalogue.main_models))
        yield "".join(generate(recipe)), {}, bool(trace.loads)


def _path(text: str | None) -> Path | None:
    return None if text is None else Path(text)
