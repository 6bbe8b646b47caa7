"""IPv4Fwd: forwards IPv4 by the longest prefix of the destination, and rewrites MAC addresses and time to live."""

from collections.abc import Mapping
from dataclasses import dataclass

from placer.rack.compiler.library.nf_kind import (
    ALL_PLATFORMS,
    NF_KINDS,
    SEED_PARAMETER,
    NfKind,
    ParameterRange,
    SplitMix,
)
from placer.rack.compiler.library.prefixes import INSIDE_PREFIX, OUTSIDE_PREFIXES, Prefix

OWN_MAC = bytes.fromhex("020000000001")  # the source address of forwarded frames
NEXT_HOPS = 16  # next hops of generated routes
BROAD_PREFIXES = (INSIDE_PREFIX, *OUTSIDE_PREFIXES)
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


class IPv4FwdNf(NfKind[tuple[Route, ...]]):
    """Forwarding by the longest prefix."""

    name = "IPv4Fwd"
    parameters = (ParameterRange("routes", "prefixes in the table", 0, 100000, 64), SEED_PARAMETER)
    platforms = ALL_PLATFORMS

    def data(self, parameters: Mapping[str, float]) -> tuple[Route, ...]:
        return generate_routes(int(parameters["routes"]), int(parameters["seed"]))

    def server_files(self, data: tuple[Route, ...]) -> dict[str, str]:
        return {"routes": "".join(f"{route}\n" for route in data)}

    def server_settings(self, parameters: Mapping[str, float], files: Mapping[str, str]) -> dict[str, str]:
        return {"file": files["routes"]}


def generate_routes(n: int, seed: int) -> tuple[Route, ...]:
    """So many routes with different prefixes: broad ones first, then parts of them, as in an inside network."""
    random = SplitMix(seed)
    routes: dict[Prefix, Route] = {}
    while len(routes) < n:
        if len(routes) < len(BROAD_PREFIXES):
            prefix = BROAD_PREFIXES[len(routes)]
        else:
            prefix = random.one_of(BROAD_PREFIXES).within(
                random, random.one_of((12, 16, 17, 20, 24, 24, 24, 26, 28, 30, 32))
            )
        routes.setdefault(prefix, Route(prefix, random.below(NEXT_HOPS)))
    return tuple(routes.values())


NF_KINDS.register(IPv4FwdNf.name)(IPv4FwdNf())
