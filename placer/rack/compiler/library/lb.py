"""LB: deals flows out to backends by consistent hashing (Eisenbud et al., "Maglev", NSDI 2016, section 3.4)."""

from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import IPv4Address

from placer.rack.compiler.library.nf_kind import NF_KINDS, SEED_PARAMETER, NfKind, ParameterRange, SplitMix
from profiles.faults import Fault, InputError

FIRST_BACKEND = int(IPv4Address("198.18.0.1"))
MOST_TABLE = 65536  # entries of the table at most: the split hash has 16 bits
FREE_SLOT = -1


@dataclass(frozen=True)
class Backends:
    """What an LB looks up."""

    first: int  # the address of the first backend; those of the others follow
    table: tuple[int, ...]  # per entry the number of a backend, from 0; as many entries as a power of two
    seed: int  # salt of the hash
    address: int  # the only destination that is balanced; 0: every one is


class LbNf(NfKind[Backends]):
    """Load balancing at layer 4."""

    name = "LB"
    parameters = (
        ParameterRange("backends", "number of backends", 1, 4096, 8),
        ParameterRange("table", "entries of the table, a power of two", 2, MOST_TABLE, 256),
        SEED_PARAMETER,
        ParameterRange("address", "the only address that is balanced, as a number; 0: every one", 0, 2**32 - 1, 0),
    )
    platforms = frozenset(("server", "switch", "smartnic"))

    def completed(self, given: Mapping[str, float], where: str) -> dict[str, float]:
        parameters = super().completed(given, where)
        table, backends = int(parameters["table"]), int(parameters["backends"])
        faults = []
        if table & table - 1:
            faults.append(Fault(where, None, "table", f"{table} is not a power of two"))
        if backends > table:
            faults.append(Fault(where, None, "table", f"{table} entries are too few for {backends} backends"))
        if 0 <= int(parameters["address"]) - FIRST_BACKEND < backends:
            faults.append(Fault(where, None, "address", "it is that of a backend"))
        if faults:
            raise InputError(faults)
        return parameters

    def data(self, parameters: Mapping[str, float]) -> Backends:
        seed = int(parameters["seed"])
        table = maglev_table(int(parameters["table"]), int(parameters["backends"]), seed)
        return Backends(FIRST_BACKEND, table, seed, int(parameters["address"]))

    def server_settings(self, parameters: Mapping[str, float], files: Mapping[str, str]) -> dict[str, str]:
        return {name: f"{int(parameters[name])}" for name in ("backends", "table", "seed", "address")}


def maglev_table(size: int, backends: int, seed: int) -> tuple[int, ...]:
    """Per entry of a table the backend that claimed it: they take turns, each in an order of its own.

    The order is every skip-th entry from an offset on, both random. Where the size is a power of two, skips are odd, so
    that each order reaches every entry; the same as `nfs/functions/lb/maglev.c`.
    """
    table, orders = [FREE_SLOT] * size, list[tuple[int, int]]()
    for backend in range(backends):
        random = SplitMix(seed << 16 | backend)
        offset, skip = random.below(size), 1 + random.below(size - 1)
        orders.append((offset, skip | 1 if size & size - 1 == 0 else skip))
    for turn in range(size):
        backend = turn % backends
        at, skip = orders[backend]
        while table[at] != FREE_SLOT:
            at = (at + skip) % size
        table[at] = backend
        orders[backend] = at, skip
    return tuple(table)


NF_KINDS.register(LbNf.name)(LbNf())
