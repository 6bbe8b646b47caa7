"""A plan whose co-locations were measured: `placer run --measure N`. Place by the predictor, run the co-locations of
the plan that were not measured yet, and place again by what was measured, until every co-location of the plan was
measured or all runs are spent. A co-location that was measured to violate an SLA, or does not run on the testbed, is
not used again. Runs that are left repeat what is too close to an SLA for the noise of a run."""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from placer.budget.card_runs import UNUSABLE_RUN, CardRuns, MeasuredPredictor
from placer.budget.usage import Needs, OnCard, needs_of
from placer.evaluate.checks import peak_cost
from placer.evaluate.expected_violations import expected_violations, groups_by_kind, shortfalls
from placer.model.arrival import Arrival
from placer.model.catalogue import Catalogue
from placer.model.nic import Tenant
from placer.model.oracle import Oracle
from placer.model.plan import Plan
from placer.optimal.planned.strategy import Planned
from placer.progress import Advance
from placer.strategies.contention_aware import ContentionAware
from profiles import CoLocation, InputError

MEASURED_ONLINE, MEASURED_PLANNED = "contention-aware measured", "planned measured"
"""The names of such plans, by who places."""
LEAST_SHARE = 10  # a round spends half of the runs that are left, but at least this fraction of all: 1/10
IN_DOUBT = 0.02
"""A measured co-location is repeated where a violation is at least so likely: 2 standard deviations of an estimate."""
MOSTLY_PCT = 50.0
"""The share of instances (%) whose co-locations were measured, from which on a plan of those alone is made, too."""
WORTH_OF_MEASURING = 0.01  # the share of its cost that a plan may cost more where more of it was measured

Say = Callable[[str], None]


@dataclass(frozen=True)
class MeasuredPlan:
    """A plan, and how far it rests on measurements. `plan`: the plan. `catalogue`: the NICs, with predictors that hold
    the measurements. `measured_pct`: the share of instances (%) whose co-locations were measured, at every moment of
    their stay and at its end. `runs`: runs that were measured. `unmeasured`: the NFs of each co-location of the plan
    that was not measured, sorted."""

    plan: Plan
    catalogue: Catalogue
    measured_pct: float
    runs: int
    unmeasured: tuple[tuple[str, ...], ...]


def refuse_unmeasurable(catalogue: Catalogue, predictors: Sequence[str]) -> str:
    """The predictor to plan by: the first that estimates its errors. Raises `InputError` when some NIC has no testbed,
    or no predictor estimates its errors; or where latency can be promised."""
    if catalogue.gpus or catalogue.curves:
        raise InputError.of("--measure", "measures throughput, and the fleet has GPUs or NICs that promise latency")
    without = [kind.model for kind, testbed in zip(catalogue.kinds, catalogue.testbeds, strict=True) if not testbed]
    if without:
        message = f"there is no testbed of a {without[0]} to measure on"
        raise InputError.of("--measure", message, hint="name it with --testbed, or with `testbed` in the fleet file")
    for predictor in predictors:
        if catalogue.supports_risk(predictor):
            return predictor
    message = f"{', '.join(predictors)} does not estimate its errors, so it cannot be weighed with a measurement"
    raise InputError.of("--measure", message, hint="choose another --predictor")


