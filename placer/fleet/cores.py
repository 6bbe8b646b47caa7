"""How many cores an instance gets: those that are given for it, else the first number with which every SLA is met.

Without a rate an instance has the default number of its NF. Its number changes only where the instance itself changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from placer.model.feasibility import Misfit, fits, keeps_slas
from placer.model.nic import Nic, Tenant
from placer.model.nic_kind import NicKind, choices_on
from placer.model.oracle import Oracle, PredictorOracle
from placer.model.sla import Sla
from placer.policy.cores import FIRST_ROOM, UsualNeighbours, most_carried, order_by_room
from profiles import Workload

LEAST_HEADROOM = 0.1
"""Headroom above its SLA that an instance has at least where its cores become fewer, so that it does not need them back
soon."""


Expects = Callable[[Nic, Tenant, Tenant, float], bool | None]

KEPT_WORKLOADS = 10_000  # workloads whose choices are kept


class CoresChoices:
    """Which numbers of cores instances may be given. Those of a workload are kept while oracles answer the same.

    `kinds`, `oracles`: of the fleet. `neighbours`: what instances usually share a NIC with. `knows_loads`: whether
    rates and numbers of cores can be predicted.
    """

    def __init__(self, kinds: Sequence[NicKind], oracles: Sequence[Oracle], neighbours: UsualNeighbours) -> None:
        self._kinds, self._oracles, self._neighbours = kinds, oracles, neighbours
        self._distinct = {id(oracle): oracle for oracle in oracles}.values()
        predictors = [oracle.predictor for oracle in oracles if isinstance(oracle, PredictorOracle)]
        self.knows_loads = all(predictor.supports_loads for predictor in predictors)
        self._revisions: list[int] = []
        self._known: dict[tuple[Workload, Sla], list[Workload]] = {}
        self._limits: dict[object, list[tuple[int, float, float]]] = {}

    def of(self, tenant: Tenant) -> Sequence[Tenant]:
        """The instance on each number of cores that it may be given, in the order of `order_choices`.

        As it is where that is fixed. Numbers with which it would violate its SLA even alone are left out, unless
        nothing else is left.
        """
        workload = tenant.workload
        if workload.cores or workload.is_saturated:
            return [tenant]
        revisions = [self._neighbours.renewals, *(oracle.revision for oracle in self._distinct)]
        if revisions != self._revisions or len(self._known) >= KEPT_WORKLOADS:
            self._known.clear()
            self._limits.clear()
            self._revisions = revisions
        chosen = self._known.get((workload, tenant.sla))
        if chosen is None:
            chosen = self._known[workload, tenant.sla] = self._choose(tenant)
        return OnCores(tenant, chosen) if chosen else [tenant]

    def _choose(self, tenant: Tenant) -> list[Workload]:
        """As `of`, the workloads; none where the number is fixed."""
        workload = tenant.workload
        limits = self._limits_of(workload)
        if len(limits) == 1:
            return []
        ordered = order_by_room(limits, [carried < FIRST_ROOM * workload.rate_kpps for _, carried, _ in limits])
        met = [cores for cores, _, alone in ordered if tenant.is_met(alone, alone)]
        return [workload.on_cores(cores) for cores in met or [cores for cores, _, _ in ordered]]

    def _limits_of(self, workload: Workload) -> list[tuple[int, float, float]]:
        """Each number of cores, ascending, with what the workload carries on it beside usual neighbours and alone, the
        most of all kinds (kpps). It is the same at all rates that every port carries."""
        ports = not workload.promises_latency and all(
            not kind.paced and kind.gbps_of(workload) <= kind.line_rate_gbps for kind in self._kinds
        )
        key = (workload.nf, workload.traffic) if ports else workload
        limits = self._limits.get(key)
        if limits is None:
            choices = choices_on(self._kinds, workload)
            carried = most_carried(self._kinds, self._oracles, choices, self._neighbours)
            alone = [max(self._alone(choice.saturated if ports else choice), default=0.0) for choice in choices]
            limits = self._limits[key] = [*zip((choice.cores for choice in choices), carried, alone, strict=True)]
        return limits

    def _alone(self, workload: Workload) -> Iterator[float]:
        """The throughputs alone (kpps) on the kinds that run the workload."""
        hosting = (oracle for kind, oracle in zip(self._kinds, self._oracles, strict=True) if kind.hosts(workload))
        return (oracle.solo(workload) for oracle in hosting)


class OnCores(Sequence[Tenant]):
    """An instance with its workload on several numbers of cores; most decisions need only the first."""

    def __init__(self, tenant: Tenant, workloads: Sequence[Workload]) -> None:
        self._tenant, self.workloads = tenant, workloads
        self._made: dict[int, Tenant] = {}

    def __len__(self) -> int:
        return len(self.workloads)

    def __getitem__(self, at: Any) -> Any:
        made = self._made.get(at)
        if made is None:
            made = self._made[at] = self._tenant.on_cores(self.workloads[at])
        return made


def stay(
    home: Nic, oracle: Oracle, before: Tenant, after: Tenant, choices: Sequence[Tenant], expects: Expects
) -> Tenant | None:
    """A changed instance with the cores with which all SLAs are met on its NIC; None where there are none.

    They are as many as before if possible, and fewer where its rate has fallen and `LEAST_HEADROOM` is left. `choices`:
    as of `CoresChoices`. `expects`: as of a `Selector`.
    """
    kind, held = home.kind, home.kind.cores_for(before.workload)
    workloads = choices.workloads if isinstance(choices, OnCores) else [choice.workload for choice in choices]
    by_cores: dict[int, int] = {}
    for at, workload in enumerate(workloads):
        by_cores.setdefault(kind.cores_for(workload), at)

    def keeps(at: int, headroom: float = 0.0) -> bool:
        if not kind.hosts(workloads[at]):
            return False
        expected = expects(home, before, choices[at], headroom)
        if expected is not None:
            return expected
        others = [tenant for tenant in home.tenants if tenant.id != after.id]
        return keeps_slas(kind, oracle, [*others, choices[at]], (choices[at], headroom))

    as_before = by_cores.pop(held, None)
    if as_before is None or not keeps(as_before):
        return next((choices[at] for at in by_cores.values() if keeps(at)), None)
    if after.workload.rate_kpps < before.workload.rate_kpps:
        for cores, at in by_cores.items():
            if cores < held and keeps(at, LEAST_HEADROOM):
                return choices[at]
    return choices[as_before]


def stay_at_risk(home: Nic, before: Tenant, after: Tenant, choices: Sequence[Tenant]) -> Tenant | None:
    """A changed instance, taken off its NIC, as it stays there whatever the SLAs; None where it does not fit.

    It has the cores that it had, or else as many as fit; on a GPU the first of `choices`, as of `CoresChoices`.
    """
    if home.kind.paced:
        return next((choice for choice in choices if home.kind.hosts(choice.workload)), None)
    present, held = [tenant.workload for tenant in home.tenants], home.kind.cores_for(before.workload)
    chosen = not after.workload.cores and not after.workload.is_saturated
    fitting = [choice for choice in home.kind.choices(after.workload) if fits(home.kind, [*present, choice])]
    made = [after.on_cores(choice) if chosen else replace(after, workload=choice) for choice in fitting]
    cores = {home.kind.cores_for(choice.workload): choice for choice in made}
    return cores.get(held) or (cores[max(cores)] if cores else None)


def shown_cores(tenant: Tenant, kind: NicKind) -> int | None:
    """The cores of a tenant of a NIC, where it has a rate or they were given; None of any other."""
    workload = tenant.workload
    return None if workload.is_saturated and not workload.cores else kind.cores_for(workload)


def least_lasting(reasons: Iterable[Misfit | None]) -> Misfit:
    """The first of several reasons that may pass; the first of all where none may."""
    known = [reason for reason in reasons if reason is not None]
    return next((reason for reason in known if not reason.lasts), known[0])


def shortage(kind: NicKind, workloads: Sequence[Workload]) -> str:
    """What a NIC has too little of for these workloads: `cores` or `line rate`."""
    few = kind.cores_taken(workloads) > kind.cores or kind.has_port_for(workloads)
    return "cores" if few else "line rate"
