"""Detunnel: takes the outer VLAN tag off frames (IEEE 802.1Q and 802.1ad)."""

from __future__ import annotations

from collections.abc import Mapping

from placer.metacompiler.library.headers import ETHERNET, TAG, is_tag, word_at
from placer.metacompiler.library.nf_model import EVERYWHERE, NF_KINDS, FrameModel, NoData

ADDRESSES = 12


class DetunnelModel:
    """What the Detunnel does to frames: any tag is taken off; a frame without one passes as it is."""

    def process(self, packet: bytes, time_us: int) -> list[bytes]:
        if len(packet) < ETHERNET:
            return []
        if not is_tag(word_at(packet, ADDRESSES)):
            return [packet]
        return [packet[:ADDRESSES] + packet[ADDRESSES + TAG :]] if len(packet) >= ETHERNET + TAG else []


class DetunnelNf(NoData):
    """Frames without their outer VLAN tag."""

    name = "Detunnel"
    platforms = EVERYWHERE

    def model(self, parameters: Mapping[str, float], data: None) -> FrameModel:
        return DetunnelModel()


NF_KINDS.register(DetunnelNf.name)(DetunnelNf())
