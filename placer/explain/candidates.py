"""Explanations: what every class of NICs would have meant for an arrival, and which resource stands in the way."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from placer.model.arrival import Arrival
from placer.model.fleet import Fleet, Nic, NicKind, Tenant
from placer.model.oracle import CoLocation, Oracle, co_location_of
from placer.model.replay import events_of
from placer.policy.rules import Rule
from placer.policy.selector import Selector
from profiles import InputError, Workload

CORES = "cores"
NOT_HOSTED = "not hosted"
USED_UP = "none left"


@dataclass(frozen=True, slots=True)
class Slot:
    """One NF of a company that includes the newcomer, where cores suffice.

    Parameters
    ----------
    workload
        What it runs.
    kpps, solo_kpps
        What is predicted for it in that company, and alone.
    required_kpps
        What the strictest SLA of its equals there asks for.
    """

    workload: Workload
    kpps: float
    solo_kpps: float
    required_kpps: float

    @property
    def kept(self) -> bool:
        """Whether the SLA is kept."""
        return self.kpps >= self.required_kpps


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is true of one class of NICs: the same company, and the same NF that would break, if any.

    Parameters
    ----------
    kind
        Their kind.
    nics
        Their ids; empty for a NIC that would have to be opened.
    free_cores
        Before the newcomer.
    seats
        Everybody in the company with the newcomer; without the newcomer where cores do not suffice.
    cause
        What keeps the newcomer out: `cores`, `not hosted`, `none left` of the kind, or the resource on which `breaks`
        loses most; empty where it fits.
    breaks
        The workload that is furthest below its SLA.
    chosen
        Whether the newcomer went to one of these.
    """

    kind: NicKind
    nics: tuple[str, ...]
    free_cores: int
    seats: tuple[Slot, ...]
    cause: str = ""
    breaks: Workload | None = None
    chosen: bool = False

    @property
    def fits(self) -> bool:
        """Whether everybody would keep the SLA."""
        return not self.cause


@dataclass(frozen=True)
class Explanation:
    """An arrival, where it went (None: nowhere), and the verdict on every class of NICs at that moment."""

    arrival: Arrival
    nic: str | None
    verdicts: tuple[Verdict, ...]


def explain(
    arrivals: Sequence[Arrival], kinds: Sequence[NicKind], oracles: Sequence[Oracle], rule: Rule, only: str | None
) -> Iterator[Explanation]:
    """Place the arrivals as the rule says; tell of each, or of the one with the id `only`, why it went where.

    Raises
    ------
    InputError
        When there is no arrival of that id.
    """
    if only is not None and all(arrival.id != only for arrival in arrivals):
        raise InputError.of("ID", f"'{only}' is not among the arrivals")
    fleet = Fleet(kinds)
    selector = Selector(fleet, oracles, rule)
    for event in events_of(arrivals):
        arrival = arrivals[event.index]
        if event.departs:
            if fleet.nic_of(arrival.id) is not None:
                fleet.remove(arrival.id)
            continue
        selector.observe(arrival.tenant)
        choice = selector.choose(arrival.tenant)
        if only in (None, arrival.id):
            verdicts = tuple(verdicts_on(fleet, oracles, arrival.tenant, choice))
        nic = fleet.open(choice) if isinstance(choice, NicKind) else choice
        if nic is not None:
            fleet.place(arrival.tenant, nic)
        if only in (None, arrival.id):
            yield Explanation(arrival, nic.id if nic else None, verdicts)
        if arrival.id == only:
            return


