"""Plans that keep a budget of SLA violations: the plan by the predictor's error model, the bound by weak duality.

What a tenant is worth to a NIC is its price, less the price of a violation times the probability that it violates its
SLA there. If no tenants that a NIC can carry are worth more than it costs, then no plan within the budget costs less
than all prices, less the price of a violation times the violations that the budget allows.

Probabilities are floating-point numbers that predictors compute in batches. So tenants may be worth a share
`WORTH_SLACK` more than their NIC costs, and the bound is lowered by that share. All other sums are exact."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from math import sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from placer.verify.bound import claim_faults, find_overpriced_within_cores, possible_cost, price_faults
from placer.verify.certificate_file import CO_LOCATIONS, Budget, Certificate, TenantClass
from placer.verify.plan import placement_faults
from placer.verify.source import co_locations_on
from predictor import Predictor
from profiles import CoLocation, Workload
from profiles.arrays import Floats

WORTH_SLACK = Fraction(1, 10**6)
LIMIT_ROUNDING = 1e-9  # the share by which a probability may be above its limit
AT_ONCE = 500  # Co-locations whose probabilities are asked for together
SELECTED_RESERVE, REPEATED_RESERVE = 0.4, 0.4
"""The reserve (docs/models.md): per violation that is expected, and per standard deviation of repeated ones."""


def budget_faults(certificate: Certificate, budget: Budget, errors: Sequence[Predictor]) -> Iterator[str]:
    """Everything that is wrong with a plan within a budget and its bound; `errors` by kind of NIC."""
    faults = list(placement_faults(certificate))
    yield from faults or _violation_faults(certificate, budget, errors)
    if faults := price_faults(certificate):
        yield from faults
        return
    yield from claim_faults(
        certificate, possible_cost(certificate, prove_bound(certificate, budget, len(certificate.left_out)))
    )
    if budget.violation_price < 0:
        yield "bound: the price of a violation is below zero"
        return
    for number, kind in enumerate(certificate.kinds):
        allowed = kind.cost + certificate.nic_prices[number]
        if certificate.over == CO_LOCATIONS:
            yield from _find_overpriced(certificate, budget, number, allowed, errors[number])
        else:
            yield from find_overpriced_within_cores(certificate, number, allowed)


class Case(NamedTuple):
    """What errs: the prediction for a workload in a co-location on a kind of NIC."""

    kind: int
    co_location: CoLocation
    workload: Workload


def _violation_faults(certificate: Certificate, budget: Budget, errors: Sequence[Predictor]) -> Iterator[str]:
    """Violations that are likely, claimed otherwise, or more than the budget."""
    likeliest: dict[Case, list[float]] = defaultdict(list)
    for number, nic in certificate.nics:
        highest: dict[str, tuple[float, Case]] = {}
        for tenants in _as_it_fills(nic, budget.times, certificate.tenants):
            co_location = tuple(certificate.tenants[tenant].workload for tenant in tenants)
            chances = _chances(errors[number], co_location, [certificate.tenants[tenant] for tenant in tenants])
            for tenant, workload, chance in zip(tenants, co_location, chances, strict=True):
                if tenant not in highest or chance > highest[tenant][0]:
                    highest[tenant] = chance, Case(number, co_location, workload)
        for tenant, chance in zip(tenants, chances, strict=True):
            if chance > budget.limit * (1.0 + LIMIT_ROUNDING):
                yield f"plan: {tenant} violates its SLA with a probability of {chance:.3g}, above {budget.limit:g}"
        for chance, case in highest.values():
            likeliest[case].append(chance)
    share = 100.0 / max(len(certificate.tenants) - len(certificate.left_out), 1)
    sums = [(sum(chances), sum(chance**2 for chance in chances)) for chances in likeliest.values()]
    expected = share * sum(total for total, _ in sums)
    repeated = share * sqrt(sum(max(total**3 / squares - total**2, 0.0) for total, squares in sums if squares))
    reserve = SELECTED_RESERVE * expected + REPEATED_RESERVE * repeated
    if _differ(budget.expected_pct, expected):
        yield f"plan: {expected:.6g} % of tenants are expected to violate their SLA, not {budget.expected_pct:.6g} %"
    if _differ(budget.reserve_pct, reserve):
        yield f"plan: the reserve is {reserve:.6g} %, not {budget.reserve_pct:.6g} %"
    if expected + reserve > float(budget.pct) * (1.0 + float(WORTH_SLACK)):
        yield f"plan: {expected:.6g} % and a reserve of {reserve:.6g} % exceed the budget of {float(budget.pct):g} %"


def _as_it_fills(
    nic: Sequence[str], times: Mapping[str, float], tenants: Mapping[str, TenantClass]
) -> Iterator[list[str]]:
    """The tenants of a NIC after each time at which some arrive, in order of workload."""
    for moment in sorted({times[tenant] for tenant in nic}):
        present = [tenant for tenant in nic if times[tenant] <= moment]
        yield sorted(present, key=lambda tenant: tenants[tenant].workload)


def _chances(errors: Predictor, co_location: CoLocation, tenants: Sequence[TenantClass]) -> list[float]:
    solo = errors.solo(co_location).tolist()
    required = [tenant.least_kpps(alone) for tenant, alone in zip(tenants, solo, strict=True)]
    (answer,) = errors.shortfall([co_location], [required])
    return [float(chance) for chance in answer]


def _differ(claimed: float, computed: float) -> bool:
    return abs(claimed - computed) > float(WORTH_SLACK) * computed + LIMIT_ROUNDING


def prove_bound(certificate: Certificate, budget: Budget, left_out: int) -> Fraction:
    """What the prices prove of plans that leave out at most so many tenants."""
    price = budget.violation_price * budget.pct / 100
    worth = sorted(certificate.prices[tenant] - price for tenant in certificate.tenants.values())
    highest = worth[len(worth) - left_out :] if left_out else []
    total = sum(worth, start=Fraction(0)) - sum((max(price, Fraction(0)) for price in highest), start=Fraction(0))
    if certificate.over == CO_LOCATIONS:
        total /= 1 + WORTH_SLACK
    return total - sum(
        price * (kind.limit or 0) for kind, price in zip(certificate.kinds, certificate.nic_prices, strict=True)
    )


def places_most(certificate: Certificate, budget: Budget) -> bool:
    """Whether the prices prove that plans which leave out fewer tenants would cost more than any plan can."""
    fewer = len(certificate.left_out) - 1
    if fewer < 0:
        return True
    dearest = max((kind.cost for kind in certificate.kinds), default=Fraction(0)) * len(certificate.tenants)
    limited = [kind.cost * kind.limit for kind in certificate.kinds if kind.limit is not None]
    if len(limited) == len(certificate.kinds):
        dearest = min(dearest, sum(limited, start=Fraction(0)))
    return prove_bound(certificate, budget, fewer) > dearest


def _find_overpriced(
    certificate: Certificate, budget: Budget, number: int, allowed: Fraction, errors: Predictor
) -> Iterator[str]:
    """The first co-location whose tenants can be worth more than allowed."""
    most = float(allowed * (1 + WORTH_SLACK))
    for co_location, worth in _worths(certificate, budget, number, errors):
        if worth > most:
            names = " + ".join(workload.nf for workload in co_location)
            yield f"bound: {names} are worth {worth:.9g} together, NIC kind {number} costs {float(allowed):.9g}"
            return


class _OfWorkload(NamedTuple):
    """The classes of a workload: what each requires on a kind of NIC (kpps), its price, and its tenants."""

    required: Floats
    prices: Floats
    instances: NDArray[np.int64]


def _worths(
    certificate: Certificate, budget: Budget, number: int, errors: Predictor
) -> Iterator[tuple[CoLocation, float]]:
    """What the best tenants for every co-location on a kind of NIC are worth; none where too few may be there."""
    kind = certificate.kinds[number]
    classes: dict[Workload, list[tuple[TenantClass, int]]] = defaultdict(list)
    for tenant, instances in Counter(filter(kind.takes, certificate.tenants.values())).items():
        if kind.count_cores([tenant.workload]) <= kind.cores:
            classes[tenant.workload].append((tenant, instances))
    workloads = sorted(classes)
    known = {
        workload: _OfWorkload(
            np.array([tenant.least_kpps(alone) for tenant, _ in classes[workload]]),
            np.array([float(certificate.prices[tenant]) for tenant, _ in classes[workload]]),
            np.array([instances for _, instances in classes[workload]]),
        )
        for workload, alone in zip(workloads, errors.solo(workloads).tolist(), strict=True)
    }
    co_locations = list(
        co_locations_on(kind, {workload: int(known[workload].instances.sum()) for workload in workloads})
    )
    of_violations, limit = float(budget.violation_price), budget.limit * (1.0 + LIMIT_ROUNDING)
    for start in range(0, len(co_locations), AT_ONCE):
        part = co_locations[start : start + AT_ONCE]
        answers = errors.shortfalls(
            part, [[known[workload].required for workload in co_location] for co_location in part]
        )
        for co_location, answer in zip(part, answers, strict=True):
            chances: dict[Workload, Floats] = {}
            for workload, chance in zip(co_location, answer, strict=True):  # of equal workloads the least likely
                chances[workload] = np.minimum(chance, chances.get(workload, chance))
            worth = 0.0
            for workload, chance in chances.items():
                of_workload = known[workload]
                values = np.where(chance > limit, -np.inf, of_workload.prices - of_violations * chance)
                worth += _highest(values, of_workload.instances, co_location.count(workload))
            yield co_location, worth


def _highest(values: Floats, instances: NDArray[np.int64], places: int) -> float:
    """What the best tenants for so many places are worth; minus infinity where there are too few."""
    worth = 0.0
    for at in np.argsort(-values).tolist():
        taken = min(places, int(instances[at]))
        worth += float(values[at]) * taken
        places -= taken
        if not places:
            return worth
    return -np.inf
