"""A bound for many chains on many servers, from prices: of a core, of a Mbps through a NIC, of table memory.

Chains that differ only in their names are one class, servers that differ only in theirs one group, which counts as one
large machine. The bound also holds for plans that split chains over servers.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby

import numpy as np

from placer.rack.chain import Chain, same_but_for_names
from placer.rack.layout_arrays import Layouts, all_layouts
from placer.rack.options import allocations, core_rates, find_undominated
from placer.rack.plan import SWITCH_SITE
from placer.rack.rack import Rack
from placer.rack.search.branch_and_bound import largest_gain
from profiles.arrays import Bools, Floats, Ints


def fleet_bound(chains: Sequence[Chain], rack: Rack, until: float = float("inf")) -> float:
    """What the marginal throughput of no plan exceeds, Mbps; minus infinity when no plan is possible.

    It is that of a linear program over the options of each class, whose dual prices prove it. Raises ArithmeticError
    when the solver gives up, and TimeoutError after `until`, of the monotonic clock.
    """
    one_each, sizes = merge_servers(rack)
    limits = _limits(one_each, sizes)
    classes = classes_of(chains)
    most = limits[: len(one_each.devices)].astype(np.int64)
    options = [split_options(chains[numbers[0]], one_each, most, until) for numbers in classes]
    if any(len(option) == 0 for option in options):
        return float("-inf")
    least = [float(chains[numbers[0]].slo.t_min_mbps) for numbers in classes]
    return _solve(options, least, np.array([len(numbers) for numbers in classes], dtype=np.float64), limits)


def _limits(rack: Rack, sizes: Ints) -> Floats:
    """Of all servers together; infinite blocks where stages are without a bound."""
    cores = [device.cores * sizes[device.server] for device in rack.devices]
    mbps = [
        float(server.nic_mbps) * size for server, size in zip(rack.servers, sizes, strict=True) for _ in ("in", "out")
    ]
    stages = rack.switch.usable_stages
    return np.array([*cores, *mbps, np.inf if stages is None else stages * rack.switch.blocks_per_stage], dtype=float)


def _solve(options: Sequence[Uses], least: Sequence[float], sizes: Floats, limits: Floats) -> float:
    """Each option gives two columns, at the least rate and at its largest."""
    ends = [
        np.vstack(
            [np.hstack([one.cores, one.nic_shares * rate, one.blocks[:, None]]) for rate in (low, one.rate[:, None])]
        )
        for one, low in zip(options, least, strict=True)
    ]
    gains = [np.concatenate([np.zeros(len(one)), one.rate - low]) for one, low in zip(options, least, strict=True)]
    class_of = np.repeat(np.arange(len(options)), [len(gain) for gain in gains])
    bounded = np.isfinite(limits)
    found = largest_gain(np.concatenate(gains), np.vstack(ends).T[bounded], limits[bounded], class_of, sizes)
    return found.gain if found else float("-inf")


# What a chain can get at best when it may be split over any number of equal servers: for bounds only.
#
# Servers that differ in nothing stand for one machine with the cores of all. A subgroup has the cores of one server at
# most, unless it is cut in two: then at least one of its edges crosses from server to server, and both parts together
# are at best as fast as replicas of the whole, even where NFs may not be replicated.


@dataclass(frozen=True)
class Uses:
    """Options of a chain, as far as a bound needs them; rows are options."""

    rate: Floats  # the largest one, Mbps; shape (options,)
    cores: Ints  # per device; shape (options, devices)
    nic_shares: Floats  # of the chain's packets, per server and direction; shape (options, 2 * servers)
    blocks: Ints

    def __len__(self) -> int:
        return len(self.rate)


def split_options(chain: Chain, rack: Rack, most_cores: Ints, until: float = float("inf")) -> Uses:
    """The undominated options of a chain.

    `rack`: with one server of each kind. `most_cores`: per device the cores of all servers of its kind; shape
    (devices,). `until`: of the monotonic clock; raises TimeoutError after it.
    """
    layouts = all_layouts(chain, rack)
    blocks = np.array([rack.costs[nf.nf].switch_blocks or 0 for nf in chain.nfs]) * (layouts.sites == SWITCH_SITE)
    parts = [_uncut(layouts, rack, most_cores, until), _cut(layouts, rack, most_cores, until)]
    rate, cores, shares, layout = (np.concatenate(part) for part in zip(*parts, strict=True))
    uses = Uses(rate, cores, shares, blocks.sum(axis=1)[layout])
    bounded = uses.blocks[:, None] * (rack.switch.usable_stages is not None)
    kept = find_undominated(rate, np.hstack([cores, shares, bounded]), until)
    return Uses(rate[kept], cores[kept], shares[kept], uses.blocks[kept])


_Part = tuple[Floats, Ints, Floats, Ints]


def _uncut(layouts: Layouts, rack: Rack, most_cores: Ints, until: float) -> _Part:
    of_one = np.array([*(device.cores for device in rack.devices), 0])
    largest = int(of_one.max(initial=0))

    def fit(group_cores: Ints, cores: Ints) -> Bools:
        _end_at(until)
        return np.asarray((group_cores <= largest).all(axis=1) & (cores <= most_cores).all(axis=1))

    once, each = core_rates(layouts, rack)
    options = allocations(layouts, rack, once, each, fit)
    return options.rate, options.cores, options.nic_shares, options.layout


def _cut(layouts: Layouts, rack: Rack, most_cores: Ints, until: float) -> _Part:
    """Layouts in which some subgroup of several NFs is cut: each of them may then be as fast as replicas."""
    inside = _least_inside(layouts)
    cheapest = np.nanmin(np.where(np.isfinite(inside), inside, np.inf), axis=1, initial=np.inf)
    once, each = core_rates(layouts, rack)
    each = np.where(np.isfinite(inside) & np.isfinite(once), np.maximum(each, once), each)

    def fit(group_cores: Ints, cores: Ints) -> Bools:
        _end_at(until)
        return np.asarray((cores <= most_cores).all(axis=1))

    options = allocations(layouts, rack, once, each, fit)
    rows = np.flatnonzero(np.isfinite(cheapest[options.layout]))
    layout = options.layout[rows]
    # what a cut adds at least to the NICs; nothing where it may be of either of several kinds of servers
    share = cheapest[layout]
    added = np.zeros((len(layout), 2 * len(rack.servers)))
    if len(rack.servers) == 1:
        added += share[:, None]
    shares = options.nic_shares[rows] + added
    return options.rate[rows], options.cores[rows], shares, layout


def _end_at(until: float) -> None:
    if time.monotonic() > until:
        raise TimeoutError


def _least_inside(layouts: Layouts) -> Floats:
    """Per subgroup, where its first NF is, the least share of packets on one of its edges; infinite without edges."""
    chain, rows = layouts.chain, np.arange(len(layouts))
    least = np.full(layouts.sites.shape, np.inf)
    for edge in chain.edges:
        together = (layouts.group_of[:, edge.tail] == layouts.group_of[:, edge.head]) & (
            layouts.sites[:, edge.tail] != SWITCH_SITE
        )
        group = layouts.group_of[:, edge.head]
        share = np.where(together, float(chain.reach[edge.tail] * edge.share), np.inf)
        least[rows, group] = np.minimum(least[rows, group], share)
    return least


# Equal servers and equal chains.


def merge_servers(rack: Rack) -> tuple[Rack, Ints]:
    """The rack with one server of each group of equal ones, and how many each stands for; shape (groups,)."""
    groups = equal_servers(rack)
    one_each = replace(rack, servers=tuple(rack.servers[numbers[0]] for numbers in groups))
    return one_each, np.array([len(numbers) for numbers in groups], dtype=np.int64)


def equal_servers(rack: Rack) -> Sequence[Sequence[int]]:
    """Servers that differ in nothing but their names, by index."""

    def features(number: int) -> tuple[object, ...]:
        server, nic = rack.servers[number], rack.servers[number].smartnic
        own = (server.usable_cores, server.clock_mhz, server.nic_mbps)
        sockets = tuple((socket.cores, socket.reserved_cores) for socket in server.sockets)
        nics = tuple((card.mbps, card.socket) for card in server.nics)
        more = (server.cross_socket_cycles, server.shared_cores) if sockets or nics or server.shared_cores else ()
        return *own, nic and (nic.cores, nic.clock_mhz), *sockets, *nics, *more

    ordered = sorted(range(len(rack.servers)), key=lambda number: (repr(features(number)), number))
    return [list(equal) for _, equal in groupby(ordered, key=features)]


def classes_of(chains: Sequence[Chain]) -> list[list[int]]:
    """Indices of chains that differ only in their names, in the order of the first of each class."""
    members: dict[object, list[int]] = {}
    for number, chain in enumerate(chains):
        members.setdefault(same_but_for_names(chain), []).append(number)
    return list(members.values())
