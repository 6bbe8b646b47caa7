"""Plans that compile: limits are those of the compiler itself, which is asked, and no second list of them.

Chains whose NFs have parameters are meant to be compiled; others are about costs alone, and any plan for them will do.
An NF is kept from devices for which the library has no program of it, or one that does not fit alone. NFs that fit a
device one by one may not fit it together: where a plan does not compile, one of those NFs has to leave the device, and
the best plan among all such choices is found by branch and bound over solutions of the whole program. NFs with more
copies than they can have get fewer cores, or one.
"""

from __future__ import annotations

import heapq
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

from placer.rack.chain import Chain, ChainNf
from placer.rack.compiler.compile import compile_rack
from placer.rack.compiler.ebpf.functions import NIC_FUNCTIONS
from placer.rack.compiler.ebpf.limits import CLANG, is_within
from placer.rack.compiler.ebpf.program import NicEdge, NicEntry, NicExit, NicProgram, NicSide, NicStep
from placer.rack.compiler.library.nf_kind import NF_KINDS
from placer.rack.compiler.openflow.rules import OPENFLOW_NFS
from placer.rack.compiler.own_data import OwnDataReader, is_to_compile
from placer.rack.compiler.routing import Label
from placer.rack.compiler.server.chain_file import MOST_CORES
from placer.rack.files.plan_file import PlanFile, SubgroupCores
from placer.rack.files.sources import RecordedSource, SourceFolder
from placer.rack.plan import RackPlan, Status, core_numbers, name_place, refine_rates
from placer.rack.rack import SWITCH_NAME, Rack, Server, SwitchKind
from placer.rack.replanning.moves import PlacedNf
from profiles import Fault, InputError

FEW_SERVERS = 2
"""Up to which NFs are kept from single SmartNICs; on more, servers stay equal, and NFs are kept from all of them."""
EQUAL_MARGINALS = 1e-9  # relative

Solve = Callable[[Sequence[Chain]], RackPlan]
Sources = Mapping[str, RecordedSource]
NO_SOURCES: Sources = {}


@dataclass(frozen=True)
class LimitedPlan:
    """A plan that compiles, as far as that is known.

    `solved`: the plan as `solve` returned it. `chains`: those that it was asked for. `refusal`: what the compiler says
    against it, where no time was left to find another one.
    """

    plan: RackPlan
    solved: RackPlan
    chains: Sequence[Chain]
    refusal: InputError | None = None


def is_unchecked(limited: LimitedPlan) -> bool:
    """Whether NFs are on SmartNICs whose limits nothing checked, as clang is not installed."""
    if shutil.which(CLANG) or not is_to_compile(limited.chains):
        return False
    cards = {server.smartnic.name for server in limited.plan.rack.servers if server.smartnic}
    return any(chain.site_name(at) in cards for chain in limited.plan.chains for at in range(len(chain.chain.nfs)))


def cap_cores(rack: Rack) -> Rack:
    """The rack with as many cores of servers as a compiled server uses at most."""
    return replace(rack, servers=tuple(map(_cap_server, rack.servers)))


def _cap_server(server: Server) -> Server:
    if not server.sockets:
        return replace(server, cores=min(server.cores, server.reserved_cores + MOST_CORES))
    sockets, left = [], MOST_CORES
    for socket in server.sockets:
        sockets.append(replace(socket, reserved_cores=max(socket.reserved_cores, socket.cores - left)))
        left -= sockets[-1].usable_cores
    return replace(server, sockets=tuple(sockets), reserved_cores=sum(socket.reserved_cores for socket in sockets))


def plan_within_limits(
    solve: Solve,
    chains: Sequence[Chain],
    rack: Rack,
    *,
    sources: Sources = NO_SOURCES,
    time_limit: float = float("inf"),
    cuts_copies: bool = True,
) -> LimitedPlan:
    """The best plan of `solve` that compiles, or any where chains are not to be compiled.

    `solve`: places chains on the rack. `sources`: the files that chains name. `time_limit`: seconds, after which no
    further plan is tried. `cuts_copies`: whether a plan with copies taken away counts, too, which `solve` has not seen:
    not where it predicts what it returns. Raises InputError when an NF can run on no device, or has parameters that its
    kind does not take.
    """
    if not is_to_compile(chains):
        plan = solve(chains)
        return LimitedPlan(plan, plan, chains)
    until = time.monotonic() + time_limit
    return _Search(solve, rack, sources, until, cuts_copies).run(keep_from_devices(chains, rack, sources))


