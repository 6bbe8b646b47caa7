"""Evaluation: what a plan costs, and whose SLA it breaks, judged by an oracle of the judge's choice."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from placer.evaluate.checks import peak_nics
from placer.model.fleet import Fleet, Nic, NicKind
from placer.model.oracle import CoLocation, Oracle
from placer.model.plan import Plan
from placer.model.replay import events_of


@dataclass(frozen=True)
class Stay:
    """What befell one instance during its stay.

    Parameters
    ----------
    throughput_kpps
        The lowest throughput in any company that it kept.
    solo_kpps
        Its throughput alone on that NIC model.
    sla_met
        Whether the lowest throughput meets the SLA.
    """

    throughput_kpps: float
    solo_kpps: float
    sla_met: bool


@dataclass(frozen=True)
class Evaluation:
    """A plan, judged.

    Parameters
    ----------
    plan
        The plan.
    nics
        Most NICs in use at one time.
    cost
        What the NICs in use cost at the dearest time.
    stays
        Per placed arrival, by id, what the truth says befell it; None where nobody tells the truth.
    expected
        Per placed arrival, by id, what the strategy's own predictor expected; None where it looked at none.
    """

    plan: Plan
    nics: int
    cost: float
    stays: dict[str, Stay] | None
    expected: dict[str, Stay] | None

    @property
    def violated(self) -> int | None:
        """Instances whose true throughput is ever below their SLA; None where nobody tells the truth."""
        return None if self.stays is None else sum(not stay.sla_met for stay in self.stays.values())

    @property
    def violations_pct(self) -> float | None:
        """Violated instances per 100 placed; None where nobody tells the truth."""
        if self.stays is None or self.violated is None:
            return None
        return 100.0 * self.violated / len(self.stays) if self.stays else 0.0


def evaluate(
    plan: Plan,
    kinds: Sequence[NicKind],
    truth: Sequence[Oracle] | None,
    predicted: Sequence[Oracle] | None = None,
) -> Evaluation:
    """Judge a plan by its truth, and tell beside it what its predictor expected.

    Parameters
    ----------
    plan
        A plan that keeps its constraints.
    kinds
        The fleet's kinds.
    truth
        Per kind, who tells true throughputs; None when nobody does.
    predicted
        Per kind, what the strategy looked at; None when it looked at nothing.
    """
    return Evaluation(
        plan=plan,
        nics=peak_nics(plan),
        cost=_peak_cost(plan, kinds),
        stays=None if truth is None else _stays(plan, kinds, truth),
        expected=None if predicted is None else _stays(plan, kinds, predicted),
    )


def _stays(plan: Plan, kinds: Sequence[NicKind], oracles: Sequence[Oracle]) -> dict[str, Stay]:
    """The lowest throughput of every placed instance over all companies that it kept; one batch of questions a kind."""
    kept: set[tuple[int, CoLocation]] = set()
    kept.update((nic.kind.index, nic.co_location) for nic in _changes(plan, kinds))
    for kind in kinds:
        oracles[kind.index].throughput(sorted(co_location for index, co_location in kept if index == kind.index))
    lowest: dict[str, float] = {}
    for nic in _changes(plan, kinds):
        throughputs = oracles[nic.kind.index].by_workload(nic.co_location)
        for tenant in nic.tenants:
            throughput = throughputs[tenant.workload]
            lowest[tenant.id] = min(throughput, lowest.get(tenant.id, throughput))
    stays = {}
    for placement in plan.placed:
        if placement.kind is not None:
            arrival = placement.arrival
            solo = oracles[placement.kind.index].solo(arrival.workload)
            throughput = lowest[arrival.id]
            stays[arrival.id] = Stay(throughput, solo, arrival.sla.is_met(throughput, solo))
    return stays


def _changes(plan: Plan, kinds: Sequence[NicKind]) -> Iterator[Nic]:
    """The NIC that changed at each event, with its new company, replayed from the placements alone."""
    fleet = Fleet(kinds)
    for event in events_of([placement.arrival for placement in plan.placements]):
        placement = plan.placements[event.index]
        if placement.nic is None or placement.kind is None:
            continue
        if event.departs:
            nic = fleet.remove(placement.arrival.id)
        else:
            nic = fleet.nics.get(placement.nic) or fleet.open(placement.kind, placement.nic)
            fleet.place(placement.arrival.tenant, nic)
        if nic.tenants:
            yield nic


def _peak_cost(plan: Plan, kinds: Sequence[NicKind]) -> float:
    """The dearest fleet that was ever in use: per kind its peak, which is exact for one kind and never too low."""
    return sum(kind.cost * peak_nics(plan, kind) for kind in kinds)
