"""Tunnel: puts a VLAN tag on frames (IEEE 802.1Q)."""

from __future__ import annotations

from collections.abc import Mapping

from placer.metacompiler.library.headers import ETHERNET, TAG, TYPE_VLAN, is_tag, word_at
from placer.metacompiler.library.nf_model import EVERYWHERE, NF_KINDS, FrameModel, NoData, ParameterRange

ADDRESSES = 12
"""Bytes of the two MAC addresses, behind which tags stand."""


class TunnelModel:
    """What the Tunnel does to frames: the tag becomes the outer one; a frame that has two is dropped."""

    def __init__(self, vlan: int) -> None:
        self._tag = (TYPE_VLAN << 16 | vlan).to_bytes(4, "big")

    def process(self, packet: bytes, time_us: int) -> list[bytes]:
        if len(packet) < ETHERNET or _has_two_tags(packet):
            return []
        return [packet[:ADDRESSES] + self._tag + packet[ADDRESSES:]]


class TunnelNf(NoData):
    """A VLAN tag on every frame."""

    name = "Tunnel"
    parameters = (ParameterRange("vlan", "of the tag", 0, 4094, 100),)
    platforms = EVERYWHERE

    def model(self, parameters: Mapping[str, float], data: None) -> FrameModel:
        return TunnelModel(int(parameters["vlan"]))

    def server_settings(self, parameters: Mapping[str, float], files: Mapping[str, str]) -> dict[str, str]:
        return {"vlan": f"{int(parameters['vlan'])}"}


def _has_two_tags(packet: bytes) -> bool:
    return (
        is_tag(word_at(packet, ADDRESSES))
        and len(packet) >= ETHERNET + TAG
        and is_tag(word_at(packet, ADDRESSES + TAG))
    )


NF_KINDS.register(TunnelNf.name)(TunnelNf())
