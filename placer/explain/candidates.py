"""Explanations: what every class of NICs would have meant for an arrival, and which resource keeps it off."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from placer.model.arrival import Arrival
from placer.model.feasibility import fits, margin
from placer.model.fleet import Fleet, Nic, NicKind, Tenant
from placer.model.oracle import Oracle, co_location_of
from placer.model.plan import replay
from placer.model.running import settle_running
from placer.policy.rejection import Cause
from placer.policy.rules import Rule, length_of
from placer.policy.selector import Selector
from profiles import CoLocation, InputError, Workload


@dataclass(frozen=True, slots=True)
class CoLocatedNf:
    """One NF of a co-location.

    Parameters
    ----------
    workload
        What it runs.
    kpps, solo_kpps
        Predicted throughput in the co-location and alone.
    required_kpps
        Throughput that the strictest SLA of this workload requires, among the NICs of the class.
    """

    workload: Workload
    kpps: float
    solo_kpps: float
    required_kpps: float

    @property
    def margin(self) -> float:
        """How far the throughput is above the required one, relative to it; below 0, the SLA is violated."""
        return margin(self.required_kpps, self.kpps)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What holds for one class of NICs, which have one co-location and on which the same SLA would be violated, if any.

    Parameters
    ----------
    kind
        Their kind.
    nics
        Their ids; empty for a NIC that would have to be opened.
    free_cores
        Before the arrival.
    nfs
        The co-location with the arrival; without it where cores do not suffice.
    cause
        What keeps the arrival off; None where it fits.
    resource
        Where an SLA would be violated: the resource on which `violated` loses most; else empty.
    violated
        The workload that would be furthest below its SLA.
    chosen
        Whether the arrival went to one of these NICs.
    """

    kind: NicKind
    nics: tuple[str, ...]
    free_cores: int
    nfs: tuple[CoLocatedNf, ...]
    cause: Cause | None = None
    resource: str = ""
    violated: Workload | None = None
    chosen: bool = False

    @property
    def fits(self) -> bool:
        """Whether the arrival could have gone there with every SLA met."""
        return self.cause is None


@dataclass(frozen=True)
class Explanation:
    """An arrival, its NIC (None: rejected), and the verdict on every class of NICs at that moment.

    There are no verdicts on an instance that already runs: nothing is decided about it.
    """

    arrival: Arrival
    nic: str | None
    verdicts: tuple[Verdict, ...]


def explain(
    arrivals: Sequence[Arrival], kinds: Sequence[NicKind], oracles: Sequence[Oracle], rule: Rule, only: str | None
) -> Iterator[Explanation]:
    """Place the arrivals by the rule, and explain each of them, or the one with the id `only`.

    Raises
    ------
    InputError
        When there is no arrival of that id.
    """
    if only is not None and all(arrival.id != only for arrival in arrivals):
        raise InputError.of("ID", f"'{only}' is not among the arrivals")
    fleet = Fleet(kinds)
    settle_running(arrivals, fleet)
    selector = Selector(fleet, oracles, rule, arrivals=length_of(arrivals))
    verdicts: dict[int, tuple[Verdict, ...]] = {}

    def choose(index: int) -> Nic | NicKind | None:
        tenant = arrivals[index].tenant
        selector.observe(tenant)
        choice = selector.choose(tenant)
        if only in (None, tenant.id):
            verdicts[index] = tuple(verdicts_on(fleet, oracles, tenant, choice))
        return choice

    for event, nic in replay(arrivals, fleet, choose):
        arrival = arrivals[event.index]
        if not event.departs and only in (None, arrival.id):
            yield Explanation(arrival, nic.id if nic else None, verdicts.pop(event.index, ()))
            if only is not None:
                return


