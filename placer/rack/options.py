"""What a chain may get: a layout, whole cores for its subgroups, and the largest rate that these allow.

A chain has many layouts, and each has many allocations of cores. Few of them matter: an option that needs no less of
anything than another one and gives no higher rate is dominated. Rates below that of an option need fewer cores at most,
so each layout has an option where one subgroup's rate is just reached by whole cores, and one at the largest rate.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from placer.rack.chain import Chain
from placer.rack.layout import SWITCH_SITE
from placer.rack.layouts import CAP_TOLERANCE, Layouts, all_layouts
from placer.rack.rack import Rack
from profiles.arrays import Bools, Floats, Ints

AT_ONCE = 2048
"""Options that are compared with all others in one step."""


@dataclass(frozen=True)
class Options:
    """Undominated options of one chain; rows are options.

    Parameters
    ----------
    layout
        Per option the row in `layouts`; shape (options,).
    group_cores
        Per NF the cores of the subgroup whose first NF it is, 0 elsewhere; shape (options, NFs).
    cores
        Per device; shape (options, devices).
    rate
        The largest one that the cores allow, at most t_max, Mbps; shape (options,).
    """

    layouts: Layouts
    layout: Ints
    group_cores: Ints
    cores: Ints
    rate: Floats

    def __len__(self) -> int:
        return len(self.layout)

    @property
    def chain(self) -> Chain:
        return self.layouts.chain

    @property
    def nic_shares(self) -> Floats:
        """As in Layouts, with servers and directions in one axis; shape (options, 2 * servers)."""
        shares = self.layouts.nic_shares[self.layout]
        return shares.reshape(len(self), shares.shape[1] * shares.shape[2])

    @property
    def on_switch(self) -> Bools:
        """Per NF whether it is on the switch; shape (options, NFs)."""
        return self.layouts.on_switch()[self.layout]

    def at(self, rows: Ints) -> Options:
        return Options(self.layouts, self.layout[rows], self.group_cores[rows], self.cores[rows], self.rate[rows])


def options_of(chain: Chain, rack: Rack) -> Options:
    """The undominated options of a chain on a rack that is otherwise empty.

    Tables on the switch count as a resource unless its stages are without a bound.
    """
    return options_at(all_layouts(chain, rack), rack)


def options_at(layouts: Layouts, rack: Rack) -> Options:
    """The undominated options among some layouts."""
    options = _allocations(layouts, rack)
    return options.at(find_undominated_rows(options, rack))


def drop_dominated_options(layouts: Layouts, rack: Rack, costs: Ints) -> Options:
    """As `options_at`, where a larger cost of a layout is a need, too; shape (layouts,)."""
    options = _allocations(layouts, rack)
    needs = np.hstack([_needs(options, rack), costs[options.layout, None]])
    return options.at(find_undominated(options.rate, needs))


def find_undominated_rows(options: Options, rack: Rack) -> Ints:
    """The rows of options that no other one dominates."""
    return find_undominated(options.rate, _needs(options, rack))


def _needs(options: Options, rack: Rack) -> Floats:
    """Cores, shares of NICs, and tables where stages are bounded; shape (options, needs)."""
    tables = options.on_switch & (rack.switch.usable_stages is not None)
    return np.hstack([options.cores, options.nic_shares, tables])


def find_undominated(gain: Floats, needs: NDArray[np.generic]) -> Ints:
    """The rows to which no other row has at least the gain and at most all needs; of equal rows the first.

    Parameters
    ----------
    gain
        Shape (rows,).
    needs
        Shape (rows, needs).
    """
    needed: Floats = needs.astype(np.float64)
    order = np.lexsort((needed.sum(axis=1), -gain))
    kept_gain, kept_needs = np.empty(0), np.empty((0, needed.shape[1]))
    kept: list[Ints] = []
    for begin in range(0, len(order), AT_ONCE):
        rows = order[begin : begin + AT_ONCE]
        rows = rows[~_find_dominated(gain[rows], needed[rows], kept_gain, kept_needs)]
        rows = rows[~_find_dominated_inside(gain[rows], needed[rows])]
        kept.append(rows)
        kept_gain, kept_needs = np.append(kept_gain, gain[rows]), np.vstack([kept_needs, needed[rows]])
    return np.sort(np.concatenate(kept)) if kept else np.empty(0, np.int64)


def _find_dominated(gain: Floats, needs: Floats, by_gain: Floats, by_needs: Floats) -> Bools:
    dominated = np.zeros(len(gain), dtype=bool)
    for one_gain, one_needs in zip(by_gain, by_needs, strict=True):
        dominated |= (gain <= one_gain) & (needs >= one_needs).all(axis=1)
    return dominated


def _find_dominated_inside(gain: Floats, needs: Floats) -> Bools:
    """The rows are sorted, so only an earlier one dominates a later one, or is its equal."""
    dominated = np.zeros(len(gain), dtype=bool)
    for at in range(len(gain)):
        if not dominated[at]:
            later = slice(at + 1, None)
            dominated[later] |= (gain[later] <= gain[at]) & (needs[later] >= needs[at]).all(axis=1)
    return dominated


def all_options(chain: Chain, rack: Rack) -> Options:
    """All layouts of a chain, with all allocations in which no core could be taken away without lowering the rate."""
    return _allocations(all_layouts(chain, rack), rack)


def _allocations(layouts: Layouts, rack: Rack) -> Options:
    once, each = core_rates(layouts, rack)
    most = np.array([device.cores for device in rack.devices], dtype=np.int64)
    return allocations(layouts, rack, once, each, lambda _, cores: np.all(cores <= most, axis=1))


def core_rates(layouts: Layouts, rack: Rack) -> tuple[Floats, Floats]:
    """Mbps of a subgroup on one core, and per core on several, where its first NF is; infinite and 0 elsewhere."""
    bits = layouts.chain.packet_bits
    clocks = np.array([float(device.clock_mhz) for device in rack.devices] + [1.0])[layouts.sites]
    with np.errstate(divide="ignore", invalid="ignore"):
        once = np.where(np.isnan(layouts.cycles), np.inf, clocks * bits / layouts.cycles)
        each = np.where(np.isnan(layouts.replica_cycles), 0.0, clocks * bits / layouts.replica_cycles)
    return once, each


def allocations(
    layouts: Layouts, rack: Rack, once: Floats, each: Floats, fit: Callable[[Ints, Ints], Bools]
) -> Options:
    """Per layout the fewest cores for t_min, and for each larger rate that whole cores just reach, up to t_max.

    Parameters
    ----------
    once, each
        As `core_rates` returns them.
    fit
        Whether cores per subgroup, shape (rows, NFs), and per device, shape (rows, devices), are within the limits.
    """
    slo = layouts.chain.slo
    largest = float(slo.t_max_mbps)
    nfs, devices = layouts.sites.shape[1], len(rack.devices)
    rows, rate = np.arange(len(layouts)), np.full(len(layouts), float(slo.t_min_mbps))
    none = np.empty(0, np.int64)
    found = [(none, np.empty((0, nfs), np.int64), np.empty((0, devices), np.int64), np.empty(0))]
    while len(rows):
        group_cores = _cores_for(rate, once[rows], each[rows], layouts.cycles[rows])
        cores = _by_device(group_cores, layouts.sites[rows], devices)
        fits = (group_cores >= 0).all(axis=1) & fit(group_cores, cores)
        rows, group_cores, cores = rows[fits], group_cores[fits], cores[fits]
        rate = np.minimum(_rate_of(group_cores, once[rows], each[rows]), largest)
        found.append((rows, group_cores, cores, rate))
        more = rate < largest
        rows, rate = rows[more], rate[more] * (1 + 4 * CAP_TOLERANCE)  # beyond what is equal within the tolerance
    layout, group_cores, cores, rate = (np.concatenate(part) for part in zip(*found, strict=True))
    return Options(layouts, layout, group_cores, cores, rate)


def _cores_for(rate: Floats, once: Floats, each: Floats, cycles: Floats) -> Ints:
    """The fewest cores per subgroup for a rate; 0 where there is no subgroup, -1 where no number is enough."""
    wanted = rate[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        several = np.maximum(np.ceil(wanted / each * (1 - CAP_TOLERANCE)), 2)
    several = np.where(np.isfinite(several), several, -1)
    needed = np.where(wanted <= once * (1 + CAP_TOLERANCE), 1, np.where(each > 0, several, -1))
    cores: Ints = np.where(np.isnan(cycles), 0, needed).astype(np.int64)
    return cores


def _rate_of(group_cores: Ints, once: Floats, each: Floats) -> Floats:
    """The rate that the slowest subgroup allows; infinite without subgroups."""
    with np.errstate(invalid="ignore"):
        rates = np.where(group_cores > 1, group_cores * each, np.where(group_cores == 1, once, np.inf))
    return np.asarray(rates.min(axis=1, initial=np.inf))


def _by_device(group_cores: Ints, sites: Ints, devices: int) -> Ints:
    cores = np.zeros((len(sites), devices + 1), dtype=np.int64)
    np.add.at(cores, (np.arange(len(sites))[:, None], np.where(sites == SWITCH_SITE, devices, sites)), group_cores)
    return cores[:, :-1]
