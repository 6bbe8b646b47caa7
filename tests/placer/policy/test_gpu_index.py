"""GPUs where nearly every arrival has a rate of its own."""

from __future__ import annotations

import pytest

from placer.evaluate.checks import check_plan, slas_kept
from placer.model.fleet import Fleet, Nic
from placer.policy.gpu_index import GpuIndex
from placer.policy.rejection import Cause, Reason
from placer.policy.rules import RULES_BY_NAME, Rule
from placer.strategies import find_strategy
from tests.placer.toy_gpu import mixed, promised


def filled(rule: Rule, *rates: float) -> tuple[GpuIndex, list[Nic]]:
    catalogue = mixed()
    fleet = Fleet(catalogue.kinds)
    index = GpuIndex(catalogue.kinds[1], catalogue.gpus[1], rule)
    nics = []
    for number, rate in enumerate(rates):
        nics.append(fleet.open(catalogue.kinds[1]))
        tenant = promised(f"on-{number}", "b", rate, 900.0).tenant
        fleet.place(tenant, nics[-1])
        index.joined(nics[-1], tenant)
    return index, nics


@pytest.mark.parametrize(("rule", "chosen"), [("first-fit", 0), ("best-fit", 2), ("worst-fit", 1), ("look-ahead", 2)])
def test_rules_compare_what_is_left_of_the_scarcest_resource(rule: str, chosen: int) -> None:
    """Of 1000 kpps, 500, 100, 700 and 950 are taken: 200 more fit three GPUs.

    On the second workers are scarcer: it loses a quarter of what it has left, the others a fifth.
    """
    index, nics = filled(RULES_BY_NAME[rule], 500.0, 100.0, 700.0, 950.0)
    found = index.best(promised("new", "a", 200.0, 900.0).tenant)
    assert found is not None
    assert found[1] is nics[chosen]


def test_a_gpu_that_rejects_the_arrival_or_a_tenant_is_passed_over() -> None:
    """An arrival that must be first on the bus delays a tenant that bears no delay."""
    catalogue = mixed()
    fleet = Fleet(catalogue.kinds)
    index = GpuIndex(catalogue.kinds[1], catalogue.gpus[1], RULES_BY_NAME["first-fit"])
    nic = fleet.open(catalogue.kinds[1])
    tenant = promised("urgent", "a", 1.0, 31.0).tenant
    fleet.place(tenant, nic)
    index.enter(nic)
    more_urgent = promised("more", "a", 1.0, 30.0).tenant
    assert index.best(more_urgent) is None
    assert index.last_resort(more_urgent) is None
    assert list(index.reasons(more_urgent)) == [Reason("toy-gpu", (), 1, Cause.SAMPLED_SLA)]
    fleet.remove("urgent")
    index.left(nic, tenant)
    assert index.tally(more_urgent).nics == 0
    assert index.opening_score(more_urgent) is not None
    assert index.opening_score(promised("hopeless", "a", 1.0, 29.0).tenant) is None


@pytest.mark.parametrize("rule", list(RULES_BY_NAME))
def test_plans_of_different_rates_keep_every_promise(rule: str) -> None:
    """Forty NFs, each at a rate of its own, are all placed, and GPUs are shared."""
    trace = [promised(str(n), "ab"[n % 2], 100.0 + n, 45.0 + 7 * (n % 5), n) for n in range(40)]
    catalogue = mixed()
    plan = find_strategy(f"contention-aware:{rule}").build(catalogue, "toy").place(trace)
    check_plan(plan, trace, catalogue.kinds)
    assert not any(slas_kept(plan, catalogue.oracles("toy")))
    assert plan.rejected == 0
    assert len({placement.nic for placement in plan.placements}) <= 20
