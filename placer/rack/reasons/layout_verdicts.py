"""Why a layout is not the one of a plan: what forbids it, or what it would cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction
from math import ceil

import numpy as np

from placer.rack.layout import Layout, Subgroup
from placer.rack.layouts import CAP_TOLERANCE, layouts_at
from placer.rack.plan import ChainPlan, RackPlan
from placer.rack.stages.stage_oracles import stage_oracle

ABOVE_CAP = 1 + Fraction(CAP_TOLERANCE)


class LayoutCause(StrEnum):
    """Why a layout was not chosen."""

    LATENCY = "latency"
    TABLE_ORDER = "table_order"
    ONE_CORE = "one_core"
    CORES = "cores"
    NIC = "nic_mbps"
    STAGES = "stages"
    OTHERS = "others"
    COSTS = "costs"
    AS_GOOD = "as_good"
    BETTER = "better"
    POSSIBLE = "possible"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class LayoutVerdict:
    """Why a layout was not chosen.

    Parameters
    ----------
    of
        The device, server or subgroup that is the reason, where there is one.
    needs, has
        Of what is the reason: us of latency; Mbps that a subgroup or NIC would have to carry; cores.
    marginal_mbps
        Of the best plan with this layout; None where there is none.
    cost_mbps
        By how much that is less than the plan's.
    proven
        Whether no plan with this layout costs less.
    changes
        By chain the rate in that plan less the one in the plan, Mbps, where they differ.
    """

    layout: Layout
    cause: LayoutCause
    of: str = ""
    needs: float | None = None
    has: float | None = None
    marginal_mbps: float | None = None
    cost_mbps: float | None = None
    proven: bool = True
    changes: Mapping[str, float] = field(default_factory=dict)


def verdict_alone(layout: Layout) -> LayoutVerdict:
    """What forbids a layout on a rack that is otherwise empty; `possible` if nothing does."""
    slo, d_max = layout.chain.slo, layout.chain.slo.d_max_us
    if d_max is not None and layout.latency_us > d_max * ABOVE_CAP:
        return LayoutVerdict(layout, LayoutCause.LATENCY, "", float(layout.latency_us), float(d_max))
    unbounded = Layout(layout.chain, layout.rack, layout.sites)
    if not len(layouts_at(layout.chain, layout.rack, np.array([unbounded.sites], dtype=np.int64))):
        return LayoutVerdict(layout, LayoutCause.TABLE_ORDER)
    needed: dict[int, int] = {}
    for group in layout.subgroups:
        cores = _cores_for(group, slo.t_min_mbps, layout)
        if cores is None:
            rate = group.rate(1, layout.rack.devices[group.device], layout.chain.packet_bits)
            of = f"{_names(group, layout)} on {layout.rack.devices[group.device].name}"
            return LayoutVerdict(layout, LayoutCause.ONE_CORE, of, float(slo.t_min_mbps), float(rate or 0))
        needed[group.device] = needed.get(group.device, 0) + cores
    for number, cores in needed.items():
        device = layout.rack.devices[number]
        if cores > device.cores:
            return LayoutVerdict(layout, LayoutCause.CORES, device.name, cores, device.cores)
    for (server, direction), share in layout.nic_shares.items():
        mbps, limit = share * slo.t_min_mbps, layout.rack.servers[server].nic_mbps
        if mbps > limit * ABOVE_CAP:
            of = f"{layout.rack.servers[server].name}, {direction}"
            return LayoutVerdict(layout, LayoutCause.NIC, of, float(mbps), float(limit))
    if not stage_oracle(layout.rack, [layout.chain]).fits(frozenset((0, nf) for nf in layout.on_switch)):
        return LayoutVerdict(layout, LayoutCause.STAGES, "switch")
    return LayoutVerdict(layout, LayoutCause.POSSIBLE)


def _cores_for(group: Subgroup, mbps: Fraction, layout: Layout) -> int | None:
    """The fewest cores that carry a rate; None if only one may and it does not."""
    device, bits = layout.rack.devices[group.device], layout.chain.packet_bits
    alone = group.rate(1, device, bits)
    if alone is None or mbps <= alone * ABOVE_CAP:
        return 1
    if group.cycles_of_replicas is None:
        return None
    each = device.clock_mhz * bits / group.cycles_of_replicas
    return max(ceil(mbps / (each * ABOVE_CAP)), 2)


def _names(group: Subgroup, layout: Layout) -> str:
    return " ".join(layout.chain.nfs[at].id for at in group.nfs)


# What a plan uses of the rack, and what limits the rate of each chain.


NEAR_LIMIT = 1e-6
"""Relative: how near its limit something is used up."""


@dataclass(frozen=True)
class RackUse:
    """What a plan uses.

    Parameters
    ----------
    cores
        Per device.
    nic_in, nic_out
        Per server, what its NIC carries from the switch and to it, Mbps.
    """

    cores: tuple[int, ...]
    nic_in: tuple[float, ...]
    nic_out: tuple[float, ...]


def rack_use(plan: RackPlan) -> RackUse:
    """What the chains of a plan use together."""
    cores = [0] * len(plan.rack.devices)
    carried = {"in": [0.0] * len(plan.rack.servers), "out": [0.0] * len(plan.rack.servers)}
    for chain in plan.chains:
        for group, given in chain.subgroups:
            cores[group.device] += given
        for (server, direction), share in chain.layout.nic_shares.items():
            carried[direction][server] += chain.rate_mbps * float(share)
    return RackUse(tuple(cores), tuple(carried["in"]), tuple(carried["out"]))


def bottlenecks(one: ChainPlan, use: RackUse) -> list[str]:
    """What keeps a chain from a higher rate, in words: subgroups, NICs, its t_max."""
    rack, rate = one.layout.rack, one.rate_mbps
    found = ["t_max"] if rate >= float(one.chain.slo.t_max_mbps) * (1 - NEAR_LIMIT) else []
    for group, cores in one.subgroups:
        device = rack.devices[group.device]
        most = group.rate(cores, device, one.chain.packet_bits)
        if most is not None and rate >= float(most) * (1 - NEAR_LIMIT):
            nfs = " ".join(one.chain.nfs[at].id for at in group.nfs)
            found.append(f"{nfs} on {device.name}")
    for server, direction in sorted(one.layout.nic_shares):
        carried = (use.nic_in if direction == "in" else use.nic_out)[server]
        if one.layout.nic_shares[server, direction] and carried >= float(rack.servers[server].nic_mbps) * (
            1 - NEAR_LIMIT
        ):
            found.append(f"NIC of {rack.servers[server].name}, {direction}")
    return found
