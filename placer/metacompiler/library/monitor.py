"""Monitor: counts packets and bytes of flows, and passes all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from placer.metacompiler.library.headers import FrameType, destination_of, ports_of, read_headers, source_of
from placer.metacompiler.library.nf_model import NF_KINDS, FrameModel, NoData

Flow = tuple[int, int, int, int, int]


class MonitorModel:
    """What the Monitor does to frames: only malformed ones are dropped.

    `packets` and `bytes` count by flow: addresses, protocol and ports, which are 0 in fragments other than the first.
    """

    def __init__(self) -> None:
        self.packets = Counter[Flow]()
        self.bytes = Counter[Flow]()

    def process(self, packet: bytes, time_us: int) -> list[bytes]:
        headers = read_headers(packet)
        if headers.type is FrameType.MALFORMED:
            return []
        if headers.type is FrameType.IPV4:
            addresses = source_of(packet, headers), destination_of(packet, headers)
            flow = (*addresses, headers.protocol, *ports_of(packet, headers))
            self.packets[flow] += 1
            self.bytes[flow] += len(packet)
        return [packet]


class MonitorNf(NoData):
    """Counters of flows."""

    name = "Monitor"
    platforms = frozenset(("server", "openflow"))

    def model(self, parameters: Mapping[str, float], data: None) -> FrameModel:
        return MonitorModel()


NF_KINDS.register(MonitorNf.name)(MonitorNf())
