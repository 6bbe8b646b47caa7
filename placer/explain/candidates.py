"""Explanations: what every class of NICs would have meant for an arrival, and which resource keeps it off."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from placer.model.arrival import Arrival, have_priorities, settle_running
from placer.model.constraints import Conflict, conflict_on
from placer.model.feasibility import fits, margin, tenant_margin
from placer.model.fleet import Fleet
from placer.model.nic import Nic, Tenant
from placer.model.nic_kind import NicKind
from placer.model.oracle import Oracle, co_location_of
from placer.model.plan import replay
from placer.policy.cores import FIRST_ROOM, UsualNeighbours, choose_with_cores, order_choices
from placer.policy.preemption import Preemption, find_preemption
from placer.policy.rejection import Cause
from placer.policy.rules import Rule, length_of
from placer.policy.selector import Selector
from profiles import CoLocation, InputError, Workload


@dataclass(frozen=True, slots=True)
class CoLocatedNf:
    """One NF of a co-location. `workload`: what it runs. `kpps`, `solo_kpps`: predicted throughput in the co-location
    and alone; at an offered rate what it could carry, its capacity. `required_kpps`: throughput that the strictest SLA
    of this workload requires, among the NICs of the class."""

    workload: Workload
    kpps: float
    solo_kpps: float
    required_kpps: float

    @property
    def margin(self) -> float:
        """How far the throughput is above the required one, relative to it; below 0, the SLA is violated."""
        return margin(self.required_kpps, self.kpps)

    @property
    def headroom_pct(self) -> float | None:
        """How much more it could carry than is offered to it, in % of that; None without an offered rate."""
        return None if self.workload.is_saturated else 100.0 * (self.kpps / self.workload.rate_kpps - 1.0)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What holds for one class of NICs, which have one co-location and on which the same SLA would be violated, if any.

    `kind`: their kind. `nics`: their ids; empty for a NIC that would have to be opened. `free_cores`: before the
    arrival. `nfs`: the co-location with the arrival; without it where cores do not suffice. `cause`: what keeps the
    arrival off; None where it fits. `resource`: where an SLA would be violated: the resource on which `violated` loses
    most; else empty. `violated`: the workload that would be furthest below its SLA. `chosen`: whether the arrival went
    to one of these NICs. `met`: where a constraint or a priority keeps it off, the ids of the instances it meets."""

    kind: NicKind
    nics: tuple[str, ...]
    free_cores: int
    nfs: tuple[CoLocatedNf, ...]
    cause: Cause | None = None
    resource: str = ""
    violated: Workload | None = None
    chosen: bool = False
    met: tuple[str, ...] = ()

    @property
    def fits(self) -> bool:
        """Whether the arrival could have gone there with every SLA met."""
        return self.cause is None


@dataclass(frozen=True)
class Explanation:
    """An arrival, its NIC (None: rejected), and the verdict on every class of NICs at that moment. There are no
    verdicts on an instance that already runs: nothing is decided about it. `preemption`: for a rejected arrival of a
    trace with priorities, what would have to go so that it fits."""

    arrival: Arrival
    nic: str | None
    verdicts: tuple[Verdict, ...]
    preemption: Preemption | None = None


def explain(
    arrivals: Sequence[Arrival], kinds: Sequence[NicKind], oracles: Sequence[Oracle], rule: Rule, only: str | None
) -> Iterator[Explanation]:
    """Place the arrivals by the rule, and explain each of them, or the one with the id `only`. Raises `InputError` when
    there is no arrival of that id."""
    if only is not None and all(arrival.id != only for arrival in arrivals):
        raise InputError.of("ID", f"'{only}' is not among the arrivals")
    fleet = Fleet(kinds)
    settle_running(arrivals, fleet)
    placing = RuleChoice(fleet, oracles, rule, length_of(arrivals))
    verdicts: dict[int, tuple[Verdict, ...]] = {}
    preemptions: dict[int, Preemption | None] = {}
    ranked = have_priorities(arrivals)
    priorities = {arrival.id: arrival.priority for arrival in arrivals if ranked and arrival.nic is None}
    arrivals = list(arrivals)

    def choose(index: int) -> Nic | NicKind | None:
        tenant = arrivals[index].tenant
        choice, workload = placing.choose(tenant)
        arrivals[index] = replace(arrivals[index], workload=workload)
        if only in (None, tenant.id):
            verdicts[index] = tuple(verdicts_on(fleet, oracles, tenant, placing.tried, choice))
            if ranked and choice is None:
                found = find_preemption(fleet, oracles, tenant, arrivals[index].priority, priorities)
                preemptions[index] = found
                verdicts[index] = tuple(_with_preemption(verdicts[index], found))
        return choice

    for event, nic in replay(arrivals, fleet, choose):
        arrival = arrivals[event.index]
        if not event.departs and only in (None, arrival.id):
            found = preemptions.pop(event.index, None)
            yield Explanation(arrival, nic.id if nic else None, verdicts.pop(event.index, ()), found)
            if only is not None:
                return


