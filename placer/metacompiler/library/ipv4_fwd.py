"""IPv4Fwd: forwards IPv4 by the longest prefix of the destination, and rewrites MAC addresses and time to live."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from placer.metacompiler.library.headers import FrameType, checksum_changed, destination_of, read_headers
from placer.metacompiler.library.nf_model import EVERYWHERE, NF_KINDS, SEED, FrameModel, NfKind, ParameterRange
from placer.metacompiler.library.prefixes import INSIDE, OUTSIDE, Prefix
from placer.metacompiler.library.random_numbers import SplitMix

OWN_MAC = bytes.fromhex("020000000001")
"""The source address of forwarded frames."""
HOPS = 16
"""Next hops of generated routes."""
BROAD = (INSIDE, *OUTSIDE)
"""Prefixes that the first routes cover: destinations elsewhere have no route."""


@dataclass(frozen=True)
class Route:
    """A prefix and the number of its next hop, below 256."""

    prefix: Prefix
    hop: int

    def __str__(self) -> str:
        return f"{self.prefix} {self.hop}"

    @property
    def mac(self) -> bytes:
        """The address of the next hop."""
        return bytes((2, 0, 0, 1, 0, self.hop))


class IPv4FwdModel:
    """What the IPv4Fwd does to frames: other than IPv4, without route, or at the end of its time to live is dropped."""

    def __init__(self, routes: tuple[Route, ...]) -> None:
        lengths = sorted({route.prefix.length for route in routes}, reverse=True)
        self._tables = [
            (Prefix(0, length).mask, {one.prefix.address: one for one in routes if one.prefix.length == length})
            for length in lengths
        ]

    def route(self, destination: int) -> Route | None:
        """The route of an address: that with the longest prefix."""
        for mask, table in self._tables:
            if found := table.get(destination & mask):
                return found
        return None

    def process(self, packet: bytes, time_us: int) -> list[bytes]:
        headers = read_headers(packet)
        if headers.type is not FrameType.IPV4:
            return []
        at = headers.l3 + 8
        ttl, before = packet[at], packet[at : at + 2]
        route = self.route(destination_of(packet, headers))
        if route is None or ttl <= 1:
            return []
        after = bytes((ttl - 1, before[1]))
        checksum = checksum_changed(int.from_bytes(packet[at + 2 : at + 4], "big"), before, after)
        head = route.mac + OWN_MAC + packet[12:at]
        return [head + after + checksum.to_bytes(2, "big") + packet[at + 4 :]]


class IPv4FwdNf(NfKind[tuple[Route, ...]]):
    """Forwarding by the longest prefix."""

    name = "IPv4Fwd"
    parameters = (ParameterRange("routes", "prefixes in the table", 0, 100000, 64), SEED)
    platforms = EVERYWHERE

    def data(self, parameters: Mapping[str, float]) -> tuple[Route, ...]:
        return generated_routes(int(parameters["routes"]), int(parameters["seed"]))

    def model(self, parameters: Mapping[str, float], data: tuple[Route, ...]) -> FrameModel:
        return IPv4FwdModel(data)

    def server_files(self, data: tuple[Route, ...]) -> dict[str, str]:
        return {"routes": "".join(f"{route}\n" for route in data)}

    def server_settings(self, parameters: Mapping[str, float], files: Mapping[str, str]) -> dict[str, str]:
        return {"file": files["routes"]}


def generated_routes(n: int, seed: int) -> tuple[Route, ...]:
    """So many routes with different prefixes: broad ones first, then parts of them, as in an inside network."""
    random = SplitMix(seed)
    routes: dict[Prefix, Route] = {}
    while len(routes) < n:
        if len(routes) < len(BROAD):
            prefix = BROAD[len(routes)]
        else:
            prefix = random.one_of(BROAD).within(random, random.one_of((12, 16, 17, 20, 24, 24, 24, 26, 28, 30, 32)))
        routes.setdefault(prefix, Route(prefix, random.below(HOPS)))
    return tuple(routes.values())


NF_KINDS.register(IPv4FwdNf.name)(IPv4FwdNf())
