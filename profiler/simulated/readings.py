"""The performance counters that a load shows while it runs (Tomur, table 13).

Cores poll: the time not spent on packets goes to a tight loop, which retires instructions and uses only the L1 cache.
The measured mem-bench behaves so at low rates: about one instruction per cycle.
"""

from __future__ import annotations

import numpy as np

from profiler.simulated.cache import Array
from profiler.simulated.card import Card
from profiler.simulated.demand import LOADS_PER_INSTRUCTION, STORES_PER_INSTRUCTION
from profiler.simulated.solve import Batch, SteadyState

POLLING_IPC = 1.02


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
