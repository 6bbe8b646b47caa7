"""Queues, bursts and stages of a GPU server, on cases that can be followed by hand."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from predictor.gpu import tandem
from predictor.gpu.batching import BatchingModel, Bursts, dispersion_of, exact_p99_gaps, mean_wait_us, p99_gaps
from predictor.gpu.device import line_above
from predictor.gpu.prediction import ENOUGH_LATENCIES, LatencyErrors
from predictor.gpu.sharing import KernelShare, Sharer, SharingModel, as_arrays
from predictor.gpu.stage_time import Law, StageTime
from predictor.gpu.tandem import BatchDemand, sample, serve
from profiles import TrafficProfile
from tests.effort import examples

MANY = 1_000_000
EVEN = Bursts(1.0, 0.0)


def _serve(
    ready: list[list[float]], shares: list[KernelShare], *, orders: list[float], window: int = MANY, bus: float = 10.0
) -> np.ndarray:  # type: ignore[type-arg]
    """What becomes of these batches; worker, return and post take nothing, kernels their time."""
    counts = [len(one) for one in ready]
    first = np.cumsum([0, *counts])
    taken = np.array([[0.0], [bus], [1.0], [0.0], [0.0]]) * np.ones((5, first[-1]))
    at = np.zeros((8, first[-1]))
    flat = np.concatenate([np.array(one) for one in ready])
    serve(first, np.array(orders), window, flat, taken, np.zeros(len(ready)), *as_arrays(shares), at)
    return at


@pytest.mark.parametrize(("orders", "on_bus"), [([0, 1, 2], [10.0, 0.0, 20.0]), ([0, 0, 0], [20.0, 0.0, 10.0])])
@pytest.mark.long
def test_a_bus_is_never_interrupted_and_then_serves_by_order(orders: list[float], on_bus: list[float]) -> None:
    """NF 1 has the bus at 0; of NF 2 at 1 and NF 0 at 2, NF 0 is next by order, and NF 2 where orders are equal."""
    at = _serve([[2.0], [0.0], [1.0]], [KernelShare((1.0,))] * 3, orders=orders)
    assert at[tandem.ON_BUS].tolist() == on_bus


def test_a_kernel_waits_for_the_one_before() -> None:
    """The second batch is on the card at 20, the first kernel ends at 40."""
    at = _serve([[0.0, 1.0]], [KernelShare((30.0,))], orders=[0])
    assert at[tandem.KERNEL_BEGIN].tolist() == [10.0, 40.0] and at[tandem.KERNEL_END].tolist() == [40.0, 70.0]


def test_a_worker_takes_no_more_batches_than_its_window() -> None:
    at = _serve([[0.0, 1.0, 2.0]], [KernelShare((30.0,))], orders=[0], window=1)
    assert at[[tandem.BATCH_TAKEN, tandem.BATCH_DONE]].tolist() == [[0.0, 40.0, 80.0], [40.0, 80.0, 120.0]]


def test_a_kernel_is_slowed_only_while_its_sharer_runs() -> None:
    """NF 0 runs from 10; NF 1 from 20 to 30, and halves its speed: 20 us of work end at 35."""
    at = _serve([[0.0], [10.0]], [KernelShare((20.0,), ({1: 1.0},)), KernelShare((10.0,))], orders=[0, 1])
    assert at[tandem.KERNEL_END].tolist() == [pytest.approx(35.0), pytest.approx(30.0)]


def test_the_longest_minibatch_ends_the_kernel() -> None:
    assert _serve([[0.0]], [KernelShare((20.0, 35.0, 5.0))], orders=[0])[tandem.BATCH_RETURNED].tolist() == [45.0]


def _demand(**changes: object) -> BatchDemand:
    base = BatchDemand(101, 1000.0, EVEN, 0.0, 8.0, 10.0, 5.0, KernelShare((30.0,)))
    return replace(base, **changes)  # type: ignore[arg-type]


def test_latency_alone_is_the_sum_of_the_stages() -> None:
    """50 us for half a batch at random, and 53 for the rest."""
    (one,) = sample([_demand()], window=MANY)
    assert one.stages[0] == pytest.approx(50, rel=0.02)
    assert one.stages[1:] == pytest.approx((8, 0, 10, 0, 30, 5), abs=0.2)
    assert one.mean == pytest.approx(sum(one.stages)) and one.mean < one.p99 < 53 + 101 * 1.4


def test_the_first_in_order_waits_for_half_a_transfer_of_the_other() -> None:
    """One batch has the bus for a fifth of the time, 20 us; who meets it waits for half of that: 2 us."""
    first, other = _demand(order=0.0), _demand(order=1.0, transfer=20.0, rate_kpps=1010.0)
    waits = [one.stages[2] for one in sample([first, other], window=MANY)]
    assert waits[0] == pytest.approx(2.0, rel=0.25) and waits[1] == pytest.approx(0.5, rel=0.35)


def test_the_same_co_location_has_the_same_latency() -> None:
    pair = [_demand(), _demand(order=1.0)]
    assert sample(pair, window=4) == sample(pair, window=4)


def test_more_bursts_mean_a_longer_tail_and_no_longer_wait() -> None:
    (even,), (bursty,) = sample([_demand()], window=MANY), sample([_demand(bursts=Bursts(20.0))], window=MANY)
    assert bursty.p99 > 1.2 * even.p99 and bursty.stages[0] == pytest.approx(even.stages[0], rel=0.1)


def _stream(size: float, distance_us: float, rate_kpps: float, packets: int) -> np.ndarray:  # type: ignore[type-arg]
    """Gaps of a stream, packet by packet."""
    rng = np.random.default_rng(0)
    pause = rng.exponential(size * ((1000 / rate_kpps) - distance_us), packets) * (rng.random(packets) < 1 / size)
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
        waits = Bursts(_size(flows), size * 2e-4).batches(batch, rate, 3000, rng).waits_us(0, 8, rng)
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
    assert stage.tail_ratio(other) == pytest.approx(np.full(30, 1.05), rel=0.02) and stage.error_pct < 1


def test_a_kernel_that_is_no_straight_line_is_followed() -> None:
    """Flat up to four executors, then proportional, in steps of 32 packets."""
    inputs = _inputs(80, 500)

    def true(rows: np.ndarray) -> np.ndarray:  # type: ignore[type-arg]
        found: np.ndarray = 10 + 5 * np.maximum(np.ceil(rows[:, 0] / 32), 4)  # type: ignore[type-arg]
        return found

    stage = StageTime.fit(Law.KERNEL, 32, inputs, true(inputs), np.full(80, np.nan))
    other = _inputs(40, 450)
    assert np.abs(stage.mean(other) / true(other) - 1).mean() < 0.03 and (stage.tail_ratio(other) == 1).all()


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
    assert SharingModel.from_arrays(model.as_arrays()).slowdown(3, three) == model.slowdown(3, three)


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
