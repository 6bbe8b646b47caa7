"""A plan: where each chain runs, with how many cores, and how fast; and how good it is known to be.

A chain's layout is a site for each NF, and what follows from it: subgroups, loads of NICs, latency, as exact fractions.
`options.py` computes the same for many layouts at once.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from placer.rack.chain import Chain
from placer.rack.rack import Device, Rack
from placer.rack.sharing import number_cores
from profiles.arrays import Floats

SWITCH_SITE = -1
"""The site of an NF on the switch; other sites are indices of `Rack.devices`."""


@dataclass(frozen=True)
class Subgroup:
    """NFs of a chain that are connected and share a device: run to completion on the same cores.

    `nfs`: indices in the chain, ascending. `cycles`: per packet that enters the chain, on one core.
    `cycles_of_replicas`: the same where several cores run it; None where only one may.
    """

    device: int
    nfs: tuple[int, ...]
    cycles: Fraction
    cycles_of_replicas: Fraction | None

    def rate(self, cores: int | Fraction, device: Device, packet_bits: int) -> Fraction | None:
        """The largest rate of the chain, Mbps; None without a bound. `cores`: less than 1: a share of one core."""
        cycles = self.cycles_of_replicas if cores > 1 and self.cycles_of_replicas is not None else self.cycles
        return cores * device.clock_mhz * packet_bits / cycles if cycles else None


@dataclass(frozen=True)
class Layout:
    """Where the NFs of a chain are. `sites`: per NF the index of a device, or SWITCH."""

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
        costs = [self.rack.cost_on(chain, at, device) for at in nfs]
        own = sum((chain.reach[at] * cost.cycles for at, cost in zip(nfs, costs, strict=True) if cost), Fraction(0))
        entered = self._enter(set(nfs))
        replicable = all(cost.replicable for cost in costs if cost) and not any(chain.forks[at] for at in nfs)
        once = own + entered * (overheads.subgroup_cycles + device.cross_cycles)
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
        """By NIC and direction (`in`, `out`): the share of the chain's packets that it carries."""
        shares: dict[tuple[int, str], Fraction] = {}
        for source, target, share in self._moves():
            if source != target:
                for nic, direction in ((target, "in"), (source, "out")):
                    if nic != SWITCH_SITE:
                        shares[nic, direction] = shares.get((nic, direction), Fraction(0)) + share
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
        """The NIC behind which an NF is; SWITCH: the side of the switch and of the world."""
        return SWITCH_SITE if self.sites[at] == SWITCH_SITE else self.rack.devices[self.sites[at]].nic

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
        cost = self.rack.cost_on(self.chain, at, device)
        assert cost is not None
        return cost.cycles / device.clock_mhz


NEAR_EQUAL = (1e-6, 1e-9)
"""Relative, what is taken for equal in a solver's solution; the first one that gives rates within all limits."""


class Status(StrEnum):
    """What is known of a plan."""

    OPTIMAL = "optimal"
    FEASIBLE = "feasible"
    INFEASIBLE = "infeasible"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Limit:
    """A limit of a conflict.

    `kind`: t_min, d_max, cores, nic_mbps or blocks. `of`: the chain, device or server; `switch` for blocks.
    """

    kind: str
    of: str


@dataclass(frozen=True)
class LimitChange:
    """A change that is enough alone: the limit, and its new value."""

    limit: Limit
    to: float


@dataclass(frozen=True)
class ChainPlan:
    """A chain of a plan. `rate_mbps`: what enters it. `cores`: per subgroup of its layout; 1/n of a core of n turns."""

    layout: Layout
    rate_mbps: float
    cores: tuple[int | Fraction, ...]

    @property
    def chain(self) -> Chain:
        return self.layout.chain

    @property
    def subgroups(self) -> Sequence[tuple[Subgroup, int | Fraction]]:
        """The subgroups with their cores."""
        return list(zip(self.layout.subgroups, self.cores, strict=True))

    @property
    def most_mbps(self) -> Fraction:
        """The largest rate that its cores and its t_max allow."""
        devices, bits = self.layout.rack.devices, self.chain.packet_bits
        rates = [group.rate(cores, devices[group.device], bits) for group, cores in self.subgroups]
        return min([self.chain.slo.t_max_mbps, *(rate for rate in rates if rate is not None)])

    def site_name(self, at: int) -> str:
        """The device of an NF, or `switch`."""
        site = self.layout.sites[at]
        return "switch" if site == SWITCH_SITE else self.layout.rack.devices[site].name


