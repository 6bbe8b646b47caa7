"""How many instances of a plan are expected to violate their SLA, by how far a predictor errs."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from placer.model.catalogue import Catalogue
from placer.model.day import parts_of
from placer.model.fleet import Fleet
from placer.model.nic import Tenant
from placer.model.plan import Plan, replay_plan
from predictor import Predictor
from profiles import CoLocation, Workload

LATENCY_RISKS = (0.1, 0.3, 0.5, 0.7, 0.9)  # probabilities that stand for how far predicted latencies err
Case = tuple[int, CoLocation, Workload]  # what a prediction is of: the kind's index, the co-location, and the workload


@dataclass(frozen=True)
class ExpectedViolations:
    """SLA violations of a plan, per 100 placed instances. `mean_pct`: their expectation. `spread_pct`: their standard
    deviation. The error of a prediction belongs to a workload in a co-location and is repeated on every NIC with that
    co-location, so that many NICs of few co-locations spread more. `repeated_pct`: the same, where of the instances of
    one error those count that are likely to violate their SLA: their number is (sum of chances)^2 / sum of squares."""

    mean_pct: float
    spread_pct: float
    repeated_pct: float = 0.0


def expected_violations(plan: Plan, catalogue: Catalogue, predictor: str) -> ExpectedViolations:
    """The SLA violations to expect; of all co-locations of an instance's stay the most likely violation counts."""
    return expect_violations_of(likeliest_violations(plan, catalogue, predictor), len(plan.placed))


def likeliest_violations(plan: Plan, catalogue: Catalogue, predictor: str) -> dict[str, tuple[float, Case]]:
    """Per instance, the largest probability that it violates its SLA in any part of a day of its stay, and in which
    case."""
    worst: dict[str, tuple[float, Case]] = {}
    for kind, together in groups_by_kind(plan, catalogue).items():
        if kind in catalogue.gpus:  # an admission test bounds latency, and expects no violation
            continue
        groups = [
            tuple(sorted(part, key=lambda tenant: tenant.workload))
            for tenants in together
            for part in parts_of(tenants)
        ]
        risks = LATENCY_RISKS if kind in catalogue.curves else (None,)
        least = [partial(catalogue.least_kpps, kind, risk=risk) for risk in risks]
        for co_location, tenants, shares in shortfalls(groups, catalogue.models[kind].predictors[predictor], least):
            for tenant, share in zip(tenants, shares, strict=True):
                if tenant.id not in worst or share > worst[tenant.id][0]:
                    worst[tenant.id] = share, (kind, co_location, tenant.workload)
    return worst


def expect_violations_of(worst: Mapping[str, tuple[float, Case]], placed: int) -> ExpectedViolations:
    """The SLA violations to expect by the likeliest violation of each instance, where so many are placed."""
    if not placed:
        return ExpectedViolations(0.0, 0.0)
    together: dict[Case, list[float]] = defaultdict(list)
    for share, case in worst.values():
        together[case].append(share)
    mean = sum(share for share, _ in worst.values())
    # instances of one case fail together, as far as their requirements are alike
    variance = sum(sum(of) * (len(of) - sum(of)) for of in together.values())
    repeated = sum(variance_of_repeats(np.array(of)) for of in together.values())
    return ExpectedViolations(*(100.0 / placed * figure for figure in (mean, variance**0.5, repeated**0.5)))


def variance_of_repeats(chances: NDArray[np.float64]) -> float:
    """The variance of the violations of instances that fail together, by the chance of each."""
    total, squares = float(chances.sum()), float((chances**2).sum())
    return max(total**3 / squares - total**2, 0.0) if squares > 0 else 0.0


def shortfalls(
    groups: Iterable[tuple[Tenant, ...]],
    predictor: Predictor,
    least: Sequence[Callable[[Workload], float]] = (lambda one: 0.0,),
) -> Iterator[tuple[CoLocation, tuple[Tenant, ...], list[float]]]:
    """Per group of tenants its co-location, and the probability that each tenant falls short of its SLA.

    `least` is the throughput (kpps) that a workload must be able to have for the latency that it is promised; of
    several, each is as likely as the others.
    """
    groups = list(groups)
    workloads = sorted({tenant.workload for tenants in groups for tenant in tenants})
    solo = dict(zip(workloads, predictor.solo(workloads).tolist(), strict=True))
    co_locations = [tuple(tenant.workload for tenant in tenants) for tenants in groups]
    probabilities = []
    for least_kpps in least:
        required = [
            [max(tenant.required_kpps(solo[tenant.workload]), least_kpps(tenant.workload)) for tenant in tenants]
            for tenants in groups
        ]
        probabilities.append(predictor.shortfall(co_locations, required))
    for co_location, tenants, shares in zip(co_locations, groups, zip(*probabilities, strict=True), strict=True):
        yield co_location, tenants, (shares[0] if len(shares) == 1 else np.mean(shares, axis=0)).tolist()


def groups_by_kind(plan: Plan, catalogue: Catalogue) -> dict[int, list[tuple[Tenant, ...]]]:
    """Per kind, every set of tenants that ever shares a NIC, in order of workload."""
    if all(placement.arrival.departure is None and placement.arrival.nic is None for placement in plan.placements):
        return _groups_while_filling(plan)
    groups: dict[int, dict[tuple[str, ...], tuple[Tenant, ...]]] = defaultdict(dict)
    for _, changed in replay_plan(plan, Fleet(catalogue.kinds)):
        for nic in changed:
            ordered = tuple(sorted(nic.tenants, key=lambda tenant: tenant.workload))
            if ordered:
                groups[nic.kind.index][tuple(tenant.id for tenant in ordered)] = ordered
    return {kind: list(of_kind.values()) for kind, of_kind in groups.items()}


def _groups_while_filling(plan: Plan) -> dict[int, list[tuple[Tenant, ...]]]:
    """As `groups_by_kind`, three times faster, where nobody leaves and none runs before: NICs only get tenants."""
    groups: dict[int, list[tuple[Tenant, ...]]] = defaultdict(list)
    carried: dict[str, tuple[Tenant, ...]] = {}
    for _, at_once in groupby(plan.placed, key=lambda placement: placement.arrival.begins):
        changed: dict[str, int] = {}
        for placement in at_once:
            nic, kind, tenant = placement.nic, placement.kind, placement.arrival.tenant
            if nic is not None and kind is not None:
                carried[nic] = (*carried.get(nic, ()), tenant)
                changed[nic] = kind.index
        for nic, index in changed.items():
            carried[nic] = tuple(sorted(carried[nic], key=lambda tenant: tenant.workload))
            groups[index].append(carried[nic])
    return groups
