"""Random profiling: traffic and contention drawn uniformly, as Tomur's section 7.6 compares with."""

from __future__ import annotations

from numpy.random import Generator

from profiler.method import Method
from profiler.methods import METHODS
from profiler.nf_runs import NfRuns
from profiler.sampling import traffic_with, whole

BATCH = 32


@METHODS.register("random")
class Random(Method):
    """Uniform over the declared ranges, no attribute pruned, until the quota is spent.

    Solo throughput is known from the runs that happen to have no competitor.
    """

    alone = 0.0

    def profile(self, runs: NfRuns, rng: Generator) -> None:
        left = None
        while left != runs.left:
            left = runs.left
            traffics = [
                traffic_with(
                    runs.base, {name: whole(bounds, rng.uniform(*bounds)) for name, bounds in runs.attributes.items()}
                )
                for _ in range(BATCH)
            ]
            runs.measure(zip(traffics, runs.memory.draw(BATCH), strict=True))
