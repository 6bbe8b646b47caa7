"""Monitor: counts packets and bytes of flows, and passes all."""

from collections.abc import Mapping

from placer.rack.compiler.library.nf_kind import NF_KINDS, NoData


class MonitorNf(NoData):
    """Counters of flows."""

    name = "Monitor"
    platforms = frozenset(("server", "openflow"))

    def server_settings(self, parameters: Mapping[str, float], files: Mapping[str, str]) -> dict[str, str]:
        """IPv6 passes uncounted, as through the rules of a switch."""
        return {"ipv6": "pass"}


NF_KINDS.register(MonitorNf.name)(MonitorNf())
