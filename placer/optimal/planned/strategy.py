"""Planned: all arrivals are known, and the solver decides by the predictor and its error model.

Among the plans that keep the budget of SLA violations, reserve included, it takes the one that rejects least, then
costs least."""

import gc
import math
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from placer.evaluate.checks import constraints_kept, peak_nics
from placer.evaluate.expected_violations import ExpectedViolations, expected_violations
from placer.model.arrival import Arrival, have_loads
from placer.model.catalogue import Catalogue
from placer.model.constraints import are_constrained
from placer.model.nic import Tenant
from placer.model.nic_kind import NicKind
from placer.model.oracle import Oracle
from placer.model.plan import PLANNED, Plan, Within
from placer.optimal import MOST_CO_LOCATIONS, MOST_ON_GPU
from placer.optimal.bounded_plan import exact_peak_cost, ids_of_rejected, placements_of
from placer.optimal.dealing import LEAST_DEALING, keep_groups
from placer.optimal.merged_kinds import MergedKinds
from placer.optimal.patterns import co_locations_on
from placer.optimal.planned.by_loads import plan_by_loads
from placer.optimal.planned.by_risks import plan_by_risks
from placer.optimal.planned.chances import LIKELIEST_VIOLATION, Classes, SoloThroughputs, Usable, chances_of
from placer.optimal.planned.mend import mend
from placer.optimal.planned.reserve import planned_pct, reserve_pct
from placer.optimal.planned.static import MAX_SEARCHED_TENANTS, StaticPlan, StaticPlanner
from placer.progress import Advance
from placer.strategies.contention_aware import ContentionAware
from placer.strategies.strategy import Strategy, register
from predictor.regression.compiled import running_s

SEARCH_SECONDS = 60.0
MAX_REPLANS = 3  # plans that are made with a smaller budget where violations on the way to the last arrival exceed it
FAR_FROM_BOUND = 1.02
"""Where a plan costs more than this many times its bound, the online rule's plan is tried as a beginning, too."""
BUDGET_DIVISORS = (1, 2, 4, 8)
ALL_AT_ONCE = "all arrivals at once"


