"""Correction of composed predictions by measured co-runs.

The correction is a function of the conditions of the prediction, so that few rows suffice. It fades to nothing away
from what was measured, where the resource models stand alone, and is applied as far as it surely helps on rows left
out.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from predictor.contention.conditions_of_members import write_all_inputs
from predictor.contention.neighbours import competitors
from predictor.regression.gaussian_process import GaussianProcess
from profiles.arrays import Floats
from profiles.shown import Shown

LEAST_ROWS = 5
CORRECTION_NOISE = 0.1  # typical share of the errors that is measurement noise
NEAR_LENGTH = 0.5
SURE_ERRORS = 1.5  # standard errors of the mean gain below which a correction is not applied at all


@dataclass(frozen=True)
class Conditions:
    """The conditions of predictions, on which their errors depend; one row per prediction."""

    traffic: Floats  # shape (N, 3)
    kept: Floats  # predicted share of solo throughput, shape (N,)
    pressure: Floats
    """Per accelerator, the competitors' service demand in units of the NF's own service time, shape (N, accelerators).
    """
    neighbours: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    """Which NFs share the NIC, as `NeighbourInputs` describes them, one row each; NaN where only sums are known."""

    @classmethod
    def of(
        cls,
        traffic: Floats,
        kpps: Floats,
        solo_kpps: Floats,
        competitor_ms: Floats,
        own_ms: Floats,
        neighbours: Floats | None = None,
    ) -> Conditions:
        """The conditions of predictions of `kpps` for NFs that reach `solo_kpps` alone, shape (N,).

        Traffic is of shape (N, 3), the service times of the competitors and the NF are of shape (N, accelerators).
        """
        known = np.full((len(kpps), 1), np.nan) if neighbours is None else neighbours
        return cls(traffic, kpps / solo_kpps, competitor_ms / np.maximum(own_ms, 1e-12), known)

    @property
    def named(self) -> NDArray[np.bool_]:
        """Whether it is known which NFs share the NIC, shape (N,)."""
        return np.asarray(np.isfinite(self.neighbours).all(axis=1), dtype=np.bool_)

    def competitors(self, usual: float) -> Floats:
        """How many NFs share the NIC, `usual` where that is not known, shape (N,)."""
        if not len(self.neighbours):
            return np.full(len(self.kept), usual)
        together = competitors(self.neighbours)
        return np.where(np.isfinite(together), together, usual)

    def inputs(self) -> Floats:
        """As coordinates, shape (N, 4 + accelerators)."""
        inputs = np.empty((len(self.kept), 4 + self.pressure.shape[1]))
        pressure = np.ascontiguousarray(self.pressure, dtype=np.float64)
        write_all_inputs(np.ascontiguousarray(self.traffic, dtype=np.float64), self.kept, pressure, inputs)
        return inputs


@dataclass(frozen=True, repr=False)
class Calibration(Shown):
    """A correction of the logarithm of throughput."""

    correction: GaussianProcess  # zero away from what was measured
    errors: Floats
    """Of each measured row when it is left out of training: measured over predicted, logarithm, shape (N,)."""

    @classmethod
    def fit(cls, conditions: Conditions, error: Floats, co_location: NDArray[np.intp]) -> Calibration | None:
        """Learn `error`, the logarithm of measured over predicted; None when that does not help.

        Whether it helps is tested on rows left out, all rows of one co-location together. `error` and `co_location`,
        equal numbers for rows of one co-location, are of shape (N,).
        """
        if len(error) < LEAST_ROWS:
            return None
        correction = GaussianProcess.fit(conditions.inputs(), error[:, None], anchored=True, noise=CORRECTION_NOISE)
        left = correction.left_out(error[:, None], co_location)[:, 0]
        share = _shrink(error**2 - left**2)
        if not share:
            return None
        trusted = replace(correction, weights=share * correction.weights)
        # lengths and noise were tuned on all rows
        tuned = int((correction.scale > 0).sum()) + 1
        known = np.sqrt(len(error) / max(len(error) - tuned, 1))
        return cls(trusted, known * (error - share * (error - left)))

    def __call__(self, conditions: Conditions) -> Floats:
        """The factor for each prediction, shape (N,)."""
        factors: Floats = np.exp(self.correction(conditions.inputs())[:, 0])
        return factors

    def applies(self, conditions: Conditions) -> NDArray[np.bool_]:
        """Whether a prediction is near a measured row, shape (N,)."""
        near: NDArray[np.bool_] = self.correction.nearness(conditions.inputs()) >= NEAR_LENGTH
        return near

    def as_arrays(self) -> dict[str, Floats]:
        """What was learnt, as plain arrays."""
        correction = {f"correction_{name}": array for name, array in self.correction.as_arrays().items()}
        return {"errors": self.errors, **correction}

    @classmethod
    def from_arrays(cls, arrays: dict[str, Floats]) -> Calibration:
        """The correction that `as_arrays` returned."""
        correction = {name.removeprefix("correction_"): array for name, array in arrays.items()}
        return cls(GaussianProcess.from_arrays(correction), arrays["errors"])


def _shrink(gains: Floats) -> float:
    """How much of a correction to apply, given its gain on each row left out, between 0 and 1.

    Few rows, or few of many that gain, leave the mean gain uncertain; a certain gain is applied in full.
    """
    mean, deviation = float(gains.mean()), float(gains.std(ddof=1) / np.sqrt(len(gains)))
    return max(1.0 - (SURE_ERRORS * deviation / mean) ** 2, 0.0) if mean > 0 else 0.0
