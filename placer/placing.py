"""Places a trace by one strategy, at the requested budget of SLA violations and at others, and evaluates each plan. How
often a predictor errs is known only as far as it was measured, so a plan that is expected to keep a budget may miss it
by the ground truth. Then the strategy is asked to be more careful, which costs fewer NICs than another strategy."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from placer.evaluate.checks import check_plan, slas_kept
from placer.evaluate.evaluation import Evaluation, evaluate
from placer.evaluate.expected_violations import expected_violations
from placer.model.arrival import Arrival
from placer.model.catalogue import Catalogue
from placer.model.oracle import Oracle
from placer.progress import Progress
from placer.spare import NO_FAILURES, Failures, find_spare
from placer.strategies import NamedStrategy
from profiles.shown import Shown

RISK_DIVISORS = (2, 4, 8)  # fractions of the budget that are tried one after the other: a half, a quarter, an eighth
MEDIAN_RISK = 0.5  # the risk at which placement uses the median prediction, without a margin


@dataclass(frozen=True, repr=False)
class BudgetVariation(Shown):
    """A plan that was made for a budget, and the plans of its strategy at other budgets. `asked`: the plan for the
    requested budget. `more_careful`: plans with the smaller budget (%) that they were made for, the larger first; empty
    where `asked` keeps its own. `without_margin`: the plan by the median prediction."""

    asked: Evaluation
    more_careful: tuple[tuple[float, Evaluation], ...]
    without_margin: Evaluation


@dataclass(frozen=True)
class Placing:
    """What is the same for every strategy. `arrivals`: the trace. `truth`: per kind of NIC, the ground truth; None
    where there is none. `progress`: where progress goes. `failures`: those for which spare NICs are found."""

    arrivals: Sequence[Arrival]
    truth: Sequence[Oracle] | None
    progress: Progress
    failures: Failures = NO_FAILURES

    def place_and_evaluate(self, strategy: NamedStrategy, predictor: str | None, catalogue: Catalogue) -> Evaluation:
        """The strategy's plan, checked and evaluated."""
        with self.progress.task(strategy.name if predictor is None else f"{strategy.name}, {predictor}") as advance:
            plan = strategy.build(catalogue, predictor).place(self.arrivals, advance)
        if predictor is None or not catalogue.supports_risk(predictor):
            plan = replace(plan, risk=None)  # the risk had no effect
        check_plan(plan, self.arrivals, catalogue.kinds)
        predicted = None if predictor is None else catalogue.oracles(predictor)
        found = with_expected(evaluate(plan, catalogue.kinds, self.truth, predicted), catalogue)
        return replace(found, spare=find_spare(plan, self.failures, catalogue, strategy)) if self.failures else found

    def place_by_measuring(
        self, catalogue: Catalogue, predictor: str, most: int, seed: int, *, online: bool
    ) -> Evaluation:
        """The plan by at most `most` runs on the catalogue's testbeds, checked and evaluated. It is of the strategy
        that knows all arrivals, or of the `online` one."""
        from placer.budget.measured_plan import MEASURED_ONLINE, MEASURED_PLANNED, plan_by_measuring

        with self.progress.task(f"{MEASURED_ONLINE if online else MEASURED_PLANNED}, {predictor}") as advance:
            found = plan_by_measuring(
                self.arrivals, catalogue, predictor, most,
                seed=seed, online=online, say=self.progress.say, progress=advance,
            )  # fmt: skip
        check_plan(found.plan, self.arrivals, catalogue.kinds)
        predicted = found.catalogue.oracles(predictor)
        evaluation = with_expected(evaluate(found.plan, catalogue.kinds, self.truth, predicted), found.catalogue)
        return replace(
            evaluation, measured_runs=found.runs, measured_pct=found.measured_pct, unmeasured=found.unmeasured
        )

    def vary_budget(self, asked: Evaluation, strategy: NamedStrategy, catalogue: Catalogue) -> BudgetVariation:
        """The plans of a strategy whose plan for the catalogue's budget is `asked`, at other budgets."""
        predictor = asked.plan.predictor
        named = replace(strategy, name=f"{strategy.name} without margin")
        without = self.place_and_evaluate(named, predictor, replace(catalogue, risk=MEDIAN_RISK, budget_pct=None))
        return BudgetVariation(asked, tuple(self._more_careful(asked, strategy, catalogue)), without)

    def _more_careful(
        self, asked: Evaluation, strategy: NamedStrategy, catalogue: Catalogue
    ) -> Iterator[tuple[float, Evaluation]]:
        """Plans for smaller budgets until one keeps the catalogue's by the ground truth, or none could."""
        budget, last = catalogue.budget_pct, asked
        for divisor in RISK_DIVISORS:
            if budget is None or last.violations_pct is None or last.violations_pct <= budget:
                return
            running = any(arrival.nic is not None for arrival in self.arrivals)
            if running and self.truth is not None and not any(slas_kept(last.plan, self.truth)):
                return  # SLAs are violated only where nothing was decided
            smaller = budget / divisor
            named = replace(strategy, name=f"{strategy.name} at budget {smaller:g} %")
            last = self.place_and_evaluate(named, asked.plan.predictor, replace(catalogue, budget_pct=smaller))
            yield smaller, last


def with_expected(evaluation: Evaluation, catalogue: Catalogue) -> Evaluation:
    """With the SLA violations to expect, by the plan's predictor or else the first; unknown without an error model."""
    by = evaluation.plan.predictor or catalogue.predictors()[0]
    if not catalogue.supports_risk(by):
        return evaluation
    return replace(evaluation, expected_violations_pct=expected_violations(evaluation.plan, catalogue, by).mean_pct)
