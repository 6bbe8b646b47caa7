"""Measured co-locations as they would be predicted had they not been measured.

Which predictions are too high shows only on co-locations that a model does not know. The correction by neighbours is a
Gaussian process, so what it would predict without one co-location follows from all of them (Rasmussen & Williams,
section 5.4.2), and nothing is trained again. The resource models and the correction by conditions keep having seen the
co-location; they have few parameters, and see thousands of runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from predictor.contention.intervals import ErrorModel
from predictor.contention.nf_model import NfModel
from profiles import CoLocation, TrafficProfile, Workload

Array = NDArray[np.float64]


@dataclass(frozen=True)
class LeftOutCoLocation:
    """A measured co-location, per member in the order of its workloads.

    Parameters
    ----------
    measured, predicted
        Throughput (kpps): as measured, and as predicted without that, shape (members,).
    spread, noise
        Standard deviations of the logarithm: of throughput around `predicted`, and of `measured` around throughput.
    errors
        The error model of each member.
    """

    measured: Array
    predicted: Array
    spread: Array
    noise: Array
    errors: tuple[ErrorModel, ...]

    def throughput(self, risk: float) -> list[float]:
        """Throughput (kpps) that a share `risk` of members is expected to fall short of."""
        factors = [float(one.lower(self.spread[at : at + 1], risk)[0]) for at, one in enumerate(self.errors)]
        return [float(kpps) * min(factor, 1.0) for kpps, factor in zip(self.predicted, factors, strict=True)]

    def shortfall(self, member: int, required_kpps: float) -> tuple[float, float]:
        """The probabilities that throughput, and that a measurement of it, is below what the member requires."""
        spread = np.array([self.spread[member], np.hypot(self.spread[member], self.noise[member])])
        factor = np.full(2, required_kpps / self.predicted[member])
        truly, measured = self.errors[member].shortfall(spread, factor).tolist()
        return truly, measured


@dataclass(frozen=True)
class LeftOutRow:
    """One NF in a measured co-location, in usual spreads.

    Parameters
    ----------
    error
        Measured over predicted, logarithm.
    left
        What of it others do not lead to expect.
    deviation, noise
        Standard deviations: of throughput, and of the measurement.
    """

    error: float
    left: float
    deviation: float
    noise: float


def rows_left_out(models: Mapping[str, NfModel], default: TrafficProfile) -> dict[CoLocation, dict[str, LeftOutRow]]:
    """Per measured co-location at default traffic the row of each of its NFs; those without a row are left out."""
    found: dict[CoLocation, dict[str, LeftOutRow]] = {}
    for nf, model in models.items():
        correction = model.neighbours
        if correction is None:
            continue
        nfs = len(correction.names)
        left, variance = correction.left_out()
        at_default = (correction.inputs[:, nfs:] == 0).all(axis=1)
        for row in np.flatnonzero(at_default).tolist():
            others = np.repeat(correction.names, correction.inputs[row, :nfs].astype(np.intp)).tolist()
            co_location = tuple(sorted(Workload(str(one), default) for one in (nf, *others)))
            found.setdefault(co_location, {})[nf] = LeftOutRow(
                float(correction.errors[row]), float(left[row]), float(variance[row]) ** 0.5,
                float(max(correction.noise[row], 0.0)) ** 0.5,
            )  # fmt: skip
    complete = {key: rows for key, rows in found.items() if len(key) > 1 and {one.nf for one in key} <= rows.keys()}
    return dict(sorted(complete.items()))
