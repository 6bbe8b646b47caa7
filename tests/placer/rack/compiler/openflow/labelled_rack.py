"""A rack with an emulated OpenFlow switch, and servers that run the chain files that the compiler writes for them."""

from collections.abc import Iterable, Sequence

from placer.rack.compiler.execute import NfCounts
from placer.rack.compiler.graph import RackGraph, instances_of
from placer.rack.compiler.openflow.emulated_switch import EmulatedOpenFlowSwitch
from placer.rack.compiler.openflow.pipeline import openflow_program, vlan_labels
from placer.rack.compiler.openflow.process import LabelledSwitch
from placer.rack.compiler.routing import route_graph
from placer.rack.compiler.server.chain_file import ServerProgram, server_program
from placer.rack.compiler.traffic.expression import Everything
from placer.rack.compiler.traffic.pcap import pcap_filter
from tests.reference.compare import RackOutcome
from tests.reference.emulate import Emulation, add_server
from tests.reference.nfs.headers import has_too_many_tags, read_headers
from tests.reference.peel import fields_of, holds
from tests.reference.server.runtime import ChainRuntime


class LabelledRack:
    """Runs frames through the switch and the servers, one after the other."""

    def __init__(self, graph: RackGraph) -> None:
        self.graph, self.routing = graph, route_graph(graph)
        self.labels, instances = vlan_labels(self.routing), instances_of(graph)
        self.program = openflow_program(self.routing, instances, self.labels)
        texts = self.program.flows_text(), self.program.groups_text(), self.program.meters_text()
        self.switch = EmulatedOpenFlowSwitch(*texts)
        self.labelled = LabelledSwitch(self.switch, self.program.names_text(), self.labels.text())
        ways = [way for nf in graph.nfs for way in nf.ways]
        self.filters = {pcap_filter(way.match): way.match for way in ways if way.match is not None}
        self.servers: dict[str, tuple[ChainRuntime, ServerProgram]] = {}
        for place in graph.places:
            if place.server and (made := server_program(self.routing, place, instances)):
                self.servers[place.name] = ChainRuntime(made.chain, made.files, self.sort), made
        self.malformed = 0

    def sort(self, filters: Sequence[str], frame: bytes) -> int | None:
        """The first filter that holds: filters are known by what they are made from; that of a Match alone always."""
        fields = fields_of(frame)
        return next((at for at, one in enumerate(filters) if holds(self.filters.get(one, Everything()), fields)), None)

    def outcome(self, packets: Iterable[tuple[int, bytes]]) -> RackOutcome:
        """What leaves the rack, what NFs count, and what is dropped outside of them."""
        frames = [out for time_us, frame in packets for out in self.enter(frame, time_us)]
        found = Emulation()
        found.dropped["malformed"] = self.malformed
        for name, count in self.labelled.counters().items():
            what, kind, *_ = name.split()
            if what == "reason":
                found.dropped[kind] += count
            elif what != "way":
                found.entered[what] += count
                found.sent[what] += count * (kind == "sent")
        for runtime, made in self.servers.values():
            add_server(found, runtime, made.functions)
        entered, sent = found.entered, found.sent
        counts = {nf.name: NfCounts(entered[nf.name], sent[nf.name], entered[nf.name] - sent[nf.name])
                  for nf in self.graph.nfs}  # fmt: skip
        return RackOutcome(frames, counts, +found.dropped)

    def enter(self, frame: bytes, time_us: int) -> list[bytes]:
        if read_headers(frame).kind == "malformed" or has_too_many_tags(frame):
            self.malformed += 1
            return []
        left, waiting = [], [(0, frame)]
        while waiting:
            port, one = waiting.pop(0)
            made = self.labelled.process(one, port, time_us)
            if made is None:
                continue
            if made[0] == 0:
                left.append(made[1])
            else:
                runtime, _ = self.servers[self.program.ports[made[0] - 1]]
                waiting += [(made[0], back) for back in runtime.receive(made[1], time_us)]
        return left
