"""An emulated OpenFlow switch: runs the text of rules and groups on frames.

It keeps to OpenFlow 1.3 with what Open vSwitch adds: `resubmit`, `learn` and registers. Two things are its own: `reg15`
has the number of VLAN tags, and groups of type select use the portable split hash. Fragments are seen as after
`ovs-ofctl set-frags nx-match`: the first one has its ports, the others have 0.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from ipaddress import IPv4Address

from placer.rack.compiler.openflow.headers import (
    ETHERNET_BYTES,
    TAG_BYTES,
    FrameType,
    Headers,
    checksum_changed,
    destination_of,
    is_tag,
    ports_of,
    read_headers,
    source_of,
    split_value,
    word_at,
)
from placer.rack.compiler.openflow.rules import FLOWS_TABLE, REPARSE_ACTIONS
from placer.rack.compiler.routing import MOST_BACK_US

ADDRESS_BYTES = 12
TAG_PRESENT = 0x1000
PROTOCOL_WORDS = {"ip": None, "icmp": 1, "tcp": 6, "udp": 17}  # words of matches, and the protocol that they stand for


@dataclass
class _Packet:
    """A frame on its way through the tables."""

    frame: bytes
    port: int
    time_us: int = 0
    metadata: int = 0
    outputs: list[tuple[int, bytes]] = field(default_factory=list)

    known: tuple[bytes, Headers] | None = None

    def headers(self) -> Headers:
        if self.known is None or self.known[0] is not self.frame:
            self.known = self.frame, read_headers(self.frame)
        return self.known[1]

    @property
    def tags(self) -> int:
        count, at = 0, ADDRESS_BYTES
        while len(self.frame) >= at + TAG_BYTES + 2 and is_tag(word_at(self.frame, at)):
            count, at = count + 1, at + TAG_BYTES
        return count


class EmulatedOpenFlowSwitch:
    """A switch with rules; frames enter and leave by numbered ports."""

    program = "emulated OpenFlow switch"

    def __init__(self, flows: str, groups: str, meters: str = "") -> None:
        self.meters = read_meters(meters)
        self.rules: dict[int, list[ReadRule]] = {}
        self.replace_rules(flows)
        self.groups = read_groups(groups)

    def replace_rules(self, flows: str) -> None:
        """Run other rules from now on, whose counts begin at 0; meters stay, and rules that were learnt."""
        learnt = [rule for rule in self.rules.get(FLOWS_TABLE, []) if not rule.cookie]
        self.rules = {FLOWS_TABLE: learnt}
        for rule in read_rules(flows):
            self.rules.setdefault(rule.table, []).append(rule)

    def process(self, frame: bytes, port: int, time_us: int = 0) -> list[tuple[int, bytes]]:
        """The ports by which a frame leaves, each with the frame as it is there; none if it is dropped.

        `time_us`: when it arrived, by which meters measure rates.
        """
        packet = _Packet(frame, port, time_us)
        self._run(packet, 0)
        return packet.outputs

    def counters(self, names: str) -> Counter[str]:
        """What rules have counted, by the names of their cookies."""
        found = Counter[str]()
        known = dict(line.split(maxsplit=1) for line in names.splitlines())
        for rule in self._all_rules():
            if name := known.get(f"{rule.cookie:#x}"):
                found[name] += rule.packets
        if dropped := sum(meter.dropped for meter in self.meters.values()):
            found["reason rate_limit"] += dropped
        return found

    def _all_rules(self) -> Iterator[ReadRule]:
        for rules in self.rules.values():
            yield from rules

    def _run(self, packet: _Packet, table: int) -> None:
        rule = next((rule for rule in self.rules.get(table, ()) if _fits(rule.match, packet)), None)
        if rule is not None:
            rule.packets += 1
            rule.bytes += len(packet.frame)
            self._act(packet, rule.actions)

    def _act(self, packet: _Packet, actions: tuple[str, ...]) -> None:
        for action in actions:
            name, _, value = action.partition(":")
            if name == "goto_table":
                self._run(packet, int(value))
            elif action.startswith("learn("):
                self._learn(packet, action[len("learn(") : -1])
            elif name.startswith("resubmit("):
                self._run(packet, int(name[len("resubmit(,") : -1]))
            elif name == "meter":
                if not self.meters[int(value)].admits(packet):
                    return
            elif name == "group":
                self._choose(packet, int(value))
            elif name == "output":
                if int(value) != packet.port:  # OpenFlow 1.3, section 4.5
                    packet.outputs.append((int(value), packet.frame))
            else:
                _change(packet, name, value)

    def _learn(self, packet: _Packet, text: str) -> None:
        """Add a rule with fields of the packet, unless it is there."""
        fields = dict(part.partition("=")[::2] for part in text.split(","))
        table, priority = int(fields.pop("table")), int(fields.pop("priority"))
        match = {"ip": ""}
        for name, value in fields.items():
            if name in LEARNT_FIELDS:
                match[LEARNT_FIELDS[name]] = f"{PACKET_FIELDS[LEARNT_FIELDS[name]](packet, packet.headers())}"
            elif name != "eth_type":
                match[name] = value
        rules = self.rules.setdefault(table, [])
        if not any(rule.match == match for rule in rules):
            rules.append(ReadRule(table, priority, 0, match, ()))

    def learnt(self, table: int) -> list[ReadRule]:
        """The rules of a table to which rules were added."""
        return self.rules.get(table, [])

    def _choose(self, packet: _Packet, number: int) -> None:
        group = self.groups[number]
        value = split_value(packet.frame, packet.headers(), group.salt)
        for weight, actions in group.buckets:
            if value < weight:
                self._act(packet, actions)
                return
            value -= weight


def _fits(match: Mapping[str, str], packet: _Packet) -> bool:
    headers = packet.headers()
    return all(_field_fits(name, value, packet, headers) for name, value in match.items())


def _field_fits(name: str, value: str, packet: _Packet, headers: Headers) -> bool:
    if name in PROTOCOL_WORDS:
        return headers.type is FrameType.IPV4 and PROTOCOL_WORDS[name] in (None, headers.protocol)
    if name == "ip_frag":
        return value == "no" and headers.type is FrameType.IPV4 and not headers.fragment
    wanted, mask = _numbers(value)
    return PACKET_FIELDS[name](packet, headers) & mask == wanted & mask


@lru_cache(maxsize=65536)
def _numbers(text: str) -> tuple[int, int]:
    """A value and its mask; all bits without one."""
    value, _, mask = text.partition("/")
    return _number(value), _number(mask) if mask else -1


def _number(text: str) -> int:
    return int(IPv4Address(text)) if "." in text else int(text, 0)


def _tci(packet: _Packet, headers: Headers) -> int:
    """The outer tag without its type, and a bit that there is one; 0 without a tag."""
    if packet.tags == 0:
        return 0
    return word_at(packet.frame, ETHERNET_BYTES) | TAG_PRESENT


def _ether_type(packet: _Packet, headers: Headers) -> int:
    """The type behind all tags."""
    return word_at(packet.frame, ADDRESS_BYTES + TAG_BYTES * packet.tags)


PACKET_FIELDS: Mapping[str, Callable[[_Packet, Headers], int]] = {
    "in_port": lambda packet, headers: packet.port,
    "metadata": lambda packet, headers: packet.metadata,
    "reg15": lambda packet, headers: packet.tags,
    "vlan_tci": _tci,
    "dl_type": _ether_type,
    "nw_proto": lambda packet, headers: headers.protocol,
    "nw_src": lambda packet, headers: source_of(packet.frame, headers),
    "nw_dst": lambda packet, headers: destination_of(packet.frame, headers),
    "nw_ttl": lambda packet, headers: packet.frame[headers.l3 + 8],
    "tp_src": lambda packet, headers: ports_of(packet.frame, headers)[0],
    "tp_dst": lambda packet, headers: ports_of(packet.frame, headers)[1],
}
"""Fields of matches. Those of IPv4 stand behind a word that asks for it."""

LEARNT_FIELDS = {
    "OXM_OF_METADATA[]": "metadata",
    "NXM_OF_IP_PROTO[]": "nw_proto",
    "NXM_OF_IP_SRC[]": "nw_src",
    "NXM_OF_IP_DST[]": "nw_dst",
    "NXM_OF_TCP_SRC[]": "tp_src",
    "NXM_OF_UDP_SRC[]": "tp_src",
    "NXM_OF_TCP_DST[]": "tp_dst",
    "NXM_OF_UDP_DST[]": "tp_dst",
}
"""Fields that a learnt rule takes from the packet."""


def _change(packet: _Packet, name: str, value: str) -> None:
    frame = packet.frame
    if name in ("drop", *REPARSE_ACTIONS):
        return
    if name == "load":
        if value != "0->NXM_OF_IN_PORT[]":
            raise ValueError(f"the emulated OpenFlow switch cannot load {value}")
        packet.port = 0
    elif name == "write_metadata":
        packet.metadata = int(value, 0)
    elif name == "pop_vlan":
        packet.frame = frame[:ADDRESS_BYTES] + frame[ADDRESS_BYTES + TAG_BYTES :]
    elif name == "push_vlan":
        copied = frame[ETHERNET_BYTES : ETHERNET_BYTES + 2] if packet.tags else b"\0\0"
        packet.frame = frame[:ADDRESS_BYTES] + int(value, 0).to_bytes(2, "big") + copied + frame[ADDRESS_BYTES:]
    elif name == "dec_ttl":
        headers = packet.headers()
        made, at = bytearray(frame), headers.l3 + 8
        made[at] -= 1
        changed = checksum_changed(word_at(frame, at + 2), frame[at : at + 2], bytes(made[at : at + 2]))
        made[at + 2 : at + 4] = changed.to_bytes(2, "big")
        packet.frame = bytes(made)
    elif name == "set_field":
        _set_field(packet, *value.split("->"))
    else:
        raise ValueError(f"the emulated OpenFlow switch has no action {name}")


def _set_field(packet: _Packet, value: str, name: str) -> None:
    made = bytearray(packet.frame)
    if name == "metadata":
        packet.metadata = int(value, 0)
    elif name in ("eth_dst", "eth_src"):
        at = 0 if name == "eth_dst" else 6
        made[at : at + 6] = bytes.fromhex(value.replace(":", ""))
    elif name == "vlan_vid":
        made[ETHERNET_BYTES : ETHERNET_BYTES + 2] = (
            word_at(made, ETHERNET_BYTES) & 0xE000 | int(value, 0) & 0xFFF
        ).to_bytes(2, "big")
    elif name == "vlan_pcp":
        made[ETHERNET_BYTES] = made[ETHERNET_BYTES] & 0x1F | int(value, 0) << 5
    else:
        raise ValueError(f"the emulated OpenFlow switch cannot set {name}")
    packet.frame = bytes(made)


# Reads rules and groups from their text, as far as generated programs use the syntax of `ovs-ofctl`.


IN_PARENTHESES = re.compile(r"\([^)]*\)")
FLOW_WORDS = ("cookie", "table", "priority")


@dataclass
class ReadRule:
    """A rule: what it matches, what it does, and how many packets and bytes it has seen."""

    table: int
    priority: int
    cookie: int
    match: dict[str, str]
    actions: tuple[str, ...]
    packets: int = 0
    bytes: int = 0


@dataclass
class ReadMeter:
    """A meter: its rate and burst, what is left of the bucket, and how many packets it dropped."""

    kbps: int
    burst_kbits: int
    left_bits: float
    filled_us: int = 0
    dropped: int = 0

    def admits(self, packet: _Packet) -> bool:
        """Whether a packet is within the rate; it takes its bits, also if they are more than are left."""
        passed = max(packet.time_us - self.filled_us, 0)
        if passed or packet.time_us < self.filled_us - MOST_BACK_US:
            self.filled_us = packet.time_us
        self.left_bits = min(self.left_bits + passed * self.kbps / 1000, 1000 * self.burst_kbits)
        if self.left_bits <= 0:
            self.dropped += 1
            return False
        self.left_bits -= 8 * len(packet.frame)
        return True


@dataclass(frozen=True)
class ReadGroup:
    """A group: the first value of its hash, and its buckets with their weights."""

    number: int
    salt: int
    buckets: tuple[tuple[int, tuple[str, ...]], ...] = field(default=())


def read_rules(text: str) -> list[ReadRule]:
    """The rules of a file, those of higher priority first, in each table."""
    lines = [line.partition("#")[0].strip() for line in text.splitlines()]
    return sorted((_rule(line) for line in lines if line), key=lambda rule: -rule.priority)


def read_groups(text: str) -> dict[int, ReadGroup]:
    """The groups of a file, by their number."""
    groups = [_group(line) for line in text.splitlines() if line.strip()]
    return {group.number: group for group in groups}


def read_meters(text: str) -> dict[int, ReadMeter]:
    """The meters of a file, by their number."""
    found = {}
    for line in filter(None, text.splitlines()):
        fields = dict(_field(word) for word in line.replace("bands=", "").split(","))
        kbps, kbits = int(fields["rate"]), int(fields["burst_size"])
        found[int(fields["meter"])] = ReadMeter(kbps, kbits, 1000.0 * kbits)
    return found


def _rule(line: str) -> ReadRule:
    head, _, tail = line.partition(" actions=")
    fields = dict(_field(word) for word in head.split(","))
    numbers = [int(fields.pop(word), 0) for word in FLOW_WORDS]
    return ReadRule(numbers[1], numbers[2], numbers[0], fields, _actions(tail))


def _field(word: str) -> tuple[str, str]:
    name, _, value = word.strip().partition("=")
    return name, value


def _group(line: str) -> ReadGroup:
    head, *buckets = line.split(",bucket=")
    fields = dict(_field(word) for word in IN_PARENTHESES.sub("", head).split(","))
    found = []
    for bucket in buckets:
        parts, _, actions = bucket.partition(",actions=")
        weight = dict(part.split(":") for part in parts.split(","))["weight"]
        found.append((int(weight), _actions(actions)))
    return ReadGroup(int(fields["group_id"]), int(fields["selection_method_param"]), tuple(found))


def _actions(text: str) -> tuple[str, ...]:
    """Actions, which commas part, but not within parentheses."""
    return tuple(re.split(r",(?![^(]*\))", text.strip()))
