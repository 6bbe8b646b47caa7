"""The program of a SmartNIC of a plan."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from placer.metacompiler.ebpf.functions import NIC_FUNCTIONS
from placer.metacompiler.ebpf.program import NicEdge, NicEntry, NicExit, NicPassing, NicProgram, NicSide, NicStep
from placer.metacompiler.graph import Place, RackNf, Way
from placer.metacompiler.instances import NfInstance
from placer.metacompiler.routing import Label, Routing


def nic_program(routing: Routing, place: Place, instances: Mapping[int, NfInstance]) -> NicProgram:
    """What a SmartNIC runs: its NFs in the order of packets, and what passes between switch and host."""
    nfs = routing.graph.of(place)
    steps = {nf.number: at for at, nf in enumerate(nfs)}
    return NicProgram(
        place.name,
        tuple(
            NicStep(
                nf.name,
                NIC_FUNCTIONS[nf.kind](instances[nf.number].parameters, instances[nf.number].data),
                tuple(_edge(routing, nf, way, steps) for way in nf.ways),
            )
            for nf in nfs
        ),
        tuple(NicEntry(routing.labels[nf.number], steps[nf.number]) for nf in nfs if nf.number in routing.entered),
        tuple(_passing(routing, place)),
    )


def _edge(routing: Routing, nf: RackNf, way: Way, steps: Mapping[int, int]) -> NicEdge:
    if way.target is None:
        return NicEdge(NicExit(NicSide.SWITCH, routing.exits[nf.number]), way.match, way.share)
    if way.target in steps:
        return NicEdge(steps[way.target], way.match, way.share)
    at_host = routing.graph.nfs[way.target].place.server == nf.place.server
    label = routing.labels[way.target]
    return NicEdge(NicExit(NicSide.HOST if at_host else NicSide.SWITCH, label), way.match, way.share)


def _passing(routing: Routing, place: Place) -> Iterator[NicPassing]:
    """Labels of packets that are not for the SmartNIC: to the host, or from it to the switch."""
    graph = routing.graph
    host = [nf for nf in graph.nfs if nf.place.server == place.server and nf.place != place]
    to_host = {routing.labels[nf.number] for nf in host if nf.number in routing.entered}
    to_switch: set[Label] = {routing.exits[nf.number] for nf in host if nf.number in routing.exits}
    for nf in host:
        away = [target for target in nf.targets if graph.nfs[target].place.server != place.server]
        to_switch |= {routing.labels[target] for target in away}
    yield from (NicPassing(label, NicSide.HOST) for label in sorted(to_host))
    yield from (NicPassing(label, NicSide.SWITCH) for label in sorted(to_switch))
