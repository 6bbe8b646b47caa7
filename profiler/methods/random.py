"""Random profiling, the baseline of Tomur's section 7.6: traffic and contention are drawn uniformly."""

from numpy.random import Generator

from profiler.methods import METHODS, Method
from profiler.runs.nf_runs import NfRuns
from profiler.sampling import traffic_with, whole

RUN_BATCH = 32


@METHODS.register("random")
class Random(Method):
    """Uniform over the declared ranges, no attribute pruned, until the quota is spent. Solo throughput is known only
    from runs that were drawn without a competitor."""

    alone = 0.0

    def profile(self, runs: NfRuns, rng: Generator) -> None:
        left = None
        while left != runs.left:
            left = runs.left
            traffics = [
                traffic_with(
                    runs.base, {name: whole(bounds, rng.uniform(*bounds)) for name, bounds in runs.attributes.items()}
                )
                for _ in range(RUN_BATCH)
            ]
            runs.measure(zip(traffics, runs.memory.draw(RUN_BATCH), strict=True))