def _with_preemption(verdicts: Iterable[Verdict], found: Preemption | None) -> Iterator[Verdict]:
    """The verdicts, with one of its own on the NIC that would take the arrival without instances of lower priority."""
    if found is None or not found.lower:
        yield from verdicts
        return
    for verdict in verdicts:
        here = found.nic in verdict.nics if found.nic else not verdict.nics and verdict.kind is found.kind
        others = tuple(nic for nic in verdict.nics if nic != found.nic)
        if here:
            nics = () if found.nic is None else (found.nic,)
            yield Verdict(verdict.kind, nics, verdict.free_cores, (), Cause.PRIORITY, met=found.ids)
        if not here or others:
            yield replace(verdict, nics=others)


class RuleChoice:
    """Chooses NICs and cores for one arrival after another, as the strategy `contention-aware` does.

    `length`: of the trace, as of `length_of`. `tried`: the last arrival on each number of cores, as they were tried."""

    tried: list[Workload]

    def __init__(self, fleet: Fleet, oracles: Sequence[Oracle], rule: Rule, length: int | None) -> None:
        self._kinds, self._oracles = fleet.kinds, oracles
        self._selector = Selector(fleet, oracles, rule, arrivals=length)
        self._neighbours = UsualNeighbours()

    def choose(self, tenant: Tenant) -> tuple[Nic | NicKind | None, Workload]:
        """The choice for an arrival, and its workload with the cores that it gets."""
        self.tried = order_choices(self._kinds, self._oracles, tenant.workload, FIRST_ROOM, self._neighbours)
        self._selector.observe(replace(tenant, workload=self.tried[0]))
        choice, workload = choose_with_cores(tenant, self.tried, self._selector.choose)
        if choice is not None:
            self._neighbours.add(workload)
        return choice, workload


def verdicts_on(
    fleet: Fleet, oracles: Sequence[Oracle], tenant: Tenant, order: Sequence[Workload], choice: Nic | NicKind | None
) -> Iterator[Verdict]:
    """The verdict on every class of NICs in use and in service, then on a new NIC of each kind. `order`: the arrival on
    each number of cores, as they were tried."""
    classes: dict[tuple[int, CoLocation], list[Nic]] = defaultdict(list)
    barred: dict[tuple[Conflict, int, int], list[Nic]] = defaultdict(list)
    for nic in fleet.nics.values():
        if nic.id in fleet.out_of_service:
            continue
        if conflict := conflict_on(fleet, tenant, nic.kind, nic):
            free = nic.kind.cores - nic.kind.cores_taken(nic.co_location)
            barred[conflict, nic.kind.index, free].append(nic)
        else:
            classes[nic.kind.index, nic.co_location].append(nic)
    _predict_in_one_batch(classes, fleet.kinds, oracles, tenant)
    for (index, _), nics in classes.items():
        yield from _on_co_location(nics, oracles[index], tenant, order, choice)
    for (conflict, index, free_cores), nics in barred.items():
        ids = tuple(nic.id for nic in nics)
        yield Verdict(fleet.kinds[index], ids, free_cores, (), Cause.of(conflict.constraint), met=conflict.ids)
    available = fleet.available()
    for kind in fleet.kinds:
        if conflict := conflict_on(fleet, tenant, kind, None):
            yield Verdict(kind, (), kind.cores, (), Cause.of(conflict.constraint), met=conflict.ids)
            continue
        verdict = _on_new_nic(kind, oracles[kind.index], tenant, order, choice is kind)
        none_left = verdict.fits and kind not in available
        yield Verdict(kind, (), kind.cores, verdict.nfs, Cause.NONE_LEFT) if none_left else verdict


