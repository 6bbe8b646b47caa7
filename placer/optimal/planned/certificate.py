"""Certificates of `planned`: a plan that keeps a budget of SLA violations, with the prices that prove its bound.

They have the form of certificates of the optimum (`placer/optimal/certificate.py`), and beside it what is expected to
violate its SLA and what a violation costs. `placer verify` reads them (`placer/verify/budget.py`)."""

import json
from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import ceil, floor
from typing import Any

from placer.evaluate.expected_violations import expected_violations
from placer.model.arrival import Arrival
from placer.model.catalogue import Catalogue
from placer.model.nic_kind import NicKind
from placer.model.plan import BudgetProof, Plan
from placer.optimal.bounded_plan import exact_peak_cost
from placer.optimal.certificate import (
    CERTIFICATE_VERSION,
    class_entry,
    kind_entry,
    nic_entries,
    possible_cost,
    round_price,
    tenant_entry,
)

WORTH_SLACK = Fraction(1, 10**6)
"""The share by which tenants may be worth more than their NIC, since probabilities are computed again."""


def certificate_json(arrivals: Sequence[Arrival], catalogue: Catalogue, plan: Plan) -> str:
    """The certificate as a file holds it."""
    return json.dumps(certificate(arrivals, catalogue, plan), indent=1) + "\n"


def certificate(arrivals: Sequence[Arrival], catalogue: Catalogue, plan: Plan) -> dict[str, Any]:
    """The certificate of a plan of `planned` as it is written."""
    within = plan.within
    if within is None or within.proof is None:
        raise ValueError(f"A plan of {plan.strategy} without a proof has no certificate.")
    proof = within.proof
    expected = expected_violations(plan, catalogue, plan.predictor or "")
    left_out = [placement.arrival.id for placement in plan.placements if placement.nic is None]
    prices = {arrival.id: round_price(proof.of_tenants[arrival.id], floor) for arrival in arrivals}
    of_kinds = [round_price(price, ceil) for price in proof.of_kinds]
    of_violations = round_price(proof.of_violations, ceil)
    lowest = _by_class(arrivals, prices)
    each = [lowest[_key(arrival)] for arrival in arrivals]
    share = Fraction(1) if catalogue.budget_pct is None else Fraction(repr(float(catalogue.budget_pct))) / 100
    worth = [price - of_violations * share for price in each]
    proven = _prove_bound(worth, of_kinds, len(left_out), catalogue.kinds, proof)
    return {
        "certificate": CERTIFICATE_VERSION,
        "of": plan.strategy,
        "predictor": plan.predictor,
        "budget_pct": catalogue.budget_pct,
        "risk": catalogue.risk,
        "fleet": [kind_entry(kind, spec) for kind, spec in zip(catalogue.kinds, catalogue.specs, strict=True)],
        "tenants": [{**tenant_entry(arrival), "time": arrival.time} for arrival in arrivals],
        "plan": {
            "cost": float(exact_peak_cost(plan, catalogue.kinds)),
            "expected_violations_pct": expected.mean_pct,
            "reserve_pct": within.reserve_pct,
            "nics": nic_entries(plan),
            "left_out": left_out,
        },
        "bound": {
            "lower_bound": float(possible_cost(proven, catalogue.kinds)),
            "searched": within.lower_bound,
            "over": "cores" if proof.over_cores else "co-locations",
            "prices": [json.loads(one) | {"price": float(price)} for one, price in lowest.items()],
            "nic_prices": [float(price) for price in of_kinds],
            "violation_price": float(of_violations),
        },
    }


def _key(arrival: Arrival) -> str:
    return json.dumps(class_entry(arrival))


def _by_class(arrivals: Sequence[Arrival], prices: Mapping[str, Fraction]) -> dict[str, Fraction]:
    """The lowest price of each class of tenants with the same NF, traffic and SLA, whatever rate is offered to them."""
    lowest: dict[str, Fraction] = {}
    for arrival in arrivals:
        key, price = _key(arrival), prices[arrival.id]
        lowest[key] = min(price, lowest.get(key, price))
    return lowest


def _prove_bound(
    worth: Sequence[Fraction], of_kinds: Sequence[Fraction], left_out: int, kinds: Sequence[NicKind], proof: BudgetProof
) -> Fraction:
    """What the prices prove: what all tenants are worth without their share of the budget, less the highest of tenants
    left out, less limited NICs."""
    highest = sorted(worth, reverse=True)[:left_out]
    total = sum(worth, start=Fraction(0)) - sum((max(price, Fraction(0)) for price in highest), start=Fraction(0))
    total = total if proof.over_cores else total / (1 + WORTH_SLACK)
    return total - sum(price * (kind.count or 0) for price, kind in zip(of_kinds, kinds, strict=True))
