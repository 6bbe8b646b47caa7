"""Which chains are measured: orders of NFs, the cores that they run on, and the shares of these cores."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, permutations, product
from typing import TypeVar

import numpy as np
from numpy.random import Generator

from profiler.chains.request import SIZES, ChainRequest
from profiler.request_checks import refusals
from profiles import ChainLoad, InputError, NfStage, TestbedDescription
from profiles.chain_text import Cores, parse_chain, writable
from profiles.faults import Fault, suggestion

MOST_PLACEMENTS = 16
"""Placements of one order; of more, the two extremes and some between are measured."""
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


def placed_chains(request: ChainRequest, description: TestbedDescription, seed: int) -> list[ChainOnCores]:
    """The chains of a request: first each NF alone, then those that the user names, then those that are drawn.

    An order is run to completion on one core and as every pipeline on as many cores as are allowed. The first N orders
    of a seed are among the first M > N, and every NF is in about as many of them as every other.

    Raises
    ------
    InputError
        When a chain cannot be read, an NF is not known, or a chain does not fit the cores.
    """
    _refuse_bad_numbers(request)
    most = min(request.most_cores or description.nic.cores, description.nic.cores)
    named = [_named(text, description, most) for text in request.chains]
    pool = _pool(request, description)
    orders = [order for length in request.drawn for order in drawn_orders(pool, SIZES[length], request.count, seed)]
    several = [*named, *((tuple(map(NfStage, order)), None) for order in orders)]
    alone = dict.fromkeys(stage for stages, _ in several for stage in stages)
    placed = [ChainOnCores((stage,), ((0,),)) for stage in alone]
    for stages, cores in several:
        placed += [ChainOnCores(stages, one) for one in ([cores] if cores else placements(len(stages), most, seed))]
    return list(dict.fromkeys(one for chain in placed for one in _with_shares(chain, request.shares, seed)))


def drawn_orders(nfs: Sequence[str], length: int, count: int, seed: int) -> list[tuple[str, ...]]:
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
    for one in _some(combined, max(MOST_SHARES, len(shares)), rng, keep=len(shares)):
        yield ChainOnCores(chain.stages, chain.cores, () if set(one) == {1.0} else one)


def _some(items: list[_T], most: int, rng: Generator, keep: int = 1) -> list[_T]:
    """At most that many: the first `keep`, the last, and some between; in order."""
    if len(items) <= most:
        return items
    between = keep + rng.permutation(len(items) - keep - 1)[: most - keep - 1]
    return [items[index] for index in sorted([*range(keep), *between.tolist(), len(items) - 1])]


def _named(text: str, description: TestbedDescription, most: int) -> tuple[Stages, Cores | None]:
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


def _pool(request: ChainRequest, description: TestbedDescription) -> list[str]:
    """The NFs of drawn orders: those that chains can name."""
    known = [nf.name for nf in description.fitting_nfs if writable(nf.name)]
    if unknown := [name for name in request.nfs if name not in known]:
        raise InputError.of("--nf", f"the testbed has no {', '.join(unknown)}", hint=suggestion(unknown[0], known))
    pool = [name for name in known if not request.nfs or name in request.nfs]
    for length in request.drawn:
        if len(pool) < SIZES[length]:
            raise InputError.of("--chains", f"{length} need {SIZES[length]} different NFs, there are {len(pool)}")
    return pool


def _refuse_bad_numbers(request: ChainRequest) -> None:
    faults = [
        Fault("--chains", None, None, f"'{name}' is not understood", f"it is one of {', '.join(SIZES)}")
        for name in request.drawn
        if name not in SIZES
    ]
    faults += [
        Fault("--share", None, None, f"{share:g} is not above 0 and at most 1")
        for share in request.shares
        if not 0 < share <= 1
    ]
    if faults:
        raise InputError(faults)
