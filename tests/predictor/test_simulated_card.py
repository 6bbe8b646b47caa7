"""Profiled, trained and judged on the simulated card: NFs that the predictor knows nothing of but their runs."""

from __future__ import annotations

import numpy as np
import pytest

from predictor import Models, train
from profiler.profiling import profile
from profiler.simulated import SimulatedTestbed
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
