"""Service times of the accelerator benches."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

from predictor.contention.accelerators import ServiceTime, term_values
from predictor.regression.significant import significant

Array = NDArray[np.float64]

TERMS = ("constant", "packet_size", "mtbr", "matches")
STRAY = 0.03
SETTLED_BITS = 15
"""Binary digits of the parts of a service time, of the longest: 2e-5, where runs scatter by 5e-3."""


def bench_services(benches: Mapping[str, tuple[Array, Array]]) -> dict[str, ServiceTime]:
    """Per accelerator, the service time of its bench over packet size and matches, from `Measurements.benches`."""
    return {accelerator: _service(*runs) for accelerator, runs in benches.items()}


def _service(traffic: Array, time: Array) -> ServiceTime:
    """The linear part; where the accelerator is faster than the bench's core, its time is the core's, a floor."""
    varying = [term for term in TERMS if np.ptp(term_values(term, traffic)) > 0]
    terms = ["constant", *varying] if len(time) > len(varying) + 1 else ["constant"]
    design = np.column_stack([term_values(term, traffic) for term in terms])
    units = np.abs(design).max(axis=0)

    def errors(parameters: Array) -> Array:
        relative: Array = np.maximum(design / units @ parameters[1:], parameters[0]) / time - 1.0
        return relative

    start = np.concatenate([[0.9 * time.min()], np.linalg.lstsq(design / units, time, rcond=None)[0]])
    found = least_squares(errors, start, loss="soft_l1", f_scale=STRAY, x_scale=time.max()).x
    times = significant(found[1:], SETTLED_BITS, of=time.max())
    return ServiceTime(tuple(zip(terms, (times / units).tolist(), strict=True)))
