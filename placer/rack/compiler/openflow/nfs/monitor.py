"""Monitor: a rule for each flow that it has seen, which only counts packets and bytes.

Open vSwitch learns these rules by itself (`learn`), into a table behind all others.
"""

from collections.abc import Sequence

from placer.rack.compiler.graph import NfInstance
from placer.rack.compiler.openflow.rules import FLOWS_TABLE, OPENFLOW_NFS, NfRule

PORT_FIELDS = {"tcp": (6, "NXM_OF_TCP_SRC[]", "NXM_OF_TCP_DST[]"), "udp": (17, "NXM_OF_UDP_SRC[]", "NXM_OF_UDP_DST[]")}
ADDRESS_FIELDS = ("NXM_OF_IP_SRC[]", "NXM_OF_IP_DST[]")


@OPENFLOW_NFS.register("Monitor")
def monitor_rules(instance: NfInstance) -> Sequence[NfRule]:
    """All packets pass; those of IPv4 are counted by flow. Fragments other than the first have ports 0."""
    with_ports = [
        NfRule(3, {word: ""}, _count(instance, f"nw_proto={protocol}", *ADDRESS_FIELDS, *ports))
        for word, (protocol, *ports) in PORT_FIELDS.items()
    ]
    rest = NfRule(2, {"ip": ""}, _count(instance, "NXM_OF_IP_PROTO[]", *ADDRESS_FIELDS))
    return [*with_ports, rest, NfRule(1, {})]


def _count(instance: NfInstance, *fields: str) -> tuple[str, ...]:
    """Learn the rule of a packet's flow, and let it count the packet."""
    learnt = ",".join([f"table={FLOWS_TABLE}", "priority=1", "OXM_OF_METADATA[]", "eth_type=0x0800", *fields])
    return f"learn({learnt})", f"resubmit(,{FLOWS_TABLE})"
