"""IPv4Fwd: a rule per prefix, the longer ones first; time to live and MAC addresses are rewritten."""

from collections.abc import Sequence

from placer.rack.compiler.graph import NfInstance
from placer.rack.compiler.library.ipv4_fwd import OWN_MAC, Route
from placer.rack.compiler.openflow.rules import OPENFLOW_NFS, Actions, NfRule, prefix_match

ENDED_PRIORITY = 100  # the priority of what is dropped whatever its route


@OPENFLOW_NFS.register("IPv4Fwd")
def forwarding_rules(instance: NfInstance) -> Sequence[NfRule]:
    """At the end of its time to live, without route, or other than IPv4, a packet is dropped."""
    ended = [NfRule(ENDED_PRIORITY, {"ip": "", "nw_ttl": f"{ttl}"}, None) for ttl in (0, 1)]
    routes = [
        NfRule(1 + route.prefix.length, _match(route), _actions(route), at) for at, route in enumerate(instance.data, 1)
    ]
    return [*ended, *routes, NfRule(0, {}, None)]


def _match(route: Route) -> dict[str, str]:
    return {"ip": "", "nw_dst": prefix_match(route.prefix.address, route.prefix.mask)}


def _actions(route: Route) -> Actions:
    return f"set_field:{OWN_MAC.hex(':')}->eth_src", f"set_field:{route.mac.hex(':')}->eth_dst", "dec_ttl"
