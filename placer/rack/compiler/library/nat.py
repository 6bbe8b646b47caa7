"""NAT: inside hosts share external addresses. Traffic goes outward only."""

from collections.abc import Mapping
from ipaddress import IPv4Address
from typing import Any

from placer.rack.compiler.library.given_data import DataParameter, GivenData
from placer.rack.compiler.library.nf_kind import NF_KINDS, NO_OWN_DATA, NoData, ParameterRange
from placer.rack.compiler.library.prefixes import Prefix, table_prefix
from profiles.faults import Fault, InputError
from profiles.files.table_lines import TableWord, WordError

FIRST_ADDRESS = int(IPv4Address("203.0.113.0"))
SHORTEST_POOL = 24  # length of its prefix: at most 256 addresses


class NatNf(NoData):
    """Network address translation."""

    name = "NAT"
    parameters = (
        ParameterRange("first_address", "first external address, as a number", 0, 4294967040, FIRST_ADDRESS),
        ParameterRange("addresses", "number of external addresses", 1, 256, 16),
    )
    own = (DataParameter("pool", "the prefix of external addresses", lambda given: read_pool(given)),)
    platforms = frozenset(("server", "switch"))

    def completed(
        self, given: Mapping[str, float], where: str, own: Mapping[str, Any] = NO_OWN_DATA
    ) -> dict[str, float]:
        if not own:
            return super().completed(given, where)
        pool: Prefix = own["pool"]
        hint = "the pool says which external addresses there are"
        names = [name for name in ("first_address", "addresses") if name in given]
        if names:
            raise InputError([Fault(where, None, name, "is given beside a pool", hint) for name in names])
        of_pool = {"first_address": pool.address, "addresses": 1 << 32 - pool.length}
        return super().completed({**given, **of_pool}, where, own)

    def server_settings(self, parameters: Mapping[str, float], files: Mapping[str, str]) -> dict[str, str]:
        """Those of a table that a rack's processes have memory for, and no limit to one host's ports.

        GRE, ESP and SCTP are dropped, as switches do.
        """
        given = {name: f"{int(parameters[name])}" for name in ("first_address", "addresses")}
        return {**given, "sessions": "65536", "host_ports": "64512", "pairs": "0"}

    def settings_of_copy(self, parameters: Mapping[str, float], copy: int, copies: int) -> dict[str, str]:
        """A part of the external addresses: two copies would give the same port of one address to two flows."""
        first, count = int(parameters["first_address"]), int(parameters["addresses"])
        begin, end = count * copy // copies, count * (copy + 1) // copies
        return {"first_address": f"{first + begin}", "addresses": f"{end - begin}"}

    def most_copies(self, parameters: Mapping[str, float]) -> int:
        """One for each external address."""
        return int(parameters["addresses"])


def read_pool(given: GivenData) -> Prefix:
    """The prefix of the external addresses. Raises InputError where the text is none, or has too many addresses."""
    hint = 'a prefix of at most 256 addresses, as in pool = "203.0.113.0/28"'
    if not isinstance(given.value, str):
        raise given.error("it is a prefix, no rules", hint)
    try:
        pool = table_prefix(TableWord(given.value, 0))
    except WordError as error:
        raise given.error(str(error), hint) from None
    if pool.length < SHORTEST_POOL:
        raise given.error(f"{given.value}: {1 << 32 - pool.length:,} addresses are more than 256", hint)
    return pool


NF_KINDS.register(NatNf.name)(NatNf())
