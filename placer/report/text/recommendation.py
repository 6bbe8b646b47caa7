"""Which plan of a run to choose, what it risks and what it costs, in sentences for every report. The strategy `planned`
knows all arrivals; all others but the optimum, which is no choice, decide one by one."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from math import inf
from typing import NamedTuple

from placer.evaluate.checks import peak_nics
from placer.evaluate.columns import MOST_PRIORITIES
from placer.evaluate.evaluation import Evaluation
from placer.evaluate.wastage import budget_of
from placer.model.arrival import have_priorities
from placer.model.catalogue import PREDICTED_TRUTH
from placer.model.fleet import Fleet
from placer.model.plan import OPTIMAL, replay_plan
from placer.optimal.bounded_plan import ids_of_rejected
from placer.optimal.shortfall import list_ids
from placer.placing import BudgetVariation
from placer.report.text.table import count_nics, count_noun
from placer.run import Comparison

PLANNED_PREFIX = "planned"  # the first word of strategies that know all arrivals in advance

THIS_TRACE = "On this very trace"
"""Where SLA violations were measured, by which the plan was chosen: on other traces they differ."""

LEAST_SHOWN_PCT = 0.1

SURPRISE_PCT, SURPRISE_TIMES = 0.5, 2.0
"""Measured SLA violations that deserve a sentence: so many more points than expected, and so many times as many."""


class Words(NamedTuple):
    """What sentences say of SLAs: kept by all, violated by one and by several, and the same as expected."""

    kept: str
    single: str
    several: str
    expected: str
    several_expected: str


SLA_WORDS = Words(
    "no instance violates its SLA",
    "violates its SLA",
    "violate their SLA",
    "No instance is expected to violate its SLA",
    "are expected to violate their SLA",
)
LOAD_WORDS = Words(
    "every instance carries its load",
    "does not carry its load",
    "do not carry their load",
    "Every instance is expected to carry its load",
    "are expected not to carry their load",
)
"""Of a trace all of whose instances have an offered rate."""


def plan_name(evaluation: Evaluation) -> str:
    """The strategy of a plan, with its predictor where it has one."""
    plan = evaluation.plan
    return f"{plan.strategy}, {plan.predictor}" if plan.predictor else plan.strategy


def choose_plan(comparison: Comparison) -> Evaluation:
    """The plan to choose: of those that keep the budget of SLA violations the one that rejects least, then costs least.
    A plan keeps the budget by the ground truth, or else by what is expected; one of which neither is known does not.
    Where none keeps it, the closest is chosen. The optimum is chosen only where there is nothing else."""
    return _best_of(comparison, _options(comparison) or comparison.plans)


def is_within_budget(comparison: Comparison, evaluation: Evaluation) -> bool:
    """Whether the plan is known to keep the budget, measured or else expected."""
    violations = known_violations_pct(evaluation)
    return violations is not None and violations <= budget_of(comparison)


def known_violations_pct(evaluation: Evaluation) -> float | None:
    """SLA violations (%) by the ground truth; without one, those to expect; None where neither is known."""
    measured = evaluation.violations_pct
    return evaluation.expected_violations_pct if measured is None else measured


def asked_budget(comparison: Comparison, evaluation: Evaluation) -> float | None:
    """The budget (%) that the plan was made for; None where it was made for none."""
    for variation in comparison.variations:
        for budget, one in variation.more_careful:
            if one is evaluation:
                return budget
    return None if evaluation.plan.risk is None else comparison.catalogue.budget_pct


def variation_of(comparison: Comparison, evaluation: Evaluation) -> BudgetVariation | None:
    """The variation that the plan is one of."""
    for variation in comparison.variations:
        if any(made is evaluation for made in (variation.asked, *(one for _, one in variation.more_careful))):
            return variation
    return None


def rejects_on_limited_fleet(comparison: Comparison, evaluation: Evaluation) -> bool:
    """Whether the plan rejects arrivals, and more NICs of some kind could help."""
    return evaluation.plan.rejected > 0 and any(kind.count is not None for kind in comparison.catalogue.kinds)


def nics_to_add(comparison: Comparison) -> dict[str, int] | None:
    """By model, the NICs beyond the fleet with which the recommended strategy places all it can; None where unknown."""
    unlimited = comparison.unlimited
    if unlimited is None:
        return None
    needed: Counter[str] = Counter()
    for placed in {
        tenant.kind.index: tenant.kind for tenant in unlimited.plan.placed if tenant.kind is not None
    }.values():
        count = comparison.catalogue.kinds[placed.index].count
        needed[placed.model] += 0 if count is None else max(peak_nics(unlimited.plan, placed) - count, 0)
    return {model: count for model, count in sorted(needed.items()) if count}


def ends_of(values: Iterable[float | None]) -> tuple[float, float] | None:
    """The smallest and the largest; None where there is none, or one is not known."""
    known = list(values)
    numbers = [value for value in known if value is not None]
    return (min(numbers), max(numbers)) if numbers and len(numbers) == len(known) else None


def recommendation_lines(comparison: Comparison) -> Iterator[str]:
    """The plan to choose, with the option that gives it, then what else a planner must know of it."""
    chosen = choose_plan(comparison)
    if chosen.plan.strategy != OPTIMAL:
        yield _begin(comparison, chosen)
        yield from rejection_lines(comparison)
        yield from spare_lines(chosen)
        yield violations_sentence(comparison, chosen)
        yield from further_lines(comparison)


def spare_lines(chosen: Evaluation) -> Iterator[str]:
    """What the recommended plan survives with its spare NICs, or that the fleet has not enough of them."""
    spare = chosen.spare
    if spare is None:
        return
    what, several = str(spare.failures), spare.failures.nics + spare.failures.domains > 1
    if spare.added is not None:
        beside = f"with {count_noun(len(spare.added), 'spare NIC')}" if spare.added else "without a spare NIC"
        whose = "their" if several else "its"
        yield f"{what[0].upper()}{what[1:]} may fail: {beside}, {whose} instances fit on the others, which keep theirs."
        return
    found = "not all of these failures could be tried"
    if spare.without:
        found = f"no place was found for the instances of {list_ids(spare.without)}"
    yield f"The fleet lacks the spare NICs with which {what} may fail: {found}."


def rejection_lines(comparison: Comparison) -> Iterator[str]:
    """Which arrivals the recommended plan rejects, and with how many more NICs its strategy places all."""
    chosen = choose_plan(comparison)
    if not chosen.plan.rejected or chosen.plan.strategy == OPTIMAL:
        return
    yield f"It rejects {count_noun(chosen.plan.rejected, 'arrival')}: {list_ids(ids_of_rejected(chosen.plan))}."
    if have_priorities(comparison.arrivals):
        yield f"{_by_priority(chosen)}."
    unlimited, more = comparison.unlimited, nics_to_add(comparison)
    if unlimited is not None and more and unlimited.plan.rejected < chosen.plan.rejected:
        kinds = " and ".join(f"{count:,} more {model}" for model, count in more.items())
        places = f"all but {unlimited.plan.rejected:,}" if unlimited.plan.rejected else "all arrivals"
        yield f"With {kinds}, the same strategy places {places}."


def _by_priority(evaluation: Evaluation) -> str:
    """The priorities of which the plan rejects arrivals, the highest first, and how many of each."""
    of = Counter(placement.arrival.priority for placement in evaluation.plan.placements)
    lost = [
        f"{count:,} of {of[priority]:,} with priority {priority}"
        for priority, count in evaluation.plan.rejected_by_priority.items()
        if count
    ]
    more = [f"{len(lost) - MOST_PRIORITIES:,} lower priorities"] if len(lost) > MOST_PRIORITIES else []
    return f"By priority: {', '.join([*lost[:MOST_PRIORITIES], *more])}"


def further_lines(comparison: Comparison) -> Iterator[str]:
    """How far the recommended plan carries, what other plans offer, and what its budget and measuring are worth."""
    chosen = choose_plan(comparison)
    if chosen.plan.strategy != OPTIMAL:
        yield from _worth_of_hours(chosen)
        yield from _similar(comparison, chosen)
        # Plans that look better and miss the budget, and what knowing all arrivals in advance is worth.
        # Plans made for the budget that reject or cost less than the chosen one, but miss it, and what would help.
        budget, family = budget_of(comparison), variation_of(comparison, chosen)
        for evaluation in comparison.evaluations:
            violations = known_violations_pct(evaluation)
            made_for_it = evaluation.plan.risk is not None or _knows_all(evaluation)
            better = _dearness(evaluation) < _dearness(chosen)
            if made_for_it and better and violations is not None and violations > budget:
                uses = f"{'places' if evaluation.plan.rejected else 'uses'} {_nics(comparison, evaluation)}"
                violate = "violate" if evaluation.violations_pct is not None else "are expected to violate"
                start = f"{plan_name(evaluation)} {uses}, but {violations:.1f} % of its instances {violate} "
                variation = variation_of(comparison, evaluation)
                yield f"{start}their SLA, more than the budget of {budget:g} %{_remedy(comparison, variation, family)}."
        options = _options(comparison)
        if _knows_all(chosen):
            yield from _one_by_one(comparison, [option for option in options if not _knows_all(option)])
        elif planned := [option for option in options if _knows_all(option)]:
            best = _best_of(comparison, planned)
            if is_within_budget(comparison, best):
                needs = _in_short(comparison, best)
                yield f"Knowing all arrivals in advance saves nothing here: {plan_name(best)} has {needs}."
        yield from _surprise(chosen)
        yield from _budget_cost(comparison, chosen)
        yield from _worth_of_measuring(comparison, chosen)


def violations_sentence(comparison: Comparison, evaluation: Evaluation) -> str:
    """How many instances violate their SLA, by how much, and what the budget is."""
    violations, budget = known_violations_pct(evaluation), f"{budget_of(comparison):g} %"
    words = SLA_WORDS if any(arrival.workload.is_saturated for arrival in comparison.arrivals) else LOAD_WORDS
    if violations is None:
        return "How many SLAs it violates is unknown."
    within = is_within_budget(comparison, evaluation)
    verdict = f"; the budget is {budget}" if within else f", more than the budget of {budget}"
    if evaluation.violated is None and not violations:
        return f"{words.expected}."
    if evaluation.violated is None:
        share = _small(violations)
        return f"{share[0].upper()}{share[1:]} of the instances {words.several_expected}{verdict}."
    if not evaluation.violated:
        return f"{THIS_TRACE}, {words.kept}."
    count, short = evaluation.violated, evaluation.short_by_pct
    violate = words.single if count == 1 else words.several
    at_most = "at most " * (count > 1 and short is not None and short >= LEAST_SHOWN_PCT)
    by = "" if short is None or short <= 0 else f", by {at_most}{_small(short)}"
    of = f"{count:,} of {len(evaluation.plan.placed):,} instances ({violations:.1f} %)"
    return f"{THIS_TRACE}, {of} {violate}{by}{verdict}."


def _options(comparison: Comparison) -> list[Evaluation]:
    return [plan for plan in comparison.plans if plan.plan.strategy != OPTIMAL]


def _best_of(comparison: Comparison, options: Sequence[Evaluation]) -> Evaluation:
    """By the rule of `choose_plan`."""
    kept = [option for option in options if is_within_budget(comparison, option)]

    def order(evaluation: Evaluation) -> tuple[float, ...]:
        violations = known_violations_pct(evaluation)
        violated, dear = inf if violations is None else violations, _dearness(evaluation)
        return (*dear, violated) if kept else (violated, *dear)

    return min(kept or options, key=order)


def _dearness(evaluation: Evaluation) -> tuple[float, ...]:
    """What plans within a budget are ordered by: whether failures have no NICs, what is rejected, then the cost."""
    return evaluation.lacks_spare, *evaluation.plan.losses, evaluation.whole_cost


def _begin(comparison: Comparison, chosen: Evaluation) -> str:
    """The plan, the option that gives it, and why it is the one."""
    budget, asked = budget_of(comparison), asked_budget(comparison, chosen)
    option = f" (--budget {asked:g})" if asked not in (None, budget) else ""
    kept, options = is_within_budget(comparison, chosen), _options(comparison)
    name, nics = f"{plan_name(chosen)}{option}", _nics(comparison, chosen)
    if len(options) == 1:
        return f"{name} (no other strategy was compared): {nics}."
    if kept and chosen.plan.rejected:
        best = (
            "with the fewest losses of the highest priorities" if have_priorities(comparison.arrivals) else "the most"
        )
        return f"Recommended: {name}. It places {nics}, {best} of all plans within the budget."
    if kept:
        return f"Recommended: {name}, {nics}."
    if known_violations_pct(chosen) is not None:
        return f"No plan keeps the budget of {budget:g} % SLA violations; the closest one: {name}, {nics}."
    why = "there is no ground truth, and the predictor does not estimate its errors"
    return f"No plan is known to keep the budget of {budget:g} % SLA violations: {why}. The cheapest: {name}, {nics}."


def _nics(comparison: Comparison, evaluation: Evaluation) -> str:
    """The NICs of a plan, and the arrivals on them where some are rejected."""
    spare, total = evaluation.spare_nics, len(comparison.arrivals)
    nics = count_nics(evaluation.nics) + ("" if spare is None else f" and {spare:,} spare")
    return f"{len(evaluation.plan.placed):,} of {total:,} arrivals on {nics}" if evaluation.plan.rejected else nics


def _in_short(comparison: Comparison, evaluation: Evaluation) -> str:
    """NICs and SLA violations of a plan."""
    violations = known_violations_pct(evaluation)
    expected = " expected" * (evaluation.violations_pct is None)
    of = "unknown SLA violations" if violations is None else f"{violations:.1f} % SLA violations{expected}"
    return f"{_nics(comparison, evaluation)}, {of}"


def _worth_of_hours(chosen: Evaluation) -> Iterator[str]:
    """What the plan saves by knowing how loads change over the day, over one for their peaks."""
    by_peaks, more = chosen.plan.peak_nics, chosen.plan.peak_rejected - chosen.plan.rejected
    if by_peaks is not None and more > 0:
        yield f"Knowing the hours places {more:,} more: by peaks, {plan_name(chosen)} has no NIC for them."
    elif by_peaks is not None:
        saved = by_peaks - chosen.nics
        share = f" ({100.0 * saved / by_peaks:.0f} %)" if saved > 0 else ""
        saves = f"{count_nics(saved)}{share}" if saved > 0 else "nothing"
        yield f"Knowing the hours saves {saves}: by peaks, {plan_name(chosen)} needs {count_nics(by_peaks)}."


def _similar(comparison: Comparison, chosen: Evaluation) -> Iterator[str]:
    """What the strategy of the plan does on traces that are drawn from this one."""
    similar, budget = comparison.similar, budget_of(comparison)
    if not similar:
        return
    nics = _between(ends_of(evaluation.nics for evaluation in similar), "NIC", ",.0f")
    rejected = ends_of(evaluation.plan.rejected for evaluation in similar)
    rejects = f", {_between(rejected, 'arrival', ',.0f')} rejected" if rejected and rejected[1] else ""
    violations = ends_of(map(known_violations_pct, similar))
    measured = all(evaluation.violations_pct is not None for evaluation in similar)
    of = "SLA violations unknown" if violations is None else f"{_between(violations, '', '.1f')} % SLA violations"
    of += "" if measured or violations is None else " expected"
    over = sum((known_violations_pct(evaluation) or 0.0) > budget for evaluation in similar)
    above = f", over the budget on {over:,} of them" if over and is_within_budget(comparison, chosen) else ""
    drawn = f"{count_noun(len(similar), 'other trace')} drawn from its arrivals"
    yield f"On {drawn}: {nics}{rejects}, {of}{above}."


def _one_by_one(comparison: Comparison, online: Sequence[Evaluation]) -> Iterator[str]:
    """What to choose instead of a plan for which all arrivals must be known."""
    if not online:
        yield "All arrivals must be known in advance for this plan."
        return
    best = _best_of(comparison, online)
    take = "take" if is_within_budget(comparison, best) else "no plan keeps the budget; the closest one:"
    start = "All arrivals must be known in advance for this plan. If they come one by one,"
    yield f"{start} {take} {plan_name(best)}, {_in_short(comparison, best)}."


def _remedy(comparison: Comparison, missed: BudgetVariation | None, kept: BudgetVariation | None) -> str:
    """What reduces the violations of a plan; nothing is left to say where a more careful one of `kept` was chosen."""
    if missed is None or not missed.more_careful:
        option = "--risk" if comparison.catalogue.budget_pct is None else "--budget"
        return f"; a lower {option} reduces violations"
    if missed is kept:
        return ""
    return f", and so do those of its plans for smaller budgets, down to {missed.more_careful[-1][0]:g} %"


def _surprise(chosen: Evaluation) -> Iterator[str]:
    """Why far more SLAs are violated than was expected."""
    measured, expected = chosen.violations_pct, chosen.expected_violations_pct
    if measured is None or expected is None or chosen.plan.predictor is None:
        return
    if measured >= max(expected + SURPRISE_PCT, SURPRISE_TIMES * expected):
        why = "Optimistic predictions are so on every NIC with the same NFs, and such NICs are chosen more often"
        who = "The predictor" if chosen.measured_runs is None else "Predictor and measurements"
        yield f"{who} expected {expected:.1f} %. {why}."


def _budget_cost(comparison: Comparison, chosen: Evaluation) -> Iterator[str]:
    """What the budget costs, against the same strategy by the median prediction."""
    variation = variation_of(comparison, chosen)
    if variation is None:
        return
    without = variation.without_margin
    nics, arrivals = chosen.nics - without.nics, chosen.plan.rejected - without.plan.rejected
    takes = f"takes {count_noun(nics, 'extra NIC')}" if nics > 0 else "takes no extra NIC"
    if arrivals > 0:
        takes = f"rejects {count_noun(arrivals, 'more arrival')}"
    safety = f"without a safety margin, {_in_short(comparison, without)}"
    yield f"Keeping violations below {budget_of(comparison):g} % {takes}: {safety}."


def _worth_of_measuring(comparison: Comparison, chosen: Evaluation) -> Iterator[str]:
    """What `--measure` would save or settle, where it can be used and was not."""
    catalogue, optimum = comparison.catalogue, comparison.optimum
    estimated = chosen.plan.predictor is not None and chosen.expected_violations_pct is not None
    if not estimated or catalogue.gpus or catalogue.curves or any(plan.measured_runs for plan in comparison.plans):
        return
    has = co_locations_of(comparison, chosen)
    runs = f"measures up to N co-locations, of which this plan has {has:,}"
    if comparison.truth == PREDICTED_TRUTH:
        yield f"No violation was measured. `--testbed SPEC --measure N` {runs} on a NIC, and places again."
        return
    enough = ""
    if optimum.plan.rejected < chosen.plan.rejected:
        left = optimum.plan.rejected
        enough = f"all but {count_noun(left, 'arrival')} would fit" if left else "all arrivals would fit"
    elif optimum.plan.rejected == chosen.plan.rejected and optimum.nics < chosen.nics:
        enough = f"{count_nics(optimum.nics)} would be enough"
    known = "exact throughputs" if _knows_all(chosen) else "exact throughputs and all arrivals known"
    if enough:
        yield f"With {known}, {enough}. `--measure N` {runs}, and places again."
    elif chosen.violated:
        yield f"`--measure N` {runs}, and places again without those that violate an SLA."


def co_locations_of(comparison: Comparison, evaluation: Evaluation) -> int:
    """How many different co-locations of at least two NFs the plan has, at any time."""
    fleet = Fleet(comparison.catalogue.kinds)
    changes = (nic for _, changed in replay_plan(evaluation.plan, fleet) for nic in changed)
    return len({(nic.kind.index, nic.co_location) for nic in changes if len(nic.tenants) > 1})


def _knows_all(evaluation: Evaluation) -> bool:
    """Whether the plan was made with all arrivals known."""
    return evaluation.plan.strategy.split()[0] == PLANNED_PREFIX


def _between(ends: tuple[float, float] | None, noun: str, digits: str) -> str:
    """`3`, `3 NICs`, `3 to 5 NICs`."""
    low, high = (format(end, digits) for end in ends or (0, 0))
    numbers = low if low == high else f"{low} to {high}"
    return numbers if not noun else f"{numbers} {noun}{'' if numbers == '1' else 's'}"


def _small(pct: float) -> str:
    """A share above 0, which is not to read as none."""
    return f"{pct:.1f} %" if pct >= LEAST_SHOWN_PCT else f"less than {LEAST_SHOWN_PCT:g} %"