@register
class Planned(Strategy):
    """Places all arrivals together, on the NICs of least cost that keep the budget by the predictor's error model.

    `usable`: which co-locations may be used; all for None.
    """

    name = PLANNED
    needs_predictor = True

    def __init__(
        self,
        catalogue: Catalogue,
        predictor: str | None = None,
        *,
        seconds: float = SEARCH_SECONDS,
        usable: Usable | None = None,
    ) -> None:
        super().__init__(catalogue, predictor)
        if predictor is None:
            raise ValueError("planned needs a predictor.")
        self.seconds, self.usable = seconds, usable
        self.kinds, self.alike = None, catalogue
        if any(kind.domain for kind in catalogue.kinds):  # domains make no difference until tenants are dealt
            self.kinds = MergedKinds.of(catalogue.kinds, catalogue.oracles(predictor))
            self.alike = self.kinds.merge_catalogue(catalogue)

    @classmethod
    def serves(cls, catalogue: Catalogue, predictor: str) -> bool:
        """Only where the predictor has an error model; admission tests of GPUs need none."""
        return catalogue.supports_risk(predictor) or len(catalogue.gpus) == len(catalogue.kinds)

    def place(self, arrivals: Sequence[Arrival], progress: Advance | None = None) -> Plan:
        """The plan, with what is known of it in `Plan.within`."""
        with _without_collecting():
            plan = self._place(arrivals, progress)
            constrained = are_constrained(arrivals, self.catalogue.kinds)
            return self._keep_constraints(plan, arrivals, progress) if constrained else plan

    def _keep_constraints(self, found: Plan, arrivals: Sequence[Arrival], progress: Advance | None) -> Plan:
        """The plan if it keeps the constraints, else that of the online rule, made for smaller budgets until it keeps
        the budget. The bound is that without groups."""
        before = found.within
        if before is None or not any(constraints_kept(found)):
            return found
        for divisor in BUDGET_DIVISORS:
            catalogue, budget_pct = self.catalogue, self.catalogue.budget_pct
            if budget_pct is not None:
                catalogue = replace(catalogue, budget_pct=budget_pct / divisor)
            plan = ContentionAware(catalogue, self.predictor).place(arrivals, progress)
            expected = expected_violations(plan, self.catalogue, self.predictor or "")
            if planned_pct(expected) <= 100.0 * self.budget + 1e-9:
                break
        # the bound is that of plans that reject no other arrivals
        same = set(ids_of_rejected(plan)) <= set(ids_of_rejected(found))
        nics, bound = (before.nics_lower_bound, before.lower_bound) if same else (0, 0.0)
        cost = float(exact_peak_cost(plan, self.catalogue.kinds))
        proven = same and not plan.rejected and cost <= bound + 1e-9
        scope = f"{before.scope}; the bound is that without groups"
        within = Within(reserve_pct(expected), bound, nics, proven, scope)
        return replace(plan, strategy=self.name, within=within, seconds=found.seconds + plan.seconds)

    def _place(self, arrivals: Sequence[Arrival], progress: Advance | None) -> Plan:
        if have_loads(arrivals) and not self.catalogue.gpus:
            return plan_by_loads(arrivals, self.catalogue, self.predictor or "", self.seconds, progress)
        planner = None
        if all(arrival.departure is None and arrival.nic is None for arrival in arrivals):
            planner = self.planner([arrival.tenant for arrival in arrivals], self.budget, self.seconds)
        if planner is None or not planner.complete:
            deadline = time.monotonic() + self.seconds
            return plan_by_risks(arrivals, self.catalogue, self.predictor or "", self.planner, deadline, progress)
        found, plan, expected = self._make_plan(arrivals, planner, None)
        far = (
            plan.rejected > found.fewest_left_out
            or sum(plan.losses[:-1]) > 0
            or self._value(plan)[1] > FAR_FROM_BOUND * planner.least
        )
        if far and len(arrivals) <= MAX_SEARCHED_TENANTS:
            online = ContentionAware(self.catalogue, self.predictor).place(arrivals, progress)
            if self._value(online) < self._value(plan):
                begun = _nics(online)
                other = self._make_plan(arrivals, planner, begun if self.kinds is None else self.kinds.merge(begun))
                if self._value(other[1]) < self._value(plan):
                    found, plan, expected = other
        return replace(plan, within=self._within(plan, found, expected), seconds=running_s() - planner.began)

    def _make_plan(
        self,
        arrivals: Sequence[Arrival],
        planner: StaticPlanner,
        beginning: Sequence[tuple[NicKind, Sequence[Tenant]]] | None,
    ) -> tuple[StaticPlan, Plan, ExpectedViolations]:
        """A plan within the budget, and the violations to expect of it."""
        keep = 0.0
        for _ in range(MAX_REPLANS):
            found = planner.plan(keep, beginning)
            remaining = max(planner.deadline - time.process_time(), LEAST_DEALING * self.seconds)
            plan = self._plan(arrivals, found, remaining)
            expected = expected_violations(plan, self.catalogue, self.predictor or "")
            taken_pct = planned_pct(expected)
            if taken_pct <= 100.0 * self.budget + 1e-9:
                break
            keep = 1.0 - (1.0 - keep) * 0.99 * 100.0 * self.budget / taken_pct
        else:
            plan, expected = mend(plan, self.catalogue, self.predictor or "", 100.0 * self.budget)
        return found, plan, expected

    def _value(self, plan: Plan) -> tuple[tuple[int, ...], float]:
        return plan.losses, float(exact_peak_cost(plan, self.catalogue.kinds))

    @property
    def budget(self) -> float:
        """The share of instances that may be expected to violate their SLA; 1 where each one's risk is given."""
        return 1.0 if self.catalogue.budget_pct is None else self.catalogue.budget_pct / 100.0

    def planner(self, tenants: Sequence[Tenant], budget: float, seconds: float) -> StaticPlanner | None:
        """What plans for these tenants, all present, in about so many seconds after predictions.

        None where there are too many co-locations to look at each.
        """
        catalogue, predictor = self.alike, self.predictor or ""
        oracles = catalogue.oracles(predictor)
        classes = Classes.of(tenants, catalogue.kinds, self._relative_to(oracles))
        co_locations = [
            co_locations_on(kind, classes.groups, oracle, MOST_ON_GPU if kind.paced else MOST_CO_LOCATIONS)
            for kind, oracle in zip(catalogue.kinds, oracles, strict=True)
        ]
        if sum(map(len, co_locations)) > MOST_CO_LOCATIONS:
            return None
        chances = chances_of(classes, catalogue, predictor, co_locations, self.usable)
        return StaticPlanner(chances, catalogue, budget, seconds)

    def _relative_to(self, oracles: Sequence[Oracle]) -> list[Oracle]:
        """Per kind, the throughputs alone that SLAs are relative to; of one predictor the same oracle."""
        solo = {
            id(models): SoloThroughputs(models.predictors[self.predictor or ""])
            for index, models in enumerate(self.alike.models)
            if index not in self.alike.gpus
        }
        return [
            oracles[index] if index in self.alike.gpus else solo[id(models)]
            for index, models in enumerate(self.alike.models)
        ]

    def _plan(self, arrivals: Sequence[Arrival], found: StaticPlan, seconds: float) -> Plan:
        nics = found.nics if self.kinds is None else self.kinds.separate_nics(found.nics)
        placements = placements_of(arrivals, self.catalogue.kinds, self._deal(nics, found.left_out, seconds))
        return Plan(self.name, self.predictor, placements, 0.0, risk=self.catalogue.risk)

    def _deal(
        self, nics: list[tuple[NicKind, tuple[Tenant, ...]]], left_out: list[Tenant], seconds: float
    ) -> list[tuple[NicKind, tuple[Tenant, ...]]]:
        """The NICs with tenants dealt so that no group meets itself, none of them where it likely violates its SLA."""
        risk = LIKELIEST_VIOLATION if self.catalogue.risk is None else self.catalogue.risk
        oracles = replace(self.catalogue, risk=risk, budget_pct=None).oracles(self.predictor or "")
        return keep_groups(nics, left_out, self.catalogue.kinds, oracles, seconds=seconds)[0]

    def _within(self, plan: Plan, found: StaticPlan, expected: ExpectedViolations) -> Within:
        kinds = self.catalogue.kinds
        cost = float(exact_peak_cost(plan, kinds))
        fewest = plan.rejected <= found.fewest_left_out
        costs = {kind.cost for kind in kinds}
        bound = min(found.bound, cost) if fewest else 0.0
        if len(costs) == 1 and (unit := costs.pop()):
            nics = math.ceil(bound / unit - 1e-6)
            bound = min(nics * unit, cost)
        else:
            nics = math.ceil(bound / max(kind.cost for kind in kinds) - 1e-6) if bound else 0
        proven = fewest and not sum(plan.losses[:-1]) and cost <= bound + 1e-9
        nics = min(nics, peak_nics(plan))
        proof = found.proof
        if self.kinds is not None:
            proof = replace(proof, of_kinds=self.kinds.separate_values(proof.of_kinds))
        return Within(reserve_pct(expected), bound, nics, proven, ALL_AT_ONCE, proof)


@contextmanager
def _without_collecting() -> Iterator[None]:
    """No search for unreachable objects: a million arrivals leave none, and searching takes a quarter of the time."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


def _nics(plan: Plan) -> list[tuple[NicKind, list[Tenant]]]:
    nics: dict[str, tuple[NicKind, list[Tenant]]] = {}
    for placement in plan.placed:
        if placement.nic is not None and placement.kind is not None:
            nics.setdefault(placement.nic, (placement.kind, []))[1].append(placement.arrival.tenant)
    return list(nics.values())
