"""Packets in bursts: how long they wait for their batch, and how bursts are found from measured waits."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from predictor.gpu.batching import BatchingModel, Bursts, dispersion_of, exact_p99_gaps, mean_wait_us, p99_gaps
from profiles import TrafficProfile
from tests.effort import examples


def _stream(size: float, distance_us: float, rate_kpps: float, packets: int) -> np.ndarray:  # type: ignore[type-arg]
    """Gaps of a stream, packet by packet."""
    rng = np.random.default_rng(0)
    gap = 1000 / rate_kpps
    pause = rng.exponential(size * (gap - distance_us), packets) * (rng.random(packets) < 1 / size)
    return distance_us + pause


@pytest.mark.parametrize(
    ("size", "distance_us", "batch"), [(1.0, 0.0, 7), (8.0, 0.2, 3), (8.0, 0.2, 64), (40.0, 0.0, 20)]
)
def test_batches_are_those_of_the_stream_packet_by_packet(size: float, distance_us: float, batch: int) -> None:
    """Periods and waits have the distribution of a stream that is drawn packet by packet."""
    gaps = _stream(size, distance_us, 1000.0, 200_000 // batch * batch).reshape(-1, batch)
    waits = np.cumsum(gaps[:, :0:-1], axis=1)
    drawn = Bursts(size, distance_us).batches(batch, 1000.0, 20_000, np.random.default_rng(1))
    assert drawn.periods_us.mean() == pytest.approx(batch)
    assert drawn.periods_us.std() == pytest.approx(gaps.sum(axis=1).std(), rel=0.1)
    found = drawn.waits_us(0, 8, np.random.default_rng(2))
    packets = np.concatenate([np.zeros(len(waits)), waits.ravel()])
    assert found.mean() == pytest.approx(packets.mean(), rel=0.1)
    assert np.quantile(found, 0.99) == pytest.approx(np.quantile(packets, 0.99), rel=0.1)


@given(st.integers(2, 3000), st.floats(1.0, 80.0), st.floats(0.0, 0.9), st.floats(1.0, 5000.0))
@settings(max_examples=examples(40))
def test_the_mean_wait_needs_no_model(batch: int, size: float, fullness: float, rate_kpps: float) -> None:
    """However packets arrive, the mean wait is that of half a batch."""
    drawn = Bursts(size, fullness * 1000 / rate_kpps).batches(batch, rate_kpps, 4000, np.random.default_rng(3))
    mean = float(drawn.waits_us(0, 16, np.random.default_rng(4)).mean())
    assert mean == pytest.approx(float(mean_wait_us(np.array(batch), np.array(rate_kpps))), rel=0.15)


def test_a_batch_of_one_packet_waits_for_nobody() -> None:
    drawn = Bursts(5.0).batches(1, 100.0, 50, np.random.default_rng(0))
    assert (drawn.waits_us(0, 4, np.random.default_rng(0)) == 0).all()
    assert p99_gaps(np.array([1.0]), np.array([5.0]))[0] == 0


def test_packets_at_equal_distances_wait_nearly_a_whole_batch() -> None:
    """By hand: of 101 packets, the second waits 99 gaps, and 1 in 101 waits more."""
    assert exact_p99_gaps(101, 1e-3) == pytest.approx(99, rel=0.01)


@pytest.mark.parametrize("batch", [8, 90, 1500])
@pytest.mark.parametrize("dispersion", [0.5, 1.0, 12.0])
def test_a_dispersion_is_found_from_its_p99(batch: int, dispersion: float) -> None:
    """Within what the table of quantiles interpolates."""
    assert dispersion_of(batch, exact_p99_gaps(batch, dispersion)) == pytest.approx(dispersion, rel=0.15)


def test_sizes_of_bursts_and_the_line_are_found() -> None:
    """Bursts of 3 to 40 packets by flows, on a line of 40 Gbps."""
    rng = np.random.default_rng(5)
    inputs, means, p99s = [], [], []
    for _ in range(70):
        batch = round(float(np.exp(rng.uniform(3, 7))))
        flows, size = float(np.exp(rng.uniform(1, 12))), float(rng.uniform(64, 1500))
        rate = min(float(np.exp(rng.uniform(3, 9))), 0.8 * 1000 / (size * 2e-4))
        drawn = Bursts(_size(flows), size * 2e-4).batches(batch, rate, 3000, rng)
        waits = drawn.waits_us(0, 8, rng)
        inputs.append([batch, rate, flows, size, 0.0])
        means.append(waits.mean())
        p99s.append(np.quantile(waits, 0.99))
    model = BatchingModel.fit(np.array(inputs), np.array(means), np.array(p99s))
    assert model.us_per_byte == pytest.approx(2e-4, rel=0.25)
    for flows in (10.0, 1000.0, 50_000.0):
        assert model.bursts(TrafficProfile(flows, 700)).size == pytest.approx(_size(flows), rel=0.25)
    same = BatchingModel.from_arrays(model.as_arrays())
    assert same.bursts(TrafficProfile(10, 700)) == model.bursts(TrafficProfile(10, 700))


def test_without_a_p99_packets_arrive_at_random() -> None:
    inputs = np.array([[32.0, 100.0, 1000.0, 512.0, 0.0]] * 4)
    model = BatchingModel.fit(inputs, np.full(4, 155.0), np.full(4, np.nan))
    assert model.bursts(TrafficProfile(1000, 512)) == Bursts(1.0, 0.0)


def _size(flows: float) -> float:
    return 3 + 37 * float(np.exp(-flows / 500))
