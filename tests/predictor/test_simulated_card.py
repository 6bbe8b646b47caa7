"""Profiled, trained and judged on the simulated card: NFs that the predictor knows nothing of but their runs."""

from __future__ import annotations

import numpy as np
import pytest

from predictor import Models, train
from profiler.profiling import profile
from profiler.simulated import BLUEFIELD_2, SimulatedTestbed
from profiles import TrafficProfile, Workload
from profiles.profile import read_profile

NAMES = ("FlowStats", "IPRouter", "FlowMonitor", "NIDS", "IPCompGateway")


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Models:
    """Models of five NFs: without accelerator, with one, with two, and one that runs to completion."""
    return train(
        read_profile(profile(SimulatedTestbed(), tmp_path_factory.mktemp("card") / "profile", nfs=NAMES, quota=300))
    )


def _companies(count: int, seed: int = 0) -> list[list[Workload]]:
    """Two to four NFs each at random traffic."""
    rng = np.random.default_rng(seed)
    return [
        [
            Workload(
                str(name),
                TrafficProfile(
                    float(round(rng.uniform(1, 500000))), float(round(rng.uniform(64, 1500))), rng.uniform(0, 1100)
                ),
            )
            for name in rng.choice(NAMES, rng.integers(2, 5))
        ]
        for _ in range(count)
    ]


@pytest.fixture(scope="module")
def errors(trained: Models) -> dict[str, np.ndarray]:
    """Per predictor, relative errors on fresh companies against the noise-free truth."""
    companies = _companies(120)
    truth = [
        [one.throughput_kpps for one in run.measurements] for run in SimulatedTestbed().run_many(companies, noise=False)
    ]
    return {
        name: np.concatenate(predictor.throughput(companies)) / np.concatenate(truth) - 1
        for name, predictor in trained.predictors.items()
    }


def test_random_traffic_in_random_company(errors: dict[str, np.ndarray]) -> None:
    """Tomur within 3.7 % on average, SLOMO several times worse."""
    tomur, slomo = (100 * np.abs(errors[name]).mean() for name in ("tomur", "slomo"))
    assert tomur <= 3.7
    assert slomo >= 3 * tomur


def test_patterns_and_queues(trained: Models) -> None:
    """NIDS runs to completion on two queues; the others are pipelines with one queue per accelerator."""
    found = {name: (one["execution_pattern"], one["queues"]) for name, one in trained.completed_nf_json.items()}
    assert found["NIDS"] == ("run-to-completion", {"regex": 2})
    assert found["FlowMonitor"] == ("pipeline", {"regex": 1})
    assert found["IPCompGateway"] == ("pipeline", {"regex": 1, "compression": 1})


@pytest.mark.parametrize("nf", ["FlowMonitor", "NIDS", "IPCompGateway"])
def test_service_times_over_all_traffic(trained: Models, nf: str) -> None:
    """Each accelerator's time per packet is told within a tenth or 50 ns at any traffic, also where it never binds."""
    traffic = np.random.default_rng(5).uniform((1, 64, 0), (500_000, 1500, 1100), (200, 3))
    for use in trained.models[nf].execution.uses:
        engine = BLUEFIELD_2.engines[use.name]
        true = [engine.service_us(size, mtbr) / 1e3 for _, size, mtbr in traffic.tolist()]
        np.testing.assert_allclose(use.service(traffic), true, rtol=0.1, atol=5e-5)


@pytest.mark.parametrize("coverage", [0.8, 0.9, 0.95])
def test_intervals_hold_on_fresh_companies(trained: Models, coverage: float) -> None:
    """The share of truths within the interval is what was promised, or somewhat more: the truth carries no noise."""
    companies = _companies(150, seed=1)
    truth = SimulatedTestbed().run_many(companies, noise=False)
    held = [
        part.low_kpps <= one.throughput_kpps <= part.high_kpps  # type: ignore[operator]
        for parts, run in zip(trained.predictors["tomur"].predict(companies, coverage=coverage), truth, strict=True)
        for part, one in zip(parts, run.measurements, strict=True)
    ]
    assert coverage - 0.03 <= np.mean(held) <= coverage + 0.12


def test_nothing_jumps_where_contention_exceeds_what_nfs_exert(trained: Models) -> None:
    """From just below the most that companies of NFs exert to just above, no prediction moves by over 2 %."""
    for name, model in trained.models.items():
        at = np.array([[1.2, 3e9, 0.7, 0.3, 1.2e9, 5e8, 8.0]] * 2)
        at[:, 2:4] *= model.memory.most_accesses * np.array([[0.999], [1.001]])
        traffic = np.array([(100_000.0, 1400.0, 0.0)] * 2)
        below, above = model.beside(at, traffic, *(np.zeros((2, len(model.accelerators))) for _ in range(2)))
        assert above == pytest.approx(below, rel=0.02), name
