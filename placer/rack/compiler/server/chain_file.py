"""The chain file of a server: its subgroups, where packets enter and leave them, and which cores run what.

A demultiplexer takes the label off each packet and gives the packet to the subgroup of the NF that is next; a subgroup
on several cores is copied, and flows are split over the copies. Behind a subgroup packets get the label of the next NF.
"""

import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property

from placer.rack.compiler.graph import NfInstance, Place, RackNf, Way
from placer.rack.compiler.library.nf_kind import NF_KINDS
from placer.rack.compiler.routing import BURST_S, Label, Routing
from placer.rack.compiler.traffic.pcap import pcap_filter
from placer.rack.files.plan_file import SubgroupCores
from profiles import Fault, InputError

MOST_FUNCTIONS, MOST_EDGES, MOST_CORES, MOST_WAYS = 256, 1024, 32, 32  # of the chain runtime (`nfs/core/chain.h`)
MOST_ON_LINE = 16  # functions of a core; a line of a chain file has few words, and a core may have several lines
BYTES_PER_MBIT = 125_000
SORTING_FUNCTION = "Match"  # the function that sorts packets by filters


@dataclass(frozen=True)
class ServerProgram:
    """What a server runs.

    `functions`: by the name of each function the NF that it is, or whose packets it sorts; none for rate limits.
    """

    chain: str
    files: Mapping[str, str]  # files that functions read, by name
    functions: Mapping[str, str]
    cores: int  # how many it uses
    on_cores: Sequence[int] = ()  # which ones of a server with several sockets, in the order of the chain file
    nics: Sequence[str] = ()  # for each of these cores the NIC that its packets come through


@dataclass(frozen=True)
class _Subgroup:
    """NFs on the same cores; `first_core` is the number of the first one. `named`: what the plan says of them."""

    nfs: tuple[RackNf, ...]
    cores: int
    first_core: int
    named: SubgroupCores | None = None

    @property
    def copies(self) -> Sequence[str]:
        """What is behind the names of functions: the number of the copy, if there are several."""
        return [""] if self.cores == 1 else [f".{copy}" for copy in range(self.cores)]

    @property
    def salt(self) -> int:
        return zlib.crc32(f"{self.nfs[0].name}/replicas".encode())


