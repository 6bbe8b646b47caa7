"""The NFs of a SmartNIC: each is one snippet in `nfs/xdp`, its tables as constants, and how it is called."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from placer.rack.compiler.library.acl import ANY_PORT, AclFilter, passes_ipv6
from placer.rack.compiler.library.ipv4_fwd import Route
from placer.rack.compiler.library.lb import MOST_TABLE, Backends
from placer.rack.compiler.library.prefixes import Prefix

Faults = Iterator[tuple[str, str | None]]

MOST_HOP = 255
MOST_FILTERS, MOST_ROUTES = 699, 1398
"""Of an NF: with more, at 6 instructions each and 3, it does not fit the card, and clang would take minutes."""
KEY_BYTES = 32
DEFAULT_KEY = bytes(range(KEY_BYTES))


class NicFunction:
    """An NF on a SmartNIC."""

    snippet: ClassVar[str]  # its file in `nfs/xdp`

    def faults(self) -> Faults:
        """What the card cannot do, and what to do instead."""
        return iter(())

    @property
    def rules(self) -> int:
        """How many rules it has that are counted, one by one, where a program is built so."""
        return 0

    def tables(self, name: str) -> str:
        """Declarations of constants, whose names begin with `name`. `NAME_RULES` is the place of its first rule."""
        return ""

    def call(self, name: str) -> str:
        """The expression in C that processes the packet of `ctx`; false drops it."""
        raise NotImplementedError


@dataclass(frozen=True)
class NicMatch(NicFunction):
    """Match: its edges sort packets."""

    snippet: ClassVar[str] = "match.h"

    def call(self, name: str) -> str:
        return "match(ctx)"


@dataclass(frozen=True)
class NicTunnel(NicFunction):
    """Tunnel: puts a VLAN tag on packets."""

    vlan: int = 100
    priority: int = 0
    snippet: ClassVar[str] = "tunnel.h"

    def faults(self) -> Faults:
        yield from _outside("vlan", self.vlan, 4094)
        yield from _outside("priority", self.priority, 7)

    def call(self, name: str) -> str:
        return f"tunnel(ctx, {self.vlan}, {self.priority})"


@dataclass(frozen=True)
class NicDetunnel(NicFunction):
    """Detunnel: takes the outer VLAN tag off packets; of any VLAN with 4095."""

    vlan: int = 4095
    untagged: int = 1
    snippet: ClassVar[str] = "detunnel.h"

    def faults(self) -> Faults:
        yield from _outside("vlan", self.vlan, 4095)
        yield from _outside("untagged", self.untagged, 1)

    def call(self, name: str) -> str:
        return f"detunnel(ctx, {self.vlan}, {_truth(self.untagged == 1)})"


@dataclass(frozen=True)
class NicAcl(NicFunction):
    """ACL: the first filter that matches decides."""

    filters: Sequence[AclFilter]
    default_permit: bool = True
    snippet: ClassVar[str] = "acl.h"

    def faults(self) -> Faults:
        yield from _too_many("filters", len(self.filters), MOST_FILTERS)

    @property
    def rules(self) -> int:
        return len(self.filters)

    def tables(self, name: str) -> str:
        filters = "".join(_filter(acl_filter, f"{name}_RULES + {at}") for at, acl_filter in enumerate(self.filters))
        return f"""static __always_inline bool {name}_permits(const struct xdp_md *ctx)
{{
	struct acl_key key;
	const enum packet_type type = acl_read(ctx, &key);

	if (type != PACKET_IPV4)
		return type == PACKET_ARP || (type == PACKET_IPV6 && {_truth(passes_ipv6(self.filters))});
{filters}	return {_truth(self.default_permit)};
}}
"""

    def call(self, name: str) -> str:
        return f"{name}_permits(ctx)"


@dataclass(frozen=True)
class NicIpv4Fwd(NicFunction):
    """IPv4Fwd: the longest prefix that matches the destination decides."""

    routes: Sequence[Route]
    snippet: ClassVar[str] = "ipv4_fwd.h"

    def faults(self) -> Faults:
        yield from _too_many("routes", len(self.routes), MOST_ROUTES)
        for route in self.routes:
            if not 0 <= route.hop <= MOST_HOP:
                yield f"next hop {route.hop} of {route.prefix}", f"next hops are 0 to {MOST_HOP}"

    @property
    def rules(self) -> int:
        return len(self.routes)

    def tables(self, name: str) -> str:
        longest_first = sorted(
            enumerate(self.routes), key=lambda numbered: (-numbered[1].prefix.length, numbered[1].prefix.address)
        )
        items = [f"{{{_prefix(route.prefix)}, {route.hop}}}" for _, route in longest_first]
        rules = [f"{name}_RULES + {at}" for at, _ in longest_first]
        return _array(f"struct ipv4_route {name}_routes", items) + _array(f"__u32 {name}_rules", rules)

    def call(self, name: str) -> str:
        return f"ipv4_fwd(ctx, {name}_routes, {name}_rules, {len(self.routes)})"


@dataclass(frozen=True)
class NicLb(NicFunction):
    """LB: backends by a table of Maglev, whose size is a power of two."""

    backends: Backends
    snippet: ClassVar[str] = "lb.h"

    def faults(self) -> Faults:
        size = len(self.backends.table)
        if size & (size - 1) or not 2 <= size <= MOST_TABLE:
            yield f"table has {size} entries", f"a power of two from 2 to {MOST_TABLE}"

    def tables(self, name: str) -> str:
        addresses = [_address(self.backends.addresses[backend]) for backend in self.backends.table]
        return _array(f"__be32 {name}_table", addresses)

    def call(self, name: str) -> str:
        of = self.backends
        return f"lb(ctx, {name}_table, {len(of.table)}, {of.seed}u, {_address(of.address)})"


@dataclass(frozen=True)
class NicFastEncrypt(NicFunction):
    """FastEncrypt(blocks): exclusive or of payloads with the keystream of ChaCha20."""

    key: bytes = DEFAULT_KEY
    blocks: int = 1
    snippet: ClassVar[str] = "fast_encrypt.h"

    def faults(self) -> Faults:
        if self.blocks < 1:
            yield (
                "FastEncrypt(blocks=0), which is ESP, does not fit the card",
                "FastEncrypt(blocks=1) encrypts the first 64 bytes of each payload there",
            )
        if len(self.key) != KEY_BYTES:
            yield f"the key has {len(self.key)} bytes", f"{KEY_BYTES}"

    def tables(self, name: str) -> str:
        words = [int.from_bytes(self.key[at : at + 4], "little") for at in range(0, KEY_BYTES, 4)]
        return _array(f"__u32 {name}_key", [f"{word:#010x}" for word in words])

    def call(self, name: str) -> str:
        return f"fast_encrypt(ctx, {name}_key, {self.blocks})"


NIC_FUNCTIONS: Mapping[str, Callable[[Mapping[str, float], Any], NicFunction]] = {
    "ACL": lambda _, filters: NicAcl(filters),
    "Detunnel": lambda _, __: NicDetunnel(),
    "FastEncrypt": lambda parameters, key: NicFastEncrypt(key[:KEY_BYTES], int(parameters["blocks"])),
    "IPv4Fwd": lambda _, routes: NicIpv4Fwd(routes),
    "LB": lambda _, backends: NicLb(backends),
    "Match": lambda _, __: NicMatch(),
    "Tunnel": lambda parameters, _: NicTunnel(int(parameters["vlan"])),
}
"""By kind: an instance from its parameters and its data, as the library completes and makes them."""


def _outside(what: str, value: int, most: int) -> Faults:
    if not 0 <= value <= most:
        yield f"{what} is {value}", f"0 to {most}"


def _too_many(what: str, count: int, most: int) -> Faults:
    if count > most:
        yield f"{count} {what} do not fit the card", f"{most} are most, fewer beside other NFs"


def _address(value: int) -> str:
    return f"bpf_htonl({value:#010x})"


def _prefix(prefix: Prefix) -> str:
    return f"{_address(prefix.address & prefix.mask)}, {_address(prefix.mask)}"


def _filter(one: AclFilter, rule: str) -> str:
    """A filter as tests in C, only those that can fail. `rule`: the place of its count."""
    tests = [f"acl_protocol(&key, {one.protocol})"] if one.protocol else []
    for end, prefix, (low, high) in (
        ("source", one.source, one.source_ports),
        ("destination", one.destination, one.destination_ports),
    ):
        if prefix.length or (low, high) != ANY_PORT:
            tests.append(f"acl_{end}(&key, {_prefix(prefix)}, {low}, {high})")
    condition = " &&\n\t    ".join(tests) or "true"
    return f"\tif ({condition}) {{\n\t\tCOUNT_RULE({rule});\n\t\treturn {_truth(one.permit)};\n\t}}\n"


def _truth(value: bool) -> str:
    return str(value).lower()


def _array(declaration: str, items: Sequence[str]) -> str:
    """A constant array, never empty: C knows no array of 0."""
    lines = "".join(f"\t{item},\n" for item in items or ["{0}"])
    return f"static const {declaration}[] = {{\n{lines}}};\n"