@dataclass(frozen=True)
class RackPlan:
    """A plan for a rack.

    `status`: `optimal` with a proof, `feasible` without; `infeasible` with a proof, `unknown` without. `bound_mbps`: of
    the marginal throughput of every plan; None where nothing is known. `seconds`: of solving. `conflict`, `changes`:
    where there is no plan: limits that cannot be kept together, and what would be enough alone. `notes`: of the
    strategy, such as why it found no plan.
    """

    rack: Rack
    status: Status
    chains: tuple[ChainPlan, ...] = ()
    bound_mbps: float | None = None
    seconds: float = 0.0
    conflict: tuple[Limit, ...] = ()
    changes: tuple[LimitChange, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def marginal_mbps(self) -> float:
        """The sum of rates beyond the least ones."""
        return sum(chain.rate_mbps - float(chain.chain.slo.t_min_mbps) for chain in self.chains)

    @property
    def gap(self) -> float | None:
        """(bound - marginal) / bound; None without a plan or a bound."""
        if not self.chains or self.bound_mbps is None:
            return None
        return max(self.bound_mbps - self.marginal_mbps, 0.0) / self.bound_mbps if self.bound_mbps > 0 else 0.0


def answer(plan: RackPlan) -> Mapping[str, object]:
    """The plan as JSON (CONTRACTS 9)."""
    return {
        "status": plan.status.value,
        "proven": plan.status in (Status.OPTIMAL, Status.INFEASIBLE),
        "marginal_mbps": plan.marginal_mbps if plan.chains else None,
        "bound_mbps": plan.bound_mbps,
        "seconds": round(plan.seconds, 3),
        "chains": [_chain(chain, cores) for chain, cores in zip(plan.chains, core_numbers(plan.chains), strict=True)],
        "conflict": [{"kind": limit.kind, "of": limit.of} for limit in plan.conflict],
        "relaxations": [{"kind": change.limit.kind, "of": change.limit.of, "to": change.to} for change in plan.changes],
    }


def _chain(one: ChainPlan, numbers: Sequence[Sequence[int]]) -> dict[str, object]:
    ids = [nf.id for nf in one.chain.nfs]
    return {
        "name": one.chain.name,
        "rate_mbps": one.rate_mbps,
        "latency_us": float(one.layout.latency_us),
        "placement": {nf: one.site_name(at) for at, nf in enumerate(ids)},
        "subgroups": [
            {
                "on": one.layout.rack.devices[group.device].name,
                "nfs": [ids[at] for at in group.nfs],
                "cores": cores if isinstance(cores, int) else str(cores),
                **name_place(one.layout.rack, group.device, on_cores),
            }
            for (group, cores), on_cores in zip(one.subgroups, numbers, strict=True)
        ],
    }


def name_place(rack: Rack, number: int, on_cores: Sequence[int]) -> dict[str, Any]:
    """Socket, NIC and cores of a subgroup on a device, where its server names several of them or shares cores."""
    device = rack.devices[number]
    server, nic = rack.servers[device.server], rack.nics[device.nic].name
    where: dict[str, Any] = {"socket": rack.pools[device.pool].socket} if server.sockets else {}
    where |= {"nic": nic.removeprefix(f"{server.name} ")} if server.nics else {}
    where |= {"on_cores": list(on_cores)} if server.sockets or server.shared_cores else {}
    return {} if device.is_smartnic else where


def core_numbers(chains: Sequence[ChainPlan]) -> list[list[list[int]]]:
    """Per chain and subgroup the numbers of its cores on its device; those of a socket follow those of the one before.

    Reserved cores are the last ones of a socket.
    """
    by_pool: dict[int, list[tuple[int, int]]] = {}
    for number, chain in enumerate(chains):
        for at, group in enumerate(chain.layout.subgroups):
            by_pool.setdefault(chain.layout.rack.devices[group.device].pool, []).append((number, at))
    found: list[list[list[int]]] = [[[] for _ in chain.cores] for chain in chains]
    for pool, groups in by_pool.items():
        first = chains[0].layout.rack.pools[pool].first_core
        numbers = number_cores([chains[number].cores[at] for number, at in groups])
        for (number, at), cores in zip(groups, numbers, strict=True):
            found[number][at] = [first + core for core in cores]
    return found


def refine_rates(layouts: Sequence[Layout], caps: Sequence[Fraction], rates: Floats) -> list[float]:
    """Rates near those of a solver that keep every limit exactly.

    A vertex of the linear program is where as many limits of NICs hold with equality as rates lie between their least
    and largest; solving these equations again removes the solver's tolerance.
    """
    least = np.array([float(layout.chain.slo.t_min_mbps) for layout in layouts])
    largest = np.maximum([float(cap) for cap in caps], least)
    names = sorted({name for layout in layouts for name in layout.nic_shares})
    shares = np.array([[float(layout.nic_shares.get(name, 0)) for layout in layouts] for name in names])
    shares = shares.reshape(len(names), len(layouts))
    rack = layouts[0].rack
    limits = np.array([float(rack.nics[nic].mbps) for nic, _ in names])
    for near in NEAR_EQUAL:
        refined = _at_vertex(rates, least, largest, shares, limits, near)
        if (shares @ refined <= limits * (1 + 1e-12)).all():
            return [float(rate) for rate in refined]
    return [float(rate) for rate in _carry(refined, least, shares, limits)]


def _at_vertex(rates: Floats, least: Floats, largest: Floats, shares: Floats, limits: Floats, near: float) -> Floats:
    """The vertex near some rates; what is relatively nearer than `near` to a limit is taken to be at it."""
    close = near * np.maximum(largest, 1.0)
    rates = np.where(rates > largest - close, largest, np.where(rates < least + close, least, rates))
    inner = (rates < largest) & (rates > least)
    if inner.any():
        tight = shares @ rates > limits * (1 - near)
        known = limits[tight] - shares[tight][:, ~inner] @ rates[~inner]
        solved = np.linalg.lstsq(shares[tight][:, inner], known, rcond=None)[0]
        rates[inner] = np.clip(solved, least[inner], largest[inner])
    return rates


def _carry(rates: Floats, least: Floats, shares: Floats, limits: Floats) -> Floats:
    """The rates, each as much nearer to the least one as the NICs need."""
    beyond = shares @ (rates - least)
    room = np.maximum(limits - shares @ least, 0.0)
    part = np.min(room[beyond > 0] / beyond[beyond > 0], initial=1.0)
    carried: Floats = least + (rates - least) * part
    return carried