def _predict_in_one_batch(
    classes: Iterable[tuple[int, CoLocation]], kinds: Sequence[NicKind], oracles: Sequence[Oracle], tenant: Tenant
) -> None:
    """Let every oracle remember what is needed: predictors answer a thousand co-locations in the time of one."""
    for kind, oracle in zip(kinds, oracles, strict=True):
        present = [co_location for index, co_location in classes if index == kind.index]
        joined = [
            co_location_of((*tenants, workload)) for tenants in present for workload in kind.choices(tenant.workload)
        ]
        oracle.throughput([*present, *(co_location for co_location in joined if fits(kind, co_location))])


def _on_co_location(
    nics: Sequence[Nic], oracle: Oracle, tenant: Tenant, order: Sequence[Workload], choice: object
) -> Iterator[Verdict]:
    """The verdicts on NICs with one co-location, by the SLA that would be violated. The arrival has the first number of
    cores with which it fits on a NIC; or else with which it keeps its own SLA there, or else the most for which there
    are cores."""
    kind, co_location = nics[0].kind, nics[0].co_location
    free = kind.cores - kind.cores_taken(co_location)
    choices = kind.choices(tenant.workload)
    able = [workload for workload in _in_order(choices, order) if fits(kind, (*co_location, workload))]
    if not able:
        nfs = _co_located(oracle, [tenant for nic in nics for tenant in nic.tenants], co_location)
        yield Verdict(kind, tuple(nic.id for nic in nics), free, nfs, _cause_of_misfit(kind, choices[0], free))
        return
    left, tried = list(nics), able
    if len(able) > 1:
        keeps = (workload for workload in able if _keeps_own(oracle, co_location, replace(tenant, workload=workload)))
        tried = [*able, next(keeps, max(able, key=lambda workload: workload.cores))]
    for number, workload in enumerate(tried, start=1):
        arrival, joined = replace(tenant, workload=workload), co_location_of((*co_location, workload))
        alike: dict[Workload | None, list[Nic]] = defaultdict(list)
        for nic in left:
            alike[_most_violated(_co_located(oracle, [*nic.tenants, arrival], joined))].append(nic)
        for violated, those in alike.items():
            if violated is not None and number < len(tried):
                continue
            ids = tuple(nic.id for nic in those)
            nfs = _co_located(oracle, [*(tenant for nic in those for tenant in nic.tenants), arrival], joined)
            if violated is None:
                yield Verdict(kind, ids, free, nfs, chosen=choice in those)
            else:
                cause = Cause.ARRIVAL_SLA if violated == workload else Cause.TENANT_SLA
                yield Verdict(kind, ids, free, nfs, cause, oracle.bottleneck(joined, violated), violated)
        left = [nic for nic in left if nic not in alike[None]]


def _in_order(choices: Sequence[Workload], order: Sequence[Workload]) -> list[Workload]:
    """The choices of a kind as they were tried; on a GPU the workload has no number of cores."""
    return [choice for choice in order if choice in choices] or list(choices)


def _keeps_own(oracle: Oracle, co_location: CoLocation, arrival: Tenant) -> bool:
    return tenant_margin(oracle, co_location_of((*co_location, arrival.workload)), arrival) >= 0


def _cause_of_misfit(kind: NicKind, workload: Workload, free: int) -> Cause:
    """Why a NIC with so many free cores does not take a workload on the fewest cores that it may have."""
    if kind.gbps_of(workload) <= kind.line_rate_gbps and not kind.hosts(workload):
        return Cause.NOT_HOSTED
    return Cause.CORES if kind.cores_for(workload) > free else Cause.LINE_RATE


def _on_new_nic(kind: NicKind, oracle: Oracle, tenant: Tenant, order: Sequence[Workload], chosen: bool) -> Verdict:
    if not kind.hosts(tenant.workload):
        return Verdict(kind, (), kind.cores, (), _cause_of_misfit(kind, tenant.workload, kind.cores))
    nfs: tuple[CoLocatedNf, ...] = ()
    for workload in _in_order(kind.choices(tenant.workload), order):
        nfs = _co_located(oracle, [replace(tenant, workload=workload)], (workload,))
        if _most_violated(nfs) is None:
            return Verdict(kind, (), kind.cores, nfs, chosen=chosen)
    if not tenant.workload.is_saturated and not tenant.workload.promises_latency:
        return Verdict(kind, (), kind.cores, nfs, Cause.RATE)
    violated = _most_violated(nfs)
    resource = oracle.bottleneck((nfs[0].workload,), nfs[0].workload)
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
