"""Tunnel: puts a VLAN tag on frames (IEEE 802.1Q)."""

from collections.abc import Mapping

from placer.rack.compiler.library.nf_kind import ALL_PLATFORMS, NF_KINDS, NoData, ParameterRange


class TunnelNf(NoData):
    """A VLAN tag on every frame."""

    name = "Tunnel"
    parameters = (ParameterRange("vlan", "of the tag", 0, 4094, 100),)
    platforms = ALL_PLATFORMS

    def server_settings(self, parameters: Mapping[str, float], files: Mapping[str, str]) -> dict[str, str]:
        return {"vlan": f"{int(parameters['vlan'])}"}


NF_KINDS.register(TunnelNf.name)(TunnelNf())
