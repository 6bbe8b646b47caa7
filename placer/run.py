"""`placer run`: place a trace with every strategy, and compare each plan with the proven optimum."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import TextIO

from placer.evaluate.checks import InvalidPlan, check_plan, slas_kept
from placer.evaluate.evaluation import Evaluation, evaluate
from placer.inputs.arrivals import STRICT_OPTIONS, TraceOptions, read_arrivals, refuse_unknown_nics
from placer.inputs.catalogue import Cards, open_catalogue
from placer.model.arrival import Arrival
from placer.model.catalogue import PREDICTED_TRUTH, Catalogue
from placer.model.day import has_days
from placer.model.fleet import Fleet
from placer.model.gpu_oracle import GpuOracle
from placer.model.oracle import Oracle
from placer.model.plan import OPTIMAL, Plan, replay_plan
from placer.optimal import refuse_unknown
from placer.optimal.bounded_plan import BoundedPlan
from placer.optimal.certificate import certificate_json, refuse_uncertifiable
from placer.optimal.planned.certificate import certificate_json as planned_certificate_json
from placer.optimal.planned.strategy import Planned
from placer.optimal.trace_optimum import find_optimum
from placer.placing import BudgetVariation, Placing, with_expected
from placer.progress import Progress
from placer.spare import Failures, find_spare, refuse_too_many_failures
from placer.strategies import STRATEGIES, VARIANT, NamedStrategy, find_strategy
from profiles import CoLocation, Fault, InputError
from profiles.faults import suggestion
from profiles.shown import Shown

CERTIFIED_STRATEGIES = (OPTIMAL, Planned.name)
"""Plans that can be certified, the default one first."""


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
        The integer solver of the optimum: `cp-sat` or `highs`.
    certificate
        What is to be certified, `optimal` or `planned`; None for nothing. A trace that has no certificate is refused
        before it is placed.
    vary_budget
        Whether strategies that keep a budget of SLA violations are also placed without one, and where they miss it
        with smaller ones.
    measure
        Runs to spend at most on a plan whose co-locations are measured on the testbed; None makes no such plan.
    trace_options
        What is skipped in a trace that is read.
    headroom_pct
        By how much more than its rate each instance with a rate is planned for, %; `sla_min_kpps` grows with it.
    spare, spare_domains
        How many NICs, and how many domains, may fail at one time: for this each plan gets spare NICs."""

    arrivals: str | TextIO | Sequence[Arrival]
    strategies: tuple[str | NamedStrategy, ...] = ()
    predictors: tuple[str, ...] = ()
    cards: Cards = field(default_factory=Cards)
    seed: int = 0
    time_limit: float = 60.0
    solver: str = "cp-sat"
    certificate: str | None = None
    vary_budget: bool = False
    measure: int | None = None
    trace_options: TraceOptions = STRICT_OPTIONS
    headroom_pct: float = 0.0
    spare: int = 0
    spare_domains: int = 0

    @property
    def failures(self) -> Failures:
        """What may fail."""
        return Failures(self.spare, self.spare_domains)


