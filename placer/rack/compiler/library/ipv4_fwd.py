"""IPv4Fwd: forwards IPv4 by the longest prefix of the destination, and rewrites MAC addresses and time to live."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from placer.rack.compiler.library import nf_kind
from placer.rack.compiler.library.given_data import DataParameter, GivenData
from placer.rack.compiler.library.prefixes import INSIDE_PREFIX, OUTSIDE_PREFIXES, Prefix, parse_prefix, table_prefix
from profiles.files.table_lines import TableForm, TableLine, WordError

OWN_MAC = bytes.fromhex("020000000001")  # the source address of forwarded frames
NEXT_HOPS = 16  # next hops of generated routes
MOST_HOPS = 256
MOST_ROUTES = 4_000_000  # in a file
ROUTE_FORM = "PREFIX/LENGTH HOP, as `10.0.0.0/8 3`"
SPECIAL_PREFIXES = tuple(
    map(parse_prefix, ("0.0.0.0/8", "127.0.0.0/8", "169.254.0.0/16", "224.0.0.0/4", "240.0.0.0/4"))
)
"""Destinations that no router forwards to (RFC 1812, section 5.3.7)."""
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


class IPv4FwdNf(nf_kind.NfKind[tuple[Route, ...]]):
    """Forwarding by the longest prefix."""

    name = "IPv4Fwd"
    parameters = (nf_kind.ParameterRange("routes", "prefixes in the table", 0, 100000, 64), nf_kind.SEED_PARAMETER)
    own = (DataParameter("routes", "a file of routes", lambda given: read_routes(given)),)
    empty_means = "every packet is dropped"
    platforms = nf_kind.ALL_PLATFORMS

    def data(self, parameters: Mapping[str, float]) -> tuple[Route, ...]:
        return generate_routes(int(parameters["routes"]), int(parameters["seed"]))

    def data_of(self, parameters: Mapping[str, float], own: Mapping[str, Any]) -> tuple[Route, ...]:
        routes: tuple[Route, ...] = own["routes"]
        return routes

    def server_files(self, data: tuple[Route, ...]) -> dict[str, str]:
        return {"routes": "".join(f"{route}\n" for route in data)}

    def server_settings(self, parameters: Mapping[str, float], files: Mapping[str, str]) -> dict[str, str]:
        return {"file": files["routes"]}


def generate_routes(n: int, seed: int) -> tuple[Route, ...]:
    """So many routes with different prefixes: broad ones first, then parts of them, as in an inside network."""
    random = nf_kind.SplitMix(seed)
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


def read_routes(given: GivenData) -> tuple[Route, ...]:
    """The routes of a file, in the format of `nfs/tables/route_file.c`. Raises InputError with every fault."""
    twice = "the prefix has a route already"
    form = TableForm(_route_of_line, ROUTE_FORM, "routes", MOST_ROUTES, key=lambda route: route.prefix, twice=twice)
    return given.table(form)


def _route_of_line(line: TableLine) -> Route:
    if len(line.words) == 1:
        raise WordError(line.end, "1 word instead of 2")
    if len(line.words) > 2:
        raise WordError(line.words[2].at, f"{len(line.words)} words instead of 2")
    prefix_word, hop_word = line.words
    prefix, hop = table_prefix(prefix_word), hop_word.number(0, MOST_HOPS - 1)
    if hop is None:
        raise WordError(hop_word.at, f"{hop_word.text}: not a next hop: they are numbered from 0 to {MOST_HOPS - 1}")
    if any(prefix.length >= of.length and prefix.address & of.mask == of.address for of in SPECIAL_PREFIXES):
        raise WordError(prefix_word.at, f"{prefix_word.text}: routers forward nothing there (RFC 1812, section 5.3.7)")
    return Route(prefix, hop)


nf_kind.NF_KINDS.register(IPv4FwdNf.name)(IPv4FwdNf())
