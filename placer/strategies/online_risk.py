"""The risk of placement where nothing of the arrivals is known in advance: one that suits typical arrivals.

`placer online` decides on each event as it comes. So that its plans are expected to keep a budget of SLA violations, a
typical trace is placed before it starts, and the risk of that plan is used from then on."""

import io
import random
from collections.abc import Sequence
from dataclasses import replace

from placer.inputs.arrivals import read_arrivals
from placer.model.arrival import Arrival
from placer.model.catalogue import Catalogue
from placer.model.nic import Tenant
from placer.model.oracle import Oracle
from placer.policy.rules import Rule
from placer.strategies.contention_aware import ContentionAware
from profiles import Workload
from traces.arrivals import Recipe, generate

TYPICAL_ARRIVALS = 500  # arrivals of a typical trace


def oracles_within_budget(
    catalogue: Catalogue, predictor: str, arrivals: Sequence[Arrival], rule: Rule
) -> tuple[float | None, tuple[Oracle, ...]]:
    """The risk at which these arrivals are expected to keep the catalogue's budget, and per kind the oracle at it.

    A given risk is kept. The risk is None where it has no effect.
    """
    if not catalogue.supports_risk(predictor):
        return None, catalogue.oracles(predictor)
    risk = ContentionAware(catalogue, predictor, rule=rule).risk_for(arrivals)
    return risk, replace(catalogue, risk=risk).oracles(predictor)


def typical_arrivals(catalogue: Catalogue, tenants: Sequence[Tenant] = ()) -> list[Arrival]:
    """Arrivals like these tenants; without tenants a trace as of `placer generate`, of all NFs at default traffic.

    None of NFs that run on GPUs only, whose rates are not known.
    """
    if not tenants:
        known = dict.fromkeys(nf for kind in catalogue.kinds for nf in kind.cores_of)
        nfs = tuple(nf for nf in known if not catalogue.check(Workload(nf, catalogue.default_traffic)))
        if not nfs:
            return []
        text = io.StringIO("".join(generate(Recipe(count=TYPICAL_ARRIVALS, nfs=nfs))))
        return read_arrivals(text, catalogue.default_traffic, catalogue.check)
    draw = random.Random(0)
    sampled = (
        draw.sample(tenants, TYPICAL_ARRIVALS)
        if len(tenants) > TYPICAL_ARRIVALS
        else draw.choices(tenants, k=TYPICAL_ARRIVALS)
    )
    return [Arrival(str(number), float(number), one.workload, one.sla) for number, one in enumerate(sampled)]
