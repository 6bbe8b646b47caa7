"""A budget of SLA violations: how careful placement must be so that its plans are expected to stay inside.

A margin on every prediction costs NICs, and how many violations it avoids depends on the plan: on how close to their
SLAs the co-locations are that placement chooses. So the risk is chosen by plans. The trace, or one like it, is placed
at a few risks; of each plan the SLA violations are expected from how far the predictor errs, times what decisions
replayed at that risk violate per expected violation (`replay`); and the largest risk is taken whose plan stays within
the budget."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from placer.evaluate.expected_violations import ExpectedViolations, expected_violations
from placer.model.arrival import Arrival
from placer.model.catalogue import Catalogue
from placer.model.fleet import Fleet
from placer.model.nic import Nic
from placer.model.oracle import DEFAULT_RISK, Oracle
from placer.model.plan import Plan, replay_plan
from placer.model.sla import Sla
from predictor import Predictor
from predictor.contention.left_out import LeftOutCoLocation, shortfalls, throughputs
from profiles import CoLocation, Workload

# Decisions replayed: how many SLAs placement violates per violation that is expected, on measured co-locations.
#
# Placement chooses co-locations whose predictions just suffice, so it selects predictions that are too high, and the
# errors of a few co-locations are repeated on many NICs. How much that matters cannot be seen from errors of all
# predictions. So arrivals are placed as if only measured co-locations could share a NIC, each of them predicted from
# the others, and violations are counted by the measurements: risk is controlled by the decisions that it leads to
# (conformal risk control: Angelopoulos et al., ICLR 2024; learn then test: Angelopoulos et al., Annals of Applied
# Statistics 19, 2025). Their assumption is exchangeability. Here it is that co-locations which were not measured err,
# relative to their spread, as measured ones do when they are left out.


FEWEST_MEASURED = 50  # measured co-locations from which on decisions are replayed
REPLAYED_ARRIVALS = 500  # arrivals of a replay, at most
LEAST_REPLAYED, REPLAYED_PER_ARRIVAL = 200, 5  # arrivals of a replay, at least, and per arrival of a short trace
LOOSEST_DROP = 0.999  # the largest drop of an SLA


class Replayed(NamedTuple):
    """SLA violations in replayed plans. `violations`: by the measurements. `expected`: by how far predictions and
    measurements are expected to err. `of_predictions`: by how far predictions are expected to err."""

    violations: float = 0.0
    expected: float = 0.0
    of_predictions: float = 0.0


class LeftOutOracle(Oracle):
    """Measured co-locations, each as predicted from the others; no other can share a NIC. `predictor`: predicts
    throughput alone. `left_out`: the measured co-locations. `risk`: the share of instances that may be expected to fall
    short of the answers."""

    def __init__(self, predictor: Predictor, left_out: Mapping[CoLocation, LeftOutCoLocation], risk: float) -> None:
        super().__init__()
        self._predictor, self._left_out, self._risk = predictor, left_out, risk

    def _query(self, co_locations: Sequence[CoLocation]) -> Sequence[Sequence[float]]:
        alone = self._predictor.solo([one for (one, *_) in co_locations]).tolist()
        known = [key for key in co_locations if len(key) > 1 and key in self._left_out]
        answers = dict(zip(known, throughputs([self._left_out[key] for key in known], self._risk), strict=True))
        return [
            [solo] if len(key) == 1 else answers.get(key, [0.0] * len(key))
            for key, solo in zip(co_locations, alone, strict=True)
        ]


def left_out_co_locations(catalogue: Catalogue, predictor: str) -> list[Mapping[CoLocation, LeftOutCoLocation]]:
    """Per kind of NIC its measured co-locations; empty where some kind has too few to replay decisions."""
    if catalogue.gpus:
        return []
    found = [models.predictors[predictor].left_out(models.default_traffic) for models in catalogue.models]
    return found if all(len(of_kind) >= FEWEST_MEASURED for of_kind in found) else []


def arrivals_to_replay(catalogue: Catalogue, arrivals: Sequence[Arrival]) -> list[Arrival]:
    """Arrivals of the same NFs and SLAs at default traffic, none of which leaves; repeated where they are few."""
    models = catalogue.models[0]
    known = [arrival for arrival in arrivals if arrival.workload.nf in models.nfs][:REPLAYED_ARRIVALS]
    if not known:
        return []
    solo = next(iter(models.predictors.values())).solo([arrival.workload.saturated for arrival in known]).tolist()
    drops = [1.0 - one.required_kpps(kpps) / kpps for one, kpps in zip(known, solo, strict=True)]
    count = min(max(REPLAYED_PER_ARRIVAL * len(arrivals), LEAST_REPLAYED), REPLAYED_ARRIVALS)
    order = (np.random.default_rng(0).permutation(count) % len(known)).tolist()
    return [
        Arrival(
            str(number),
            float(number),
            Workload(known[at].workload.nf, models.default_traffic),
            Sla(max_drop=min(max(drops[at], 0.0), LOOSEST_DROP)),
        )
        for number, at in enumerate(order)
    ]


def judge(plan: Plan, catalogue: Catalogue, predictor: str) -> Replayed:
    """The violations in a plan that was made by `LeftOutOracle`."""
    fleet = Fleet(catalogue.kinds)
    nics: dict[int, Nic] = {}
    for _, changed in replay_plan(plan, fleet):
        nics.update((nic.number, nic) for nic in changed)
    left_out = left_out_co_locations(catalogue, predictor)
    members: list[tuple[LeftOutCoLocation, int, float]] = []
    for nic in nics.values():
        tenants = sorted(nic.tenants, key=lambda tenant: tenant.workload)
        if len(tenants) < 2:
            continue
        co_location = tuple(tenant.workload for tenant in tenants)
        known = left_out[nic.kind.index][co_location]
        solo = catalogue.models[nic.kind.index].predictors[predictor].solo(co_location).tolist()
        members += [(known, at, one.required_kpps(solo[at])) for at, one in enumerate(tenants)]
    if not members:
        return Replayed()
    violations = sum(float(known.measured[member] < required) for known, member, required in members)
    truly, measured = zip(*shortfalls(members), strict=True)
    return Replayed(violations, sum(measured), sum(truly))


RISKS_TRIED = (0.5, 0.35, 0.25, 0.18, 0.13, 0.09, 0.065, 0.045, 0.03, 0.02, 0.014, 0.01, 0.007, 0.005)
"""Risks that are tried, the least careful first."""

SELECTION_FACTOR = 1.3
"""Times as many violations as in replays are allowed for.

