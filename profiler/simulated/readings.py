"""The performance counters that a load shows while it runs (Tomur, table 13).

Cores poll: the time not spent on packets goes to a tight loop, which retires instructions and uses only the L1 cache.
The measured mem-bench behaves so at low rates: about one instruction per cycle.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from profiler.simulated.cache import Array
from profiler.simulated.card import Card
from profiler.simulated.demand import LOADS_PER_INSTRUCTION, STORES_PER_INSTRUCTION
from profiler.simulated.solve import Batch, SteadyState

POLLING_IPC = 1.02
THROUGHPUT, IPC = 0, 1
"""Places in an answer: the throughput comes first, then the seven counters."""


def readings(batch: Batch, solution: SteadyState, card: Card) -> Array:
    """The seven counters in the order of `profiles.COUNTERS`, shape (7, loads, batch)."""
    rate = solution.throughput * 1e6
    cycles = batch.cores * card.clock_ghz * 1e9
    busy = solution.throughput / solution.core_rate
    retired = rate * batch.instructions + np.maximum(1 - busy, 0.0) * cycles * POLLING_IPC
    reads = writes = np.zeros_like(rate)
    for structure in range(batch.l2.shape[1]):
        accesses, share = batch.l2[:, structure], batch.writes[:, structure]
        reads = reads + rate * accesses * (1 - share)
        writes = writes + rate * accesses * share
    return np.stack(
        [
            retired / cycles,
            retired,
            reads,
            writes,
            retired * LOADS_PER_INSTRUCTION,
            retired * STORES_PER_INSTRUCTION,
            batch.wss_mb,
        ]
    )


def of_loads(answers: Array, cores: Array, parts: Sequence[Sequence[int]]) -> Array:
    """Throughput and counters of loads, of which some have several parts that pass the same packets: their cores.

    Parameters
    ----------
    answers
        Throughput and the seven counters of each part, shape (8, parts, co-locations).
    cores
        Of each part, shape (parts, co-locations).
    parts
        Of each co-location, how many parts each load has.

    Returns
    -------
    answers
        Shape (8, loads, co-locations). Rates and working sets of parts add up; throughput is that of each of them.
    """
    if all(count == 1 for counts in parts for count in counts):
        return answers
    joined = np.ones((len(answers), max(map(len, parts)), len(parts)))
    for c, counts in enumerate(parts):
        ends = np.cumsum(counts)
        for at, (first, end) in enumerate(zip(ends - counts, ends, strict=True)):
            of_load = answers[:, first:end, c]
            joined[:, at, c] = of_load.sum(axis=1)
            joined[THROUGHPUT, at, c] = of_load[THROUGHPUT, 0]
            joined[IPC, at, c] = np.average(of_load[IPC], weights=cores[first:end, c])
    return joined
