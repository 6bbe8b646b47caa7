"""Recorded traces: any single failure of each strategy's plan is replayed, and everything else stays where it is."""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from math import inf
from pathlib import Path

import pytest

from placer.evaluate.checks import cores_kept, slas_kept
from placer.evaluate.expected_violations import likeliest_violations
from placer.evaluate.spare_checks import Failures, Takeover, spare_faults
from placer.inputs.arrivals import read_arrivals
from placer.inputs.catalogue import Cards, open_catalogue
from placer.model.catalogue import Catalogue
from placer.model.plan import PLANNED, Plan, Within
from placer.run import choose_strategies
from placer.spare import find_spare
from placer.spare.failover import FailoverSearch
from placer.spare.rules import ByExpectation, ByThroughput

TRACES = Path(__file__).parents[3] / "traces"


@pytest.fixture(scope="module")
def catalogue() -> Iterator[Catalogue]:
    with ExitStack() as stack:
        yield open_catalogue(Cards(budget_pct=2.0), stack, lambda line: None)


def plan_of(catalogue: Catalogue, trace: str, strategy: str, predictor: str | None, most: int | None = None) -> Plan:
    arrivals = read_arrivals(str(TRACES / trace), catalogue.default_traffic, catalogue.check)[:most]
    (named,) = choose_strategies([strategy])
    assert named is not None
    return named.build(catalogue, predictor).place(arrivals)


def after(plan: Plan, takeover: Takeover) -> Plan:
    """What is present at a failure, with the tenants of the failed NICs where they go."""
    present = [p for p in plan.placed if p.arrival.begins <= takeover.time < (p.arrival.departure or inf)]
    homes = [takeover.nic_of.get(p.arrival.id, (p.nic, p.kind)) for p in present]
    placements = (
        replace(p, arrival=replace(p.arrival, time=0.0, departure=None), nic=nic, kind=kind)
        for p, (nic, kind) in zip(present, homes, strict=True)
    )
    return replace(plan, placements=tuple(placements))


@pytest.mark.parametrize(
    ("trace", "strategy", "predictor"),
    [
        ("arrivals-500.csv", "monopolization", None),
        ("arrivals-500.csv", "greedy", None),
        ("arrivals-500.csv", "contention-aware", "slomo"),
        pytest.param("arrivals-500.csv", "contention-aware", "tomur", marks=pytest.mark.long),
        pytest.param("arrivals-mixed.csv", "contention-aware", "tomur", marks=pytest.mark.long),
        pytest.param("arrivals-departures.csv", "greedy", None, marks=pytest.mark.long),
        pytest.param("arrivals-departures.csv", "contention-aware", "tomur", marks=pytest.mark.long),
        pytest.param("arrivals-departures.csv", PLANNED, "tomur", marks=pytest.mark.long),
        pytest.param("arrivals-500.csv", PLANNED, "tomur", marks=pytest.mark.long),
    ],
)
def test_any_nic_of_a_plan_of_equal_nics_may_fail_with_one_spare(
    catalogue: Catalogue, trace: str, strategy: str, predictor: str | None
) -> None:
    plan = plan_of(catalogue, trace, strategy, predictor)
    spare = find_spare(plan, Failures(1), catalogue, *choose_strategies([strategy]))
    assert spare.added is not None and len(spare.added) <= 1


def test_free_capacity_takes_the_tenants_of_every_nic(catalogue: Catalogue) -> None:
    """By slomo, which ignores accelerators, the plan of 130 NICs has enough; a failure moves nothing else."""
    plan = plan_of(catalogue, "arrivals-500.csv", "contention-aware", "slomo")
    oracles = catalogue.oracles("slomo")
    spare, takeovers = FailoverSearch(plan, catalogue.kinds, ByThroughput(oracles), Failures(1)).find()
    assert spare.added == () and list(spare_faults(plan, catalogue.kinds, spare, takeovers, oracles)) == []
    home = {placement.arrival.id: placement.nic for placement in plan.placements}
    for takeover in takeovers:
        now = after(plan, takeover)
        assert {p.nic for p in now.placements} <= set(home.values()) - set(takeover.failed)
        assert all(p.nic == home[p.arrival.id] for p in now.placements if home[p.arrival.id] not in takeover.failed)
        assert [*cores_kept(now), *slas_kept(now, oracles)] == []


@pytest.mark.parametrize("trace", ["arrivals-500.csv", pytest.param("arrivals-departures.csv", marks=pytest.mark.long)])
def test_after_a_failure_planned_expects_no_more_than_its_budget(catalogue: Catalogue, trace: str) -> None:
    """A plan with free capacity: that of greedy, which `planned` might have made at a budget of 5 %."""
    catalogue = replace(catalogue, budget_pct=5.0)
    plan = plan_of(catalogue, trace, "greedy", None, 90)
    within = Within(reserve_pct=1.0, lower_bound=0.0, nics_lower_bound=0, proven=False, scope="")
    plan = replace(plan, strategy=PLANNED, predictor="tomur", within=within)
    worst = {identity: chance for identity, (chance, _) in likeliest_violations(plan, catalogue, "tomur").items()}
    rule = ByExpectation(plan, catalogue, "tomur")
    spare, takeovers = FailoverSearch(plan, catalogue.kinds, rule, Failures(1)).find()
    assert list(spare_faults(plan, catalogue.kinds, spare, takeovers)) == []
    used = {placement.nic for placement in plan.placements}
    shared = [takeover for takeover in takeovers if used & {nic for nic, _ in takeover.nic_of.values()}]
    assert shared and sum(worst.values()) <= 0.04 * len(worst)
    for takeover in shared:
        now = likeliest_violations(after(plan, takeover), catalogue, "tomur")
        total = sum(max(chance, now[identity][0] if identity in now else 0.0) for identity, chance in worst.items())
        assert total <= 0.04 * len(worst) + 1e-6
        assert max(now[identity][0] for identity in takeover.nic_of) <= 0.5