Replays only have co-locations that were left out. Of those that were measured, placement selects the ones whose
measurements were too high by noise. On six testbeds 0.6 to 1.6 times as many were violated as replays lead to expect.
"""
UNREPLAYED_VIOLATIONS = 3.0  # expected violations in replays that count as much as what would be expected by chance
REPEATED_DEVIATIONS = 0.7  # standard deviations by which the expected violations must stay below the budget
RISK_GUESS = 0.045  # the risk that usually keeps a budget of 1 %, and in proportion others
PROPORTIONAL_TRIES = 3  # plans until which the next risk is guessed in proportion


def risk_within_budget(
    catalogue: Catalogue,
    predictor: str,
    place: Callable[[float], Plan],
    replay: Callable[[float], Replayed] = lambda risk: Replayed(),
) -> float:
    """The largest risk whose plan is expected to keep the catalogue's budget; else the smallest.

    It is searched by halving, as if violations only grew with the risk. They nearly do: on a short trace, a larger
    budget may find a smaller risk. The catalogue's own risk where it has one, and the default where a predictor does
    not estimate its errors. `catalogue`: the NICs, and the budget. `predictor`: the name of the predictor that plans
    are made by. `place`: makes the plan of a risk. `replay`: replays the decisions of a risk; by default they are
    not."""
    if catalogue.budget_pct is None or not catalogue.supports_risk(predictor):
        return DEFAULT_RISK if catalogue.risk is None else catalogue.risk
    low, high, tries = 0, len(RISKS_TRIED) - 1, 0
    at = min(_index(RISK_GUESS * catalogue.budget_pct), high - 1)
    while low < high:
        expected = expected_violations(place(RISKS_TRIED[at]), catalogue, predictor)
        careful = with_reserves(expected, replay(RISKS_TRIED[at]))
        if careful <= catalogue.budget_pct:
            high = at
        else:
            low = at + 1
        # violations grow about as the risk does; after a few tries that were off, halving is surer
        tries += 1
        proportional = _index(RISKS_TRIED[at] * catalogue.budget_pct / max(careful, 1e-9))
        at = min(max(proportional if tries < PROPORTIONAL_TRIES else (low + high) // 2, low), max(high - 1, low))
    return RISKS_TRIED[low]


def with_reserves(expected: ExpectedViolations, replayed: Replayed) -> float:
    """SLA violations per 100 instances that a plan must be allowed, given what is expected of it and of replays."""
    return _select(replayed) * expected.mean_pct + REPEATED_DEVIATIONS * expected.spread_pct


def _select(replayed: Replayed) -> float:
    """Violations per expected one; the fewer are expected in replays, the nearer to `SELECTION_FACTOR`.

    What noise of measurements adds to violations is as expected; all that is not is due to predictions.
    """
    of_predictions = max(replayed.of_predictions + replayed.violations - replayed.expected, 0.0)
    return SELECTION_FACTOR * max(
        (of_predictions + UNREPLAYED_VIOLATIONS) / (replayed.of_predictions + UNREPLAYED_VIOLATIONS), 1.0
    )


def _index(risk: float) -> int:
    """The position in `RISKS_TRIED` of the largest that is not above this one; else of the smallest."""
    return next((at for at, one in enumerate(RISKS_TRIED) if one <= risk + 1e-12), len(RISKS_TRIED) - 1)
