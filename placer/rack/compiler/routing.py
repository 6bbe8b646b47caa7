"""Labels: by which service path and index (RFC 8300) packets travel from one device to another.

A service path is a linear way through a chain. Paths are numbered from 1; each covers at least one NF that no path
before it covers, so that there are no more paths than NFs. An NF has one label: the first path that covers it, and
255 less its position there. A label names the NF that is next, so a packet that changes to another path behind a
merge needs no memory of where it came from.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from placer.rack.compiler.graph import SWITCH_PLACE, DeviceKind, Place, RackGraph, RackNf
from profiles import InputError

FIRST_INDEX = 255
PORT_MBPS = 100_000  # of a port of the switch: a t_max from there on needs no limit
BURST_S = 0.01  # of a chain's t_max, that passes at once (CONTRACTS 15)
MOST_BACK_US = 60_000_000  # by which times of packets may go back; by more, one was wrong, and meters begin anew
MOST_NFS = FIRST_INDEX - 1
"""Of a path: the index of a packet never becomes 0 (RFC 8300, section 2.3), also behind the last NF."""


@dataclass(frozen=True, order=True)
class Label:
    """A service path and the index of the NF that is next there."""

    path: int
    index: int

    @property
    def word(self) -> int:
        """The service path header as a number."""
        return self.path << 8 | self.index

    def __str__(self) -> str:
        return f"{self.path}/{self.index}"


@dataclass(frozen=True)
class Routing:
    """How packets find their NFs."""

    graph: RackGraph
    paths: tuple[tuple[int, ...], ...]  # the service paths, each a list of numbers of NFs; the first has the number 1

    @cached_property
    def labels(self) -> Mapping[int, Label]:
        """By number of the NF, also of those that no packet reaches from another device."""
        found: dict[int, Label] = {}
        for number, path in enumerate(self.paths, 1):
            for at, nf in enumerate(path):
                found.setdefault(nf, Label(number, FIRST_INDEX - at))
        return found

    def rate_limit(self, nf: RackNf) -> Fraction | None:
        """The rate in Mbps at which packets may enter a chain at an NF of a server or its SmartNIC; None: at any.

        t_max is kept where packets of the chain come to a server for the first time, all of them at one NF; it is not
        where the NIC carries less.
        """
        entry = next((entry for entry in self.graph.entries if entry.nf == nf.number), None)
        server = next(server for server in self.graph.rack.servers if server.name == nf.place.server)
        return None if entry is None or entry.t_max_mbps >= server.nic_mbps else entry.t_max_mbps

    @cached_property
    def entered(self) -> frozenset[int]:
        """The NFs that packets reach from another device by a label: not from the world."""
        crossing = {
            target for nf in self.graph.nfs for target in nf.targets if self.graph.nfs[target].place != nf.place
        }
        return frozenset(crossing | {entry.nf for entry in self.graph.entries if not self.on_switch(entry.nf)})

    @cached_property
    def exits(self) -> Mapping[int, Label]:
        """By number of each NF elsewhere than on the switch behind which packets leave the rack: the label there."""
        leaving = [nf.number for nf in self.graph.nfs if not self.on_switch(nf.number) and None in _ways(nf)]
        return {nf: Label(self.labels[nf].path, self.labels[nf].index - 1) for nf in leaving}

    def on_switch(self, nf: int) -> bool:
        return self.graph.nfs[nf].place.kind is DeviceKind.SWITCH

    def neighbour(self, place: Place, nf: int | None) -> str:
        """The device to which packets for an NF go next from another one; packets that leave go to the switch."""
        if nf is None:
            return SWITCH_PLACE
        target = self.graph.nfs[nf].place
        return target.name if target.server == place.server else SWITCH_PLACE


def route_graph(graph: RackGraph) -> Routing:
    """The routing of a graph. Raises InputError when a path has more NFs than indices."""
    covered: set[int] = set()
    paths = []
    for nf in graph.nfs:
        if nf.number not in covered:
            path = _path_through(graph, nf)
            covered.update(path)
            paths.append(path)
    for path in paths:
        if len(path) > MOST_NFS:
            first = graph.nfs[path[0]]
            raise InputError.of(f"chain {first.chain}", f"a path of {len(path)} NFs is too long: {MOST_NFS} are most")
    return Routing(graph, tuple(paths))


def _ways(nf: RackNf) -> list[int | None]:
    return [way.target for way in nf.ways]


def _path_through(graph: RackGraph, nf: RackNf) -> tuple[int, ...]:
    """The path through an NF that takes the first edge everywhere else."""
    path = [nf.number]
    while before := graph.before[path[0]]:
        path.insert(0, before[0])
    while targets := graph.nfs[path[-1]].targets:
        path.append(targets[0])
    return tuple(path)


def switch_ports(routing: Routing) -> Sequence[str]:
    """The links of the switch: servers that run NFs, or whose SmartNICs do; port 0 is the world."""
    used = {nf.place.server for nf in routing.graph.nfs}
    return [server.name for server in routing.graph.rack.servers if server.name in used]


# Which way a packet goes behind an NF: by matches of the edges, tried in their order, else by the split hash.


SPLIT_VALUES = 65536  # values of the split hash


def split_limits(shares: Sequence[Fraction]) -> list[int]:
    """Per way the split value below which it, or one before it, is chosen; the last one is all."""
    total, limits = sum(shares, Fraction(0)), list[int]()
    for at in range(1, len(shares) + 1):
        cumulative = sum(shares[:at], Fraction(0))
        limits.append(SPLIT_VALUES if at == len(shares) else int(SPLIT_VALUES * cumulative / total))
    return limits
