"""Certificates: an optimum in a file, with everything that is needed to check it without its search.

`placer verify` reads them (`placer/verify/`); docs/formats/certificate.md describes the format."""

import json
from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import ceil, floor, gcd, lcm
from typing import Any

from placer.model.arrival import Arrival, have_loads
from placer.model.catalogue import Catalogue
from placer.model.nic_kind import NicKind
from placer.model.plan import Plan
from placer.optimal.bounded_plan import BoundedPlan
from placer.optimal.cores_bound import cores_duals
from profiles import InputError

CERTIFICATE_VERSION = 1
CERTIFIED_CONSTRAINTS = ("spread", "apart", "together", "pool", "most_per_nic", "most_per_domain", "exclusive")
"""Those that `placer verify` knows."""
PRICE_DECIMALS = 12  # prices are rounded to this many: those of tenants down, those of NICs up
PRICE_SECONDS = 60.0  # time for the prices of the bound from cores


def refuse_uncertifiable(arrivals: Sequence[Arrival], catalogue: Catalogue | None = None) -> None:
    """Refuse a trace whose optimum cannot be certified.

    Raises InputError when the trace has departures, rates, cores, promised latencies, priorities, constraints that no
    certificate knows or instances that already run, or the fleet has GPUs.
    """
    gpus = catalogue is not None and catalogue.gpus
    if gpus or any(arrival.workload.promises_latency for arrival in arrivals):
        raise InputError.of("--certificate", "only throughput can be certified, neither latency nor GPUs")
    if have_loads(arrivals):
        raise InputError.of("--certificate", "instances of the trace have offered rates: their plans are not certified")
    if any(arrival.workload.cores for arrival in arrivals):
        raise InputError.of("--certificate", "instances of the trace have numbers of cores, which no certificate knows")
    if any(arrival.nic is not None for arrival in arrivals):
        raise InputError.of(
            "--certificate", "instances of the trace already run: only plans from the start are certified"
        )
    named = {name for arrival in arrivals for name, _ in arrival.constraints.values}
    if unknown := sorted(named.difference(CERTIFIED_CONSTRAINTS)):
        raise InputError.of("--certificate", f"no certificate knows the constraint '{unknown[0]}' of the trace")
    if any(arrival.priority for arrival in arrivals):
        raise InputError.of("--certificate", "the trace has priorities: a certificate counts rejected arrivals only")
    if any(arrival.departure is not None for arrival in arrivals):
        raise InputError.of("--certificate", "the trace has departures: its bound is that of one moment")


def certificate_json(
    arrivals: Sequence[Arrival], catalogue: Catalogue, optimum: BoundedPlan, predictor: str | None
) -> str:
    """The certificate as a file holds it."""
    return json.dumps(certificate(arrivals, catalogue, optimum, predictor), indent=1) + "\n"


def certificate(
    arrivals: Sequence[Arrival], catalogue: Catalogue, optimum: BoundedPlan, predictor: str | None = None
) -> dict[str, Any]:
    """The certificate as it is written; `predictor` is the source of throughputs where there is no testbed."""
    left_out = [placement.arrival.id for placement in optimum.plan.placements if placement.nic is None]
    over = "co-locations"
    duals = optimum.duals
    if duals is None:
        over, duals = "cores", cores_duals([arrival.tenant for arrival in arrivals], catalogue.kinds, PRICE_SECONDS)
    by_tenant = duals.by_tenant() if duals else {}
    prices = {arrival.id: round_price(by_tenant.get(arrival.id, 0.0), floor) for arrival in arrivals}
    of_kinds = [round_price(price, ceil) for price in (duals.of_kinds if duals else [0.0] * len(catalogue.kinds))]
    return {
        "certificate": CERTIFICATE_VERSION,
        "predictor": predictor,
        "risk": None if predictor is None else catalogue.risk,
        "fleet": [kind_entry(kind, spec) for kind, spec in zip(catalogue.kinds, catalogue.specs, strict=True)],
        "tenants": [tenant_entry(arrival) for arrival in arrivals],
        "plan": {"cost": optimum.cost, "nics": nic_entries(optimum.plan), "left_out": left_out},
        "bound": {
            "lower_bound": float(_prove_by_pools(arrivals, prices, of_kinds, len(left_out), catalogue.kinds)),
            "searched": optimum.lower_bound,
            "over": over,
            "prices": _by_class(arrivals, prices),
            "nic_prices": [float(price) for price in of_kinds],
        },
    }


