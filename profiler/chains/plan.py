"""Which chains are measured: orders of NFs, the cores that they run on, and the shares of these cores."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass, replace
from itertools import combinations, permutations, product
from statistics import fmean
from typing import TypeVar

import numpy as np
from numpy.random import Generator

from profiler.protocol.request_checks import refusals
from profiler.runs.co_runs import SoloRepeats
from profiler.sampling import EvenPoints, at, neat, traffic_ranges, traffic_with
from profiler.testbed import Measurement
from profiles import ChainLoad, InputError, NfStage, TestbedDescription, TrafficProfile
from profiles.chain import Cores, parse_chain, writable
from profiles.chain_table import CHAIN_KPPS, LATENCY_COLUMNS, cpu_column_of, drop_column_of, key_of, leaving_column
from profiles.faults import Fault, suggestion

MOST_PLACEMENTS = 16  # placements of one order; of more, the two extremes and some between are measured
MOST_SHARES = 8
"""Combinations of shares of one placement; of more, equal shares on all cores and some others are measured."""

Stages = tuple[NfStage, ...]
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class ChainOnCores:
    """A chain on its cores, without traffic."""

    stages: Stages
    cores: Cores
    shares: tuple[float, ...] = ()


def place_chains(request: "ChainRequest", description: TestbedDescription, seed: int) -> list[ChainOnCores]:
    """The chains of a request: first each NF alone, then those that the user names, then those that are drawn. An order
    is run to completion on one core and as every pipeline on as many cores as are allowed. The first N orders of a seed
    are among the first M > N, and every NF is in about as many of them as every other. Raises `InputError` when a chain
    cannot be read, an NF is not known, or a chain does not fit the cores."""
    faults = [
        Fault("--chains", None, None, f"'{name}' is not understood", f"it is one of {', '.join(CHAIN_LENGTHS)}")
        for name in request.drawn
        if name not in CHAIN_LENGTHS
    ]
    faults += [
        Fault("--share", None, None, f"{share:g} is not above 0 and at most 1")
        for share in request.shares
        if not 0 < share <= 1
    ]
    if faults:
        raise InputError(faults)
    most = min(request.most_cores or description.nic.cores, description.nic.cores)
    named = [_parse_named(text, description, most) for text in request.chains]
    pool = _pool(request, description)
    orders = [
        order for length in request.drawn for order in draw_orders(pool, CHAIN_LENGTHS[length], request.count, seed)
    ]
    several = [*named, *((tuple(map(NfStage, order)), None) for order in orders)]
    alone = dict.fromkeys(stage for stages, _ in several for stage in stages)
    placed = [ChainOnCores((stage,), ((0,),)) for stage in alone]
    for stages, cores in several:
        placed += [
            ChainOnCores(stages, placement) for placement in ([cores] if cores else placements(len(stages), most, seed))
        ]
    return list(dict.fromkeys(variant for chain in placed for variant in _with_shares(chain, request.shares, seed)))


def draw_orders(nfs: Sequence[str], length: int, count: int, seed: int) -> list[tuple[str, ...]]:
    """`count` orders of `length` different NFs, at random, but each NF in about as many as every other."""
    orders = list(permutations(nfs, length))
    rng = np.random.default_rng([seed, length])
    left = [orders[index] for index in rng.permutation(len(orders)).tolist()]
    used: Counter[str] = Counter()
    chosen: list[tuple[str, ...]] = []
    while left and len(chosen) < count:
        best = min(range(len(left)), key=lambda index: (sum(used[nf] for nf in left[index]), index))
        chosen.append(left.pop(best))
        used.update(chosen[-1])
    return chosen


def placements(stages: int, most: int, seed: int) -> list[Cores]:
    """Run to completion on one core, then every pipeline on at most `most` cores, by number of cores."""
    found: list[Cores] = []
    for count in range(1, min(stages, most) + 1):
        for cuts in combinations(range(1, stages), count - 1):
            ends = [*cuts, stages]
            found.append(tuple(tuple(range(first, end)) for first, end in zip([0, *cuts], ends, strict=True)))
    return _some(found, MOST_PLACEMENTS, np.random.default_rng([seed, stages]))


def _with_shares(chain: ChainOnCores, shares: Sequence[float], seed: int) -> Iterator[ChainOnCores]:
    combined = sorted(product(shares, repeat=len(chain.cores)), key=lambda one: len(set(one)))
    rng = np.random.default_rng([seed, len(chain.cores)])
    for core_shares in _some(combined, max(MOST_SHARES, len(shares)), rng, keep=len(shares)):
        yield ChainOnCores(chain.stages, chain.cores, () if set(core_shares) == {1.0} else core_shares)


def _some(items: list[_T], most: int, rng: Generator, keep: int = 1) -> list[_T]:
    """At most that many: the first `keep`, the last, and some between; in order."""
    if len(items) <= most:
        return items
    between = keep + rng.permutation(len(items) - keep - 1)[: most - keep - 1]
    return [items[index] for index in sorted([*range(keep), *between.tolist(), len(items) - 1])]


def _parse_named(text: str, description: TestbedDescription, most: int) -> tuple[Stages, Cores | None]:
    """A chain as the user writes it."""
    try:
        stages, cores = parse_chain(text)
    except ValueError as error:
        raise InputError.of("--chain", f"'{text}': {error}", hint="as in ACL:rules=1024,NAT or ACL,NAT|LB") from None
    known = {nf.name: nf for nf in description.nfs}
    faults = [
        Fault("--chain", None, None, f"'{text}': the testbed has no {stage.nf}", suggestion(stage.nf, known))
        for stage in dict.fromkeys(stages)
        if stage.nf not in known
    ]
    if cores and len(cores) > most:
        faults.append(Fault("--chain", None, None, f"'{text}' needs {len(cores)} cores, {most} are allowed"))
    if description.chains and not faults:
        chain = ChainLoad(stages, cores or (tuple(range(len(stages))),), description.traffic)
        faults = [Fault("--chain", None, None, fault) for fault in refusals(description, [chain])]
    if faults:
        raise InputError(faults)
    return stages, cores


def _pool(request: "ChainRequest", description: TestbedDescription) -> list[str]:
    """The NFs of drawn orders: those that chains can name."""
    known = [nf.name for nf in description.fitting_nfs if writable(nf.name)]
    if unknown := [name for name in request.nfs if name not in known]:
        raise InputError.of("--nf", f"the testbed has no {', '.join(unknown)}", hint=suggestion(unknown[0], known))
    pool = [name for name in known if not request.nfs or name in request.nfs]
    for length in request.drawn:
        if len(pool) < CHAIN_LENGTHS[length]:
            raise InputError.of(
                "--chains", f"{length} need {CHAIN_LENGTHS[length]} different NFs, there are {len(pool)}"
            )
    return pool


# What a user requests to be measured of chains.


CHAIN_LENGTHS = {"pairs": 2, "triples": 3}  # names of chain lengths from which orders are drawn
ORDERS_PER_LENGTH = 20  # orders of each length that are drawn unless the user gives another number


@dataclass(frozen=True, slots=True)
class ChainRequest:
    """What to measure."""

    chains: Sequence[str] = ()  # chains as users write them (`profiles.chain`)
    drawn: Sequence[str] = ()  # lengths of which orders are drawn: `pairs`, `triples`
    count: int = ORDERS_PER_LENGTH  # orders that are drawn of each length
    nfs: Sequence[str] = ()  # the NFs of drawn orders; all of the testbed when empty
    most_cores: int | None = None  # the most cores of a chain; None for all of the NIC
    shares: Sequence[float] = (1.0,)  # the share of its time that each core spends on the chain, every combination


# What is measured of each placed chain: traffic and offered loads, several times each.


TRAFFICS_PER_CHAIN = 4  # traffic profiles of each chain: the default, and others evenly over all attributes
OPEN_LOOP_LOADS = (0.5, 0.9)
"""Offered loads of an open loop at default traffic, as shares of what the chain reached in a closed loop."""
CHAIN_REPEATS = 2

Row = dict[str, object]


@dataclass(frozen=True, slots=True)
class MeasuredChain:
    """A chain that ran, with its repeats."""

    load: ChainLoad
    runs: Sequence[Measurement]

    def rows(self) -> list[Row]:
        """The rows of `chains.csv`."""
        return [self._row(repeat, one) for repeat, one in enumerate(self.runs)]

    def _row(self, repeat: int, one: Measurement) -> Row:
        row: Row = {**key_of(self.load, repeat), CHAIN_KPPS: one.throughput_kpps}
        for at_stage, stage in enumerate(one.stages):
            row |= {leaving_column(at_stage): stage.throughput_kpps, drop_column_of(at_stage): stage.dropped_pct}
            row |= {cpu_column_of(at_stage): stage.cpu_pct}
        if one.latency_us:
            row |= dict(zip(LATENCY_COLUMNS, astuple(one.latency_us), strict=True))
        return row


def point_runs(chains: Sequence[ChainOnCores], repeats: int) -> int:
    """How many runs `measure_points` takes."""
    return len(chains) * (TRAFFICS_PER_CHAIN + len(OPEN_LOOP_LOADS)) * repeats


def measure_points(
    runs: SoloRepeats,
    chains: Sequence[ChainOnCores],
    description: TestbedDescription,
    *,
    repeats: int = CHAIN_REPEATS,
    seed: int = 0,
) -> list[MeasuredChain]:
    """Each chain in a closed loop at every traffic, then in an open loop at default traffic. Raises `TestbedError` when
    the testbed fails."""
    traffics = chain_traffics(description, seed)
    closed = [
        ChainLoad(chain.stages, chain.cores, traffic, 0.0, chain.shares) for chain in chains for traffic in traffics
    ]
    reached = runs.measure(closed, repeats)
    opened = [
        replace(load, rate_kpps=neat(share * fmean(measurement.throughput_kpps for measurement in found)))
        for load, found in reached.items()
        if load.traffic == description.traffic
        for share in OPEN_LOOP_LOADS
    ]
    measured = reached | runs.measure(opened, repeats)
    order = {chain: place for place, chain in enumerate(chains)}
    in_order = sorted(measured, key=lambda load: order[ChainOnCores(load.stages, load.cores, load.shares)])
    return [MeasuredChain(load, measured[load]) for load in in_order]


def chain_traffics(description: TestbedDescription, seed: int) -> list[TrafficProfile]:
    """The traffic of every chain, so that chains can be compared with their NFs alone."""
    ranges = traffic_ranges(description)
    others = (
        EvenPoints(len(ranges), np.random.default_rng([seed, TRAFFICS_PER_CHAIN])).take(TRAFFICS_PER_CHAIN - 1).tolist()
    )
    spots = [dict(zip(ranges, spot, strict=True)) for spot in others]
    traffics = [
        traffic_with(description.traffic, {name: at(ranges[name], position) for name, position in spot.items()})
        for spot in spots
    ]
    return list(dict.fromkeys([description.traffic, *traffics]))