def verdicts_on(
    fleet: Fleet, oracles: Sequence[Oracle], tenant: Tenant, choice: Nic | NicKind | None = None
) -> Iterator[Verdict]:
    """The verdict on every class of NICs in use and in service, then on a new NIC of each kind."""
    classes: dict[tuple[int, CoLocation], list[Nic]] = defaultdict(list)
    for nic in fleet.nics.values():
        if nic.id not in fleet.out_of_service:
            classes[nic.kind.index, nic.co_location].append(nic)
    _ask_at_once(classes, fleet.kinds, oracles, tenant)
    for (index, _), nics in classes.items():
        yield from _of_co_location(nics, oracles[index], tenant, choice)
    free = fleet.available()
    for kind in fleet.kinds:
        verdict = _alone(kind, oracles[kind.index], tenant, choice is kind)
        yield verdict if kind in free or not verdict.fits else Verdict(kind, (), kind.cores, verdict.seats, USED_UP)


def _ask_at_once(
    classes: Iterable[tuple[int, CoLocation]], kinds: Sequence[NicKind], oracles: Sequence[Oracle], tenant: Tenant
) -> None:
    """One batch per kind: predictors answer a thousand companies for the price of one."""
    for kind, oracle in zip(kinds, oracles, strict=True):
        co_locations = [co_location for index, co_location in classes if index == kind.index]
        if kind.hosts(tenant.workload):
            free = kind.cores - kind.cores_of[tenant.workload.nf]
            roomy = [co_location for co_location in co_locations if kind.cores_taken(co_location) <= free]
            co_locations += [co_location_of((*co_location, tenant.workload)) for co_location in roomy]
        oracle.throughput(co_locations)


def _of_co_location(nics: Sequence[Nic], oracle: Oracle, tenant: Tenant, choice: object) -> Iterator[Verdict]:
    """NICs with one company, apart by who would break."""
    kind, co_location = nics[0].kind, nics[0].co_location
    free = kind.cores - kind.cores_taken(co_location)
    ids = tuple(nic.id for nic in nics)
    cause = NOT_HOSTED if not kind.hosts(tenant.workload) else ""
    if not cause and kind.cores_of[tenant.workload.nf] > free:
        cause = CORES
    if cause:
        seats = _seats(oracle, [one for nic in nics for one in nic.tenants], co_location)
        yield Verdict(kind, ids, free, seats, cause)
        return
    joined = co_location_of((*co_location, tenant.workload))
    alike: dict[Workload | None, list[Nic]] = defaultdict(list)
    for nic in nics:
        alike[_worst(_seats(oracle, [*nic.tenants, tenant], joined))].append(nic)
    for breaks, those in alike.items():
        seats = _seats(oracle, [*(one for nic in those for one in nic.tenants), tenant], joined)
        cause = "" if breaks is None else oracle.bottleneck(joined, breaks)
        yield Verdict(kind, tuple(nic.id for nic in those), free, seats, cause, breaks, choice in those)


def _alone(kind: NicKind, oracle: Oracle, tenant: Tenant, chosen: bool) -> Verdict:
    """The verdict on a new NIC of the kind."""
    if not kind.hosts(tenant.workload):
        return Verdict(kind, (), kind.cores, (), NOT_HOSTED)
    seats = _seats(oracle, [tenant], (tenant.workload,))
    breaks = _worst(seats)
    cause = "" if breaks is None else oracle.bottleneck((tenant.workload,), breaks)
    return Verdict(kind, (), kind.cores, seats, cause, breaks, chosen)


def _seats(oracle: Oracle, tenants: Sequence[Tenant], co_location: Sequence[Workload]) -> tuple[Slot, ...]:
    """A seat per member of the company, each with the strictest SLA that these tenants have for its workload."""
    expected = oracle.by_workload(co_location_of(co_location))
    strictest: dict[Workload, float] = {}
    for tenant in tenants:
        required = tenant.sla.required_kpps(oracle.solo(tenant.workload))
        strictest[tenant.workload] = max(required, strictest.get(tenant.workload, 0.0))
    return tuple(Slot(one, expected[one], oracle.solo(one), strictest[one]) for one in co_location)


def _worst(seats: Sequence[Slot]) -> Workload | None:
    """The workload furthest below its SLA, None where all are kept."""
    broken = [seat for seat in seats if not seat.kept]
    return min(broken, key=lambda seat: seat.kpps / seat.required_kpps).workload if broken else None
