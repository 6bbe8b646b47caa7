"""What `planned` calls proven, with constraints and priorities, against a search of every plan within the budget.

`python -m tests.properties.test_planned_by_every_plan 0 2000` says how often it is proven, of the instances of seeds.
"""

import random
import sys
from collections import Counter
from collections.abc import Sequence

from placer.evaluate.checks import check_plan
from placer.model.catalogue import Catalogue
from placer.optimal.planned.strategy import Planned
from placer.testing.strategies import NF_PRESSURE, NF_SENSITIVITY, TOY_TRAFFIC
from predictor import Models
from tests.effort import THOROUGH
from tests.placer.optimal.planned.instances import NAME, ErringPredictor
from tests.properties.test_plans import assignment_of, draw_fleet, draw_trace
from tests.reference.every_plan import breaks_constraint, cost_of, expected_violations_of, find_best, losses_of

INSTANCES = 400 if THOROUGH else 25
CLOSE = 1e-6


class PressedPredictor(ErringPredictor):
    """Predicts what the toy world does, and errs."""

    def _share(self, nf: str, names: Sequence[str]) -> float:
        total = sum(NF_PRESSURE[name] for name in names)
        return max(1.0 - NF_SENSITIVITY[nf] * (total - NF_PRESSURE[nf]), 0.01)


def check_planned(seed: int) -> str:
    """Whether the plan is proven, the best without proof, or neither. No plan is better than one that is proven, none
    costs less than its bound, and no plan within the budget is better than the best of all."""
    draw = random.Random(seed)
    fleet = draw_fleet(draw)
    kinds, trace = fleet.kinds, draw_trace(draw, fleet)
    budget = draw.choice((0.01, 0.05, 0.15))
    models = Models({NAME: PressedPredictor()}, None, TOY_TRAFFIC, {})
    many = len(kinds)
    catalogue = Catalogue(kinds, (models,) * many, (None,) * many, specs=("none",) * many, budget_pct=100.0 * budget)
    plan = Planned(catalogue, NAME, seconds=20.0).place(trace)
    check_plan(plan, trace, kinds)
    assigned, within = assignment_of(plan), plan.within
    assert within is not None and not breaks_constraint(trace, kinds, assigned)
    expected, placed = expected_violations_of(trace, assigned), len(plan.placed)
    assert 1.4 * expected <= budget * placed + CLOSE, "it expects more violations than the budget, with their reserve"
    best = find_best(trace, kinds, budget=budget)
    assert expected_violations_of(trace, best.assignment) <= budget * (len(trace) - sum(best.losses)) + CLOSE
    losses, cost = losses_of(trace, assigned), cost_of(trace, kinds, assigned)
    assert (losses, cost + CLOSE) >= (best.losses, best.worth), "it is better than the best of all plans"
    same = best
    if any(arrival.departure is not None for arrival in trace):  # the bound is that of plans that place the same
        same = find_best([placement.arrival for placement in plan.placed], kinds, budget=budget)
    if sum(same.losses) <= (plan.rejected if same is best else 0):
        assert within.lower_bound <= same.worth + CLOSE, f"a plan costs {same.worth}, below {within.lower_bound}"
    is_best = losses == best.losses and cost <= best.worth + CLOSE
    assert is_best or not within.proven, f"{best.losses}, {best.worth} is better than {losses}, {cost}"
    return "proven" if within.proven else "best, not proven" if is_best else "not the best"


def test_what_is_proven_is_the_best_of_all_plans_within_the_budget() -> None:
    found = Counter[str]()
    for seed in range(INSTANCES):
        try:
            found[check_planned(seed)] += 1
        except AssertionError as wrong:
            raise AssertionError(f"instance of seed {seed}: {wrong}") from wrong
    assert found["proven"] >= INSTANCES / 4


if __name__ == "__main__":
    outcomes = Counter[str]()
    for number in range(*map(int, sys.argv[1:])):
        try:
            outcomes[check_planned(number)] += 1
        except AssertionError as wrong:
            outcomes["wrong"] += 1
            print(f"seed {number}: {wrong}", flush=True)
        if number % 100 == 99:
            print(f"{number + 1}: {dict(outcomes)}", flush=True)
    print(dict(outcomes))
