"""Predicting many co-locations at once, compared with a plain loop that calls scikit-learn once per NF.

The peer is a straightforward first version: gradient boosting on the counters and the traffic of each NF's runs, one
row per call. It has no model of accelerators, so it does less work than ours.
"""

from functools import partial

import numpy as np
import pandas as pd
from sklearn.ensemble import GradientBoostingRegressor

from benches.bench import cost, register
from benches.recorded_card import recorded_profile
from predictor import Models, train
from profiles import COUNTERS, TrafficProfile, Workload
from profiles.profile import KPPS_COLUMN, TRAFFIC_COLUMNS, Profile

SIZES = (1_000, 10_000, 100_000)
WORKLOADS = 200  # distinct workloads of a trace
LOOPED = 100


@register("co-locations")
def run() -> pd.DataFrame:
    """Per number of co-locations of two to four NFs: times (s), their ratio, time of one (us), peak memory (MB)."""
    profile = recorded_profile()
    models = train(profile, ["tomur"])
    rng = np.random.default_rng(0)
    workloads = [_workload(profile, rng) for _ in range(WORKLOADS)]
    looped = Loop(profile, models, workloads)
    predictor = models.predictors["tomur"]
    table = []
    for size in SIZES:
        numbers = [rng.choice(WORKLOADS, rng.integers(2, 5)).tolist() for _ in range(size)]
        co_locations = [[workloads[number] for number in co_location] for co_location in numbers]
        ours = cost(partial(predictor.throughput, co_locations), 3)
        peer = cost(partial(looped.throughput, numbers[:LOOPED]), 1).seconds * size / LOOPED
        table.append(
            {
                "co_locations": size,
                "ours_s": round(ours.seconds, 3),
                "loop_s": round(peer, 1),
                "times_faster": round(peer / ours.seconds),
                "ours_us_per_co_location": round(1e6 * ours.seconds / size, 1),
                "ours_peak_mb": round(ours.peak_mb, 1),
            }
        )
    return pd.DataFrame(table)


class Loop:
    """The peer: predicts one NF of one co-location at a time."""

    def __init__(self, profile: Profile, models: Models, workloads: list[Workload]) -> None:
        self.workloads = workloads
        solo = {name: model.solo for name, model in models.models.items()}
        self.counters = [solo[one.nf].own_counters(np.array([one.traffic.as_tuple()]))[0] for one in workloads]  # type: ignore[union-attr]
        self.models = {
            name: GradientBoostingRegressor(random_state=0).fit(
                nf.memory[[*COUNTERS, *TRAFFIC_COLUMNS]].to_numpy(), nf.memory[KPPS_COLUMN].to_numpy()
            )
            for name, nf in profile.nfs.items()
        }

    def throughput(self, co_locations: list[list[int]]) -> list[list[float]]:
        """Throughputs (kpps) of co-locations, whose workloads are given by their numbers."""
        return [
            [
                self._of_one(workload, [other for at, other in enumerate(co_location) if at != place])
                for place, workload in enumerate(co_location)
            ]
            for co_location in co_locations
        ]

    def _of_one(self, workload: int, others: list[int]) -> float:
        one = self.workloads[workload]
        contention = np.sum([self.counters[other] for other in others], axis=0)
        row = np.concatenate([contention, one.traffic.as_tuple()])[None, :]
        return float(self.models[one.nf].predict(row)[0])


def _workload(profile: Profile, rng: np.random.Generator) -> Workload:
    low, high = np.array([1.0, 64.0, 0.0]), np.array([500_000.0, 1500.0, 1100.0])
    return Workload(str(rng.choice(sorted(profile.nfs))), TrafficProfile(*rng.uniform(low, high).tolist()))
