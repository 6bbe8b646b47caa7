"""From a plan to the programs of all devices: the main flow of the meta-compiler.

plan -> graph (who follows whom, where) -> labels (service paths) -> one program per device -> a directory
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from placer.rack.compiler.ebpf.program import NicProgram, nic_program
from placer.rack.compiler.graph import DeviceKind, NfInstance, graph_of, instances_of
from placer.rack.compiler.openflow.pipeline import VlanLabels, openflow_program, vlan_labels
from placer.rack.compiler.openflow.rules import OpenFlowProgram
from placer.rack.compiler.routing import Routing, route_graph, switch_ports
from placer.rack.compiler.server.chain_file import ServerProgram, server_program
from placer.rack.compiler.switch.compose import compose
from placer.rack.compiler.switch.program import SwitchProgram
from placer.rack.compiler.switch.stages import stages_of
from placer.rack.compiler.traffic.entries import unmet_expressions
from placer.rack.compiler.traffic.expression import Or
from placer.rack.files.plan_file import PlanFile
from placer.rack.rack import SwitchKind
from profiles import InputError

MOST_LINKS = 64  # of the program that plays the switch (`nfs/rack/link.h`)


@dataclass(frozen=True)
class CompiledRack:
    """The programs of a rack.

    `switch`: the program of a programmable switch; None for an OpenFlow switch, which has rules instead. `servers`,
    `nics`: by name, those that run NFs.
    """

    routing: Routing
    instances: Mapping[int, NfInstance]
    switch: SwitchProgram | None
    servers: Mapping[str, ServerProgram]
    nics: Mapping[str, NicProgram]
    tables: SharedTables | None = None  # what the choice of shared tables was made by; None where it was given
    openflow: OpenFlowRules | None = None


@dataclass(frozen=True)
class OpenFlowRules:
    """The rules of an OpenFlow switch, and the VLANs that stand for labels there."""

    program: OpenFlowProgram
    labels: VlanLabels


@dataclass(frozen=True)
class SharedTables:
    """What one table for NFs of the same kind saves: tables and stages, as our packer counts them."""

    apart: tuple[int, int | None]
    shared: tuple[int, int | None]

    @property
    def saves(self) -> bool:
        """Whether it takes fewer stages."""
        stages, before = self.shared[1], self.apart[1]
        return stages is not None and before is not None and stages < before


def compile_rack(plan: PlanFile, file: str, *, shares: bool | None = False) -> CompiledRack:
    """The programs of a plan.

    `shares`: whether NFs of the same kind share tables of the switch; None: where that saves stages. Raises InputError
    when NFs cannot be generated: with each fault that one step finds.
    """
    graph = graph_of(plan, file)
    instances = instances_of(graph)
    routing = route_graph(graph)
    most = MOST_LINKS - (graph.rack.switch.kind is SwitchKind.OPENFLOW)  # one is to the process that runs rules
    if len(ports := switch_ports(routing)) > most:
        raise InputError.of("switch", f"{len(ports)} servers run NFs: an emulated switch has {most} links at most")
    servers: dict[str, ServerProgram] = {}
    nics: dict[str, NicProgram] = {}
    for place in graph.places:
        if place.kind is DeviceKind.SERVER and (program := server_program(routing, place, instances)):
            servers[place.name] = program
        elif place.kind is DeviceKind.SMARTNIC and graph.of(place):
            nics[place.name] = nic_program(routing, place, instances)
            nics[place.name].check()
    if graph.rack.switch.kind is SwitchKind.OPENFLOW:
        labels = vlan_labels(routing)
        rules = OpenFlowRules(openflow_program(routing, instances, labels), labels)
        return CompiledRack(routing, instances, None, servers, nics, openflow=rules)
    switch, tables = _switch(routing, instances, shares)
    return CompiledRack(routing, instances, switch, servers, nics, tables)


def own_warnings(rack: CompiledRack) -> list[str]:
    """What operators should know about own data of NFs and about their aggregates, a sentence each."""
    entries = rack.routing.graph.entries
    unmet = unmet_expressions([Or(entry.aggregates) for entry in entries])
    warnings = [(nf.name, rack.instances[nf.number].kind.own_warning(nf.own)) for nf in rack.routing.graph.nfs]
    return [
        *(
            f"{entries[number].chain}: no packet enters: chains before it take all of its aggregates"
            for number in unmet
        ),
        *(f"{name}: {warning}" for name, warning in warnings if warning),
    ]


def _switch(
    routing: Routing, instances: Mapping[int, NfInstance], shares: bool | None
) -> tuple[SwitchProgram, SharedTables | None]:
    if shares is not None:
        return compose(routing, instances, shares=shares), None
    apart, shared = compose(routing, instances), compose(routing, instances, shares=True)
    counts = len(apart.tables), stages_of(apart)
    if len(shared.tables) == len(apart.tables):
        return apart, SharedTables(counts, counts)
    found = SharedTables(counts, (len(shared.tables), stages_of(shared)))
    return shared if found.saves else apart, found