def plan_by_measuring(
    arrivals: Sequence[Arrival],
    catalogue: Catalogue,
    predictor: str,
    most: int,
    *,
    seed: int,
    online: bool = False,
    say: Say = lambda message: None,
    progress: Advance | None = None,
) -> MeasuredPlan:
    """The plan after at most `most` runs: of the strategy that knows all arrivals, or of the `online` one.

    `arrivals`: the trace. `catalogue`: the NICs; each has a testbed. Kinds with the same testbed share its
    measurements. `predictor`: the name of a predictor that estimates its errors. `most`: the number of runs. `seed`: of
    the noise of simulated testbeds. `say`: called with a line per round, and per co-location that does not run.
    `progress`: of placing."""
    rounds = _Rounds(arrivals, catalogue, predictor, seed, say, progress, online)
    while True:
        current = rounds.placed()
        left = most - current.runs
        if current.runs and left:
            share = f"{current.measured_pct:.0f} % of the instances rest on them"
            say(f"{rounds.name}: {current.runs} of {most} runs, {share}")
        chosen = rounds.next_runs(current, min(left, max(-(-left // 2), -(-most // LEAST_SHARE)))) if left else []
        if not chosen:
            return current
        rounds.measure(chosen)


class _Rounds:
    """Places with what is known, and measures what is not."""

    def __init__(
        self,
        arrivals: Sequence[Arrival],
        catalogue: Catalogue,
        predictor: str,
        seed: int,
        say: Say,
        progress: Advance | None,
        online: bool,
    ) -> None:
        self._arrivals = arrivals
        self._predicted = catalogue
        self._predictor = predictor
        self._progress = progress
        self._online = online
        self.name = MEASURED_ONLINE if online else MEASURED_PLANNED
        self._former: Plan | None = None
        self._free: Plan | None = None
        first = {id(testbed): at for at, testbed in reversed(list(enumerate(catalogue.testbeds)))}
        self._cards = [first[id(testbed)] for testbed in catalogue.testbeds]
        self._runs = {
            card: CardRuns(testbed, seed, say) for card, testbed in enumerate(catalogue.testbeds)
            if testbed is not None and card in self._cards
        }  # fmt: skip

    @property
    def _measured(self) -> set[OnCard]:
        return {(card, co_location) for card, runs in self._runs.items() for co_location in runs.co_locations}

    def _needs(self, plan: Plan) -> Needs:
        return needs_of(plan, self._predicted.kinds, self._cards)

    def measure(self, chosen: Sequence[OnCard]) -> None:
        """Run each once."""
        for card, runs in self._runs.items():
            runs.measure([co_location for on, co_location in chosen if on == card])

    def placed(self) -> MeasuredPlan:
        """The plan of this round: of those that cost about as much, the one of which most was measured."""
        catalogue = self._catalogue()
        strategy = ContentionAware if self._online else Planned
        plan = strategy(catalogue, self._predictor).place(self._arrivals, self._progress)
        self._free = plan
        plans = [plan]
        # while little was measured, a plan of that alone takes long to find and costs far more
        if self._needs(plan).measured_pct(self._measured) >= (0.0 if self._online else MOSTLY_PCT):
            plans.append(self._of_measured(catalogue, plan.risk))
        if self._former is not None and self._still_holds(self._former, plan, catalogue):
            plans.append(self._former)
        losses = min(plan.losses for plan in plans)
        costs = [peak_cost(plan, catalogue.kinds) if plan.losses == losses else math.inf for plan in plans]
        shares = [self._needs(plan).measured_pct(self._measured) for plan in plans]
        near = [at for at, cost in enumerate(costs) if cost <= (1.0 + WORTH_OF_MEASURING) * min(costs)]
        best = min(near, key=lambda at: (-shares[at], costs[at]))
        self._former = plans[best]
        runs = sum(run.total for run in self._runs.values())
        needed = self._needs(plans[best]).all - self._measured
        missing = sorted({tuple(workload.nf for workload in one) for _, one in needed})
        return MeasuredPlan(replace(plans[best], strategy=self.name), catalogue, shares[best], runs, tuple(missing))

    def _still_holds(self, former: Plan, plan: Plan, catalogue: Catalogue) -> bool:
        """Whether a plan of the round before is as good as before: no part of it was measured to violate an SLA."""
        if any(share > 0.5 for _, _, _, share in self._measured_shares(former, catalogue)):
            return False
        expected = [expected_violations(candidate, catalogue, self._predictor).mean_pct for candidate in (former, plan)]
        return expected[0] <= max(expected[1], catalogue.budget_pct or 0.0)

    def _measured_shares(self, plan: Plan, catalogue: Catalogue) -> Iterator[tuple[int, CoLocation, Tenant, float]]:
        """Per card, measured co-location and tenant of the plan the probability that its SLA is violated."""
        for kind, groups in groups_by_kind(plan, catalogue).items():
            card, predictor = self._cards[kind], catalogue.models[kind].predictors[self._predictor]
            measured = self._runs[card]
            known = [tenants for tenants in groups if tuple(tenant.workload for tenant in tenants) in measured]
            for co_location, tenants, shares in shortfalls(known, predictor):
                for tenant, share in zip(tenants, shares, strict=True):
                    yield card, co_location, tenant, share

    def _catalogue(self) -> Catalogue:
        """With a predictor of what was measured so far."""
        made = {}
        for card, models in zip(self._cards, self._predicted.models, strict=True):
            if (card, id(models)) not in made:
                known = MeasuredPredictor(models.predictors[self._predictor], self._runs[card])
                made[card, id(models)] = replace(models, predictors={**models.predictors, self._predictor: known})
        models_of = zip(self._cards, self._predicted.models, strict=True)
        return replace(self._predicted, models=tuple(made[card, id(models)] for card, models in models_of))

    def _of_measured(self, catalogue: Catalogue, risk: float | None) -> Plan:
        """The plan of measured co-locations only, and of instances alone."""
        if not self._online:
            return Planned(catalogue, self._predictor, usable=self._is_measured).place(self._arrivals)
        oracles = replace(catalogue, risk=risk, budget_pct=None).oracles(self._predictor)
        only = [_OnlyMeasured(one, self._runs[card]) for one, card in zip(oracles, self._cards, strict=True)]
        return replace(ContentionAware(catalogue, self._predictor, only).place(self._arrivals), risk=risk)

    def _is_measured(self, kind: int, co_location: CoLocation) -> bool:
        return len(co_location) == 1 or co_location in self._runs[self._cards[kind]]

    def next_runs(self, current: MeasuredPlan, most: int) -> list[OnCard]:
        """What the plan needs and was not measured, then repeats of what is in doubt. Where a plan of all co-locations
        costs less than the current one, what it needs comes first."""
        settled = self._measured | {
            (card, co_location) for card, runs in self._runs.items() for co_location in runs.refused
        }
        plan, free = current.plan, self._free
        kinds = current.catalogue.kinds
        if free is not None and not self._online and peak_cost(free, kinds) < peak_cost(plan, kinds):
            plan = free
        chosen = self._needs(plan).next_runs(settled, most)
        return chosen + self._in_doubt(current)[: most - len(chosen)]

    def _in_doubt(self, current: MeasuredPlan) -> list[OnCard]:
        """Co-locations of the plan that are too close to an SLA for the noise, those of most such instances first. A
        drop hinges on the throughput alone, too: the one of both that was run less often is repeated."""
        doubt: Counter[OnCard] = Counter()
        for card, co_location, tenant, share in self._measured_shares(current.plan, current.catalogue):
            if IN_DOUBT < share < 1.0 - IN_DOUBT:
                measured, alone = self._runs[card], (tenant.workload,)
                relative = tenant.relative_drop is not None and alone in measured
                doubt[card, min([co_location, *([alone] if relative else [])], key=measured.runs)] += 1
        return sorted(doubt, key=lambda one: (-doubt[one], one))


class _OnlyMeasured(Oracle):
    """Lets no SLA be kept in a co-location that was not measured; an instance alone runs anywhere."""

    def __init__(self, known: Oracle, runs: CardRuns) -> None:
        super().__init__()
        self._known = known
        self._runs = runs

    def _query(self, co_locations: Sequence[CoLocation]) -> Sequence[Sequence[float]]:
        answers = self._known.throughput(co_locations)
        return [
            kpps if len(one) == 1 or one in self._runs else [UNUSABLE_RUN * value for value in kpps]
            for one, kpps in zip(co_locations, answers, strict=True)
        ]
