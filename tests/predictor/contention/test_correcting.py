"""Corrections in compiled code against the models that they are made of, one NF at a time."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from predictor import Models, TomurPredictor
from predictor.contention.calibration import Calibration
from predictor.contention.equilibrium import EquilibriumModel
from predictor.contention.neighbours import NeighbourCorrection
from predictor.contention.nf_model import NfModel
from predictor.contention.solo import MeasuredAlone
from predictor.contention.workload_table import WorkloadTable
from predictor.regression.gaussian_process import GaussianProcess
from profiles import TrafficProfile, Workload
from tests.effort import examples
from tests.predictor.made_up import CRYPTO, DEFAULT, LOOKUP, PLAIN

NAMES = (PLAIN.name, CRYPTO.name, LOOKUP.name)
SPREAD = 0.01

workloads = st.builds(
    Workload,
    st.sampled_from(NAMES),
    st.builds(TrafficProfile, st.floats(1, 2e5), st.floats(64, 1500), st.floats(0, 1000)) | st.just(DEFAULT),
)


@pytest.fixture(scope="module")
def corrected(models: Models) -> dict[str, NfModel]:
    """The made-up NFs, as if co-runs had shown errors of theirs; the last NF has no correction by neighbours."""
    rng = np.random.default_rng(0)
    traffic = np.array([DEFAULT.as_tuple()])
    found = {}
    for name, model in models.models.items():
        width = 4 + len(model.accelerators)
        rows = rng.uniform(
            [0, 4, 0, -1, *[0] * len(model.accelerators)], [12, 7, 3, 0, *[2] * (width - 4)], (30, width)
        )
        process = GaussianProcess.fit(rows, 0.1 * np.sin(rows.sum(axis=1, keepdims=True)), anchored=True)
        counts = rng.integers(0, 3, (25, len(models.models))).astype(float)
        inputs = np.concatenate([counts, rng.uniform(-0.5, 0.5, (25, 3 * len(models.models) + 3))], axis=1)
        lengths = np.full(inputs.shape[1], 2.0)
        errors = rng.standard_normal(25)
        neighbours = NeighbourCorrection(tuple(models.models), lengths, 0.7, 0.2, inputs, errors, np.full(25, 0.1))
        found[name] = replace(
            model,
            calibration=Calibration(process, np.zeros(30)),
            neighbours=None if name == NAMES[-1] else neighbours,
            alone=MeasuredAlone(traffic, np.array([0.02]), np.array([SPREAD])),
        )
    return found


@settings(max_examples=examples(60))
@given(co_location=st.lists(workloads, min_size=2, max_size=5))
def test_a_prediction_is_composed_of_its_models(corrected: dict[str, NfModel], co_location: list[Workload]) -> None:
    """The equilibrium times the factors of both corrections, at most the throughput alone; and the spread left."""
    table = WorkloadTable(corrected)
    model = EquilibriumModel(table)
    equilibrium = model.solve([co_location])
    given = equilibrium.batch.order[0]
    predictor = TomurPredictor(corrected)
    (kpps,) = predictor.throughput([co_location])
    (wary,) = predictor.throughput([co_location], risk=0.05)
    for name, at, conditions in model.conditions(equilibrium):
        nf = corrected[name]
        usual = nf.error_model.at(conditions)
        error, left = nf.neighbours(conditions.neighbours) if nf.neighbours else (np.zeros(1), np.ones(1))
        assert nf.calibration is not None
        assert nf.alone is not None
        factor = nf.calibration(conditions) * np.exp(error * usual)
        expected = np.minimum(equilibrium.throughput[at] * factor, equilibrium.solo[at])
        assert kpps[given[at[1]]] == pytest.approx(expected, rel=1e-9)
        if nf.neighbours:
            left = np.hypot(left, nf.alone.spread_at(conditions.traffic) / usual)
        lowered = expected * np.minimum(nf.error_model.lower(usual * left, 0.05), 1.0)
        assert wary[given[at[1]]] == pytest.approx(lowered, rel=1e-9)


@settings(max_examples=20, deadline=None)
@given(co_locations=st.lists(st.lists(workloads, min_size=1, max_size=5).map(tuple), min_size=2, max_size=9))
def test_a_prediction_does_not_depend_on_what_else_is_asked(
    corrected: dict[str, NfModel], co_locations: list[tuple[Workload, ...]]
) -> None:
    """Errors of one NF are computed side by side, and equal workloads once; answers are the same to the bit."""
    together = TomurPredictor(corrected).throughput(co_locations, risk=0.05)
    for co_location, kpps in zip(co_locations, together, strict=True):
        (alone,) = TomurPredictor(corrected).throughput([co_location], risk=0.05)
        assert alone.tolist() == kpps.tolist()
        of_equal = {(one, value) for one, value in zip(co_location, alone.tolist(), strict=True)}
        assert len(of_equal) == len(set(co_location))