def _prove_by_pools(
    arrivals: Sequence[Arrival],
    prices: Mapping[str, Fraction],
    of_kinds: Sequence[Fraction],
    left_out: int,
    kinds: Sequence[NicKind],
) -> Fraction:
    """As `_prove_bound`; where all are placed, the sum over pools that no arrival can choose between."""
    first = {kind.pool: kind.pool for kind in kinds}  # of the pools between which arrivals choose, the first one
    for arrival in arrivals:
        choice = [first[pool] for pool in arrival.constraints.of("pool").split("|") if pool in first]
        first = {pool: choice[0] if of in choice else of for pool, of in first.items()}
    if left_out:
        first = dict.fromkeys(first, "")
    total = Fraction(0)
    for part in sorted(set(first.values())):
        numbers = [number for number, kind in enumerate(kinds) if first[kind.pool] == part]
        worth = [
            prices[arrival.id]
            for arrival in arrivals
            if first.get(arrival.constraints.of("pool").split("|")[0], "") == part
        ]
        total += _prove_bound(worth, [of_kinds[at] for at in numbers], left_out, [kinds[at] for at in numbers])
    return total


def _prove_bound(
    prices: Sequence[Fraction], of_kinds: Sequence[Fraction], left_out: int, kinds: Sequence[NicKind]
) -> Fraction:
    """What the prices prove, as a possible cost: their sum, less the highest of tenants left out, less limited NICs."""
    highest = sorted(prices, reverse=True)[:left_out]
    proven = sum(prices, start=Fraction(0)) - sum(max(price, Fraction(0)) for price in highest)
    proven -= sum(price * (kind.count or 0) for price, kind in zip(of_kinds, kinds, strict=True))
    return possible_cost(proven, kinds)


def possible_cost(proven: Fraction, kinds: Sequence[NicKind]) -> Fraction:
    """The least cost that a plan can have, and that is not below what is proven."""
    costs = [Fraction(repr(float(kind.cost))) for kind in kinds]
    whole = lcm(*(cost.denominator for cost in costs))
    unit = Fraction(gcd(*(int(cost * whole) for cost in costs)), whole)
    return max(Fraction(0), ceil(proven / unit) * unit) if unit else Fraction(0)


def round_price(price: float, to_whole: Any) -> Fraction:
    """The price with few decimals, as the number that the JSON file will hold."""
    return Fraction(repr(float(Fraction(to_whole(Fraction(price) * 10**PRICE_DECIMALS), 10**PRICE_DECIMALS))))


def kind_entry(kind: NicKind, spec: str) -> dict[str, Any]:
    """A kind of NIC as the file holds it."""
    return {
        "model": kind.model, "testbed": spec, "cores": kind.cores, "cores_of": dict(sorted(kind.cores_of.items())),
        "count": kind.count, "cost": kind.cost, **({"pool": kind.pool} if kind.pool else {}),
        **({"domain": kind.domain} if kind.domain else {}),
    }  # fmt: skip


def tenant_entry(arrival: Arrival) -> dict[str, Any]:
    """A tenant as the file holds it."""
    return {"id": arrival.id, **class_entry(arrival), **dict(arrival.constraints.values)}


def class_entry(arrival: Arrival) -> dict[str, Any]:
    """Workload, SLA and pools as the file holds them."""
    sla = arrival.sla
    requirement = {"sla_drop": sla.max_drop} if sla.max_drop is not None else {"sla_min_kpps": sla.min_kpps}
    pool = {"pool": pools} if (pools := arrival.constraints.of("pool")) else {}
    return {"nf": arrival.workload.nf, "traffic": arrival.workload.traffic.as_dict(), **requirement, **pool}


def nic_entries(plan: Plan) -> list[dict[str, Any]]:
    """The NICs of a plan as the file holds them."""
    nics: dict[str, dict[str, Any]] = {}
    for placement in plan.placements:
        if placement.nic is not None and placement.kind is not None:
            nic = nics.setdefault(placement.nic, {"kind": placement.kind.index, "tenants": []})
            nic["tenants"].append(placement.arrival.id)
    return list(nics.values())


def _by_class(arrivals: Sequence[Arrival], prices: Mapping[str, Fraction]) -> list[dict[str, Any]]:
    """The price of each class of tenants with the same workload, the same SLA and the same pools."""
    known: dict[tuple[object, ...], dict[str, Any]] = {}
    for arrival in arrivals:
        key = arrival.workload, arrival.sla, arrival.constraints.of("pool")
        if key not in known:
            known[key] = {**class_entry(arrival), "price": float(prices[arrival.id])}
        elif known[key]["price"] != float(prices[arrival.id]):
            raise AssertionError(f"Tenants like {arrival.id} have two prices.")
    return list(known.values())
