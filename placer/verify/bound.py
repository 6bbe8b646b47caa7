"""The bound, checked by weak duality.

Every tenant has a price. If no company of tenants that keeps its SLAs is worth more than its NIC costs, no plan that
places everybody costs less than all tenants are worth. The companies are listed here anew, and the testbed is asked
about each; or, where they were too many, every company is taken for one that keeps its SLAs. All sums are exact; only
in the end they are compared as the floating-point numbers that the file tells.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import groupby
from math import ceil, gcd, lcm

from placer.verify.asking import Ask, CoLocation, alone_of, lowest_of
from placer.verify.claims import Certificate, Class, Kind
from profiles import Workload


def bound_faults(certificate: Certificate, ask: Ask) -> Iterator[str]:
    """A bound above what the prices prove, or prices at which some company is worth more than its NIC costs."""
    if missing := set(certificate.tenants.values()) - set(certificate.prices):
        yield f"bound: {len(missing)} classes of tenants have no price"
        return
    if len(certificate.nic_prices) != len(certificate.kinds) or min(certificate.nic_prices, default=Fraction(0)) < 0:
        yield "bound: every NIC kind needs one price, none below zero"
        return
    for number, kind in enumerate(certificate.kinds):
        if kind.limit is None and certificate.nic_prices[number]:
            yield f"bound: NIC kind {number} is not limited, its NICs have no price beside their cost"
    proven = _proven(certificate)
    if float(certificate.lower_bound) > float(proven):
        yield f"bound: the prices prove {float(proven):g}, not {float(certificate.lower_bound):g}"
    if float(certificate.lower_bound) > float(certificate.cost):
        yield f"bound: {float(certificate.lower_bound):g} is above the cost of the plan, {float(certificate.cost):g}"
    if certificate.over not in ("companies", "cores"):
        yield f"bound: '{certificate.over}' is neither over companies nor over cores"
    for number, kind in enumerate(certificate.kinds):
        allowed = kind.cost + certificate.nic_prices[number]
        if certificate.over == "companies":
            yield from _too_dear(certificate, number, allowed, ask)
        elif (worth := _most_within_cores(certificate, kind)) > allowed:
            yield f"bound: tenants worth {float(worth):.9g} fit NIC kind {number}, which costs {float(allowed):.9g}"


def _proven(certificate: Certificate) -> Fraction:
    """What the prices prove: the worth of all tenants, less the dearest that are left out, less the limited NICs."""
    worth = sorted((certificate.prices[tenant] for tenant in certificate.tenants.values()), reverse=True)
    proven = sum(worth, start=Fraction(0))
    proven -= sum((max(price, Fraction(0)) for price in worth[: len(certificate.left_out)]), start=Fraction(0))
    for kind, price in zip(certificate.kinds, certificate.nic_prices, strict=True):
        proven -= price * (kind.limit or 0)
    whole = lcm(*(kind.cost.denominator for kind in certificate.kinds))
    unit = Fraction(gcd(*(int(kind.cost * whole) for kind in certificate.kinds)), whole)
    return max(Fraction(0), ceil(proven / unit) * unit) if unit else Fraction(0)


def _too_dear(certificate: Certificate, number: int, allowed: Fraction, ask: Ask) -> Iterator[str]:
    """Companies that keep their SLAs and are worth more than allowed; the first of them."""
    kind = certificate.kinds[number]
    crowd = Counter(certificate.tenants.values())
    classes: dict[Workload, list[tuple[Fraction, Class, int]]] = {}
    for tenant, instances in crowd.items():
        classes.setdefault(tenant.workload, []).append((certificate.prices[tenant], tenant, instances))
    for group in classes.values():
        group.sort(key=lambda one: -one[0])
    instances_of = {workload: sum(number for *_, number in group) for workload, group in classes.items()}
    told = lowest_of(number, list(_co_locations(kind, instances_of)), ask)
    alone = alone_of(number, {workload for co_location in told for workload in co_location}, ask)
    for co_location, throughput in told.items():
        worth: Fraction | None = Fraction(0)
        for workload, members in groupby(co_location):
            content = [
                (price, instances)
                for price, tenant, instances in classes[workload]
                if tenant.content(throughput[workload], alone[workload])
            ]
            dearest = _dearest(content, len(list(members)))
            worth = None if worth is None or dearest is None else worth + dearest
        if worth is not None and worth > allowed:
            names = " + ".join(workload.nf for workload in co_location)
            yield f"bound: {names} are worth {float(worth):.9g} together, NIC kind {number} costs {float(allowed):.9g}"
            return


def _dearest(content: Sequence[tuple[Fraction, int]], members: int) -> Fraction | None:
    """What so many of the tenants that are content, dearest first, are worth; None where there are too few."""
    worth = Fraction(0)
    for price, instances in content:
        taken = min(members, instances)
        worth += price * taken
        members -= taken
    return None if members else worth


def _most_within_cores(certificate: Certificate, kind: Kind) -> Fraction:
    """What tenants that fit the cores can be worth together at most, whatever their throughput."""
    most = [Fraction(0)] * (kind.cores + 1)
    for tenant, instances in Counter(certificate.tenants.values()).items():
        cores = kind.taken([tenant.workload])
        for _ in range(min(instances, kind.cores // cores if cores else instances)):
            for free in range(kind.cores, cores - 1, -1):
                most[free] = max(most[free], most[free - cores] + certificate.prices[tenant])
    return most[kind.cores]


def _co_locations(kind: Kind, instances_of: Mapping[Workload, int]) -> Iterator[CoLocation]:
    """Every company of the tenants that fits the cores, as a sorted tuple."""
    workloads = sorted(instances_of)

    def grow(co_location: CoLocation, first: int) -> Iterator[CoLocation]:
        for place in range(first, len(workloads)):
            larger = (*co_location, workloads[place])
            if larger.count(workloads[place]) <= instances_of[workloads[place]] and kind.taken(larger) <= kind.cores:
                yield larger
                yield from grow(larger, place)

    return grow((), 0)
