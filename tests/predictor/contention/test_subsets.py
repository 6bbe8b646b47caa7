"""Predictions under memory contention are bounded by those for fewer competitors."""

from __future__ import annotations

import numpy as np
import pytest

from predictor import Models
from predictor.contention.batch import CoLocationBatch
from predictor.contention.subsets import MOST_COMPETITORS, lowest_over_subsets
from predictor.contention.workload_table import WorkloadTable
from profiles import COUNTERS, Workload
from tests.predictor.made_up import DEFAULT, PLAIN

WSS = COUNTERS.index("wss")


@pytest.fixture
def table(models: Models) -> WorkloadTable:
    """The solo behaviour of made-up NFs."""
    return WorkloadTable(models.models)


def _batch(table: WorkloadTable, *sizes: int) -> CoLocationBatch:
    return table.batch([[Workload(PLAIN.name, DEFAULT)] * size for size in sizes])


def _dip_at(competitors: int, own: float) -> object:
    """Predicts 1 for that many competitors with a working set of `own` each, else 2."""
    return lambda nf, rows, counters: np.where(np.isclose(counters[:, WSS], competitors * own, rtol=0.01), 1.0, 2.0)


def test_the_lowest_prediction_of_any_subset_counts(table: WorkloadTable) -> None:
    """A dip at two competitors bounds the predictions for two, three and four competitors, not that for one."""
    batch = _batch(table, 1, 2, 3, 4, 5)
    own = float(table.counters[batch.member[0, 0], WSS])
    lowest = lowest_over_subsets(table, batch, _dip_at(2, own))  # type: ignore[arg-type]
    assert lowest[:, 0].tolist() == [np.inf, 2.0, 1.0, 1.0, 1.0]


def test_of_very_many_competitors_only_all_together_count(table: WorkloadTable) -> None:
    """The number of subsets doubles with each competitor."""
    batch = _batch(table, MOST_COMPETITORS + 1, MOST_COMPETITORS + 2)
    own = float(table.counters[batch.member[0, 0], WSS])
    lowest = lowest_over_subsets(table, batch, _dip_at(2, own))  # type: ignore[arg-type]
    assert lowest[:, 0].tolist() == [1.0, 2.0]