@dataclass(order=True)
class _Node:
    negative_bound: float
    number: int
    plan: RackPlan = field(compare=False)
    chains: Sequence[Chain] = field(compare=False)


class _Search:
    def __init__(self, solve: Solve, rack: Rack, sources: Sources, until: float, cuts_copies: bool) -> None:
        self.solve, self.rack, self.sources, self.until = solve, rack, sources, until
        self.cuts_copies = cuts_copies
        self.numbers = count()
        self.waiting: list[_Node] = []

    def run(self, chains: Sequence[Chain]) -> LimitedPlan:
        first = self.solve(chains)
        self._add(first, chains)
        exact, refusal = True, None
        while self.waiting:
            node = heapq.heappop(self.waiting)
            refused = refusal_of(node.plan, node.chains, self.sources)
            refusal = refused and refused[1]
            if refused is None or not refused[0] or time.monotonic() > self.until:
                return self._found(node, first, refusal, exact)
            devices, _ = refused
            exact = exact and len(self.rack.servers) <= FEW_SERVERS and not devices.isdisjoint(self._smartnics())
            over = list(_too_often_copied(node.plan))
            exact = exact and not over
            if over and self.cuts_copies and (capped := _with_fewer_copies(node.plan)):
                self._add(capped, node.chains)
            for fewer in self._on_fewer_cores(node, over) if over else self._without_one(node, devices):
                plan = self.solve(fewer)
                exact = exact and (bool(plan.chains) or plan.status is Status.INFEASIBLE)  # else nobody knows
                self._add(plan, fewer)
        if refusal is None:
            return LimitedPlan(first, first, chains)
        note = f"no plan was found that compiles; of the last one, {refusal}"
        return LimitedPlan(replace(first, status=Status.UNKNOWN, chains=(), notes=(note,)), first, chains)

    def _found(self, node: _Node, first: RackPlan, refusal: InputError | None, exact: bool) -> LimitedPlan:
        """The plan of a node; those that wait have no larger bound."""
        bounds = [node.plan.bound_mbps, *(-waiting.negative_bound for waiting in self.waiting)]
        bound = None if first.bound_mbps is None else first.bound_mbps
        if exact and bound is not None:
            bound = min(bound, max(known for known in bounds if known is not None))
        return LimitedPlan(_with_bound(node.plan, bound), node.plan, node.chains, refusal)

    def _add(self, plan: RackPlan, chains: Sequence[Chain]) -> None:
        if plan.chains:
            bound = plan.marginal_mbps if plan.bound_mbps is None else plan.bound_mbps
            heapq.heappush(self.waiting, _Node(-bound, next(self.numbers), plan, chains))

    def _smartnics(self) -> set[str]:
        return {device.name for device in self.rack.devices if device.is_smartnic}

    def _on_fewer_cores(self, node: _Node, over: Sequence[tuple[int, int]]) -> Iterator[Sequence[Chain]]:
        """The chains with these NFs on one core each, and with one of them that is kept from its device."""
        fewer = list(node.chains)
        for number, at in over:
            fewer[number] = _with_nf(fewer[number], at, replace(fewer[number].nfs[at], most_copies=1))
            nf, device = node.chains[number].nfs[at], node.plan.chains[number].site_name(at)
            moved = _with_nf(node.chains[number], at, replace(nf, not_on=nf.not_on | {device}))
            yield [*node.chains[:number], moved, *node.chains[number + 1 :]]
        yield fewer

    def _without_one(self, node: _Node, devices: frozenset[str]) -> Iterator[Sequence[Chain]]:
        """The chains with one NF more that is kept from a device, each of those there once."""
        kept = devices if len(self.rack.servers) <= FEW_SERVERS else devices | self._smartnics()
        tried: set[object] = set()
        for number, placed in enumerate(node.plan.chains):
            for at, nf in enumerate(node.chains[number].nfs):
                key = (nf.nf, tuple(sorted(nf.parameters.items())), repr(nf.data), number)
                if placed.site_name(at) not in devices or key in tried:
                    continue
                tried |= {key} if len(self.rack.servers) > FEW_SERVERS else set()
                chains = list(node.chains)
                chains[number] = _with_nf(chains[number], at, replace(nf, not_on=nf.not_on | kept))
                yield chains


def _with_nf(chain: Chain, at: int, nf: ChainNf) -> Chain:
    return replace(chain, nfs=(*chain.nfs[:at], nf, *chain.nfs[at + 1 :]))


