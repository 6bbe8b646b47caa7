"""What a plan uses of the rack, and what limits the rate of each chain."""

from __future__ import annotations

from dataclasses import dataclass

from placer.chains.plan import ChainPlan, RackPlan

NEAR = 1e-6
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
    for one in plan.chains:
        for group, given in one.subgroups:
            cores[group.device] += given
        for (server, direction), share in one.layout.nic_shares.items():
            carried[direction][server] += one.rate_mbps * float(share)
    return RackUse(tuple(cores), tuple(carried["in"]), tuple(carried["out"]))


def bottlenecks(one: ChainPlan, use: RackUse) -> list[str]:
    """What keeps a chain from a higher rate, in words: subgroups, NICs, its t_max."""
    rack, rate = one.layout.rack, one.rate_mbps
    found = ["t_max"] if rate >= float(one.chain.slo.t_max_mbps) * (1 - NEAR) else []
    for group, cores in one.subgroups:
        device = rack.devices[group.device]
        most = group.rate(cores, device, one.chain.packet_bits)
        if most is not None and rate >= float(most) * (1 - NEAR):
            nfs = " ".join(one.chain.nfs[at].id for at in group.nfs)
            found.append(f"{nfs} on {device.name}")
    for server, direction in sorted(one.layout.nic_shares):
        carried = (use.nic_in if direction == "in" else use.nic_out)[server]
        if one.layout.nic_shares[server, direction] and carried >= float(rack.servers[server].nic_mbps) * (1 - NEAR):
            found.append(f"NIC of {rack.servers[server].name}, {direction}")
    return found
