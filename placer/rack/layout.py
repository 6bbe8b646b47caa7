"""One way to place a chain: a site for each NF, and what follows from it: subgroups, loads of NICs, latency.

All numbers are exact fractions. `layouts.py` computes the same for many layouts at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from placer.rack.chain import Chain
from placer.rack.rack import Device, Rack

SWITCH_SITE = -1
"""The site of an NF on the switch; other sites are indices of `Rack.devices`."""


@dataclass(frozen=True)
class Subgroup:
    """NFs of a chain that are connected and share a device: run to completion on the same cores.

    Parameters
    ----------
    nfs
        Indices in the chain, ascending.
    cycles
        Per packet that enters the chain, on one core.
    cycles_of_replicas
        The same where several cores run it; None where only one may.
    """

    device: int
    nfs: tuple[int, ...]
    cycles: Fraction
    cycles_of_replicas: Fraction | None

    def rate(self, cores: int, device: Device, packet_bits: int) -> Fraction | None:
        """The largest rate of the chain, Mbps; None without a bound."""
        cycles = self.cycles_of_replicas if cores > 1 and self.cycles_of_replicas is not None else self.cycles
        return cores * device.clock_mhz * packet_bits / cycles if cycles else None


@dataclass(frozen=True)
class Layout:
    """Where the NFs of a chain are.

    Parameters
    ----------
    sites
        Per NF the index of a device, or SWITCH.
    """

    chain: Chain
    rack: Rack
    sites: tuple[int, ...]

    @cached_property
    def on_switch(self) -> tuple[int, ...]:
        """The NFs on the switch."""
        return tuple(at for at, site in enumerate(self.sites) if site == SWITCH_SITE)

    @cached_property
    def subgroups(self) -> tuple[Subgroup, ...]:
        """Connected NFs on the same device."""
        groups: dict[int, list[int]] = {}
        for at, label in enumerate(self._labels()):
            if self.sites[at] != SWITCH_SITE:
                groups.setdefault(label, []).append(at)
        return tuple(self._subgroup(nfs) for nfs in groups.values())

    def _labels(self) -> list[int]:
        """Per NF the first NF of its component."""
        labels = list(range(len(self.sites)))
        joined = [(edge.tail, edge.head) for edge in self.chain.edges if self.sites[edge.tail] == self.sites[edge.head]]
        for tail, head in joined:
            new, old = sorted((labels[tail], labels[head]))
            labels = [new if label == old else label for label in labels]
        return labels

    def _subgroup(self, nfs: Sequence[int]) -> Subgroup:
        device = self.rack.devices[self.sites[nfs[0]]]
        chain, overheads = self.chain, self.rack.overheads
        costs = [self.rack.cost_on(chain.nfs[at].nf, device) for at in nfs]
        own = sum((chain.reach[at] * cost.cycles for at, cost in zip(nfs, costs, strict=True) if cost), Fraction(0))
        entered = self._enter(set(nfs))
        replicable = all(cost.replicable for cost in costs if cost) and not any(chain.forks[at] for at in nfs)
        once = own + entered * overheads.subgroup_cycles
        return Subgroup(
            self.sites[nfs[0]], tuple(nfs), once, once + entered * overheads.replica_cycles if replicable else None
        )

    def _enter(self, nfs: set[int]) -> Fraction:
        """The share of the chain's packets that enters a subgroup, once for each time."""
        chain = self.chain
        into = [edge for edge in chain.edges if edge.head in nfs and edge.tail not in nfs]
        return sum((chain.reach[edge.tail] * edge.share for edge in into), Fraction(chain.entry in nfs))

    @cached_property
    def nic_shares(self) -> dict[tuple[int, str], Fraction]:
        """By server and direction (`in`, `out`): the share of the chain's packets that its NIC carries."""
        shares: dict[tuple[int, str], Fraction] = {}
        for source, target, share in self._moves():
            if source != target:
                for server, direction in ((target, "in"), (source, "out")):
                    if server != SWITCH_SITE:
                        shares[server, direction] = shares.get((server, direction), Fraction(0)) + share
        return shares

    def _moves(self) -> Iterator[tuple[int, int, Fraction]]:
        """From which side to which, and the share of packets: edges, the way in and the ways out."""
        chain = self.chain
        yield SWITCH_SITE, self._side(chain.entry), Fraction(1)
        for edge in chain.edges:
            yield self._side(edge.tail), self._side(edge.head), chain.reach[edge.tail] * edge.share
        for at in chain.exits:
            yield self._side(at), SWITCH_SITE, chain.reach[at]

    def _side(self, at: int) -> int:
        """The server on whose side of the NIC an NF is; SWITCH: the side of the switch and of the world."""
        return SWITCH_SITE if self.sites[at] == SWITCH_SITE else self.rack.devices[self.sites[at]].server

    @cached_property
    def latency_us(self) -> Fraction:
        """Of the longest path from the world to the world."""
        chain, crossing = self.chain, self.rack.crossing_us
        at_end: dict[int, Fraction] = {}
        for at in chain.order:
            before = [
                at_end[edge.tail] + crossing * self._changes(self._side(edge.tail), self._side(at))
                for edge in chain.edges_into(at)
            ]
            arrived = max(before) if before else crossing * self._changes(SWITCH_SITE, self._side(at))
            at_end[at] = arrived + self._time(at)
        return max(at_end[at] + crossing * self._changes(self._side(at), SWITCH_SITE) for at in chain.exits)

    @staticmethod
    def _changes(one: int, other: int) -> int:
        """Side changes between two sides: from server to server, packets pass the switch."""
        if one == other:
            return 0
        return 1 if SWITCH_SITE in (one, other) else 2

    def _time(self, at: int) -> Fraction:
        if self.sites[at] == SWITCH_SITE:
            return Fraction(0)
        device = self.rack.devices[self.sites[at]]
        cost = self.rack.cost_on(self.chain.nfs[at].nf, device)
        assert cost is not None
        return cost.cycles / device.clock_mhz
