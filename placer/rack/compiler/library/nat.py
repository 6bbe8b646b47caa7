"""NAT: inside hosts share external addresses. Traffic goes outward only."""

from collections.abc import Mapping
from ipaddress import IPv4Address

from placer.rack.compiler.library.nf_kind import NF_KINDS, NoData, ParameterRange

FIRST_ADDRESS = int(IPv4Address("203.0.113.0"))


class NatNf(NoData):
    """Network address translation."""

    name = "NAT"
    parameters = (
        ParameterRange("first_address", "first external address, as a number", 0, 4294967040, FIRST_ADDRESS),
        ParameterRange("addresses", "number of external addresses", 1, 256, 16),
    )
    platforms = frozenset(("server", "switch"))

    def server_settings(self, parameters: Mapping[str, float], files: Mapping[str, str]) -> dict[str, str]:
        """Those of a table that a rack's processes have memory for, and no limit to one host's ports."""
        given = {name: f"{int(parameters[name])}" for name in ("first_address", "addresses")}
        return {**given, "sessions": "65536", "host_ports": "64512"}


NF_KINDS.register(NatNf.name)(NatNf())
