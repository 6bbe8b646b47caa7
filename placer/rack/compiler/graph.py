"""The NFs of all chains of a plan as one graph: what each is, where it runs, and which packets go where behind it."""

import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from fractions import Fraction
from functools import cached_property, partial
from hashlib import sha256
from pathlib import Path
from typing import Any

from placer.rack.chain import Chain
from placer.rack.compiler.branch_counts import WAY_SIGN, CountedWay, open_ways
from placer.rack.compiler.library.match import name_expressions
from placer.rack.compiler.library.nf_kind import NF_KINDS, NfKind
from placer.rack.compiler.own_data import FILTERS, OwnDataReader
from placer.rack.compiler.traffic.entries import ExpressionError, parse
from placer.rack.compiler.traffic.expression import Everything, Expression
from placer.rack.files.plan_file import PlanFile, SubgroupCores
from placer.rack.files.sources import SourceFile, SourceFolder
from placer.rack.rack import Rack
from profiles import Fault, InputError
from profiles.faults import collect_faults, suggestion

SWITCH_PLACE = "switch"
WORLD_PORT = "world"  # the port of the switch that is no link
DEVICE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")  # of a folder, of files, and of words in a Makefile
LONGEST_IDENTIFIER = 44  # characters of an identifier


class DeviceKind(StrEnum):
    """What runs NFs."""

    SWITCH = "switch"
    SERVER = "server"
    SMARTNIC = "smartnic"


@dataclass(frozen=True)
class Place:
    """A device of the rack."""

    kind: DeviceKind
    name: str
    server: str = ""  # the server that it is, or whose SmartNIC it is; empty for the switch


@dataclass(frozen=True)
class Way:
    """One way out of an NF."""

    target: int | None  # the number of the next NF; None: out of the rack
    match: Expression | None = None  # packets that take it before all others; None: it takes its share of the rest
    share: Fraction = Fraction(1)
    text: str = ""  # the match as it was written


@dataclass(frozen=True)
class RackNf:
    """One NF of a chain."""

    number: int
    chain: str
    id: str
    kind: str
    parameters: Mapping[str, float]
    place: Place  # where it runs
    ways: tuple[Way, ...]  # where packets go behind it, in the order in which matches are tried; at least one
    own: Mapping[str, Any] = field(default_factory=dict)  # own data, by parameter

    @property
    def name(self) -> str:
        return f"{self.chain}/{self.id}"

    @property
    def identifier(self) -> str:
        """The name in generated programs; no two NFs of a graph have the same."""
        return identifier(self.name)

    @property
    def branches(self) -> bool:
        """Whether packets are sorted behind it."""
        return len(self.ways) > 1 or self.ways[0].match is not None

    @property
    def split_salt(self) -> int:
        """Of the hash that splits flows behind it."""
        return zlib.crc32(self.name.encode())

    @property
    def targets(self) -> list[int]:
        return [way.target for way in self.ways if way.target is not None]


@dataclass(frozen=True)
class ChainEntry:
    """Where packets enter a chain."""

    chain: str
    aggregates: tuple[Expression, ...]  # a packet of one of them enters; at least one
    nf: int  # the number of its first NF
    t_max_mbps: Fraction


@dataclass(frozen=True)
class RackGraph:
    """All chains of a plan."""

    rack: Rack
    nfs: tuple[RackNf, ...]  # by number, each behind all from which packets reach it
    entries: tuple[ChainEntry, ...]  # in the order in which chains take packets
    cores: Mapping[str, Sequence[tuple[tuple[int, ...], SubgroupCores]]]  # by server, its subgroups, with their cores
    sources: Mapping[str, SourceFile] = field(default_factory=dict)  # files with own data, by their names in chains

    @cached_property
    def before(self) -> tuple[tuple[int, ...], ...]:
        """Per NF those from which packets reach it."""
        found: list[list[int]] = [[] for _ in self.nfs]
        for nf in self.nfs:
            for target in nf.targets:
                found[target].append(nf.number)
        return tuple(map(tuple, found))

    @cached_property
    def counters(self) -> Mapping[tuple[int, int], str]:
        """By NF and number of a way behind it, the name of its counter, where devices count the packets of the way."""
        places = [(nf.number, at) for nf in self.nfs for at, way in enumerate(nf.ways) if way.target is not None]
        ways = [(self.nfs[number], self.nfs[number].ways[at]) for number, at in places]
        named = [CountedWay(nf.name, self.nfs[way.target or 0].name, way.text) for nf, way in ways]
        return {places[at]: f"{named[at].nf}{WAY_SIGN}{places[at][1]}" for at in open_ways(named)}

    def of(self, place: Place) -> list[RackNf]:
        """The NFs on a device."""
        return [nf for nf in self.nfs if nf.place == place]

    @cached_property
    def places(self) -> tuple[Place, ...]:
        """All devices: the switch, then servers, each before its SmartNIC."""
        found = [Place(DeviceKind.SWITCH, SWITCH_PLACE)]
        for server in self.rack.servers:
            found.append(Place(DeviceKind.SERVER, server.name, server.name))
            if server.smartnic:
                found.append(Place(DeviceKind.SMARTNIC, server.smartnic.name, server.name))
        return tuple(found)


