"""Flow rules and groups, written as `ovs-ofctl add-flows` and `add-groups` read them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import IPv4Address

from placer.rack.compiler.graph import NfInstance
from placer.rack.compiler.traffic.entries import Bits
from profiles.registry import Registry

TAG_PRESENT = 0x1000  # the bit of `vlan_tci` and of values of `vlan_vid` that says that there is a tag
TAGS_REGISTER = "reg15"
"""Where the emulated switch puts the number of VLAN tags: OpenFlow itself matches only the outer one."""
FLOWS_TABLE = 250  # the table of rules that the Monitor learns: it comes after those of all kinds of NF
LABELS_TABLE = 251  # the table that puts labels on packets, where a Tunnel may be before
DROP_ACTIONS = ("drop",)
REPARSE_ACTIONS = ("encap(nsh)", "decap()")
"""Let Open vSwitch read the headers of a packet again: it reads them before it runs rules, behind one VLAN tag only. At
the emulated switch, which reads all headers at any time, this does nothing."""
TWO_TAGS: Sequence[Mapping[str, str]] = [
    {"vlan_tci": f"{TAG_PRESENT:#06x}/{TAG_PRESENT:#06x}", "dl_type": tag_type} for tag_type in ("0x8100", "0x88a8")
]
"""What fits packets that have a tag behind their outer one, where Open vSwitch sees no further."""

Match = Mapping[str, str]
"""Fields and their values, in the order in which they are written; words such as `tcp` have an empty value."""
Actions = tuple[str, ...]


@dataclass(frozen=True)
class FlowRule:
    """One rule of a table: of those that match, the one with the highest priority runs."""

    table: int
    priority: int
    match: Match
    actions: Actions
    cookie: int  # by which counters are found again

    def __str__(self) -> str:
        fields = [f"cookie={self.cookie:#x}", f"table={self.table}", f"priority={self.priority}"]
        fields += [f"{name}={value}" if value else name for name, value in self.match.items()]
        return f"{','.join(fields)} actions={','.join(self.actions)}"


@dataclass(frozen=True)
class SplitGroup:
    """A group that chooses one of its buckets by a hash of the flow.

    The emulated switch uses the portable split hash, whose values the weights divide up; `salt` is its first value.
    """

    number: int
    salt: int
    buckets: Sequence[tuple[int, Actions]]

    def __str__(self) -> str:
        head = f"group_id={self.number},type=select,selection_method=hash,selection_method_param={self.salt}"
        buckets = [
            f"bucket=bucket_id:{number},weight:{weight},actions={','.join(actions)}"
            for number, (weight, actions) in enumerate(self.buckets)
        ]
        return ",".join([f"{head},fields(ip_src,ip_dst,nw_proto,tp_src,tp_dst)", *buckets])


@dataclass(frozen=True)
class RateMeter:
    """A meter: packets above a rate are dropped; a bucket lets bursts through."""

    number: int
    kbps: int
    burst_kbits: int

    def __str__(self) -> str:
        return f"meter={self.number},kbps,burst,bands=type=drop,rate={self.kbps},burst_size={self.burst_kbits}"


@dataclass(frozen=True)
class OpenFlowProgram:
    """What is loaded into a switch; groups and meters come before rules.

    `names`: what rules with a cookie count: `NF sent` and `NF dropped`, with a third word of an NF's own rule, its
    number; `reason REASON`, or `way NF NUMBER`, a branch behind an NF.
    """

    rules: Sequence[FlowRule]
    groups: Sequence[SplitGroup]
    ports: Sequence[str]  # names of the servers at ports from 2 on; port 1 is the world
    names: Mapping[int, str] = field(default_factory=dict)
    meters: Sequence[RateMeter] = ()

    def flows_text(self) -> str:
        """The rules, a line each."""
        head = (
            "# ovs-ofctl -O OpenFlow13 add-flows SWITCH FILE, behind: ovs-ofctl set-frags SWITCH nx-match, and"
            " ovs-ofctl -O OpenFlow13 add-groups SWITCH GROUPS, and each line of METERS:"
            " ovs-ofctl -O OpenFlow13 add-meter SWITCH LINE\n"
        )
        return head + "".join(f"{rule}\n" for rule in self.rules)

    def groups_text(self) -> str:
        """The groups, a line each; they must be there before the rules."""
        return "".join(f"{group}\n" for group in self.groups)

    def meters_text(self) -> str:
        """The meters, a line each."""
        return "".join(f"{meter}\n" for meter in self.meters)

    def names_text(self) -> str:
        """The meaning of cookies, a line each."""
        return "".join(f"{cookie:#x} {name}\n" for cookie, name in self.names.items())


def push_tag(vlan: int, tag_type: int) -> Actions:
    """Put a tag in front."""
    return f"push_vlan:{tag_type:#06x}", f"set_field:{TAG_PRESENT | vlan:#x}->vlan_vid", "set_field:0->vlan_pcp"


def prefix_match(address: int, mask: int) -> str:
    """An address under a mask."""
    return f"{IPv4Address(address)}/{IPv4Address(mask)}"


def ternary_match(value: int, mask: int) -> str:
    """A port under a mask."""
    return f"{value:#x}/{mask:#x}"


TERNARY_FIELDS = {"source": "nw_src", "destination": "nw_dst", "source_port": "tp_src", "destination_port": "tp_dst"}
PORT_PROTOCOLS = {6: "tcp", 17: "udp"}


def matches_of(bits: Bits) -> list[Match]:
    """An entry of a ternary table (`traffic/entries.py`) as matches: one per protocol that has ports, if it asks so."""
    protocol = bits["protocol"][0] if "protocol" in bits else None
    common = _tag_match(bits)
    if "has_ports" not in bits:
        words = {"ip": ""} if "ip" in bits else {}
        words |= {} if protocol is None else {"nw_proto": str(protocol)}
        return [{**words, **common, **_ternary(bits)}]
    protocols = [name for name in PORT_PROTOCOLS if protocol in (None, name)]
    return [{PORT_PROTOCOLS[protocol]: "", "ip_frag": "no", **common, **_ternary(bits)} for protocol in protocols]


def _tag_match(bits: Bits) -> Match:
    if "tagged" not in bits:
        return {}
    vlan, mask = bits.get("vlan", (0, 0))
    return {"vlan_tci": f"{TAG_PRESENT | vlan:#06x}/{TAG_PRESENT | mask & 0xFFF:#06x}"}


def _ternary(bits: Bits) -> Match:
    found = {}
    for name, (value, mask) in bits.items():
        if name in ("source", "destination"):
            found[TERNARY_FIELDS[name]] = prefix_match(value, mask)
        elif name in TERNARY_FIELDS:
            found[TERNARY_FIELDS[name]] = ternary_match(value, mask)
    return found


# The seam of `nfs/`: which rules a kind of NF adds to its table.


@dataclass(frozen=True)
class NfRule:
    """A rule of an NF, among packets that are in it."""

    priority: int
    match: Match
    actions: Actions | None = ()  # done to the packet before it goes on; None: it is dropped
    entry: int = 0  # the number of the NF's own rule or route that it is made of, from 1; 0: of none


NfRules = Callable[[NfInstance], Sequence[NfRule]]

OPENFLOW_NFS: Registry[NfRules] = Registry(
    "kind of NF on an OpenFlow switch", "placer.rack.compiler.openflow.nfs", "placer.openflow_nfs", "nf"
)