@dataclass(frozen=True, repr=False)
class Evaluations(Shown):
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
        The NICs and what is predicted of them; its testbeds are closed."""

    arrivals: tuple[Arrival, ...]
    truth: str
    evaluations: tuple[Evaluation, ...]
    catalogue: Catalogue


@dataclass(frozen=True, repr=False)
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
    similar
        What the strategy of the recommended plan does on traces drawn from this one; empty where none was drawn.
    unlimited
        Where that plan rejects arrivals of a limited fleet, the plan of its strategy on any number of NICs."""

    seed: int
    judge: str
    optimum: BoundedPlan
    variations: tuple[BudgetVariation, ...] = ()
    similar: tuple[Evaluation, ...] = ()
    unlimited: Evaluation | None = None

    @property
    def plans(self) -> tuple[Evaluation, ...]:
        """Every plan that can be chosen: of each strategy the requested one, followed by the more careful ones."""
        careful = {id(variation.asked): [plan for _, plan in variation.more_careful] for variation in self.variations}
        return tuple(plan for evaluation in self.evaluations for plan in (evaluation, *careful.get(id(evaluation), ())))

    def certificate(self, of: str = OPTIMAL) -> str:
        """The optimum, or the plan of `planned` by the first predictor, with its proof, as `placer verify` reads it.

        Raises
        ------
        InputError
            When the trace has no certificate."""
        refuse_uncertifiable(self.arrivals, self.catalogue)
        if of == Planned.name:
            plan = next(evaluation.plan for evaluation in self.evaluations if evaluation.plan.strategy == Planned.name)
            return planned_certificate_json(self.arrivals, self.catalogue, plan)
        predictor = self.judge if self.truth == PREDICTED_TRUTH else None
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
        When a strategy violates a constraint."""
    chosen = choose_strategies(request.strategies)
    refuse_unknown(request.solver)
    with ExitStack() as stack:
        catalogue, arrivals, predictors = _read(request, stack, progress)
        if request.certificate is not None:
            refuse_uncertifiable(arrivals, catalogue)
        if request.certificate == Planned.name:
            _refuse_unplanned(chosen, predictors, catalogue)
        by_measuring = None if request.measure is None else _measuring_predictor(catalogue, predictors)
        truth = catalogue.truth()
        judges = catalogue.judges(predictors[0], truth)
        placing = Placing(arrivals, truth, progress, request.failures)
        evaluations = list(_online(chosen, predictors, catalogue, placing))
        variations = tuple(_variations(evaluations if request.vary_budget else (), chosen, catalogue, placing))
        if request.measure is not None and by_measuring is not None:
            online = Planned.name not in [strategy.definition.name for strategy in chosen if strategy is not None]
            evaluations.append(
                placing.place_by_measuring(catalogue, by_measuring, request.measure, request.seed, online=online)
            )
        optimum = _optimum(arrivals, catalogue, judges, evaluations, request, progress)
        if None in chosen:
            check_plan(optimum.plan, arrivals, catalogue.kinds)
            check_gpus(optimum.plan, catalogue)
            best = with_expected(evaluate(optimum.plan, catalogue.kinds, truth, None if truth else judges), catalogue)
            if request.failures:
                best = replace(best, spare=find_spare(best.plan, request.failures, catalogue, None, judges))
            evaluations.append(best)
        name = catalogue.truth_name()
        judge = name if truth else predictors[0]
        plans = tuple(evaluations)
        return Comparison(tuple(arrivals), name, plans, catalogue, request.seed, judge, optimum, variations)


def _refuse_unplanned(chosen: Sequence[NamedStrategy | None], predictors: Sequence[str], catalogue: Catalogue) -> None:
    """InputError where no plan of `planned` would be made."""
    planned = [strategy.definition for strategy in chosen if strategy is not None and strategy.name == Planned.name]
    if not planned:
        raise InputError.of("--of", f"{Planned.name} is not among the strategies", hint=f"--strategy {Planned.name}")
    if not any(planned[0].serves(catalogue, predictor) for predictor in predictors):
        raise InputError.of("--of", f"{Planned.name} needs a predictor that estimates its errors")


def run_online(request: RunRequest, progress: Progress) -> Evaluations:
    """Read, place online, evaluate: a run without the optimum, which takes longest where arrivals come and go.

    Raises
    ------
    InputError, TestbedError, InvalidPlan
        As `run`; InputError where the optimum is among the strategies, too."""
    chosen = choose_strategies(request.strategies)
    if None in chosen:
        raise InputError.of("--strategy", f"{OPTIMAL} is not an online strategy")
    with ExitStack() as stack:
        catalogue, arrivals, predictors = _read(request, stack, progress)
        placing = Placing(arrivals, catalogue.truth(), progress, request.failures)
        evaluations = tuple(_online(chosen, predictors, catalogue, placing))
        return Evaluations(tuple(arrivals), catalogue.truth_name(), evaluations, catalogue)


def _read(request: RunRequest, stack: ExitStack, progress: Progress) -> tuple[Catalogue, Sequence[Arrival], list[str]]:
    catalogue = open_catalogue(request.cards, stack, progress.say)
    if request.failures and request.measure is not None:
        hint = "add --spare to a run without --measure"
        raise InputError.of("--measure", "plans that are made by measuring have no spare NICs", hint=hint)
    refuse_too_many_failures(request.failures, catalogue.kinds)
    source = request.arrivals
    if isinstance(source, Sequence) and not isinstance(source, str):
        _refuse_unplaceable(source, catalogue)
        arrivals = source
        refuse_unknown_nics(arrivals, catalogue.kinds)
    else:
        arrivals = read_arrivals(
            source, catalogue.default_traffic, catalogue.check, request.trace_options, kinds=catalogue.kinds
        )
    if request.headroom_pct:
        arrivals = _with_headroom(arrivals, request.headroom_pct, catalogue, progress)
    if has_days(arrivals):
        _refuse_days(arrivals, request, catalogue)
    predictors = choose_predictors(request.predictors, catalogue)
    if any(not arrival.workload.is_saturated or arrival.workload.cores for arrival in arrivals):
        predictors = _with_loads(predictors, request, catalogue, progress)
    for predictor in predictors:
        for warning in catalogue.risk_warnings(predictor):
            progress.say(warning)
    return catalogue, arrivals, predictors


BY_PEAKS = "--ignore-columns without --loads plans as if all were at their peaks"


def _refuse_days(arrivals: Sequence[Arrival], request: RunRequest, catalogue: Catalogue) -> None:
    """InputError where loads over the day are not understood, or have different numbers of parts."""
    if catalogue.gpus:
        raise InputError.of(
            "load", "is not understood in a fleet with GPUs, which are planned for one rate", hint=BY_PEAKS
        )
    if request.measure is not None:
        raise InputError.of("--measure", "is not understood where the load changes over the day", hint=BY_PEAKS)
    changing = [arrival for arrival in arrivals if arrival.day]
    for arrival in changing:
        if (
            arrival.workload.is_saturated
            or not (0.0 <= min(arrival.day) <= max(arrival.day) <= 1.0)
            or not any(arrival.day)
        ):
            raise InputError.of("load", f"'{arrival.id}' needs a rate, and shares of it from 0 to 1 that are not all 0")
    if len({len(arrival.day) for arrival in changing}) > 1:
        raise InputError.of("load", "the days of the arrivals have different numbers of parts")


def _refuse_unplaceable(arrivals: Sequence[Arrival], catalogue: Catalogue) -> None:
    """InputError where arrivals break a rule that they would be refused for in a file, or were read for other NICs."""
    wrong = {workload: catalogue.check(workload) for workload in {arrival.workload for arrival in arrivals}}
    faults = [] if arrivals else [Fault("arrivals", None, None, "there are none")]
    time, ids = 0.0, set[str]()
    for number, arrival in enumerate(arrivals):
        name = f"arrivals[{number}]"
        faults += [Fault(name, None, column, message) for column, message in wrong[arrival.workload]]
        rate, least = arrival.workload.rate_kpps, arrival.sla.min_kpps
        if rate <= 0:
            faults.append(Fault(name, None, "rate_kpps", f"{rate:g} is not above 0"))
        elif least is not None and least > rate:
            message = f"{least:g} is above the rate that is offered, {rate:g} kpps"
            faults.append(Fault(name, None, "sla_min_kpps", message))
        if arrival.id in ids:
            faults.append(Fault(name, None, "id", f"'{arrival.id}' is already there", "ids must be unique"))
        if arrival.time < time:
            message = f"{arrival.time:g} is before {time:g} of the arrival above"
            faults.append(Fault(name, None, "time", message, "sort the arrivals by time"))
        ids.add(arrival.id)
        time = max(time, arrival.time)
    if faults:
        raise InputError(faults)


def choose_strategies(names: Sequence[str | NamedStrategy]) -> list[NamedStrategy | None]:
    """The strategies of these names, all for none, each once; the optimum, which is not an online strategy, is None.

    Raises
    ------
    InputError
        With every name that is unknown."""
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
    return tuple(OPTIMAL if strategy is None else strategy.name for strategy in choose_strategies(names))


def choose_predictors(names: Sequence[str], catalogue: Catalogue) -> list[str]:
    """The predictors of these names, all in the models for none."""
    known = catalogue.predictors()
    if not known:
        raise InputError.of("--models", "the fleet's models have no predictor in common")
    if unknown := [name for name in names if name not in known]:
        hint = f"these models have {', '.join(known)}"
        raise InputError.of("--predictor", f"not in the models: {', '.join(unknown)}", hint=hint)
    return [name for name in known if name in names or not names]


def _with_headroom(
    arrivals: Sequence[Arrival], headroom_pct: float, catalogue: Catalogue, progress: Progress
) -> list[Arrival]:
    """The arrivals with that much more offered to those that have a rate; InputError where that is too much."""
    factor = 1.0 + headroom_pct / 100.0
    grown = [
        arrival
        if arrival.workload.is_saturated
        else replace(
            arrival,
            workload=replace(arrival.workload, rate_kpps=arrival.workload.rate_kpps * factor),
            sla=arrival.sla.scale(factor),
        )
        for arrival in arrivals
    ]
    wrong = {workload: catalogue.check(workload) for workload in {arrival.workload for arrival in grown}}
    hint = "a smaller --headroom"
    if faults := [
        Fault("--headroom", None, arrival.id, message, hint)
        for arrival in grown
        for _, message in wrong[arrival.workload]
    ]:
        raise InputError(faults)
    progress.say(f"every offered rate is planned {headroom_pct:g} % higher")
    return grown


def _with_loads(predictors: Sequence[str], request: RunRequest, catalogue: Catalogue, progress: Progress) -> list[str]:
    """The predictors that know offered rates and numbers of cores.

    Raises
    ------
    InputError
        Where one that does not was asked for by name, none is left, or a testbed cannot offer rates."""
    able = [name for name in predictors if catalogue.supports_loads(name)]
    missing = [name for name in predictors if name not in able]
    if missing and (request.predictors or not able):
        hint = f"name only {', '.join(able)}" if able else "leave out rate_kpps, rate_gbps and cores"
        raise InputError.of("--predictor", f"{', '.join(missing)} knows no offered rates and no cores", hint=hint)
    for name in missing:
        progress.say(f"{name} is left out: it knows no offered rates and no numbers of cores")
    for kind, testbed in zip(catalogue.kinds, catalogue.testbeds, strict=True):
        if testbed is not None and not kind.paced and not testbed.describe().paced:
            message = f"{testbed.describe().name} is not paced: it offers NFs no rate"
            raise InputError.of("--testbed", message, hint="--testbed none plans by predictions alone")
    return able


def _measuring_predictor(catalogue: Catalogue, predictors: Sequence[str]) -> str:
    from placer.budget.measured_plan import refuse_unmeasurable  # here: what it takes loads for half a second

    return refuse_unmeasurable(catalogue, predictors)


def _online(
    chosen: Sequence[NamedStrategy | None], predictors: Sequence[str], catalogue: Catalogue, placing: Placing
) -> Iterator[Evaluation]:
    for strategy in filter(None, chosen):
        for predictor in predictors if strategy.needs_predictor else [None]:
            if predictor is not None and not strategy.definition.serves(catalogue, predictor):
                continue
            evaluation = placing.place_and_evaluate(strategy, predictor, catalogue)
            check_gpus(evaluation.plan, catalogue)
            yield _claim_by_priority(evaluation)


def _variations(
    evaluations: Sequence[Evaluation], chosen: Sequence[NamedStrategy | None], catalogue: Catalogue, placing: Placing
) -> Iterator[BudgetVariation]:
    """The variations of the plans that were made for the catalogue's budget."""
    strategies = {strategy.name: strategy for strategy in chosen if strategy is not None}
    for asked in evaluations:
        if catalogue.budget_pct is not None and asked.plan.risk is not None:
            varied = placing.vary_budget(asked, strategies[asked.plan.strategy], catalogue)
            for evaluation in (varied.without_margin, *(careful for _, careful in varied.more_careful)):
                check_gpus(evaluation.plan, catalogue)
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
        if _keeps_slas(evaluation.plan, catalogue, judges):
            optimum = optimum.choose_better(evaluation.plan, catalogue.kinds)
    return optimum


