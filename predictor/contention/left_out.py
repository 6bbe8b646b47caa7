"""Measured co-locations as they would be predicted had they not been measured.

Which predictions are too high shows only on co-locations that a model does not know. The correction by neighbours is a
Gaussian process, so what it would predict without one co-location follows from all of them (Rasmussen & Williams,
section 5.4.2), and nothing is trained again. The resource models and the correction by conditions keep having seen the
co-location; they have few parameters, and see thousands of runs.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from predictor.contention.intervals import ErrorModel
from predictor.contention.nf_model import NfModel
from profiles import CoLocation, TrafficProfile, Workload
from profiles.arrays import Floats


@dataclass(frozen=True)
class LeftOutCoLocation:
    """A measured co-location, per member in the order of its workloads."""

    measured: Floats  # throughput (kpps) as measured, shape (members,)
    predicted: Floats  # as predicted without that co-location
    spread: Floats
    noise: Floats
    """Standard deviations of the logarithm: of throughput around `predicted`, and of `measured` around throughput."""
    errors: tuple[ErrorModel, ...]  # the error model of each member

    def throughput(self, risk: float) -> list[float]:
        """Throughput (kpps) that a share `risk` of members is expected to fall short of."""
        return throughputs([self], risk)[0]

    def shortfall(self, member: int, required_kpps: float) -> tuple[float, float]:
        """The probabilities that throughput, and that a measurement of it, is below what the member requires."""
        return shortfalls([(self, member, required_kpps)])[0]


def throughputs(co_locations: Sequence[LeftOutCoLocation], risk: float) -> list[list[float]]:
    """The `throughput` of each of the co-locations."""
    if not co_locations:
        return []
    spread, predicted = (
        np.concatenate([getattr(co_location, name) for co_location in co_locations]) for name in ("spread", "predicted")
    )
    factors = np.empty(len(spread))
    for model, rows in _by_model([model for co_location in co_locations for model in co_location.errors]):
        factors[rows] = model.lower(spread[rows], risk)
    values = iter((predicted * np.minimum(factors, 1.0)).tolist())
    return [list(islice(values, len(co_location.errors))) for co_location in co_locations]


def shortfalls(members: Sequence[tuple[LeftOutCoLocation, int, float]]) -> list[tuple[float, float]]:
    """The `shortfall` of each of these members, of the throughput that it requires (kpps)."""
    spread, noise, predicted = (
        np.array([getattr(one, name)[member] for one, member, _ in members])
        for name in ("spread", "noise", "predicted")
    )
    factor, measured = np.array([kpps for *_, kpps in members]) / predicted, np.hypot(spread, noise)
    found = np.empty((len(members), 2))
    for model, rows in _by_model([one.errors[member] for one, member, _ in members]):
        for column, of in enumerate((spread, measured)):
            found[rows, column] = model.shortfall(of[rows], factor[rows])
    return [(truly, measured) for truly, measured in found.tolist()]


def _by_model(errors: Sequence[ErrorModel]) -> Iterator[tuple[ErrorModel, NDArray[np.intp]]]:
    """Each error model, and where it is."""
    numbers = np.array([id(error) for error in errors])
    for number, first in dict(zip(numbers.tolist(), errors, strict=True)).items():
        yield first, np.flatnonzero(numbers == number)


@dataclass(frozen=True)
class LeftOutRow:
    """One NF in a measured co-location, in usual spreads."""

    error: float  # measured over predicted, logarithm
    left: float  # what of it others do not lead to expect
    deviation: float  # standard deviation of throughput
    noise: float  # standard deviation of the measurement


def rows_left_out(models: Mapping[str, NfModel], default: TrafficProfile) -> dict[CoLocation, dict[str, LeftOutRow]]:
    """Per measured co-location at default traffic the row of each of its NFs; those without a row are left out."""
    found: dict[CoLocation, dict[str, LeftOutRow]] = {}
    counted = {name for model in models.values() if model.neighbours for name in model.neighbours.names}
    workloads = {name: Workload(name, default) for name in {*models, *counted}}
    for nf, model in models.items():
        correction = model.neighbours
        if correction is None:
            continue
        nfs = len(correction.names)
        left, variance = correction.left_out()
        at_default = (correction.inputs[:, nfs:] == 0).all(axis=1)
        deviations = np.sqrt(variance), np.sqrt(np.maximum(correction.noise, 0.0))
        rows = np.column_stack([correction.errors, left, *deviations])[at_default].tolist()
        counts = correction.inputs[at_default, :nfs].astype(np.intp).tolist()
        for row, instances in zip(rows, counts, strict=True):
            others = [name for name, count in zip(correction.names, instances, strict=True) for _ in range(count)]
            co_location = tuple(map(workloads.__getitem__, sorted([nf, *others])))
            found.setdefault(co_location, {})[nf] = LeftOutRow(*row)
    complete = {key: rows for key, rows in found.items() if len(key) > 1 and {load.nf for load in key} <= rows.keys()}
    return {key: complete[key] for key in sorted(complete, key=lambda key: [workload.nf for workload in key])}
