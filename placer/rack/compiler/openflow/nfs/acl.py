"""ACL: a rule per filter, or several where ranges of ports are several prefixes; the first filter decides."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import product

from placer.rack.compiler.graph import NfInstance
from placer.rack.compiler.library.acl import ANY_PORT, AclFilter, passes_ipv6
from placer.rack.compiler.library.prefixes import Prefix
from placer.rack.compiler.openflow.rules import OPENFLOW_NFS, PORT_PROTOCOLS, Match, NfRule, prefix_match, ternary_match
from placer.rack.compiler.traffic.entries import prefixes_of


@OPENFLOW_NFS.register("ACL")
def acl_rules(instance: NfInstance) -> Sequence[NfRule]:
    """Without a match IPv4 passes, ARP always, and IPv6 if all of it may; other frames are dropped.

    Later fragments match as if both ports were 0 (`set-frags nx-match`).
    """
    filters: Sequence[AclFilter] = instance.data
    found = [
        NfRule(len(filters) - at + 1, match, () if one.permit else None, at + 1)
        for at, one in enumerate(filters)
        for match in _matches(one)
    ]
    known: list[Match] = [{"ip": ""}, {"dl_type": "0x0806"}]
    known += [{"dl_type": "0x86dd"}] * passes_ipv6(filters)
    return [*found, *(NfRule(1, match) for match in known), NfRule(0, {}, None)]


def _matches(one: AclFilter) -> Iterator[Match]:
    base = {PORT_PROTOCOLS[one.protocol]: ""} if one.protocol in PORT_PROTOCOLS else {"ip": ""}
    if one.protocol and one.protocol not in PORT_PROTOCOLS:
        base["nw_proto"] = str(one.protocol)
    base |= {**_address("nw_src", one.source), **_address("nw_dst", one.destination)}
    for source, destination in product(_ports("tp_src", one.source_ports), _ports("tp_dst", one.destination_ports)):
        yield {**base, **source, **destination}


def _address(name: str, prefix: Prefix) -> Mapping[str, str]:
    return {name: prefix_match(prefix.address, prefix.mask)} if prefix.length else {}


def _ports(name: str, ports: tuple[int, int]) -> list[Mapping[str, str]]:
    if ports == ANY_PORT:
        return [{}]
    return [{name: ternary_match(value, mask)} for value, mask in prefixes_of(*ports)]