@dataclass
class _Writer:
    """Collects the lines of a chain file."""

    routing: Routing
    place: Place
    instances: Mapping[int, NfInstance]
    lines: list[str] = field(default_factory=list)
    edges: list[str] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=dict)
    functions: dict[str, str] = field(default_factory=dict)
    on_core: dict[int, list[str]] = field(default_factory=dict)

    def subgroup(self, group: _Subgroup) -> None:
        for copy, end in enumerate(group.copies):
            for nf in group.nfs:
                self.function(nf, copy, group)
                self.ways(nf, end, group)
        for nf in group.nfs:
            if nf.number in self.routing.entered:
                self.entry(nf, group)

    def function(self, nf: RackNf, copy: int, group: _Subgroup) -> None:
        """The function of a copy of an NF, and the one that sorts packets behind it."""
        instance, end, core = self.instances[nf.number], group.copies[copy], group.first_core + copy
        name = nf.identifier + end
        settings = dict(instance.kind.server_settings(instance.parameters, self.files_of(instance)))
        most = instance.kind.most_copies(instance.parameters)
        if most is not None and group.cores > most:
            hint = f"`replicable = false` for {nf.kind} in the rack keeps it on one core"
            raise InputError.of(
                nf.name, f"{group.cores} copies are more than this {nf.kind} can have, {most}", hint=hint
            )
        if group.cores > 1:
            settings |= instance.kind.settings_of_copy(instance.parameters, copy, group.cores)
        settings |= instance.kind.own_settings(nf.own) if nf.own else {}
        if instance.kind.has_own_seed(instance.parameters):
            settings["seed"] = f"{self.first_seeds[nf.number] + copy}"
        sorting = _sorting(nf)
        if sorting and nf.kind == SORTING_FUNCTION:
            settings = sorting
        self.add(name, nf.kind, settings, core, nf.name)
        if sorting and nf.kind != SORTING_FUNCTION:
            self.add(f"{nf.identifier}__sort{end}", SORTING_FUNCTION, sorting, core, nf.name)
            self.edges.append(f"{name} -> {nf.identifier}__sort{end}")

    @cached_property
    def first_seeds(self) -> dict[int, int]:
        """By NF of the whole rack that has a seed of its own, that of its first copy; further copies count on.

        They follow from names: those of an NF stay while others come and go, unless two names clash.
        """
        instances = [nf for nf in self.instances.values() if nf.kind.has_own_seed(nf.parameters)]
        found: dict[int, int] = {}
        taken: set[int] = set()
        for nf in sorted((instance.nf for instance in instances), key=lambda nf: nf.name):
            block = zlib.crc32(nf.name.encode()) // MOST_CORES
            while block in taken:
                block = (block + 1) % (2**32 // MOST_CORES)
            taken.add(block)
            found[nf.number] = block * MOST_CORES
        return found

    def files_of(self, instance: NfInstance) -> dict[str, str]:
        names = {}
        for suffix, text in instance.kind.server_files(instance.data).items():
            names[suffix] = f"{instance.nf.identifier}.{suffix}"
            self.files[names[suffix]] = text
        return names

    def add(self, name: str, kind: str, settings: Mapping[str, str], core: int, of: str) -> None:
        words = [f"{name}: {kind}", *(f"{key}={value}" for key, value in settings.items())]
        self.lines.append(" ".join(words))
        self.on_core.setdefault(core, []).append(name)
        if of:
            self.functions[name] = of

    def ways(self, nf: RackNf, end: str, group: _Subgroup) -> None:
        """The edges behind an NF."""
        matched = [way for way in nf.ways if way.match is not None]
        others = [way for way in nf.ways if way.match is None]
        tail = nf.identifier if not matched or nf.kind == SORTING_FUNCTION else f"{nf.identifier}__sort"
        numbered = len(matched) + bool(others) > 1
        targets = {way: self.counted_target(nf, way, end, group) for way in nf.ways}
        for gate, way in enumerate(matched):
            self.edges.append(f"{tail}{end}{f'[{gate}]' if numbered else ''} -> {targets[way]}")
        total = sum((way.share for way in others), Fraction(0))
        for way in others:
            gate_text = f"[{len(matched)}]" if matched else ""
            share = f" {way.share / total}" if len(others) > 1 else ""
            self.edges.append(f"{tail}{end}{gate_text} -> {targets[way]}{share}")
        if len(others) > 1:
            self.edges.append(f"split {tail}{end} {nf.split_salt}")

    def counted_target(self, nf: RackNf, way: Way, end: str, group: _Subgroup) -> str:
        """Where an edge leads: through a function that passes all, where the packets of a way are counted."""
        target, at = self.target(nf, way, end, group), nf.ways.index(way)
        counter = self.routing.graph.counters.get((nf.number, at))
        if counter is None:
            return target
        name = f"{nf.identifier}__way{at}{end}"
        core = group.first_core + group.copies.index(end)
        self.add(name, SORTING_FUNCTION, NF_KINDS[SORTING_FUNCTION].server_settings({}, {}), core, counter)
        self.edges.append(f"{name} -> {target}")
        return name

    def target(self, nf: RackNf, way: Way, end: str, group: _Subgroup) -> str:
        """Where an edge leads: to an NF of the same subgroup, or away with a label."""
        if way.target is None:
            return _nsh(self.routing.exits[nf.number])
        if any(nf.number == way.target for nf in group.nfs):
            return self.routing.graph.nfs[way.target].identifier + end
        return _nsh(self.routing.labels[way.target])

    def entry(self, nf: RackNf, group: _Subgroup) -> None:
        """Where packets enter a subgroup: through its rate limit, if it has one, into one of its copies."""
        label = _nsh(self.routing.labels[nf.number])
        tail = label
        if (rate := self.routing.rate_limit(nf)) is not None:
            tail = f"{nf.identifier}__limit"
            burst = max(float(rate) * BYTES_PER_MBIT * BURST_S, 1.0)
            settings = {"rate_mbps": f"{float(rate):.12g}", "burst_bytes": f"{burst:.12g}", "checksums": "0"}
            self.add(tail, "Limiter", settings, group.first_core, "")
            self.edges.append(f"{label} -> {tail}")
        for end in group.copies:
            share = f" 1/{group.cores}" if group.cores > 1 else ""
            self.edges.append(f"{tail} -> {nf.identifier}{end}{share}")
        if group.cores > 1:
            self.edges.append(f"split {tail} {group.salt}")

    def text(self) -> str:
        cores = [
            f"core {core}: {' '.join(names[at : at + MOST_ON_LINE])}"
            for core, names in sorted(self.on_core.items())
            for at in range(0, len(names), MOST_ON_LINE)
        ]
        return "".join(f"{line}\n" for line in [f"# server {self.place.name}", *self.lines, *self.edges, *cores])


def server_program(routing: Routing, place: Place, instances: Mapping[int, NfInstance]) -> ServerProgram | None:
    """What a server runs; None if it runs no NF.

    Raises InputError when it has more functions than the chain runtime takes.
    """
    writer = _Writer(routing, place, instances)
    on_cores: list[int] = []
    nics: list[str] = []
    for group in _subgroups(routing, place):
        writer.subgroup(group)
        on_cores += group.named.on_cores if group.named else ()
        nics += [group.named.nic] * group.cores if group.named and group.named.nic else []
    if not writer.lines:
        return None
    arrows = [edge.partition(" -> ")[0] for edge in writer.edges if " -> " in edge]
    counts = (
        ("functions", len(writer.lines), MOST_FUNCTIONS),
        ("edges", len(arrows), MOST_EDGES),
        ("ways behind one NF, by shares,", max(Counter(arrows).values(), default=0), MOST_WAYS),
        ("cores", len(writer.on_core), MOST_CORES),
    )
    faults = [
        Fault(place.name, None, None, f"{count} {what} are more than the chain runtime takes, {most}")
        for what, count, most in counts
        if count > most
    ]
    if faults:
        raise InputError(faults)
    return ServerProgram(writer.text(), writer.files, writer.functions, len(writer.on_core), on_cores, nics)


def _subgroups(routing: Routing, place: Place) -> Iterator[_Subgroup]:
    """The subgroups of a server as the plan names them, else connected NFs with one core each."""
    graph = routing.graph
    planned: list[tuple[tuple[int, ...], SubgroupCores | None]] = [*graph.cores.get(place.name, ())]
    known = {number for numbers, _ in planned for number in numbers}
    left = [nf.number for nf in graph.of(place) if nf.number not in known]
    while left:
        group = _connect(routing, left[0], set(left))
        planned.append((tuple(sorted(group)), None))
        left = [number for number in left if number not in group]
    first = 0
    for numbers, named in planned:
        cores = int(named.cores) if named else 1
        yield _Subgroup(tuple(graph.nfs[number] for number in numbers), cores, first, named)
        first += cores


def _connect(routing: Routing, start: int, among: set[int]) -> set[int]:
    graph = routing.graph
    found, waiting = {start}, [start]
    while waiting:
        nf = waiting.pop()
        for other in {*graph.nfs[nf].targets, *graph.before[nf]} & among - found:
            found.add(other)
            waiting.append(other)
    return found


def _sorting(nf: RackNf) -> dict[str, str]:
    """Settings of the Match that sorts packets behind an NF; none if no way has a match."""
    filters = [pcap_filter(way.match) for way in nf.ways if way.match is not None]
    if not filters:
        return {}
    others = any(way.match is None for way in nf.ways)
    return {"filters": ";".join(filters), "drop_unmatched": "0" if others else "1"}


def _nsh(label: Label) -> str:
    return f"nsh {label.path} {label.index}"
