"""Full profiling: every traffic profile of a grid with every contention level (Tomur, section 5.2)."""

from itertools import product

from numpy.random import Generator

from profiler.methods import METHODS, Method
from profiler.runs.nf_runs import NfRuns
from profiler.sampling import at, traffic_with

GRID_POINTS = 10
GRID_LEVELS = 48


@METHODS.register("full")
class Full(Method):
    """A grid, even on the scale of each attribute, times contention levels. Expensive: the reference for the others. A
    quota makes the grid coarser."""

    quota = None

    def profile(self, runs: NfRuns, rng: Generator) -> None:
        levels = list(dict.fromkeys(runs.memory.draw(GRID_LEVELS)))
        points = GRID_POINTS
        while points > 2 and points ** len(runs.attributes) * len(levels) > runs.left:
            points -= 1
        axes = [[at(bounds, step / (points - 1)) for step in range(points)] for bounds in runs.attributes.values()]
        for values in product(*axes):
            traffic = traffic_with(runs.base, dict(zip(runs.attributes, values, strict=True)))
            runs.measure((traffic, level) for level in levels)