def identifier(name: str) -> str:
    """A name as an identifier of C, P4 and the switch; different names give different ones.

    A long one ends with a part of its hash: names of a pipeline have 63 characters at most, and some get longer yet.
    """
    found = re.sub(r"[^A-Za-z0-9]", lambda one: {"/": "__", "_": "_u"}.get(one[0], f"_x{ord(one[0]):x}_"), name)
    return (
        found
        if len(found) <= LONGEST_IDENTIFIER
        else f"{found[: LONGEST_IDENTIFIER - 14]}_h{sha256(name.encode()).hexdigest()[:12]}"
    )


def graph_of(plan: PlanFile, file: str) -> RackGraph:
    """The graph of a plan.

    Raises InputError when a chain is not placed, or its text says what no packet can be sorted by.
    """
    reader = OwnDataReader(SourceFolder(Path(), plan.sources))
    own: dict[tuple[str, str], Mapping[str, Any]] = {}
    faults = list(_faults(plan, file))
    chains = [_read_own_data(chain, reader, own, faults) for chain in plan.chains]
    faults += _wrong_expressions(chains, file)
    if faults:
        raise InputError(list(dict.fromkeys(faults)))
    nfs: list[RackNf] = []
    entries = []
    cores: dict[str, list[tuple[tuple[int, ...], SubgroupCores]]] = {}
    places = {name: place for place in _empty(plan.rack).places for name in [place.name]}
    for chain in chains:
        numbers = {at: len(nfs) + place for place, at in enumerate(chain.order)}
        for at in chain.order:
            id = chain.nfs[at].id
            place = places[plan.places[chain.name][id].on]
            nfs.append(_nf(chain, at, numbers, place, own.get((chain.name, id), {})))
        aggregates = tuple(map(parse, chain.aggregates)) or (Everything(),)
        entries.append(ChainEntry(chain.name, aggregates, numbers[chain.entry], chain.slo.t_max_mbps))
        by_id = {nf.id: numbers[at] for at, nf in enumerate(chain.nfs)}
        for group in plan.subgroups.get(chain.name, ()):
            cores.setdefault(group.on, []).append((tuple(sorted(by_id[id] for id in group.nfs)), group))
    return RackGraph(plan.rack, tuple(nfs), tuple(entries), cores, reader.folder.opened)


def _read_own_data(
    chain: Chain, reader: OwnDataReader, own: dict[tuple[str, str], Mapping[str, Any]], faults: list[Fault]
) -> Chain:
    """The chain with expressions in place of their names; own data of its NFs is added to `own`."""
    for nf in chain.nfs:
        if nf.data:
            with collect_faults(faults):
                own[chain.name, nf.id] = reader.read(nf, partial(_fault_of, f"{chain.name}/{nf.id}"))
    edges = []
    for edge in chain.edges:
        tail = chain.nfs[edge.tail]
        found = own.get((chain.name, tail.id), None if tail.data else {})
        if found is None:  # its own data is faulty: nothing is known of its expressions
            edges.append(replace(edge, match=""))
            continue
        refuse = partial(_refuse_branch, faults, f"{chain.name}/{tail.id}")
        edges.append(replace(edge, match=name_expressions(edge.match, found.get(FILTERS, ()), refuse)))
    return replace(chain, edges=tuple(edges))


def _fault_of(nf: str, within: str, message: str, hint: str | None) -> Fault:
    return Fault(nf, None, within, message, hint)


def _refuse_branch(faults: list[Fault], nf: str, message: str) -> None:
    faults.append(Fault(nf, None, None, message))


def _empty(rack: Rack) -> RackGraph:
    return RackGraph(rack, (), (), {})