def verdicts_on(
    fleet: Fleet, oracles: Sequence[Oracle], tenant: Tenant, choice: Nic | NicKind | None = None
) -> Iterator[Verdict]:
    """The verdict on every class of NICs in use and in service, then on a new NIC of each kind."""
    classes: dict[tuple[int, CoLocation], list[Nic]] = defaultdict(list)
    for nic in fleet.nics.values():
        if nic.id not in fleet.out_of_service:
            classes[nic.kind.index, nic.co_location].append(nic)
    _predict_in_one_batch(classes, fleet.kinds, oracles, tenant)
    for (index, _), nics in classes.items():
        yield from _on_co_location(nics, oracles[index], tenant, choice)
    free = fleet.available()
    for kind in fleet.kinds:
        verdict = _on_new_nic(kind, oracles[kind.index], tenant, choice is kind)
        none_left = verdict.fits and kind not in free
        yield Verdict(kind, (), kind.cores, verdict.nfs, Cause.NONE_LEFT) if none_left else verdict


def _predict_in_one_batch(
    classes: Iterable[tuple[int, CoLocation]], kinds: Sequence[NicKind], oracles: Sequence[Oracle], tenant: Tenant
) -> None:
    """Let every oracle remember what is needed: predictors answer a thousand co-locations in the time of one."""
    for kind, oracle in zip(kinds, oracles, strict=True):
        present = [co_location for index, co_location in classes if index == kind.index]
        joined = [co_location_of((*co_location, tenant.workload)) for co_location in present]
        oracle.throughput([*present, *(co_location for co_location in joined if fits(kind, co_location))])


def _on_co_location(nics: Sequence[Nic], oracle: Oracle, tenant: Tenant, choice: object) -> Iterator[Verdict]:
    """The verdicts on NICs with one co-location, by the SLA that would be violated."""
    kind, co_location = nics[0].kind, nics[0].co_location
    free = kind.cores - kind.cores_taken(co_location)
    ids = tuple(nic.id for nic in nics)
    joined = co_location_of((*co_location, tenant.workload))
    if not fits(kind, joined):
        nfs = _co_located(oracle, [tenant for nic in nics for tenant in nic.tenants], co_location)
        yield Verdict(kind, ids, free, nfs, Cause.CORES if kind.hosts(tenant.workload) else Cause.NOT_HOSTED)
        return
    alike: dict[Workload | None, list[Nic]] = defaultdict(list)
    for nic in nics:
        alike[_most_violated(_co_located(oracle, [*nic.tenants, tenant], joined))].append(nic)
    for violated, those in alike.items():
        ids = tuple(nic.id for nic in those)
        nfs = _co_located(oracle, [*(tenant for nic in those for tenant in nic.tenants), tenant], joined)
        if violated is None:
            yield Verdict(kind, ids, free, nfs, chosen=choice in those)
        else:
            cause = Cause.ARRIVAL_SLA if violated == tenant.workload else Cause.TENANT_SLA
            yield Verdict(kind, ids, free, nfs, cause, oracle.bottleneck(joined, violated), violated)


def _on_new_nic(kind: NicKind, oracle: Oracle, tenant: Tenant, chosen: bool) -> Verdict:
    if not kind.hosts(tenant.workload):
        return Verdict(kind, (), kind.cores, (), Cause.NOT_HOSTED)
    nfs = _co_located(oracle, [tenant], (tenant.workload,))
    violated = _most_violated(nfs)
    if violated is None:
        return Verdict(kind, (), kind.cores, nfs, chosen=chosen)
    resource = oracle.bottleneck((tenant.workload,), violated)
    return Verdict(kind, (), kind.cores, nfs, Cause.SLA_ALONE, resource, violated)


def _co_located(oracle: Oracle, tenants: Sequence[Tenant], co_location: CoLocation) -> tuple[CoLocatedNf, ...]:
    """The NFs of a co-location, each with the strictest SLA that these tenants have for its workload."""
    expected = oracle.by_workload(co_location)
    strictest: dict[Workload, float] = {}
    for tenant in tenants:
        required = tenant.required_kpps(oracle.solo(tenant.workload))
        strictest[tenant.workload] = max(required, strictest.get(tenant.workload, 0.0))
    return tuple(
        CoLocatedNf(workload, expected[workload], oracle.solo(workload), strictest[workload])
        for workload in co_location
    )


def _most_violated(nfs: Sequence[CoLocatedNf]) -> Workload | None:
    """The workload furthest below its SLA; None where every SLA is met."""
    worst = min(nfs, key=lambda nf: nf.margin)
    return worst.workload if worst.margin < 0 else None
