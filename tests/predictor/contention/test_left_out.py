"""Measured co-locations as predicted from the others."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from predictor import Models, TomurPredictor
from predictor.contention.intervals import ErrorModel
from predictor.contention.neighbours import NeighbourCorrection
from predictor.contention.nf_model import NfModel
from profiles import Workload
from tests.predictor.made_up import CRYPTO, DEFAULT, PLAIN

NAMES = (PLAIN.name, CRYPTO.name)
PAIR = tuple(sorted(Workload(name, DEFAULT) for name in NAMES))
TRIPLE = tuple(sorted([*PAIR, Workload(PLAIN.name, DEFAULT)]))
ALONE = (Workload(PLAIN.name, DEFAULT),)
ERROR, NOISE = 0.5, 0.04


def _rows(nf: str, co_locations: list[tuple[Workload, ...]], names: tuple[str, ...]) -> np.ndarray:
    rows = []
    for co_location in co_locations:
        for at, one in enumerate(co_location):
            if one.nf == nf:
                others = Counter(other.nf for place, other in enumerate(co_location) if place != at)
                rows.append([*(float(others[name]) for name in names), *[0.0] * (3 * len(names) + 3)])
    return np.array(rows)


@pytest.fixture(scope="module")
def measured(models: Models) -> dict[str, NfModel]:
    """The made-up NFs, of which a pair and a triple were measured, in each of which all err by half a usual spread."""
    names = tuple(models.models)
    found = {}
    for name, model in models.models.items():
        inputs = _rows(name, [PAIR, TRIPLE], names)
        if not len(inputs):
            found[name] = replace(model, calibration=None, neighbours=None)
            continue
        many = np.full(len(inputs), ERROR)
        lengths = np.full(inputs.shape[1], 2.0)
        neighbours = NeighbourCorrection(names, lengths, 0.7, 0.2, inputs, many, np.full(len(inputs), NOISE))
        errors = ErrorModel.even(model.error_model.scale, np.linspace(-0.05, 0.05, 41))
        found[name] = replace(model, calibration=None, neighbours=neighbours, error_model=errors)
    return found


def test_a_co_location_is_predicted_as_if_it_had_not_been_measured(measured: dict[str, NfModel]) -> None:
    """The prediction for the pair equals that of models which only know the triple; what was measured comes back."""
    left_out = TomurPredictor(measured).left_out(DEFAULT)
    assert set(left_out) == {PAIR, TRIPLE}
    fewer = {}
    for name, model in measured.items():
        inputs = _rows(name, [TRIPLE], tuple(measured))
        if model.neighbours and len(inputs):
            of_triple = replace(model.neighbours, inputs=inputs, errors=np.full(len(inputs), ERROR),
                                noise=np.full(len(inputs), NOISE))  # fmt: skip
            model = replace(model, neighbours=of_triple)
        fewer[name] = model
    (expected,) = TomurPredictor(fewer).throughput([PAIR])
    assert left_out[PAIR].predicted == pytest.approx(expected)
    plain = {name: replace(model, neighbours=None) for name, model in measured.items()}
    (uncorrected,) = TomurPredictor(plain).throughput([PAIR])
    assert np.log(left_out[PAIR].measured / uncorrected) == pytest.approx(
        [ERROR * measured[one.nf].error_model.usual for one in PAIR], rel=1e-6
    )


def test_a_measurement_falls_short_more_often_than_throughput(measured: dict[str, NfModel]) -> None:
    """Below the prediction, noise adds to the probability; and a careful answer is a lower one."""
    pair = TomurPredictor(measured).left_out(DEFAULT)[PAIR]
    truly, measurement = pair.shortfall(0, 0.97 * pair.predicted[0])
    assert 0 < truly <= measurement < 0.5
    assert pair.throughput(0.05)[0] < pair.throughput(0.3)[0] <= pair.predicted[0]


def test_without_measured_co_locations_there_is_nothing_to_leave_out(models: Models) -> None:
    """The made-up profile has none with members by name."""
    plain = {name: replace(model, neighbours=None) for name, model in models.models.items()}
    assert not TomurPredictor(plain).left_out(DEFAULT)
