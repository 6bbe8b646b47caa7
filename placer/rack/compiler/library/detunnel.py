"""Detunnel: takes the outer VLAN tag off frames (IEEE 802.1Q and 802.1ad)."""

from placer.rack.compiler.library.nf_kind import ALL_PLATFORMS, NF_KINDS, NoData


class DetunnelNf(NoData):
    """Frames without their outer VLAN tag."""

    name = "Detunnel"
    platforms = ALL_PLATFORMS


NF_KINDS.register(DetunnelNf.name)(DetunnelNf())
