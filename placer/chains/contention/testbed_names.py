"""What a testbed, and models of it, call the NFs and the traffic of a rack."""

from __future__ import annotations

from placer.chains.chain import Chain, ChainNf
from placer.chains.rack import Device, Rack
from profiles import TrafficProfile
from profiles.chain import NfStage


def testbed_nf(rack: Rack, nf: ChainNf, device: Device) -> NfStage:
    """The NF that an NF of the rack corresponds to on a device: the one that the rack names, else that of its name."""
    cost = rack.cost_on(nf.nf, device)
    return (cost and cost.testbed_nf) or NfStage(nf.nf)


def chain_traffic(rack: Rack, chain: Chain, default: TrafficProfile) -> TrafficProfile:
    """The chain's packet size, with the flows and matches that the rack states, else those of the testbed's default."""
    asked = rack.testbed
    flows = default.flows if asked.flows is None else asked.flows
    mtbr = default.mtbr if asked.mtbr is None else asked.mtbr
    return TrafficProfile(flows, float(chain.packet_size), mtbr)