def _nf(chain: Chain, at: int, numbers: Mapping[int, int], place: Place, own: Mapping[str, Any]) -> RackNf:
    nf = chain.nfs[at]
    ways = tuple(
        Way(numbers[edge.head], parse(edge.match) if edge.match else None, edge.share, edge.match)
        for edge in chain.edges_from(at)
    )
    return RackNf(numbers[at], chain.name, nf.id, nf.nf, nf.parameters, place, ways or (Way(None),), own)


def _faults(plan: PlanFile, file: str) -> Iterator[Fault]:
    """Names that cannot be those of folders, and chains without a place."""
    for place in _empty(plan.rack).places:
        if not DEVICE_NAME.fullmatch(place.name) or place.name == WORLD_PORT:
            letters = 'up to 64 letters of ASCII, digits, "_", "." and "-", a letter or a digit first'
            hint = f'{letters}, and not "{WORLD_PORT}"'
            yield Fault(file, None, place.kind.value, f"{place.name!r} cannot be the name of generated files", hint)
    for chain in plan.chains:
        if chain.name not in plan.places:
            hint = "a plan without it, or one of `placer chain place` that is feasible"
            yield Fault(file, None, f"chain {chain.name}", "it is not placed", hint)
        for group in plan.subgroups.get(chain.name, ()):
            if group.cores < 1:
                message = f"{' '.join(group.nfs)} takes turns on a core of {group.on}, and generated programs take none"
                yield Fault(file, None, f"chain {chain.name}", message, "a rack without shared_cores")


def _wrong_expressions(chains: Sequence[Chain], file: str) -> Iterator[Fault]:
    """Expressions that cannot be read."""
    for chain in chains:
        texts = [("aggregate", text) for text in chain.aggregates]
        for edge in chain.edges:
            tail, head = chain.nfs[edge.tail].id, chain.nfs[edge.head].id
            texts += [(f"{tail} -> {head}", edge.match)] if edge.match else []
        for where, text in texts:
            try:
                parse(text)
            except ExpressionError as error:
                message = f'"{text}": {error.message} (at character {error.at + 1})'
                yield Fault(file, None, f"chain {chain.name}: {where}", message, error.hint)


# The NFs of a graph with what the library makes of their parameters: the same data for every platform.


@dataclass(frozen=True)
class NfInstance:
    """An NF of a chain, ready to be generated."""

    nf: RackNf
    kind: NfKind[Any]
    parameters: Mapping[str, float]  # all of its kind, with defaults
    data: Any  # such as the filters of an ACL
    first_rule: int = 0  # where a programmable switch counts the first of its rules


def instances_of(graph: RackGraph) -> dict[int, NfInstance]:
    """The instances by number of the NF.

    Raises InputError when an NF is unknown, cannot run where it is placed, or has wrong parameters: all of them.
    """
    faults: list[Fault] = []
    found: dict[int, NfInstance] = {}
    known: dict[object, Any] = {}
    for nf in graph.nfs:
        try:
            kind = _kind(nf)
            # a kind of another package may know of no own data
            parameters = kind.completed(nf.parameters, nf.name, *([nf.own] if nf.own else []))
        except InputError as error:
            faults += error.faults
            continue
        platforms = kind.runs_on(parameters)
        if platform_of(graph, nf) not in platforms:
            given = ", ".join(f"{name}={value:g}" for name, value in parameters.items())
            hint = f"{nf.kind}({given}) runs on {', '.join(sorted(platforms))}"
            faults.append(Fault(nf.name, None, None, f"the library has no such {nf.kind} for {nf.place.name}", hint))
            continue
        key = (nf.kind, tuple(sorted(parameters.items())), tuple(sorted((name, id(of)) for name, of in nf.own.items())))
        if key not in known:
            known[key] = kind.data_of(parameters, nf.own) if nf.own else kind.data(parameters)
        found[nf.number] = NfInstance(nf, kind, parameters, known[key])
    if faults:
        raise InputError(faults)
    return found


def _kind(nf: RackNf) -> NfKind[Any]:
    if nf.kind not in NF_KINDS:
        hint = suggestion(nf.kind, NF_KINDS)
        raise InputError.of(nf.name, f"the library has no {nf.kind}: it can be placed, not generated", hint=hint)
    return NF_KINDS[nf.kind]


def platform_of(graph: RackGraph, nf: RackNf) -> str:
    """What the library calls the place of an NF."""
    if nf.place.kind is DeviceKind.SWITCH and graph.rack.switch.kind.value == "openflow":
        return "openflow"
    return nf.place.kind.value
