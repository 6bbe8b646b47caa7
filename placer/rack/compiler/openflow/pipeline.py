"""The rules of a rack's OpenFlow switch, in a fixed order of tables.

Table 0 takes labels off packets from servers and sorts packets from the world into chains. Then each kind of NF has two
tables, in the order of the rack's `table_order`: one does the work of all NFs of that kind, the other sends packets on.
Between tables a packet carries the number of the NF that is next in its metadata; to a server it travels with the VLAN
of its label in front. A packet passes the tables once per visit, and only forward.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from placer.rack.compiler.graph import ChainEntry, NfInstance, Place, RackNf, Way
from placer.rack.compiler.openflow.headers import ETHERNET_BYTES, TAG_BYTES, TYPE_NSH, TYPE_QINQ, word_at
from placer.rack.compiler.openflow.rules import (
    DROP_ACTIONS,
    FLOWS_TABLE,
    LABELS_TABLE,
    OPENFLOW_NFS,
    REPARSE_ACTIONS,
    TAG_PRESENT,
    TWO_TAGS,
    Actions,
    FlowRule,
    Match,
    OpenFlowProgram,
    RateMeter,
    SplitGroup,
    matches_of,
    push_tag,
)
from placer.rack.compiler.routing import BURST_S, PORT_MBPS, Label, Routing, split_limits, switch_ports
from placer.rack.compiler.traffic.entries import entries_of
from placer.rack.compiler.traffic.expression import Or
from profiles import Fault, InputError

MOST_LABELS = 4094  # VLANs that a tag can name: 0 and 4095 are reserved (IEEE 802.1Q, table 9-2)
ADDRESS_BYTES = 12
NSH_BASE = bytes.fromhex("0fc20203")
"""Version 0, time to live 63, two words, metadata of variable length, Ethernet (RFC 8300)."""
NSH_BYTES = 8


@dataclass(frozen=True)
class VlanLabels:
    """The VLAN of each label."""

    vlans: Mapping[Label, int]

    @cached_property
    def labels(self) -> Mapping[int, Label]:
        return {vlan: label for label, vlan in self.vlans.items()}

    def text(self) -> str:
        """A line per label: VLAN, service path, index."""
        return "".join(f"{vlan} {label.path} {label.index}\n" for label, vlan in self.vlans.items())


def read_labels(text: str) -> VlanLabels:
    """The labels of a text that `VlanLabels.text` wrote."""
    lines = [list(map(int, line.split())) for line in text.splitlines()]
    return VlanLabels({Label(path, index): vlan for vlan, path, index in lines})


def vlan_labels(routing: Routing) -> VlanLabels:
    """The VLANs of the labels by which packets travel. Raises InputError when there are more than a tag can name."""
    used = {routing.labels[nf] for nf in routing.entered} | set(routing.exits.values())
    if len(used) > MOST_LABELS:
        message = f"{len(used)} labels are too many for an OpenFlow switch: a VLAN tag names {MOST_LABELS}"
        raise InputError.of("chains", message, hint="fewer chains, or fewer changes between switch and servers")
    in_order = sorted(used, key=lambda label: (label.path, -label.index))
    return VlanLabels({label: vlan for vlan, label in enumerate(in_order, 1)})


def tag(frame: bytes, vlan: int) -> bytes:
    """A frame with its label in front of all tags of its own."""
    return frame[:ADDRESS_BYTES] + (TYPE_QINQ << 16 | vlan).to_bytes(4, "big") + frame[ADDRESS_BYTES:]


def with_service_header(frame: bytes, labels: VlanLabels) -> bytes | None:
    """A labelled frame with a service header in place of the tag, as servers know it; None if it has no label."""
    if len(frame) < ETHERNET_BYTES + TAG_BYTES or word_at(frame, ADDRESS_BYTES) != TYPE_QINQ:
        return None
    label = labels.labels.get(word_at(frame, ETHERNET_BYTES) & 0xFFF)
    if label is None:
        return None
    inner = frame[:ADDRESS_BYTES] + frame[ADDRESS_BYTES + TAG_BYTES :]
    return inner[:ADDRESS_BYTES] + TYPE_NSH.to_bytes(2, "big") + NSH_BASE + label.word.to_bytes(4, "big") + inner


def with_vlan_label(frame: bytes, labels: VlanLabels) -> bytes | None:
    """A frame with a tag in place of its service header; None if it has no header, or an unknown path."""
    begin = ETHERNET_BYTES + NSH_BYTES
    if len(frame) < begin + ETHERNET_BYTES or word_at(frame, ADDRESS_BYTES) != TYPE_NSH:
        return None
    word = int.from_bytes(frame[ETHERNET_BYTES + 4 : begin], "big")
    vlan = labels.vlans.get(Label(word >> 8, word & 0xFF))
    return None if vlan is None else tag(frame[begin:], vlan)


WORLD_PORT = 1  # the port to the world; those of the servers follow
ANY_OUTPUT = "load:0->NXM_OF_IN_PORT[]"  # lets a packet leave by the port by which it came, too
FORGED, UNCLASSIFIED, UNMATCHED, UNKNOWN_PATH = "forged", "unclassified", "unmatched", "unknown_path"
TOO_MANY_TAGS = "too_many_tags"  # why Open vSwitch drops packets of the world with two tags: it reads only one
READ_BEHIND_TAGS = ("Detunnel", "Tunnel")  # kinds that treat packets with two tags by themselves
OTHER_COOKIE = 1  # of rules that count nothing
MOST_PRIORITY = 65535
LARGEST_FRAME_KBITS = 33  # of the largest frame that links carry: no meter admits one that is larger than its burst


def openflow_program(routing: Routing, instances: Mapping[int, NfInstance], labels: VlanLabels) -> OpenFlowProgram:
    """The rules and groups of the switch.

    Raises InputError when an NF has no table, or follows one whose table is not before its own; when rules have no
    priority left.
    """
    order = routing.graph.rack.switch.table_order
    faults = list(_faults(routing, order))
    if faults:
        raise InputError(faults)
    writer = _Writer(routing, instances, labels, {kind: 1 + 2 * at for at, kind in enumerate(order)})
    writer.write()
    program = OpenFlowProgram(writer.rules, writer.groups, switch_ports(routing), writer.names, writer.meters)
    if any(rule.priority > MOST_PRIORITY for rule in program.rules):
        raise InputError.of("switch", f"a table has more than {MOST_PRIORITY} priorities")
    return program


def _faults(routing: Routing, order: Sequence[str]) -> Iterator[Fault]:
    if 2 * len(order) >= FLOWS_TABLE:
        yield Fault("switch", None, "table_order", f"{len(order)} kinds need more tables than a switch has")
    for nf in routing.graph.nfs:
        if not routing.on_switch(nf.number):
            continue
        if nf.kind not in order or nf.kind not in OPENFLOW_NFS:
            hint = f"the switch's tables are {', '.join(order)}"
            yield Fault(nf.name, None, None, f"the OpenFlow switch has no table for {nf.kind}", hint)
            continue
        for target in nf.targets:
            head = routing.graph.nfs[target]
            if routing.on_switch(target) and head.kind in order and order.index(head.kind) <= order.index(nf.kind):
                message = f"it follows {nf.name}, but its table is not behind that of {nf.kind}"
                yield Fault(head.name, None, None, message, f"tables are {', '.join(order)}")


@dataclass
class _Writer:
    """Collects rules; `tables` has the first table of each kind."""

    routing: Routing
    instances: Mapping[int, NfInstance]
    labels: VlanLabels
    tables: Mapping[str, int]
    rules: list[FlowRule] = field(default_factory=list)
    groups: list[SplitGroup] = field(default_factory=list)
    meters: list[RateMeter] = field(default_factory=list)
    names: dict[int, str] = field(default_factory=dict)
    cookies: dict[str, int] = field(default_factory=dict)

    def write(self) -> None:
        self.from_world()
        self.from_servers()
        for nf in self.here:
            self.nf(nf)
            self.ways(nf)
        for table in sorted({0, *(1 + table for table in self.tables.values())}):
            self.add(table, 0, {}, DROP_ACTIONS, f"reason {UNKNOWN_PATH}")
        for number in sorted(self.routing.entered) if self.has_tunnels else ():
            if not self.routing.on_switch(number):
                self.add(LABELS_TABLE, 1, {"metadata": f"{number + 1:#x}"}, self.labelled(number))

    @cached_property
    def here(self) -> list[RackNf]:
        """The NFs on the switch."""
        return [nf for nf in self.routing.graph.nfs if self.routing.on_switch(nf.number)]

    def drop_two_tags(self, table: int, match: Match, counts: str) -> None:
        for tags in TWO_TAGS:
            self.add(table, MOST_PRIORITY, {**match, **tags}, DROP_ACTIONS, counts)

    def add(self, table: int, priority: int, match: Match, actions: Actions, counts: str = "") -> None:
        """A rule whose packets count as something, or not at all."""
        cookie = OTHER_COOKIE
        if counts:
            cookie = self.cookies.setdefault(counts, len(self.cookies) + OTHER_COOKIE + 1)
            self.names[cookie] = counts
        self.rules.append(FlowRule(table, priority, match, actions, cookie))

    def from_world(self) -> None:
        """Packets from the world: forged ones, then by the first chain that takes them."""
        chains = self.routing.graph.entries
        entries = entries_of([Or(chain.aggregates) for chain in chains])
        port = {"in_port": f"{WORLD_PORT}"}
        forged = {**port, "vlan_tci": f"0x0000/{TAG_PRESENT:#06x}", "dl_type": f"{TYPE_NSH:#06x}"}
        self.add(0, len(entries) + 1, forged, DROP_ACTIONS, f"reason {FORGED}")
        self.drop_two_tags(0, port, f"reason {TOO_MANY_TAGS}")
        for at, entry in enumerate(entries):
            for match in matches_of(entry.bits):
                if entry.verdict is None:
                    self.add(0, len(entries) - at, {**port, **match}, DROP_ACTIONS, f"reason {UNCLASSIFIED}")
                else:
                    chain = chains[entry.verdict]
                    meter = self.metered(entry.verdict, chain)
                    # rules behind a meter count only what it admits if packets are read again there
                    admitted = REPARSE_ACTIONS if meter else ()
                    actions = (*meter, ANY_OUTPUT, *admitted, *self.onward(chain.nf))
                    self.add(0, len(entries) - at, {**port, **match}, actions)

    def metered(self, number: int, chain: ChainEntry) -> Actions:
        """What keeps the t_max of a chain, unless it begins on a server or SmartNIC, which does."""
        if not self.routing.on_switch(chain.nf) or chain.t_max_mbps >= PORT_MBPS:
            return ()
        kbps = max(round(1000 * chain.t_max_mbps), 1)
        meter = RateMeter(number + 1, kbps, max(int(kbps * BURST_S), LARGEST_FRAME_KBITS))
        if meter not in self.meters:
            self.meters.append(meter)
        return (f"meter:{meter.number}",)

    def from_servers(self) -> None:
        """Packets from servers: by their label to an NF here, to another server as they are, or out."""
        for number in range(WORLD_PORT + 1, WORLD_PORT + 1 + len(switch_ports(self.routing))):
            for nf in sorted(self.routing.entered):
                match = self.label_match(number, self.labels.vlans[self.routing.labels[nf]])
                if self.routing.on_switch(nf):
                    self.add(0, 1, match, (ANY_OUTPUT, "pop_vlan", *self.onward(nf)))
                    for tags in TWO_TAGS:
                        actions = (ANY_OUTPUT, "pop_vlan", *REPARSE_ACTIONS, *self.onward(nf))
                        self.add(0, 2, {**tags, **match}, actions)
                else:
                    self.add(0, 1, match, (self.output(nf),))
            for label in self.routing.exits.values():
                self.add(0, 1, self.label_match(number, self.labels.vlans[label]), ("pop_vlan", f"output:{WORLD_PORT}"))

    @staticmethod
    def label_match(port: int, vlan: int) -> Match:
        return {"in_port": f"{port}", "vlan_tci": f"{TAG_PRESENT | vlan:#06x}/0x1fff"}

    def nf(self, nf: RackNf) -> None:
        """The work of an NF: its rules, for packets that are in it."""
        table = self.tables[nf.kind]
        here = {"metadata": f"{nf.number + 1:#x}"}
        if nf.kind not in READ_BEHIND_TAGS:
            self.drop_two_tags(table, here, f"{nf.name} dropped")
        for rule in OPENFLOW_NFS[nf.kind](self.instances[nf.number]):
            priority = rule.priority + 1  # that of packets that are in no NF is 0
            counted = f"{nf.name} {'dropped' if rule.actions is None else 'sent'}"
            actions = DROP_ACTIONS if rule.actions is None else (*rule.actions, f"goto_table:{table + 1}")
            self.add(table, priority, {**here, **rule.match}, actions, f"{counted} {rule.entry or ''}".strip())

    def ways(self, nf: RackNf) -> None:
        """Where packets go behind an NF: the first way whose match holds, else by shares."""
        table = self.tables[nf.kind] + 1
        here = {"metadata": f"{nf.number + 1:#x}"}
        matched = [way for way in nf.ways if way.match is not None]
        entries = entries_of([way.match for way in matched if way.match is not None])
        for at, entry in enumerate(entries):
            for match in matches_of(entry.bits):
                priority = len(entries) - at
                if entry.verdict is not None:
                    way = matched[entry.verdict]
                    self.add(
                        table,
                        priority,
                        {**here, **match},
                        self.onward(way.target),
                        f"way {nf.name} {nf.ways.index(way)}",
                    )
                elif rest := self.rest(nf):
                    self.add(table, priority, {**here, **match}, rest)
                else:
                    self.add(table, priority, {**here, **match}, DROP_ACTIONS, f"reason {UNMATCHED}")

    def rest(self, nf: RackNf) -> Actions:
        """Actions for packets that no match holds for; none without a way for them."""
        others = [way for way in nf.ways if way.match is None]
        if len(others) < 2:
            return self.onward(others[0].target) if others else ()
        group = next((group for group in self.groups if group.number == nf.number + 1), None)
        if group is None:
            group = SplitGroup(nf.number + 1, nf.split_salt, self.buckets(others))
            self.groups.append(group)
        return (f"group:{group.number}",)

    def buckets(self, ways: Sequence[Way]) -> list[tuple[int, Actions]]:
        """The ways of a group: its hash has 65,536 values, and a weight is how many of them are a way's."""
        limits = split_limits([way.share for way in ways])
        weights = [limit - before for limit, before in zip(limits, [0, *limits], strict=False)]
        return [(weight, self.in_bucket(way.target)) for way, weight in zip(ways, weights, strict=True)]

    def in_bucket(self, target: int | None) -> Actions:
        """The way on from a group, in which there is no `goto_table`."""
        if target is None or (table := self.table_of(target)) is None:
            return self.onward(target)
        return *self.reparse(target), f"set_field:{target + 1:#x}->metadata", f"resubmit(,{table})"

    def onward(self, target: int | None) -> Actions:
        """The way on: to an NF here, to a server with its label, or out."""
        if target is None:
            return (f"output:{WORLD_PORT}",)
        if (table := self.table_of(target)) is None:
            return self.labelled(target)
        return *self.reparse(target), f"write_metadata:{target + 1:#x}", f"goto_table:{table}"

    def table_of(self, target: int) -> int | None:
        """The table where packets to an NF go on; None: they leave at once."""
        if self.routing.on_switch(target):
            return self.tables[self.routing.graph.nfs[target].kind]
        return LABELS_TABLE if self.has_tunnels else None

    @property
    def has_tunnels(self) -> bool:
        return any(nf.kind == "Tunnel" for nf in self.here)

    def reparse(self, target: int) -> Actions:
        """A tag of a Tunnel may be a second one, and a label is pushed in front of one that was read only."""
        return () if self.routing.on_switch(target) else REPARSE_ACTIONS

    def labelled(self, target: int) -> Actions:
        vlan = self.labels.vlans[self.routing.labels[target]]
        return (*push_tag(vlan, TYPE_QINQ), self.output(target))

    def output(self, nf: int) -> str:
        """To the port of an NF's server, also for its SmartNIC."""
        place: Place = self.routing.graph.nfs[nf].place
        return f"output:{WORLD_PORT + 1 + list(switch_ports(self.routing)).index(place.server)}"
