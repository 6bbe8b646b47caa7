"""What a chain can get at best when it may be split over any number of equal servers: for bounds only.

Servers that differ in nothing stand for one machine with the cores of all. A subgroup has the cores of one server at
most, unless it is cut in two: then at least one of its edges crosses from server to server, and both parts together
are at best as fast as replicas of the whole, even where NFs may not be replicated.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from placer.chains.chain import Chain
from placer.chains.layout import SWITCH
from placer.chains.layouts import Layouts, all_layouts
from placer.chains.options import allocations, core_rates, undominated
from placer.chains.rack import Rack

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class Uses:
    """Options of a chain, as far as a bound needs them; rows are options.

    Parameters
    ----------
    rate
        The largest one, Mbps; shape (options,).
    cores
        Per device; shape (options, devices).
    nic_shares
        Of the chain's packets, per server and direction; shape (options, 2 * servers).
    blocks
        Of table memory on the switch; shape (options,).
    """

    rate: Floats
    cores: Ints
    nic_shares: Floats
    blocks: Ints

    def __len__(self) -> int:
        return len(self.rate)


def split_options(chain: Chain, rack: Rack, most_cores: Ints) -> Uses:
    """The undominated options of a chain.

    Parameters
    ----------
    rack
        With one server of each kind.
    most_cores
        Per device the cores of all servers of its kind; shape (devices,).
    """
    layouts = all_layouts(chain, rack)
    blocks = np.array([rack.costs[nf.nf].switch_blocks or 0 for nf in chain.nfs]) * (layouts.sites == SWITCH)
    parts = [_uncut(layouts, rack, most_cores), _cut(layouts, rack, most_cores)]
    rate, cores, shares, layout = (np.concatenate(part) for part in zip(*parts, strict=True))
    uses = Uses(rate, cores, shares, blocks.sum(axis=1)[layout])
    bounded = uses.blocks[:, None] * (rack.switch.usable_stages is not None)
    kept = undominated(rate, np.hstack([cores, shares, bounded]))
    return Uses(rate[kept], cores[kept], shares[kept], uses.blocks[kept])


_Part = tuple[Floats, Ints, Floats, Ints]


def _uncut(layouts: Layouts, rack: Rack, most_cores: Ints) -> _Part:
    of_one = np.array([*(device.cores for device in rack.devices), 0])
    largest = int(of_one.max(initial=0))

    def fit(group_cores: Ints, cores: Ints) -> Bools:
        return np.asarray((group_cores <= largest).all(axis=1) & (cores <= most_cores).all(axis=1))

    once, each = core_rates(layouts, rack)
    options = allocations(layouts, rack, once, each, fit)
    return options.rate, options.cores, options.nic_shares, options.layout


def _cut(layouts: Layouts, rack: Rack, most_cores: Ints) -> _Part:
    """Layouts in which some subgroup of several NFs is cut: each of them may then be as fast as replicas."""
    inside = _least_inside(layouts)
    cheapest = np.nanmin(np.where(np.isfinite(inside), inside, np.inf), axis=1, initial=np.inf)
    once, each = core_rates(layouts, rack)
    each = np.where(np.isfinite(inside) & np.isfinite(once), np.maximum(each, once), each)
    options = allocations(layouts, rack, once, each, lambda _, cores: np.all(cores <= most_cores, axis=1))
    rows = np.flatnonzero(np.isfinite(cheapest[options.layout]))
    layout = options.layout[rows]
    shares = options.nic_shares[rows] + _crossings(layouts, rack, layout, cheapest[layout])
    return options.rate[rows], options.cores[rows], shares, layout


def _least_inside(layouts: Layouts) -> Floats:
    """Per subgroup, where its first NF is, the least share of packets on one of its edges; infinite without edges."""
    chain, rows = layouts.chain, np.arange(len(layouts))
    least = np.full(layouts.sites.shape, np.inf)
    for edge in chain.edges:
        together = (layouts.group_of[:, edge.tail] == layouts.group_of[:, edge.head]) & (
            layouts.sites[:, edge.tail] != SWITCH
        )
        group = layouts.group_of[:, edge.head]
        share = np.where(together, float(chain.reach[edge.tail] * edge.share), np.inf)
        least[rows, group] = np.minimum(least[rows, group], share)
    return least


def _crossings(layouts: Layouts, rack: Rack, layout: Ints, share: Floats) -> Floats:
    """What a cut adds at least to the NICs; nothing where it may be of either of several kinds of servers."""
    added = np.zeros((len(layout), 2 * len(rack.servers)))
    if len(rack.servers) == 1:
        added += share[:, None]
    return added
