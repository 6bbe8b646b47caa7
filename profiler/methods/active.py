"""Active profiling: adaptive profiling whose last runs go where a model is least certain.

Attributes are pruned and ranges bisected as in `adaptive`, and half of what is left is spread evenly, because a model
that has seen little is certain of the wrong things. The rest is asked for in rounds: of many candidates, those at which
the model handed in (as `suggest` of `profiling.profile`) is least certain are run, and the model learns from them
before the next round.

Decisions:

- Candidates are drawn as `adaptive` spreads its runs, so that what is asked most about is asked where it matters.
- Candidates are dealt into as many hands as runs are wanted, and the least certain of each hand is run: the least
  certain of all are neighbours, and would tell the same thing several times.
"""

from __future__ import annotations

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from profiler.methods import METHODS
from profiler.methods.adaptive import Adaptive, Line, spread, spread_co_locations
from profiler.nf_runs import CoLocation, NfRuns
from profiler.sampling import EvenPoints
from profiles import InputError

EVENLY = 0.5
ROUNDS = 4
HAND = 8
"""Candidates of which one is run."""


@METHODS.register("active")
class Active(Adaptive):
    """Prune, bisect, spread half, then ask where a model is least certain."""

    def finish(self, runs: NfRuns, lines: list[Line], rng: Generator) -> None:
        if runs.uncertainty is None:
            raise InputError.of("--method", "active needs a model to ask, and none was handed in")
        if not np.isfinite(runs.left):
            raise InputError.of("--method", "active needs a quota")
        spread(runs, lines, rng, keep=int(runs.left * (1 - EVENLY)))
        points = EvenPoints(len(lines), rng)
        each = -(-int(runs.left) // ROUNDS)
        left = None
        while left != runs.left and runs.left > 0:
            left = runs.left
            count = min(each, int(runs.left))
            candidates = spread_co_locations(runs, lines, points, count * HAND)
            runs.measure(_least_certain(candidates, runs.uncertainty(candidates), count))


def _least_certain(candidates: list[CoLocation], uncertainty: NDArray[np.float64], count: int) -> list[CoLocation]:
    """The least certain candidate of each of `count` hands."""
    hands = [range(start, len(candidates), count) for start in range(count)]
    return [candidates[max(hand, key=lambda index: float(uncertainty[index]))] for hand in hands]
