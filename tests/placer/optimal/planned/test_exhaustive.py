"""What `planned` calls proven, and its bounds, against all plans of small instances.

What moves a doubtful instance to a NIC of its own keeps its constraints."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from placer.evaluate.checks import check_plan, constraints_kept, peak_nics
from placer.evaluate.expected_violations import expected_violations, likeliest_violations
from placer.model.arrival import Arrival
from placer.model.catalogue import Catalogue
from placer.model.groups import UNCONSTRAINED, Constraints
from placer.model.nic import Tenant
from placer.model.nic_kind import NicKind
from placer.model.oracle import co_location_of
from placer.model.plan import Placement, Plan
from placer.model.sla import Sla
from placer.optimal.planned.certificate import certificate
from placer.optimal.planned.leader import Leader
from placer.optimal.planned.mend import mend
from placer.optimal.planned.reserve import reserve_pct
from placer.optimal.planned.search import NO_TENANT, chances_now, co_locations
from placer.optimal.planned.static import _Search
from placer.optimal.planned.strategy import Planned
from placer.testing.strategies import CORES_BY_NF, SOLO_KPPS, TOY_TRAFFIC, arrival, catalogue
from placer.verify import budget_faults, read_certificate
from predictor import Models
from profiles import Workload
from tests.placer.optimal.planned.instances import NAME, ErringPredictor, Instance, catalogue_of, instances

LIKELIEST = 0.5
EXAMPLES = settings(
    max_examples=40, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def planned(given: Instance) -> Plan:
    return Planned(given.catalogue, NAME, seconds=20.0).place(given.arrivals)


class AllPlans:
    """All plans of a few arrivals that stay, without a reserve. `values` has of each what it rejects and costs, if the
    violations that it expects keep the budget."""

    def __init__(self, arrivals: Sequence[Arrival], catalogue: Catalogue) -> None:
        self.arrivals, self.catalogue = arrivals, catalogue
        together = [part for size in range(1, len(arrivals) + 1) for part in combinations(range(len(arrivals)), size)]
        self._violations = {
            (kind.index, part): violations
            for kind in catalogue.kinds
            for part in together
            if (violations := self._of_nic(kind, [arrivals[at] for at in part])) is not None
        }
        budget = (catalogue.budget_pct or 100.0) / 100.0
        self.values = set()
        for left_out in range(len(arrivals) + 1):
            for without in combinations(range(len(arrivals)), left_out):
                rest = tuple(at for at in range(len(arrivals)) if at not in without)
                self.values |= {
                    (left_out, cost)
                    for cost, violations in self._of(rest)
                    if violations <= budget * len(rest) * (1 + 1e-9) + 1e-12
                }

    def _of_nic(self, kind: NicKind, tenants: Sequence[Arrival]) -> float | None:
        """The violations to expect on one NIC; None where it cannot carry these tenants."""
        if sum(kind.cores_of[tenant.workload.nf] for tenant in tenants) > kind.cores:
            return None
        predictor = self.catalogue.models[kind.index].predictors[NAME]
        ordered = sorted(tenants, key=lambda tenant: tenant.workload)
        co_location = co_location_of(tenant.workload for tenant in tenants)
        solo = predictor.solo(co_location)
        required = [tenant.required_kpps(alone) for tenant, alone in zip(ordered, solo.tolist(), strict=True)]
        if max(predictor.shortfall([co_location], [required])[0]) > LIKELIEST:
            return None
        alone = Plan("by hand", NAME, tuple(Placement(tenant, "nic-1", kind) for tenant in tenants), 0.0)
        return expected_violations(alone, self.catalogue, NAME).mean_pct * len(tenants) / 100.0

    def _of(self, rest: tuple[int, ...]) -> Iterator[tuple[float, float]]:
        """Cost and violations of every way to place these arrivals."""
        for parts in _partitions(rest):
            for kinds in product(self.catalogue.kinds, repeat=len(parts)):
                violations = [self._violations.get((kind.index, part)) for kind, part in zip(kinds, parts, strict=True)]
                few = all(kind.count is None or kinds.count(kind) <= kind.count for kind in self.catalogue.kinds)
                if few and None not in violations:
                    yield sum(kind.cost for kind in kinds), sum(one for one in violations if one is not None)


def _partitions(rest: tuple[int, ...]) -> Iterator[list[tuple[int, ...]]]:
    if not rest:
        yield []
        return
    first, others = rest[0], rest[1:]
    for size in range(len(others) + 1):
        for beside in combinations(others, size):
            remaining = tuple(at for at in others if at not in beside)
            for parts in _partitions(remaining):
                yield [(first, *beside), *parts]


@pytest.mark.long
@given(instances())
@EXAMPLES
def test_bounds_and_proofs_hold_of_all_plans(given: Instance) -> None:
    """No plan within the budget is below the bound, and none is better than what is called proven."""
    plan = planned(given)
    assert plan.within is not None
    values = AllPlans(given.arrivals, given.catalogue).values
    assert plan.within.lower_bound <= min([cost for rejected, cost in values if rejected <= plan.rejected]) + 1e-6
    if plan.within.proven:
        nics = {placement.nic: placement.kind for placement in plan.placed}
        cost = sum(kind.cost for kind in nics.values() if kind is not None)
        assert min(values) >= (plan.rejected, cost - 1e-6)


@pytest.mark.long
@given(instances(most=10))
@EXAMPLES
def test_certificates_are_accepted_and_true(tmp_path_factory: pytest.TempPathFactory, given: Instance) -> None:
    """The certificate of any plan has no fault, and no plan is below its bound."""
    plan = planned(given)
    file = tmp_path_factory.mktemp("c") / "certificate.json"
    file.write_text(json.dumps(certificate(given.arrivals, given.catalogue, plan)), encoding="utf-8")
    claims = read_certificate(file)
    assert claims.budget is not None
    errors = [models.predictors[NAME] for models in given.catalogue.models]
    assert list(budget_faults(claims, claims.budget, errors)) == []
    if len(given.arrivals) <= 6:
        values = AllPlans(given.arrivals, given.catalogue).values
        assert float(claims.lower_bound) <= min(cost for rejected, cost in values if rejected <= plan.rejected) + 1e-9


def test_a_plan_that_rejects_a_higher_priority_is_not_called_proven() -> None:
    """It costs what the bound is and rejects as few as any, but another one, of those without groups, too, rejects t1
    alone, which has the lowest priority."""
    given = [("b", 0.0, 1, "g"), ("c", 0.5, 0, ""), ("b", 0.2, 1, "g"), ("b", 0.2, 1, ""), ("c", 0.5, 1, "g")]
    arrivals = [
        Arrival(
            f"t{at}", float(at), Workload(nf, TOY_TRAFFIC), Sla(max_drop=drop), priority=priority,
            constraints=Constraints((("spread", group),)) if group else UNCONSTRAINED,
        )
        for at, (nf, drop, priority, group) in enumerate(given)
    ]  # fmt: skip
    kinds = [NicKind(0, "toy-0", 4, CORES_BY_NF, 1), NicKind(1, "toy-1", 3, CORES_BY_NF, 2)]
    plan = planned(Instance(arrivals, catalogue_of(kinds, [ErringPredictor(0)] * 2, 5.0)))
    assert plan.within is not None and plan.within.lower_bound == 3.0
    assert plan.losses == (0, 1) or not plan.within.proven


def test_a_program_of_most_demanding_tenants_bounds_nothing() -> None:
    """Two NICs carry the tenants of each pool; in the first pool, three would be needed if its sixth tenant demanded
    as much as the seventh."""
    kept = {("a",) * size: [0.9 if size <= 4 else 0.6] * size for size in range(2, 7)}
    drops = [0.6, 0.59, 0.58, 0.57, 0.56, 0.55, 0.3, 0.29, 0.28, 0.27]
    of_pools = [("p", drop) for drop in drops] + [("q", 0.7)] * 9
    tenants = [
        Tenant(f"t{at}", Workload("a", TOY_TRAFFIC), Sla(max_drop=drop), constraints=Constraints((("pool", pool),)))
        for at, (pool, drop) in enumerate(of_pools)
    ]
    kinds = [NicKind(at, f"toy-{at}", 6, CORES_BY_NF, pool=pool) for at, pool in enumerate("pq")]
    planner = Planned(catalogue_of(kinds, [ErringPredictor(kept=kept)] * 2, 1.0), NAME).planner(tenants, 0.01, 20.0)
    assert planner is not None and planner.bound <= 4.0 + 1e-6


@pytest.mark.long
@given(instances(most=12, departures=True))
@EXAMPLES
def test_plans_are_valid_and_keep_the_budget(given: Instance) -> None:
    """With departures, limited NICs and SLAs that nothing meets, too, reserve included."""
    plan = planned(given)
    check_plan(plan, given.arrivals, given.catalogue.kinds)
    expected = expected_violations(plan, given.catalogue, NAME)
    assert expected.mean_pct + reserve_pct(expected) <= (given.catalogue.budget_pct or 100.0) + 1e-6


def test_what_no_nic_can_carry_is_rejected() -> None:
    """An NF whose SLA is above its throughput alone has no place, and neither a plan nor its bound needs a NIC."""
    arrivals = [Arrival("t0", 0.0, Workload("a", TOY_TRAFFIC), Sla(min_kpps=1.1 * SOLO_KPPS["a"]))]
    kind = NicKind(0, "toy-0", 4, CORES_BY_NF, None, 1.0)
    plan = planned(Instance(arrivals, catalogue_of([kind], [ErringPredictor()], 5.0)))
    assert plan.rejected == 1 and plan.within is not None and plan.within.lower_bound == 0.0


def test_what_has_no_nic_in_its_pool_is_rejected() -> None:
    """A pool may be empty today: the fleet has a kind of NIC for it, and none of them."""
    arrivals = [
        Arrival("t0", 0.0, Workload("a", TOY_TRAFFIC), Sla(max_drop=0.1), constraints=Constraints((("pool", "p"),)))
    ]
    kinds = [NicKind(0, "toy-0", 4, CORES_BY_NF, 0, pool="p"), NicKind(1, "toy-1", 4, CORES_BY_NF, 2)]
    assert planned(Instance(arrivals, catalogue_of(kinds, [ErringPredictor()] * 2, 5.0))).rejected == 1


@pytest.mark.long
@given(instances(most=10))
@EXAMPLES
def test_of_each_tenant_the_worst_on_the_way_counts(given: Instance) -> None:
    """In order of arrival: a NIC has only some parts of its last co-location before, and others never."""
    arrivals = [replace(one, time=float(at)) for at, one in enumerate(given.arrivals)]
    planner = Planned(given.catalogue, NAME).planner([one.tenant for one in arrivals], 1.0, 20.0)
    assert planner is not None
    search = _Search(planner, np.arange(planner.number), 1.0)
    placed = search.place(search.begin(search._state([])))
    names = [planner.tenants[tenant].id for tenant in search.tenants]
    nics = {name: int(nic) for name, nic in zip(names, placed.nic, strict=True) if nic != NO_TENANT}
    assert np.all(co_locations(search.graph, search.movers, placed.kind, placed.nic) != NO_TENANT)
    placements = [
        Placement(one, f"nic-{nics[one.id] + 1}", given.catalogue.kinds[placed.kind[nics[one.id]]])
        if one.id in nics
        else Placement(one, None, None)
        for one in arrivals
    ]
    worst = likeliest_violations(Plan("search", NAME, tuple(placements), 0.0), given.catalogue, NAME)
    chances = chances_now(search.graph, search.movers, placed.kind, placed.nic)
    counted = {name: chance for name, chance in zip(names, chances.tolist(), strict=True) if name in nics}
    assert counted == {name: pytest.approx(worst[name][0], abs=1e-9) for name in nics}


@pytest.mark.long
def test_a_program_that_the_solver_gives_up_on_still_leads_to_a_good_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was decided until then is kept, the search places the others, and the budget holds."""
    drops = [0.03, 0.08, 0.15, 0.25, 0.4]
    arrivals = [
        Arrival(f"t{at}", float(at), Workload("abc"[at % 3], TOY_TRAFFIC), Sla(max_drop=drops[at % 5]))
        for at in range(60)
    ]
    given = Instance(arrivals, catalogue_of([NicKind(0, "toy-0", 4, CORES_BY_NF)], [ErringPredictor(3)], 5.0))
    solved = planned(given)
    solve = Leader._solve
    monkeypatch.setattr(Leader, "_solve", lambda leader: None if any(leader._lower) else solve(leader))
    plan = planned(given)
    check_plan(plan, arrivals, given.catalogue.kinds)
    expected = expected_violations(plan, given.catalogue, NAME)
    assert plan.rejected == 0 and expected.mean_pct + reserve_pct(expected) <= 5.0 + 1e-6
    assert peak_nics(plan) <= peak_nics(solved) + 1


