"""The bound, checked by weak duality.

Every tenant has a price. If the tenants of no NIC that meets their SLAs are worth more than the NIC costs, no plan that
places all tenants costs less than the sum of their prices. All co-locations are listed again, and the throughputs in
each are queried. Or, where they are too many, every co-location that fits the cores is taken for one that meets its
SLAs. All sums are exact; only at the end they are compared as the floating-point numbers in the file."""

from collections import Counter
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import groupby
from math import ceil, gcd, lcm

from placer.verify.certificate_file import CO_LOCATIONS, CORES_KEY, Certificate, Kind, TenantClass
from placer.verify.source import Query, co_locations_on, lowest_of, solo_of
from profiles import Workload


def bound_faults(certificate: Certificate, query: Query) -> Iterator[str]:
    """A bound above what the prices prove, or prices at which the tenants of a NIC are worth more than it costs."""
    if faults := price_faults(certificate):
        yield from faults
        return
    yield from claim_faults(certificate, _prove_bound(certificate))
    for number, kind in enumerate(certificate.kinds):
        allowed = kind.cost + certificate.nic_prices[number]
        if certificate.over == CO_LOCATIONS:
            yield from _find_overpriced(certificate, number, allowed, query)
        else:
            yield from find_overpriced_within_cores(certificate, number, allowed)


def price_faults(certificate: Certificate) -> list[str]:
    """Classes or NICs without a price."""
    if missing := set(certificate.tenants.values()) - set(certificate.prices):
        return [f"bound: {len(missing)} classes of tenants have no price"]
    if len(certificate.nic_prices) != len(certificate.kinds) or min(certificate.nic_prices, default=Fraction(0)) < 0:
        return ["bound: every NIC kind needs one price, none below zero"]
    return []


def claim_faults(certificate: Certificate, proven: Fraction) -> Iterator[str]:
    """Prices of NICs that are not limited, and a bound above what is proven or above the cost of the plan."""
    for number, kind in enumerate(certificate.kinds):
        if kind.limit is None and certificate.nic_prices[number]:
            yield f"bound: NIC kind {number} is not limited, its NICs have no price on top of their cost"
    if float(certificate.lower_bound) > float(proven):
        yield f"bound: the prices prove {float(proven):g}, not {float(certificate.lower_bound):g}"
    if float(certificate.lower_bound) > float(certificate.cost):
        yield f"bound: {float(certificate.lower_bound):g} is above the cost of the plan, {float(certificate.cost):g}"
    if certificate.over not in (CO_LOCATIONS, CORES_KEY):
        yield f"bound: '{certificate.over}' is neither over {CO_LOCATIONS} nor over {CORES_KEY}"


def _prove_bound(certificate: Certificate) -> Fraction:
    """What the prices prove: their sum, less the highest for tenants left out, less the prices of limited NICs.

    Where all are placed, pools that no tenant can choose between cost a whole number of NICs each.
    """
    parts = _separate_pools(certificate)
    if len(parts) > 1 and not certificate.left_out:
        return sum(map(_prove_bound, parts), start=Fraction(0))
    worth = sorted((certificate.prices[tenant] for tenant in certificate.tenants.values()), reverse=True)
    proven = sum(worth, start=Fraction(0))
    proven -= sum((max(price, Fraction(0)) for price in worth[: len(certificate.left_out)]), start=Fraction(0))
    for kind, price in zip(certificate.kinds, certificate.nic_prices, strict=True):
        proven -= price * (kind.limit or 0)
    return possible_cost(certificate, proven)


def _separate_pools(certificate: Certificate) -> list[Certificate]:
    """The certificate's claims on each set of pools between which tenants can choose."""
    together: list[set[str]] = []
    for pools in [{kind.pool} for kind in certificate.kinds] + [
        set(tenant.pools.split("|")) for tenant in certificate.tenants.values()
    ]:
        met = [known for known in together if known & pools]
        together = [known for known in together if not known & pools] + [pools.union(*met)]
    parts = []
    for pools in together:
        numbers = [number for number, kind in enumerate(certificate.kinds) if kind.pool in pools]
        part = certificate._replace(
            kinds=[certificate.kinds[number] for number in numbers],
            nic_prices=[certificate.nic_prices[number] for number in numbers],
            tenants={name: one for name, one in certificate.tenants.items() if one.pools.split("|")[0] in pools},
        )
        parts.append(part)
    return parts


def possible_cost(certificate: Certificate, proven: Fraction) -> Fraction:
    """The least cost that a plan can have, and that is not below what is proven."""
    whole = lcm(*(kind.cost.denominator for kind in certificate.kinds))
    unit = Fraction(gcd(*(int(kind.cost * whole) for kind in certificate.kinds)), whole)
    return max(Fraction(0), ceil(proven / unit) * unit) if unit else Fraction(0)


def _find_overpriced(certificate: Certificate, number: int, allowed: Fraction, query: Query) -> Iterator[str]:
    """The first co-location that meets its SLAs and is worth more than allowed."""
    kind = certificate.kinds[number]
    classes: dict[Workload, list[tuple[Fraction, TenantClass, int]]] = {}
    for tenant, instances in Counter(filter(kind.takes, certificate.tenants.values())).items():
        classes.setdefault(tenant.workload, []).append((certificate.prices[tenant], tenant, instances))
    for group in classes.values():
        group.sort(key=lambda one: -one[0])
    instances_of = {workload: sum(number for *_, number in group) for workload, group in classes.items()}
    throughputs = lowest_of(number, list(co_locations_on(kind, instances_of)), query)
    solo = solo_of(number, {workload for co_location in throughputs for workload in co_location}, query)
    for co_location, lowest in throughputs.items():
        worth: Fraction | None = Fraction(0)
        for workload, members in groupby(co_location):
            satisfied = [
                (price, instances)
                for price, tenant, instances in classes[workload]
                if tenant.is_met(lowest[workload], solo[workload])
            ]
            highest = _highest_worth(satisfied, len(list(members)))
            worth = None if worth is None or highest is None else worth + highest
        if worth is not None and worth > allowed:
            names = " + ".join(workload.nf for workload in co_location)
            yield f"bound: {names} are worth {float(worth):.9g} together, NIC kind {number} costs {float(allowed):.9g}"
            return


def _highest_worth(satisfied: Sequence[tuple[Fraction, int]], members: int) -> Fraction | None:
    """The worth of so many of the satisfied tenants, highest price first; None where there are too few."""
    worth = Fraction(0)
    for price, instances in satisfied:
        taken = min(members, instances)
        worth += price * taken
        members -= taken
    return None if members else worth


def find_overpriced_within_cores(certificate: Certificate, number: int, allowed: Fraction) -> Iterator[str]:
    """Tenants that fit the cores and are worth more than allowed."""
    worth = _most_worth_within_cores(certificate, certificate.kinds[number])
    if worth > allowed:
        yield f"bound: tenants worth {float(worth):.9g} fit NIC kind {number}, which costs {float(allowed):.9g}"


def _most_worth_within_cores(certificate: Certificate, kind: Kind) -> Fraction:
    """The most that tenants that fit the cores can be worth together, whatever their throughput."""
    most = [Fraction(0)] * (kind.cores + 1)
    for tenant, instances in Counter(filter(kind.takes, certificate.tenants.values())).items():
        cores = kind.count_cores([tenant.workload])
        for _ in range(min(instances, kind.cores // cores if cores else instances)):
            for free in range(kind.cores, cores - 1, -1):
                most[free] = max(most[free], most[free - cores] + certificate.prices[tenant])
    return most[kind.cores]
