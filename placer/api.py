"""The Python interface: what `import placer` offers. Read a trace, place it with any strategy, get tables and plots."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import pandas as pd

from placer.inputs.arrivals import read_arrivals
from placer.inputs.catalogue import NONE, Cards, open_catalogue
from placer.model.arrival import Arrival
from placer.progress import Progress
from placer.report.text.plan import plans_csv
from placer.report.text.run import as_json
from placer.run import Comparison, RunRequest, run
from placer.strategies import NamedStrategy, Strategy

if TYPE_CHECKING:
    import altair


@dataclass(frozen=True)
class PlacementResult:
    """All strategies on one trace, with the optimum.

    Parameters
    ----------
    comparison
        What `placer run` works with: every plan, its evaluation, the optimum.
    """

    comparison: Comparison

    @property
    def optimum(self) -> int:
        """NICs of the best plan known; `table` says which wastage is measured against a bound instead."""
        return self.comparison.optimum.nics

    def table(self) -> pd.DataFrame:
        """A row per strategy and predictor: `nics`, `wastage_pct` and all else of `placer run --format json`."""
        return pd.DataFrame(json.loads(as_json(self.comparison))["strategies"])

    def placements(self) -> pd.DataFrame:
        """A row per strategy, predictor and instance, with the columns of `placer run --plan` (docs/formats.md)."""
        return pd.read_csv(io.StringIO(plans_csv(self.comparison)), keep_default_na=True)

    def plot(self, file: str | Path | None = None) -> altair.Chart | altair.LayerChart:
        """NICs of every strategy as bars with their wastage, the optimum as a line.

        Parameters
        ----------
        file
            Where to save the chart: SVG, PNG, HTML or JSON by its suffix. Without one it is only returned.
        """
        from placer.report.html.run_sections import nics_chart

        chart = nics_chart(self.comparison)
        if file is not None:
            chart.save(str(file))
        return chart


def read_trace(source: str | Path | TextIO, cards: Cards | None = None) -> list[Arrival]:
    """The arrivals of a CSV file, or of an open text file.

    Parameters
    ----------
    source
        The file (docs/formats.md).
    cards
        The NICs on which it will be placed: their models define default traffic and the profiled range.

    Raises
    ------
    InputError
        With every fault of the file.
    """
    with ExitStack() as stack:
        chosen = cards or Cards(testbed=NONE)
        catalogue = open_catalogue(chosen, stack, Progress(quiet=True).say)
        path = str(source) if isinstance(source, Path) else source
        return read_arrivals(path, catalogue.default_traffic, catalogue.check)


def place(
    arrivals: Sequence[Arrival],
    strategies: Sequence[str | type[Strategy]] = (),
    *,
    predictors: Sequence[str] = (),
    cards: Cards | None = None,
    time_limit: float = 60.0,
    **options: Any,
) -> PlacementResult:
    """Place a trace with strategies, evaluate each plan by the ground truth, and find the optimum.

    Parameters
    ----------
    arrivals
        The trace, in order of time.
    strategies
        Names (`greedy`, `contention-aware:best-fit`) or classes; all registered ones and the optimum for none.
    predictors
        Names; each in the models for none.
    cards
        The NICs, their models and their ground truth; by default the simulated BlueField-2 without limit.
    time_limit
        Seconds for the optimum.
    options
        Further fields of `placer.run.RunRequest`.

    Raises
    ------
    InputError
        When a name, the fleet or the models are refused.
    TestbedError
        When the ground truth's testbed fails.
    InvalidPlan
        When a strategy violates a constraint.
    """
    named = tuple(one if isinstance(one, str) else NamedStrategy(one.name, one) for one in strategies)
    request = RunRequest(arrivals, named, tuple(predictors), cards or Cards(), time_limit=time_limit, **options)
    return PlacementResult(run(request, Progress(quiet=True)))