NOT_BY_PRIORITY = "not proven to reject by priority"


def _rejects_out_of_order(plan: Plan) -> bool:
    """Whether the plan rejects arrivals of more than the lowest priority: that none rejects fewer then proves nothing.

    Where all that it rejects have the lowest priority, and none rejects fewer, none loses less by priority."""
    return sum(plan.losses[:-1]) > 0


def _claim_by_priority(evaluation: Evaluation) -> Evaluation:
    """The evaluation, with no bound where the plan may lose more of a priority than it had to."""
    within = evaluation.plan.within
    if within is None or not _rejects_out_of_order(evaluation.plan):
        return evaluation
    scope = f"{within.scope}; {NOT_BY_PRIORITY}"
    within = replace(within, lower_bound=0.0, nics_lower_bound=0, proven=False, scope=scope, proof=None)
    return replace(evaluation, plan=replace(evaluation.plan, within=within))


def _keeps_slas(plan: Plan, catalogue: Catalogue, judges: Sequence[Oracle]) -> bool:
    """Whether no SLA is violated, except among instances that already run, where nothing was decided."""
    violated = evaluate(plan, catalogue.kinds, judges).violated
    if not violated or catalogue.gpus or catalogue.curves:
        return violated == 0
    running = any(placement.arrival.nic is not None for placement in plan.placements)
    return running and not any(slas_kept(plan, judges))