@pytest.mark.parametrize(("given", "placed"), [({}, 2), ({"together": "g"}, 1)], ids=["moved", "rejected"])
def test_a_doubtful_instance_stays_in_its_pool_and_with_its_group(given: dict[str, str], placed: int) -> None:
    """Two lose half of what they may lose a third of; the cheaper NIC for one of them is in another pool."""
    first, second = catalogue((None, 1.0), (None, 2.0)).kinds
    kinds = (replace(first, pool="p1"), replace(second, pool="p2"))
    asked = Constraints(tuple(sorted({"pool": "p2", **given}.items())))
    trace = [replace(arrival(f"i{at}", at, "a", 0.3), constraints=asked) for at in range(2)]
    models = Models({NAME: ErringPredictor(kept={("a", "a"): (0.5, 0.5)})}, None, TOY_TRAFFIC, {})
    toy = Catalogue(kinds, (models,) * 2, (None,) * 2, specs=("none",) * 2, budget_pct=1.0)
    begun = Plan("planned", None, tuple(Placement(one, "nic-1", kinds[1]) for one in trace), 0.0)
    plan, expected = mend(begun, toy, NAME, 1.0)
    assert [*constraints_kept(plan)] == [] and len(plan.placed) == placed and expected.mean_pct == 0.0
