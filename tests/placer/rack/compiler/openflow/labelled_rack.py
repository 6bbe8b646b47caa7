"""A rack with an emulated OpenFlow switch; its servers are played by models that take labels from VLAN tags."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from placer.rack.compiler.execute import NfCounts
from placer.rack.compiler.graph import RackGraph, RackNf
from placer.rack.compiler.instances import instances_of
from placer.rack.compiler.openflow.emulated_switch import EmulatedOpenFlowSwitch
from placer.rack.compiler.openflow.pipeline import WORLD_PORT, VlanLabels, openflow_program, tag, vlan_labels
from placer.rack.compiler.openflow.process import LabelledSwitch
from placer.rack.compiler.openflow.rules import OpenFlowProgram
from placer.rack.compiler.routing import route_graph, split_limits
from placer.rack.compiler.server.chain_file import server_program
from placer.rack.compiler.traffic.expression import Everything
from placer.rack.compiler.traffic.pcap import pcap_filter
from tests.reference.compare import RackOutcome
from tests.reference.interpret import model_of
from tests.reference.nfs.headers import has_too_many_tags, read_headers, split_value
from tests.reference.peel import fields_of, holds
from tests.reference.server.runtime import ChainRuntime


class LabelledRack:
    """Runs frames through the switch and the servers, one after the other."""

    def __init__(self, graph: RackGraph) -> None:
        self.graph, self.routing = graph, route_graph(graph)
        self.labels: VlanLabels = vlan_labels(self.routing)
        self.instances = instances_of(graph)
        self.program: OpenFlowProgram = openflow_program(self.routing, self.instances, self.labels)
        self.switch = EmulatedOpenFlowSwitch(self.program.flows_text(), self.program.groups_text())
        self.models = {at: model_of(one.nf.kind, one.parameters, one.nf.name) for at, one in self.instances.items()}
        self.by_vlan = {self.labels.vlans[self.routing.labels[nf]]: nf for nf in self.routing.entered}
        self.counts = {nf.name: NfCounts() for nf in graph.nfs}
        self.dropped = Counter[str]()

    def outcome(self, packets: Iterable[tuple[int, bytes]]) -> RackOutcome:
        """What leaves the rack."""
        frames = [out for time_us, frame in packets for out in self.enter(frame, time_us)]
        for name, count in self.switch.counters(self.program.names_text()).items():
            what, kind = name.split()
            if what == "reason":
                self.dropped[kind] += count
            else:
                self.counts[what].entered += count
                self.counts[what].sent += count * (kind == "sent")
                self.counts[what].dropped += count * (kind == "dropped")
        return RackOutcome(frames, self.counts, self.dropped)

    def enter(self, frame: bytes, time_us: int) -> list[bytes]:
        if read_headers(frame).kind == "malformed" or has_too_many_tags(frame):
            self.dropped["malformed"] += 1
            return []
        left, waiting = [], [(WORLD_PORT, frame)]
        while waiting:
            port, one = waiting.pop(0)
            for out, made in self.switch.process(one, port):
                if out == WORLD_PORT:
                    left.append(made)
                else:
                    waiting += [(out, back) for back in self.serve(made, time_us)]
        return left

    def serve(self, frame: bytes, time_us: int) -> list[bytes]:
        """What a server sends back to the switch, with labels."""
        nf = self.graph.nfs[self.by_vlan[int.from_bytes(frame[14:16], "big")]]
        waiting, left = [(nf, frame[:12] + frame[16:])], []
        while waiting:
            nf, frame = waiting.pop(0)
            for made in self.processed(nf, frame, time_us):
                known, target = self.target(nf, made)
                if not known:
                    self.dropped["unmatched"] += 1
                elif target is not None and self.graph.nfs[target].place.server == nf.place.server:
                    waiting.append((self.graph.nfs[target], made))
                else:
                    label = self.routing.exits[nf.number] if target is None else self.routing.labels[target]
                    left.append(tag(made, self.labels.vlans[label]))
        return left

    def processed(self, nf: RackNf, frame: bytes, time_us: int) -> list[bytes]:
        made, counts = self.models[nf.number].process(frame, time_us), self.counts[nf.name]
        counts.entered += 1
        counts.sent += len(made)
        counts.dropped += not made
        return made

    @staticmethod
    def target(nf: RackNf, frame: bytes) -> tuple[bool, int | None]:
        """Whether there is a way for a frame, and to which NF."""
        fields = fields_of(frame)
        for way in nf.ways:
            if way.match is not None and holds(way.match, fields):
                return True, way.target
        others = [way for way in nf.ways if way.match is None]
        value = split_value(frame, read_headers(frame), nf.split_salt) if len(others) > 1 else 0
        for limit, way in zip(split_limits([way.share for way in others]), others, strict=True):
            if value < limit:
                return True, way.target
        return False, None


class ServedRack:
    """The switch, and servers that run the chain files that the compiler writes for them."""

    def __init__(self, graph: RackGraph) -> None:
        routing, instances = route_graph(graph), instances_of(graph)
        labels = vlan_labels(routing)
        program = openflow_program(routing, instances, labels)
        self.ports = program.ports
        self.switch = LabelledSwitch(program.flows_text(), program.groups_text(), program.names_text(), labels.text())
        ways = [way for nf in graph.nfs for way in nf.ways]
        self.filters = {pcap_filter(way.match): way.match for way in ways if way.match is not None}
        self.servers: dict[str, ChainRuntime] = {}
        for place in graph.places:
            if place.server and (made := server_program(routing, place, instances)):
                self.servers[place.name] = ChainRuntime(made.chain, made.files, self.sort)

    def sort(self, filters: Sequence[str], frame: bytes) -> int | None:
        """The first filter that holds: filters are known by what they are made from; that of a Match alone always."""
        fields = fields_of(frame)
        return next((at for at, one in enumerate(filters) if holds(self.filters.get(one, Everything()), fields)), None)

    def outcome(self, packets: Iterable[tuple[int, bytes]]) -> RackOutcome:
        """What leaves the rack."""
        return RackOutcome([out for time_us, frame in packets for out in self.enter(frame, time_us)])

    def enter(self, frame: bytes, time_us: int) -> list[bytes]:
        if read_headers(frame).kind == "malformed" or has_too_many_tags(frame):
            return []
        left, waiting = [], [(0, frame)]
        while waiting:
            port, one = waiting.pop(0)
            made = self.switch.process(one, port)
            if made is None:
                continue
            if made[0] == 0:
                left.append(made[1])
            else:
                server = self.servers[self.ports[made[0] - 1]]
                waiting += [(made[0], back) for back in server.receive(made[1], time_us)]
        return left
