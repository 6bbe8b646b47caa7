"""What is left where no plan that was found keeps the budget: the most doubtful instances get NICs of their own.

Where instances leave, or no search was made, not every plan keeps the budget. An instance for which there is no NIC by
its constraints, or that is doubtful on its own, is rejected."""

from dataclasses import replace

from placer.evaluate.checks import constraints_kept, peak_nics
from placer.evaluate.expected_violations import ExpectedViolations, expect_violations_of, likeliest_violations
from placer.model.catalogue import Catalogue
from placer.model.nic_kind import NicKind
from placer.model.plan import Placement, Plan
from placer.optimal.planned.chances import LIKELIEST_VIOLATION
from placer.optimal.planned.reserve import planned_pct


def mend(plan: Plan, catalogue: Catalogue, predictor: str, budget_pct: float) -> tuple[Plan, ExpectedViolations]:
    """The plan with doubtful instances moved until it keeps the budget, reserve included, and what to expect of it.

    More are moved at once from round to round, since each round replays the plan.
    """
    moved: set[str] = set()
    rounds = 0
    while True:
        worst = likeliest_violations(plan, catalogue, predictor)
        expected = expect_violations_of(worst, len(plan.placed))
        doubtful = sorted(worst, key=lambda identity: (-worst[identity][0], identity))
        kept = planned_pct(expected) <= budget_pct + 1e-9
        if not doubtful or (kept and worst[doubtful[0]][0] <= LIKELIEST_VIOLATION):
            return plan, expected
        for identity in doubtful[: 1 + rounds**2 // 8]:
            plan = _move(plan, identity, catalogue, again=identity in moved)
            moved.add(identity)
        rounds += 1


def _move(plan: Plan, identity: str, catalogue: Catalogue, *, again: bool) -> Plan:
    """The plan with the instance on a NIC of its own, of the cheapest kind that has one left and keeps
    all constraints; else without it."""
    at = next(at for at, placement in enumerate(plan.placements) if placement.arrival.id == identity)
    arrival = plan.placements[at].arrival

    def instead(placement: Placement) -> Plan:
        return replace(plan, placements=(*plan.placements[:at], placement, *plan.placements[at + 1 :]))

    for kind in sorted(catalogue.kinds, key=lambda kind: kind.cost) if not again else ():
        if kind.hosts(arrival.workload):
            larger = instead(Placement(arrival, _find_unused_nic(plan, kind), kind))
            is_left = kind.count is None or peak_nics(larger, kind) <= kind.count
            if is_left and not any(constraints_kept(larger)):
                return larger
    return instead(Placement(arrival))


def _find_unused_nic(plan: Plan, kind: NicKind) -> str:
    """The name of a NIC of this kind that the plan does not use."""
    used = {placement.nic for placement in plan.placements}
    numbered = (f"nic-{number}" for number in range(1, len(used) + 2))
    return next(name for name in (*kind.names, *numbered) if name not in used)
