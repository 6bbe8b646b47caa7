"""A bound for many chains on many servers, from prices: of a core, of a Mbps through a NIC, of table memory.

Chains that differ only in their names are one class, servers that differ only in theirs one group, which counts as one
large machine. The bound also holds for plans that split chains over servers (`split_options.py`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from placer.chains.chain import Chain
from placer.chains.layouts import merged_servers
from placer.chains.rack import Rack
from placer.chains.search.linear import largest_gain
from placer.chains.search.split_options import Uses, split_options

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def classes_of(chains: Sequence[Chain]) -> list[list[int]]:
    """Indices of chains that differ only in their names, in the order of the first of each class."""
    members: dict[object, list[int]] = {}
    for number, chain in enumerate(chains):
        members.setdefault(same_but_for_names(chain), []).append(number)
    return list(members.values())


def same_but_for_names(chain: Chain) -> object:
    """Equal for chains that may exchange their places in a plan."""
    nfs = tuple((nf.nf, tuple(sorted(nf.parameters.items()))) for nf in chain.nfs)
    return chain.packet_size, chain.slo, nfs, chain.edges


def fleet_bound(chains: Sequence[Chain], rack: Rack) -> float:
    """What the marginal throughput of no plan exceeds, Mbps; minus infinity when no plan is possible.

    It is that of a linear program over the options of each class, whose dual prices prove it.

    Raises
    ------
    ArithmeticError
        When the solver gives up.
    """
    one_each, sizes = merged_servers(rack)
    limits = _limits(one_each, sizes)
    classes = classes_of(chains)
    most = limits[: len(one_each.devices)].astype(np.int64)
    options = [split_options(chains[numbers[0]], one_each, most) for numbers in classes]
    if any(len(one) == 0 for one in options):
        return float("-inf")
    least = [float(chains[numbers[0]].slo.t_min_mbps) for numbers in classes]
    return _solved(options, least, np.array([len(numbers) for numbers in classes], dtype=np.float64), limits)


def _limits(rack: Rack, sizes: Ints) -> Floats:
    """Of all servers together; infinite blocks where stages are without a bound."""
    cores = [device.cores * sizes[device.server] for device in rack.devices]
    mbps = [
        float(server.nic_mbps) * size for server, size in zip(rack.servers, sizes, strict=True) for _ in ("in", "out")
    ]
    stages = rack.switch.usable_stages
    return np.array([*cores, *mbps, np.inf if stages is None else stages * rack.switch.blocks_per_stage], dtype=float)


def _solved(options: Sequence[Uses], least: Sequence[float], sizes: Floats, limits: Floats) -> float:
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
