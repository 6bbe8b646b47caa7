"""Monitor: counts packets and bytes of flows, and passes all."""

from placer.rack.compiler.library.nf_kind import NF_KINDS, NoData


class MonitorNf(NoData):
    """Counters of flows."""

    name = "Monitor"
    platforms = frozenset(("server", "openflow"))


NF_KINDS.register(MonitorNf.name)(MonitorNf())
