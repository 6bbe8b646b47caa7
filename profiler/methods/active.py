"""Active profiling: adaptive profiling whose last runs go where a model is least certain.

Attributes are pruned and ranges bisected as in `adaptive`, and half of the remaining runs are spread evenly, because a
model that has learnt from little data is certain of wrong predictions. The rest is chosen in rounds: of many
candidates, those are run at which the model (`suggest` of `profiling.profile`) is least certain, and the model learns
from them before the next round.

Decisions:

- Candidates are drawn as `adaptive` spreads its runs, so that most of them lie where throughput changes.
- Candidates are divided into as many groups as runs are wanted, and the least certain of each group is run: the least
  certain of all lie close together, and would repeat one measurement several times."""

import numpy as np
from numpy.random import Generator

from profiler.methods import METHODS
from profiler.methods.adaptive import Adaptive, Line, spread, spread_points
from profiler.runs.nf_runs import NfRuns
from profiler.sampling import EvenPoints
from profiles import InputError

EVEN_SHARE = 0.5
ACTIVE_ROUNDS = 4
CANDIDATE_GROUP = 8  # candidates of which one is run


@METHODS.register("active")
class Active(Adaptive):
    """Prune, bisect, spread half, then measure where a model is least certain."""

    def finish(self, runs: NfRuns, lines: list[Line], rng: Generator) -> None:
        if runs.uncertainty is None:
            raise InputError.of("--method", "active needs a model to query, and `suggest` is None")
        if not np.isfinite(runs.left):
            raise InputError.of("--method", "active needs a quota")
        spread(runs, lines, rng, keep=int(runs.left * (1 - EVEN_SHARE)))
        positions = EvenPoints(len(lines), rng)
        each = -(-int(runs.left) // ACTIVE_ROUNDS)
        left = None
        while left != runs.left and runs.left > 0:
            left = runs.left
            count = min(each, int(runs.left))
            candidates = spread_points(runs, lines, positions, count * CANDIDATE_GROUP)
            # The least certain candidate of each of `count` groups.
            uncertainty = runs.uncertainty(candidates)
            groups = [range(start, len(candidates), count) for start in range(count)]
            runs.measure([candidates[max(group, key=lambda index: float(uncertainty[index]))] for group in groups])