def _with_fewer_copies(plan: RackPlan) -> RackPlan | None:
    """The plan with as many copies as there can be, at the rates that they carry; None where some t_min needs more."""
    placed = []
    for chain in plan.chains:
        cores = []
        for group, given in chain.subgroups:
            most = (chain.chain.nfs[at].most_copies for at in group.nfs)
            cores.append(min([given, *(copies for copies in most if copies is not None)]))
        placed.append(replace(chain, cores=tuple(cores)))
    carried = [chain.most_mbps for chain in placed]
    if any(rate < chain.chain.slo.t_min_mbps for rate, chain in zip(carried, placed, strict=True)):
        return None
    near = np.minimum([chain.rate_mbps for chain in placed], [float(rate) for rate in carried])
    rates = refine_rates([chain.layout for chain in placed], carried, near)
    chains = tuple(replace(chain, rate_mbps=rate) for chain, rate in zip(placed, rates, strict=True))
    return replace(plan, status=Status.FEASIBLE, chains=chains, bound_mbps=None)


def cut_copies(plan: RackPlan) -> RackPlan:
    """The plan with no more copies of an NF than there can be; as it is, where some t_min needs more."""
    return (any(_too_often_copied(plan)) and _with_fewer_copies(plan)) or plan


def refuse_copies(plan: RackPlan) -> str | None:
    """What `placer chain compile` will say of copies in a plan by costs alone, whose NFs have their defaults."""
    for placed in plan.chains:
        for group, cores in placed.subgroups:
            for nf in (placed.chain.nfs[at] for at in group.nfs):
                kind = None if nf.parameters or nf.data else NF_KINDS.get(nf.nf)
                most = kind.most_copies(kind.completed({}, nf.id)) if kind else None
                if most is not None and cores > most:
                    return f"{placed.chain.name}/{nf.id}: {cores} copies are more than this {nf.nf} can have, {most}"
    return None


def _too_often_copied(plan: RackPlan) -> Iterator[tuple[int, int]]:
    """The chains and NFs of which the plan has more copies than there can be."""
    for number, placed in enumerate(plan.chains):
        for group, cores in placed.subgroups:
            for at in group.nfs:
                most = placed.chain.nfs[at].most_copies
                if most is not None and cores > most:
                    yield number, at


def _with_bound(plan: RackPlan, bound: float | None) -> RackPlan:
    """The plan with a bound of all plans that compile."""
    if bound is None or plan.bound_mbps is None:
        return replace(plan, bound_mbps=bound, status=Status.FEASIBLE if plan.chains else plan.status)
    proven = bound <= plan.marginal_mbps + EQUAL_MARGINALS * max(abs(plan.marginal_mbps), 1.0)
    if proven or bound <= plan.bound_mbps:
        return replace(plan, bound_mbps=max(min(bound, plan.bound_mbps), plan.marginal_mbps))
    return replace(plan, bound_mbps=bound, status=Status.FEASIBLE)


def refusal_of(
    plan: RackPlan, chains: Sequence[Chain], sources: Sources = NO_SOURCES
) -> tuple[frozenset[str], InputError] | None:
    """What the compiler says against a plan, and the devices that it names; None where it compiles."""
    try:
        compiled = compile_rack(_plan_file(plan, chains, sources), "plan")
    except InputError as error:
        return _devices(plan, error), error
    for name, nic in sorted(compiled.nics.items()):
        if shutil.which(CLANG) and not is_within(nic):
            message = "the program does not fit the limits of the card"
            nfs = ", ".join(step.name for step in nic.steps)
            return frozenset({name}), InputError.of(name, message, hint=f"place one of these elsewhere: {nfs}")
    return None


def _devices(plan: RackPlan, error: InputError) -> frozenset[str]:
    """The devices of faults: these name devices, or NFs."""
    places = {
        f"{placed.chain.name}/{nf.id}": placed.site_name(at)
        for placed in plan.chains
        for at, nf in enumerate(placed.chain.nfs)
    }
    names = {SWITCH_NAME, *(device.name for device in plan.rack.devices)}
    found = {places.get(fault.file, fault.file) for fault in error.faults} & names
    return frozenset(found)


