"""The strategy of a recommended plan, placed again: on traces like the given one, and on as many NICs as it takes. A
plan is recommended by what is known of one trace. How far that carries is seen on others: each is drawn from the trace
with replacement, as for next year's sizes."""

import random
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace

from placer.evaluate.evaluation import Evaluation
from placer.model.arrival import Arrival
from placer.model.catalogue import Catalogue
from placer.placing import Placing
from placer.progress import Progress
from placer.run import Comparison
from placer.strategies import NamedStrategy, find_strategy
from placer.studies.growth import Growth, grow
from profiler.testbed import Testbed
from profiler.testbeds import open_testbed
from profiles import InputError

DEFAULT_DRAWS = 3
MOST_ARRIVALS, MOST_WORKLOADS = 10_000, 100
"""Of traces with more arrivals or more different workloads none is drawn by default: that would take minutes."""

SIMULATED_TESTBED = "simulated"
"""The SPEC of testbeds that answer at once. On no other is a drawn trace evaluated: each could be a run in a lab."""


def default_draws(arrivals: Sequence[Arrival]) -> int:
    """How many traces are drawn unless another number is asked for."""
    few = len(arrivals) <= MOST_ARRIVALS and len({arrival.workload for arrival in arrivals}) <= MOST_WORKLOADS
    return DEFAULT_DRAWS if few else 0


def place_again(
    comparison: Comparison,
    strategy: str,
    predictor: str | None,
    budget_pct: float | None,
    *,
    rejects: bool,
    draws: int,
    progress: Progress,
) -> Comparison:
    """The comparison with its `similar` plans, and with its `unlimited` one where the strategy `rejects` arrivals. A
    plan that was made by measuring is not made again: it would need its runs again. `strategy`, `predictor`,
    `budget_pct`: what the recommended plan was made with; without a budget, what the run was made with. `rejects`:
    whether the recommended plan rejects arrivals. `draws`: how many traces to draw, by the seed of the run."""
    try:
        named = find_strategy(strategy)
    except InputError:
        return comparison
    with ExitStack() as stack:
        catalogue = comparison.catalogue if budget_pct is None else replace(comparison.catalogue, budget_pct=budget_pct)
        catalogue = replace(catalogue, testbeds=_reopen(catalogue, stack))
        again = _Again(comparison, named, predictor, catalogue, progress)
        unlimited = again.without_limits() if rejects else None
        return replace(comparison, similar=tuple(again.on_similar_traces(draws)), unlimited=unlimited)


class _Again:
    """One strategy, with what it needs to place a trace."""

    def __init__(
        self,
        comparison: Comparison,
        strategy: NamedStrategy,
        predictor: str | None,
        catalogue: Catalogue,
        progress: Progress,
    ) -> None:
        self.arrivals, self.seed = comparison.arrivals, comparison.seed
        self.strategy, self.predictor, self.catalogue, self.progress = strategy, predictor, catalogue, progress
        self.truth = catalogue.truth()

    def on_similar_traces(self, draws: int) -> Iterator[Evaluation]:
        """The plan for each trace drawn from the arrivals."""
        with self.progress.task("traces like this one") as advance:
            for number in range(draws if self.arrivals else 0):
                advance(number, draws)
                drawn = grow(self.arrivals, Growth(), {}, random.Random(f"{self.seed}/{number}"))
                placing = Placing(drawn, self.truth, Progress(quiet=True))
                yield placing.place_and_evaluate(self.strategy, self.predictor, self.catalogue)

    def without_limits(self) -> Evaluation | None:
        """The plan for the trace itself on any number of NICs; None where no number is limited."""
        kinds = self.catalogue.kinds
        if all(kind.count is None for kind in kinds):
            return None
        catalogue = replace(self.catalogue, kinds=tuple(replace(kind, count=None) for kind in kinds))
        with self.progress.task("as many NICs as it takes"):
            placing = Placing(self.arrivals, self.truth, Progress(quiet=True))
            return placing.place_and_evaluate(self.strategy, self.predictor, catalogue)


def _reopen(catalogue: Catalogue, stack: ExitStack) -> tuple[Testbed | None, ...]:
    """Per kind its testbed, open until `stack` closes, where all are simulated; else none."""
    if not all(spec.partition(":")[0] == SIMULATED_TESTBED for spec in catalogue.specs):
        return (None,) * len(catalogue.kinds)
    opened = {spec: stack.enter_context(open_testbed(spec)) for spec in dict.fromkeys(catalogue.specs)}
    return tuple(opened[spec] for spec in catalogue.specs)
