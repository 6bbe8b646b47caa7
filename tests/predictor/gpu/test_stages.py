"""Stages: laws, corrections, sharing, and a line above them."""

from __future__ import annotations

import numpy as np
import pytest

from predictor.gpu.device import line_above
from predictor.gpu.prediction import ENOUGH_LATENCIES, LatencyErrors
from predictor.gpu.sharing import Sharer, SharingModel
from predictor.gpu.stage_time import Law, StageTime

RNG = np.random.default_rng(0)


def _inputs(count: int, most: float = 1000) -> np.ndarray:  # type: ignore[type-arg]
    batch = np.round(np.exp(RNG.uniform(0, np.log(most), count)))
    return np.column_stack([batch, np.full(count, 1000.0), RNG.uniform(64, 1500, count), np.zeros(count)])


def test_a_transfer_is_found_over_batch_and_packet_size() -> None:
    """4 us, and a microsecond per 12,000 bytes; the p99 is 5 % above."""
    inputs = _inputs(60)
    true = 4 + inputs[:, 0] * inputs[:, 2] / 12_000
    stage = StageTime.fit(Law.TRANSFER, 32, inputs, true * RNG.normal(1, 0.002, 60), 1.05 * true)
    other = _inputs(30)
    assert stage.mean(other) == pytest.approx(4 + other[:, 0] * other[:, 2] / 12_000, rel=0.02)
    assert stage.tail_ratio(other) == pytest.approx(np.full(30, 1.05), rel=0.02)
    assert stage.error_pct < 1


def test_a_kernel_that_is_no_straight_line_is_followed() -> None:
    """Flat up to four executors, then proportional, in steps of 32 packets."""
    inputs = _inputs(80, 500)

    def true(rows: np.ndarray) -> np.ndarray:  # type: ignore[type-arg]
        found: np.ndarray = 10 + 5 * np.maximum(np.ceil(rows[:, 0] / 32), 4)  # type: ignore[type-arg]
        return found

    stage = StageTime.fit(Law.KERNEL, 32, inputs, true(inputs), np.full(80, np.nan))
    other = _inputs(40, 450)
    assert np.abs(stage.mean(other) / true(other) - 1).mean() < 0.03
    assert (stage.tail_ratio(other) == 1).all()


def test_what_is_outside_is_named() -> None:
    stage = StageTime.fit(Law.TRANSFER, 32, _inputs(20), np.full(20, 3.0), np.full(20, np.nan))
    assert stage.outside(np.array([1e6, 1000.0, 512.0, 0.0])) == [
        f"count 1e+06 is outside the measured {stage.low[0]:g} to {stage.high[0]:g}"
    ]


def test_a_stage_survives_its_arrays() -> None:
    inputs = _inputs(30)
    stage = StageTime.fit(Law.KERNEL, 32, inputs, 10 + inputs[:, 0] ** 0.7, np.full(30, np.nan))
    same = StageTime.from_arrays(stage.as_arrays())
    assert (same.mean(inputs) == stage.mean(inputs)).all() and same.law is Law.KERNEL


def test_sharers_add_up_and_are_weighed_by_how_long_they_run() -> None:
    """Each executor of `scan` slows by 5 %, of `hash` by 1 %, while its kernel runs."""
    groups, own, ratio = [], [], []
    for _ in range(60):
        group = [
            Sharer(nf, float(RNG.integers(1, 5)), float(RNG.uniform(0.5, 1)))
            for nf in RNG.choice(["scan", "hash"], int(RNG.integers(1, 4)))
        ]
        groups.append(group)
        own.append(float(RNG.integers(1, 5)))
        ratio.append(1 + sum((0.05 if one.nf == "scan" else 0.01) * one.executors * one.busy for one in group))
    model = SharingModel.fit(np.array(own), groups, np.array(ratio))
    three = [Sharer("scan", 2), Sharer("scan", 1), Sharer("hash", 4)]
    assert model.slowdown(2, three) == pytest.approx(0.19, abs=0.01)
    assert sum(model.parts(2, three)) == pytest.approx(model.slowdown(2, three))
    assert model.slowdown(2, []) == 0
    assert model.slowdown(2, [Sharer("unknown", 2)]) == pytest.approx(0.1, abs=0.02), "as the worst that is known"
    same = SharingModel.from_arrays(model.as_arrays())
    assert same.slowdown(3, three) == model.slowdown(3, three)


def test_the_line_is_nowhere_below_and_touches() -> None:
    at = np.arange(1.0, 20.0)
    values = 3 + at**0.8
    slope, fixed = line_above(at, values)
    assert (slope * at + fixed >= values - 1e-9).all()
    assert (slope * at + fixed - values).min() == pytest.approx(0, abs=1e-6)


def test_an_interval_holds_the_share_that_it_names() -> None:
    """Of further errors from the same distribution."""
    errors, further = RNG.normal(0, 0.02, 400), RNG.normal(0, 0.02, 2000)
    found = LatencyErrors(np.zeros(400), errors, errors).interval("p99", 100.0, 0.0, 0.9)
    assert found is not None
    inside = np.mean((found[0] <= 100 * np.exp(further)) & (100 * np.exp(further) <= found[1]))
    assert inside == pytest.approx(0.9, abs=0.08)


def test_few_errors_make_no_interval() -> None:
    few = np.zeros(ENOUGH_LATENCIES - 1)
    assert LatencyErrors(few, few, few).interval("mean", 1.0, 0.0, 0.9) is None