def _plan_file(plan: RackPlan, chains: Sequence[Chain], sources: Sources) -> PlanFile:
    """The plan as its file would be read."""
    places = {
        placed.chain.name: {nf.id: PlacedNf(nf.nf, placed.site_name(at)) for at, nf in enumerate(placed.chain.nfs)}
        for placed in plan.chains
    }
    subgroups: dict[str, list[SubgroupCores]] = {}
    for placed, numbers in zip(plan.chains, core_numbers(plan.chains), strict=True):
        groups = subgroups[placed.chain.name] = []
        for (group, cores), on_cores in zip(placed.subgroups, numbers, strict=True):
            where, nfs = name_place(plan.rack, group.device, on_cores), (placed.chain.nfs[at].id for at in group.nfs)
            named = tuple(where.get("on_cores", ())), where.get("nic")
            groups.append(SubgroupCores(plan.rack.devices[group.device].name, tuple(nfs), cores, *named))
    return PlanFile(chains, plan.rack, places, subgroups, sources=sources)


# Each NF by itself.


def keep_from_devices(chains: Sequence[Chain], rack: Rack, sources: Sources = NO_SOURCES) -> tuple[Chain, ...]:
    """The chains, their NFs kept from devices for which there is no program of them.

    Raises InputError when an NF can run on no device of the rack, or has parameters that its kind does not take.
    """
    faults: list[Fault] = []
    reader = OwnDataReader(SourceFolder(Path(), sources))
    found = tuple(
        replace(chain, nfs=tuple(_kept(chain, at, rack, reader, faults) for at in range(len(chain.nfs))))
        for chain in chains
    )
    if faults:
        raise InputError(faults)
    return found


def _kept(chain: Chain, at: int, rack: Rack, reader: OwnDataReader, faults: list[Fault]) -> ChainNf:
    nf, name = chain.nfs[at], f"{chain.name}/{chain.nfs[at].id}"
    try:
        own = reader.read(nf, lambda within, message, hint: Fault(name, None, within, message, hint))
        parameters = NF_KINDS[nf.nf].completed(nf.parameters, name, *([own] if own else []))
        not_on = frozenset(_without_program(nf, parameters, own, rack))
    except InputError as error:
        faults += error.faults
        return nf
    kept = replace(nf, not_on=nf.not_on | not_on, most_copies=NF_KINDS[nf.nf].most_copies(parameters))
    there = _with_nf(chain, at, kept)
    if not rack.has_table(kept) and not any(rack.cost_on(there, at, device) for device in rack.devices):
        shown = ", ".join(f"{key}={value:g}" for key, value in nf.parameters.items())
        message = f"{nf.nf}({shown}) can run on no device of this rack"
        faults.append(Fault(name, None, None, message, "fewer entries, or a cost for it on another device"))
    return kept


def _without_program(nf: ChainNf, parameters: Mapping[str, float], own: Mapping[str, Any], rack: Rack) -> Iterator[str]:
    """The devices that the rack lets run an NF, and the library does not."""
    kind = NF_KINDS[nf.nf]
    platforms = kind.runs_on(parameters)
    costs = rack.costs[nf.nf]
    openflow = rack.switch.kind is SwitchKind.OPENFLOW
    if (SwitchKind.OPENFLOW.value if openflow else "switch") not in platforms or (
        openflow and nf.nf not in OPENFLOW_NFS
    ):
        yield SWITCH_NAME
    for device in rack.devices:
        if not device.is_smartnic and "server" not in platforms:
            yield device.name
    smartnics = [device.name for device in rack.devices if device.is_smartnic]
    if (
        costs.smartnic is not None
        and smartnics
        and (
            "smartnic" not in platforms
            or not (
                _fits(nf.nf, parameters, kind.data_of(parameters, own))
                if own
                else _fits_alone(nf.nf, tuple(sorted(parameters.items())))
            )
        )
    ):
        yield from smartnics


@cache
def _fits_alone(kind: str, parameters: tuple[tuple[str, float], ...]) -> bool:
    """Whether a SmartNIC takes a program with this NF alone, with generated data."""
    given: Mapping[str, float] = dict(parameters)
    return _fits(kind, given, NF_KINDS[kind].data(given))


def _fits(kind: str, parameters: Mapping[str, float], data: Any) -> bool:
    function = NIC_FUNCTIONS[kind](parameters, data)
    if next(function.faults(), None):
        return False
    step = NicStep("alone", function, (NicEdge(NicExit(NicSide.SWITCH)),))
    return shutil.which(CLANG) is None or is_within(NicProgram("alone", (step,), (NicEntry(Label(1, 255), 0),)))