# Whether every NF of a plan that is on a GPU keeps its promise there, by code that shares nothing with admission.
#
# The schedule of each co-location is computed anew from its batches, orders and minibatches, as of CONTRACTS 10.


def check_gpus(plan: Plan, catalogue: Catalogue) -> None:
    """Hold the co-locations of a plan on GPUs to what their NFs are promised.

    Raises
    ------
    InvalidPlan
        With every fault."""
    faults = list(gpu_faults(plan, catalogue)) if catalogue.gpus else []
    if faults:
        raise InvalidPlan(f"strategy {plan.strategy} breaks promises on GPUs:\n" + "\n".join(faults))


def gpu_faults(plan: Plan, catalogue: Catalogue) -> Iterator[str]:
    """A sentence per promise or limit that a co-location on a GPU breaks, if not all of it already ran."""
    running = {placement.arrival.id for placement in plan.placements if placement.arrival.nic is not None}
    checked: set[tuple[int, CoLocation]] = set()
    for _, changed in replay_plan(plan, Fleet(catalogue.kinds)):
        for nic in changed:
            key = nic.kind.index, nic.co_location
            if running.issuperset(nic.tenants_by_id):
                continue
            if nic.kind.index in catalogue.gpus and key not in checked:
                checked.add(key)
                yield from (f"{nic.id}: {fault}" for fault in _faults(catalogue.gpus[nic.kind.index], nic.co_location))


def _faults(oracle: GpuOracle, co_location: CoLocation) -> Iterator[str]:
    from placer.inputs.gpu.admission import ExactTest
    from placer.verify.admission import admission_case, admission_faults

    schedule = oracle.schedule(co_location)
    for workload, one in zip(co_location, schedule.workloads, strict=True):
        if one.cause:
            yield f"{workload.nf} is rejected: {one.cause}"
    if schedule.keeps_all and isinstance(oracle.test, ExactTest):
        offered = [workload for workload in co_location if not workload.is_saturated]
        written = oracle.test.certificate(offered, schedule)
        yield from admission_faults(admission_case(written["device"], written["slos"], written["answer"]))
