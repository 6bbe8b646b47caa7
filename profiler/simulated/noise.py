"""Measurement noise that depends only on a seed and on the loads."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from math import exp

import numpy as np
from scipy.special import ndtri

from profiler.simulated.cache import Array

THROUGHPUT_SPREAD = 0.01
COUNTER_SPREADS = (0.006, 0.006, 0.008, 0.008, 0.006, 0.006, 0.003)
"""Standard deviations; repeats of one configuration on a BlueField-2 differ by about 1 %."""


def factors(keys: Sequence[bytes], loads: int) -> Array:
    """Lognormal factors for throughput and counters, shape (8, loads, len(keys)).

    Parameters
    ----------
    keys
        Per co-location, what its noise depends on.
    loads
        Loads per co-location. The factors of a load do not depend on how many loads follow it.
    """
    draws = 7 * loads
    bits = b"".join(hashlib.shake_256(key).digest(8 * draws) for key in keys)
    uniform = (np.frombuffer(bits, dtype="<u8") >> np.uint64(11)).astype(np.float64)
    normal = ndtri((uniform + 0.5) * 2.0**-53).reshape(len(keys), loads, 7).transpose(2, 1, 0)
    per_quantity = np.stack([normal[0], normal[1], normal[1], *normal[2:]])  # ipc and irt share their noise
    spreads = np.array([THROUGHPUT_SPREAD, *COUNTER_SPREADS])[:, np.newaxis, np.newaxis]
    # not numpy's exponential: its last digit depends on the processor, and what is drawn by a factor hangs on that
    exponents = spreads * per_quantity
    return np.fromiter(map(exp, exponents.ravel().tolist()), np.float64, exponents.size).reshape(exponents.shape)
