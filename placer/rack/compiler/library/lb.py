"""LB: deals flows out to backends by consistent hashing (Eisenbud et al., "Maglev", NSDI 2016, section 3.4)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address
from typing import Any

from placer.rack.compiler.library.given_data import DataParameter, GivenData
from placer.rack.compiler.library.nf_kind import MOST_SEED, NF_KINDS, NO_OWN_DATA, NfKind, ParameterRange, SplitMix
from profiles.faults import Fault, InputError
from profiles.files.table_lines import TableForm, TableLine, WordError

FIRST_BACKEND = int(IPv4Address("198.18.0.1"))
MOST_TABLE = 65536  # entries of the table at most: the split hash has 16 bits
MOST_BACKENDS, MOST_WEIGHT = 4096, 65535
FREE_SLOT = -1
BACKEND_FORM = "ADDRESS [WEIGHT], as `198.18.0.1 2`"


@dataclass(frozen=True)
class Backend:
    """A backend of an operator's own list. `weight`: its share of the table, relative to those of others."""

    address: int
    weight: int


@dataclass(frozen=True)
class Backends:
    """What an LB looks up. `own`: the list of an operator; none where backends are numbered from `FIRST_BACKEND`."""

    addresses: tuple[int, ...]  # of backends
    table: tuple[int, ...]  # per entry the number of a backend, from 0; as many entries as a power of two
    seed: int  # salt of the hash
    address: int  # the only destination that is balanced; 0: every one is
    own: tuple[Backend, ...] = ()


class LbNf(NfKind[Backends]):
    """Load balancing at layer 4."""

    name = "LB"
    parameters = (
        ParameterRange("backends", "number of backends", 1, MOST_BACKENDS, 8),
        ParameterRange("table", "entries of the table, a power of two", 2, MOST_TABLE, 256),
        ParameterRange("seed", "salt of the hash", 0, MOST_SEED, 1),
        ParameterRange("address", "the only address that is balanced, as a number; 0: every one", 0, 2**32 - 1, 0),
    )
    own = (DataParameter("backends", "a file of backends", lambda given: read_backends(given)),)
    platforms = frozenset(("server", "switch", "smartnic"))

    def completed(
        self, given: Mapping[str, float], where: str, own: Mapping[str, Any] = NO_OWN_DATA
    ) -> dict[str, float]:
        parameters = super().completed(given, where, own)
        table, backends = int(parameters["table"]), int(parameters["backends"])
        faults = []
        if table & table - 1:
            faults.append(Fault(where, None, "table", f"{table} is not a power of two"))
        if backends > table:
            faults.append(Fault(where, None, "table", f"{table} entries are too few for {backends} backends"))
        listed: tuple[Backend, ...] = own.get("backends", ())
        if (weights := sum(backend.weight for backend in listed)) > max(table, len(listed)):
            message, hint = (
                f"{table} entries are too few for weights of {weights}",
                f"table={1 << (weights - 1).bit_length()}",
            )
            faults.append(Fault(where, None, "table", message, hint))
        numbers = [backend.address for backend in listed] or range(FIRST_BACKEND, FIRST_BACKEND + backends)
        if int(parameters["address"]) in numbers:
            faults.append(Fault(where, None, "address", "it is that of a backend"))
        if faults:
            raise InputError(faults)
        return parameters

    def data(self, parameters: Mapping[str, float]) -> Backends:
        seed = int(parameters["seed"])
        backends = range(int(parameters["backends"]))
        table = maglev_table(int(parameters["table"]), [seed << 16 | backend for backend in backends])
        addresses = tuple(FIRST_BACKEND + backend for backend in backends)
        return Backends(addresses, table, seed, int(parameters["address"]))

    def data_of(self, parameters: Mapping[str, float], own: Mapping[str, Any]) -> Backends:
        seed, listed = int(parameters["seed"]), tuple[Backend, ...](own["backends"])
        table = maglev_table(
            int(parameters["table"]),
            [seed << 32 | backend.address for backend in listed],
            [backend.weight for backend in listed],
        )
        return Backends(tuple(backend.address for backend in listed), table, seed, int(parameters["address"]), listed)

    def server_files(self, data: Backends) -> dict[str, str]:
        lines = [f"{IPv4Address(backend.address)} {backend.weight}\n" for backend in data.own]
        return {"backends": "".join(lines)} if lines else {}

    def server_settings(self, parameters: Mapping[str, float], files: Mapping[str, str]) -> dict[str, str]:
        settings = {name: f"{int(parameters[name])}" for name in ("backends", "table", "seed", "address")}
        if "backends" in files:
            del settings["backends"]
            settings["file"] = files["backends"]
        return settings


def read_backends(given: GivenData) -> tuple[Backend, ...]:
    """The backends of a file, in the format of `nfs/tables/backend_file.c`. Raises InputError with every fault."""
    twice = "the backend is there already"
    form = TableForm(
        _backend_of_line, BACKEND_FORM, "backends", MOST_BACKENDS, key=lambda one: one.address, twice=twice
    )
    backends = given.table(form)
    if not backends:
        raise InputError.of(str(given.file().path), "no backends", hint=BACKEND_FORM)
    return backends


def _backend_of_line(line: TableLine) -> Backend:
    word, weight_word = line.take("no address"), line.take()
    address, length = word.prefix()
    if length != 32 or "/" in word.text:
        raise WordError(word.at, f"{word.text}: not the address of a backend")
    weight = 1 if weight_word is None else weight_word.number(1, MOST_WEIGHT)
    if weight is None:
        assert weight_word is not None
        raise WordError(weight_word.at, f"{weight_word.text}: a weight is from 1 to {MOST_WEIGHT}")
    line.refuse_rest()
    return Backend(address, weight)


def maglev_table(size: int, seeds: Sequence[int], weights: Sequence[int] = ()) -> tuple[int, ...]:
    """Per entry of a table the backend that claimed it: they take turns, each in an order of its own.

    The order is every skip-th entry from an offset on, both random, by the seed of the backend. Where the size is a
    power of two, skips are odd, so that each order reaches every entry. In each round, a backend takes a turn if its
    weight, times the number of the round, passes the next multiple of the largest weight: so shares of the table are
    those of weights. The same as `nfs/functions/lb/maglev.c`.
    """
    table, orders = [FREE_SLOT] * size, list[tuple[int, int]]()
    for seed in seeds:
        random = SplitMix(seed)
        offset, skip = random.below(size), 1 + random.below(size - 1)
        orders.append((offset, skip | 1 if size & size - 1 == 0 else skip))
    weights = weights or [1] * len(seeds)
    largest, credits = max(weights), [0] * len(seeds)
    filled = 0
    while filled < size:
        for backend, weight in enumerate(weights):
            credits[backend] += weight
            if credits[backend] < largest or filled == size:
                continue
            credits[backend] -= largest
            at, skip = orders[backend]
            while table[at] != FREE_SLOT:
                at = (at + skip) % size
            table[at] = backend
            orders[backend] = at, skip
            filled += 1
    return tuple(table)


NF_KINDS.register(LbNf.name)(LbNf())
