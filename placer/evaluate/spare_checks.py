"""Spare NICs of a plan, and their checker, which knows plans and no search.

Where the tenants of failed NICs are said to go is replayed, and held to the constraints of every plan."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import fsum

from placer.evaluate import checks
from placer.model.nic_kind import NicKind
from placer.model.oracle import Oracle
from placer.model.plan import Placement, Plan


@dataclass(frozen=True)
class Failures:
    """What may fail at one time: any so many NICs, and any so many domains with all their NICs."""

    nics: int = 0
    domains: int = 0

    def __bool__(self) -> bool:
        return self.nics > 0 or self.domains > 0

    def __str__(self) -> str:
        counts = [(self.nics, "NIC"), (self.domains, "domain")]
        return " or ".join(f"any {'' if of == 1 else f'{of:,} '}{noun}{'s' * (of > 1)}" for of, noun in counts if of)


@dataclass(frozen=True)
class Spare:
    """The NICs that a plan needs beside its own, empty, so that the tenants of what fails fit on the others.

    `failures`: what may fail. `added`: the kind of each such NIC; None where the fleet has not enough of them.
    `without`: then, NICs for whose tenants no place was found when they fail together; empty where the failures of a
    limited fleet are too many to try each."""

    failures: Failures
    added: tuple[NicKind, ...] | None
    without: tuple[str, ...] = ()

    @property
    def cost(self) -> float:
        """What these NICs cost."""
        return fsum(kind.cost for kind in self.added or ())


@dataclass(frozen=True)
class Takeover:
    """A failure at a time (s), and where each tenant of the failed NICs goes: the name and kind of its NIC. NICs that
    were empty have names that no NIC of the plan has. `empty`: how many empty NICs of each kind fail, too, by its
    index. `domains`: the domains that fail with all their NICs."""

    time: float
    failed: tuple[str, ...]
    nic_of: Mapping[str, tuple[str, NicKind]]
    empty: Mapping[int, int] = field(default_factory=dict)
    domains: Collection[str] = ()


def check_spare(
    plan: Plan,
    kinds: Sequence[NicKind],
    spare: Spare,
    takeovers: Sequence[Takeover],
    oracles: Sequence[Oracle] | None = None,
) -> None:
    """Hold a plan with its spare NICs to what is promised. Raises `InvalidPlan` with every fault. `oracles`: per kind,
    the throughputs that meet every SLA in the plan; None where the plan is not made so."""
    faults = list(spare_faults(plan, kinds, spare, takeovers, oracles))
    if faults:
        raise checks.InvalidPlan(f"strategy {plan.strategy} has no place for what fails:\n" + "\n".join(faults))


def spare_faults(
    plan: Plan,
    kinds: Sequence[NicKind],
    spare: Spare,
    takeovers: Sequence[Takeover],
    oracles: Sequence[Oracle] | None = None,
) -> Iterator[str]:
    """A sentence for each takeover that breaks a constraint, and for each NIC that may fail without one.

    A NIC needs none while an empty one of its kind is left, to which its tenants move together; and those of NICs that
    are alike are the same."""
    there = Counter({kind.index: checks.peak_nics(plan, kind) for kind in kinds})
    there.update(kind.index for kind in spare.added or ())
    at: defaultdict[float, list[Takeover]] = defaultdict(list)
    for takeover in takeovers:
        at[takeover.time].append(takeover)
    for time, present, in_use in _before_departures(plan):
        replayed = at.pop(time, [])
        for takeover in replayed:
            yield from _takeover_faults(plan, present, there, in_use, takeover, oracles)
        alone = [takeover.failed[0] for takeover in replayed if len(takeover.failed) == 1]
        single = {_likeness(present[nic]) for nic in alone if nic in present}
        full = spare.failures.nics and any(0 < there[index] <= in_use[index] for index in there)
        for nic, placements in present.items() if full else ():
            kind = placements[0].kind
            if kind and in_use[kind.index] >= there[kind.index] and _likeness(placements) not in single:
                yield f"{nic}: no place is known for its tenants when it fails at {time:g} s"
    for time in at:
        yield f"at {time:g} s no instances are about to leave"


def _before_departures(plan: Plan) -> Iterator[tuple[float, dict[str, list[Placement]], Counter[int]]]:
    """What is on each NIC, and how many NICs of each kind are in use, at the last arrival before each departure and
    before the end: then most is present. All change from one moment to the next."""
    present: dict[str, list[Placement]] = {}
    in_use: Counter[int] = Counter()
    begins: defaultdict[float, list[Placement]] = defaultdict(list)
    ends: defaultdict[float, list[Placement]] = defaultdict(list)
    for placement in plan.placements:
        begins[placement.arrival.begins].append(placement)
        if placement.arrival.departure is not None:
            ends[placement.arrival.departure].append(placement)
    times = sorted({*begins, *ends})
    for time, following in zip(times, [*times[1:], None], strict=True):
        for placement, joins in [*((p, False) for p in ends.get(time, ())), *((p, True) for p in begins.get(time, ()))]:
            nic, kind = placement.nic, placement.kind
            if nic is None or kind is None:
                continue
            before = present.get(nic, [])
            present[nic] = [*before, placement] if joins else [p for p in before if p is not placement]
            in_use[kind.index] += bool(present[nic]) - bool(before)
            if not present[nic]:
                del present[nic]
        if present and (following is None or following in ends):
            yield time, present, in_use


def _likeness(placements: Sequence[Placement]) -> object:
    """What NICs have in common that are alike: their kind, and what all tenants demand."""
    kind = placements[0].kind
    arrivals = [placement.arrival for placement in placements]
    demands = Counter((arrival.workload, arrival.sla, arrival.day, arrival.constraints) for arrival in arrivals)
    return kind, frozenset(demands.items())


def _takeover_faults(
    plan: Plan,
    present: Mapping[str, Sequence[Placement]],
    there: Mapping[int, int],
    in_use: Mapping[int, int],
    takeover: Takeover,
    oracles: Sequence[Oracle] | None,
) -> Iterator[str]:
    when = f"when {', '.join(takeover.failed)} fail at {takeover.time:g} s"
    in_domains = {nic for nic, on in present.items() if on[0].kind and on[0].kind.domain in takeover.domains}
    if not in_domains <= set(takeover.failed) <= set(present):
        yield f"{', '.join(sorted(in_domains))}: are in use in the domains that fail, {when}"
        return
    lost = {placement.arrival.id: placement for nic in takeover.failed for placement in present[nic]}
    joined: defaultdict[str, list[Placement]] = defaultdict(list)
    for identity in sorted(set(lost) ^ set(takeover.nic_of)):
        yield f"{identity}: {'has no NIC' if identity in lost else 'moves'} {when}"
    for identity, (nic, kind) in takeover.nic_of.items():
        if nic in takeover.failed or (kind.domain and kind.domain in takeover.domains):
            yield f"{identity}: goes to {nic}, which failed, {when}"
        if identity in lost:
            joined[nic].append(replace(lost[identity], nic=nic, kind=kind))
    used = Counter(in_use)
    used.update(moved[0].kind.index for nic, moved in joined.items() if nic not in present and moved[0].kind)
    used.update(takeover.empty)
    for index in there:
        if used[index] > there[index]:
            yield f"{used[index]} NICs of kind {index} are in use or failed, there are {there[index]}, {when}"
    for fault in _sharing_faults(plan, present, takeover.failed, lost, joined, oracles):
        yield f"{fault} {when}"


def _sharing_faults(
    plan: Plan,
    present: Mapping[str, Sequence[Placement]],
    failed: Collection[str],
    lost: Mapping[str, Placement],
    joined: Mapping[str, Sequence[Placement]],
    oracles: Sequence[Oracle] | None,
) -> Iterator[str]:
    """What is wrong on NICs with tenants of failed ones, and in groups of instances."""
    after = {**present, **{nic: [*present.get(nic, ()), *moved] for nic, moved in joined.items()}}
    # tenants who go together to an empty NIC of the same kind are as they were, whatever they violated there
    whole = {nic for nic, moved in joined.items() if nic not in present and _are_together(moved, present, lost)}
    moved = {placement.arrival.id for nic in set(joined) - whole for placement in joined[nic]}
    changed = [_as_present(p, moved) for nic in joined if nic not in whole for p in after[nic]]
    alone = replace(plan, placements=tuple(changed))
    for faults in (checks.one_kind_per_nic(alone), checks.cores_kept(alone), checks.line_rate_kept(alone)):
        yield from faults
    if oracles is not None:
        yield from checks.slas_kept(alone, oracles)
    if any(p.arrival.constraints.values or (p.kind and p.kind.pool) for on in after.values() for p in on):
        all_now = (_as_present(p, moved) for nic, on in after.items() if nic not in failed for p in on)
        yield from checks.constraints_kept(replace(plan, placements=tuple(all_now)))


def _are_together(
    moved: Sequence[Placement], present: Mapping[str, Sequence[Placement]], lost: Mapping[str, Placement]
) -> bool:
    before = [lost[placement.arrival.id] for placement in moved]
    return (
        len({placement.nic for placement in before}) == 1
        and len(before) == len(present[str(before[0].nic)])
        and before[0].kind is moved[0].kind
    )


def _as_present(placement: Placement, moved: Collection[str]) -> Placement:
    """The placement of an instance that is there with all others; where one that already ran stays, nobody decided."""
    arrival = placement.arrival
    ran_on = None if arrival.id in moved else arrival.nic
    return replace(placement, arrival=replace(arrival, time=0.0, departure=None, nic=ran_on))
