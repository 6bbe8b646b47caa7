"""Predictions under memory contention are bounded by those for fewer competitors."""

import math

import numpy as np
import pytest

from predictor import Models
from predictor.contention.equilibrium import MOST_COMPETITORS, _write_sums, write_lowest_shares
from predictor.contention.memory import INPUT_COUNT, MemoryModel, MemoryModels, memory_models
from predictor.contention.workload_table import CoLocationBatch, WorkloadTable
from predictor.regression.boosting import Trees
from predictor.regression.gaussian_process import GaussianProcess
from profiles import ATTRIBUTES, COUNTERS, Workload
from tests.predictor.made_up import DEFAULT, PLAIN

WSS = COUNTERS.index("wss")


@pytest.fixture
def table(models: Models) -> WorkloadTable:
    """The solo behaviour of made-up NFs."""
    return WorkloadTable(models.models)


def _batch(table: WorkloadTable, *sizes: int) -> CoLocationBatch:
    return table.batch([[Workload(PLAIN.name, DEFAULT)] * size for size in sizes])


def _dip_at(table: WorkloadTable, competitors: int) -> MemoryModels:
    """Memory models that predict a share of 1/3 for that many competitors by their working set, else of 2/3."""
    own = float(table.counters[0, WSS])
    low, high = (competitors - 0.5) * own, (competitors + 0.5) * own
    never = np.inf
    dip = Trees(
        math.log(2 / 3),
        np.full((1, 7), WSS),
        # left of the first threshold, and right of the second: nothing
        np.array([[low, never, high, never, never, never, never]]),
        np.array([[0.0, 0.0, 0.0, 0.0, *[math.log(1 / 2)] * 2, 0.0, 0.0]]),
        len(COUNTERS) + len(ATTRIBUTES),
    )
    trend, none = GaussianProcess.none(INPUT_COUNT), Trees.none(dip.features)
    return memory_models([MemoryModel(trend, np.inf, dip, none, np.zeros(0))] * len(table.names))


def _lowest_shares(table: WorkloadTable, batch: CoLocationBatch, models: MemoryModels) -> np.ndarray:
    """The lowest share of its throughput that any subset of its competitors leaves each member; 1 without any."""
    shares = np.ones(batch.member.shape)
    for at, size in enumerate(batch.sizes.tolist()):
        write_lowest_shares(table.columns, models, batch.member[at, :size], shares[at, :size])
    return shares


@pytest.mark.long
def test_the_lowest_prediction_of_any_subset_counts(table: WorkloadTable) -> None:
    """A dip at two competitors bounds the predictions for two, three and four competitors, not that for one."""
    lowest = _lowest_shares(table, _batch(table, 1, 2, 3, 4, 5), _dip_at(table, 2))
    assert lowest[:, 0] == pytest.approx([1.0, 2 / 3, 1 / 3, 1 / 3, 1 / 3])


@pytest.mark.long
def test_of_very_many_competitors_only_all_together_count(table: WorkloadTable) -> None:
    """The number of subsets doubles with each competitor."""
    batch = _batch(table, MOST_COMPETITORS + 1, MOST_COMPETITORS + 2)
    assert _lowest_shares(table, batch, _dip_at(table, 2))[:, 0] == pytest.approx([1 / 3, 2 / 3])
    assert _lowest_shares(table, batch, _dip_at(table, MOST_COMPETITORS + 1))[:, 0] == pytest.approx([2 / 3, 1 / 3])


def test_every_subset_is_looked_at() -> None:
    """Of three competitors, seven; the first member is none of its own competitors."""
    own = np.array([[100.0], [1.0], [10.0], [1000.0]])
    sums = np.empty((7, 1))
    _write_sums(own, np.array([0, 1, 2, 3]), 0, sums)
    assert sorted(sums[:, 0]) == [1, 10, 11, 1000, 1001, 1010, 1011]
    _write_sums(own, np.array([0, 1, 2, 3]), 3, sums)
    assert sorted(sums[:, 0]) == [1, 10, 11, 100, 101, 110, 111]
