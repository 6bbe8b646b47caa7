"""The experiments on GPUs: each reports completely, has the published numbers, and says that it is modelled."""

from random import Random

import pytest

from experiments.grus import BUS_SCHEDULES, PAPER, figure11, figure12, figure13, own_model
from experiments.grus.methodology import judging, paper_gpu
from experiments.grus.methodology.judging import METHOD_NAMES
from tests.experiments.complete import Results, refuse_incomplete, run_with_few
from tests.placer.gpu.instances import BY_FORMULA

pytestmark = pytest.mark.long  # machine code of the methods takes most of a minute, and tests/placer/gpu judges them
NAMES = ["grus-figure11", "grus-figure12", "grus-figure13", "grus-own-model"]


@pytest.fixture(scope="module")
def results() -> Results:
    """Every experiment with its result, on few and small sets."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(judging, "TIME_LIMIT_S", 0.02)
        patch.setattr(figure11, "SET_SIZES", (4,))
        patch.setattr(figure12, "SET_SIZES", (3, 4))
        patch.setattr(figure13, "SET_SIZES", (4,))
        patch.setattr(figure13, "MOST_SLOS", 4)
        patch.setattr(own_model, "SET_SIZES", (10,))
        return run_with_few(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_result_is_complete(name: str, results: Results) -> None:
    """And says what is modelled."""
    _, result = results[name]
    assert any("Modelled, nothing is run on a GPU" in sentence for sentence in result.testbeds)
    refuse_incomplete(*results[name], PAPER)


def test_all_methods_are_compared() -> None:
    """Figures 11 and 13 have every method that admits by formulas, as all of the paper's do."""
    assert set(METHOD_NAMES) == set(BY_FORMULA)


def test_figure_11_has_a_row_for_each_baseline_bus_and_method(results: Results) -> None:
    """A longer tolerance never lowers the optimum, and no method but the printed one has late SLOs."""
    table = results["grus-figure11"][1].table
    assert len(table) == len(paper_gpu.BASELINE_NAMES) * len(BUS_SCHEDULES) * len(METHOD_NAMES)
    tolerances = table[[f"at_{tolerance}_pct" for tolerance in figure11.TOLERANCES_PCT]]
    assert (tolerances[table["method"] == "exact"].diff(axis=1).iloc[:, 1:] >= 0).all(axis=None)
    assert not table[table["method"] != "grus-printed"]["violations_pct"].any()


def test_exact_admits_no_fewer_than_grus(results: Results) -> None:
    """In figure 12, set by set."""
    sets = results["grus-figure12"][1].data["sets"].pivot_table("admitted", ["load", "bus", "set"], "method")
    assert (sets["exact"] >= sets["grus"]).all()


def test_the_printed_algorithm_breaks_its_model_where_it_admits(results: Results) -> None:
    """With the printed batch it admits nothing; with the smallest, most sets of ten SLOs have a late one."""
    table = results["grus-own-model"][1].table.set_index("batches")
    assert not table.loc[["as printed"], "admitted"].any()
    assert (table.loc[["smallest"], "broken_sets_pct"] >= 50).all()
    assert not table["repaired_broken_sets_pct"].any()


def test_the_device_has_the_printed_size() -> None:
    """Section IV-B and VII: 30 SMs, 16 executors in each, 24 cores."""
    gpu = paper_gpu.device("one-shot")
    assert (gpu.sms, gpu.executors_per_sm, gpu.executors_per_sm * gpu.packets_per_executor) == (30, 16, 2048)
    assert gpu.workers == 24


@pytest.mark.parametrize("baseline", paper_gpu.BASELINE_NAMES)
def test_latencies_are_the_baseline_and_a_tolerance(baseline: str) -> None:
    """A tolerance of 0.1 makes a latency of 1.1 times that of the NF alone; a fixed batch is in the SLO."""
    gpu = paper_gpu.device("one-shot")
    for slo in paper_gpu.random_slos(gpu, 5, Random(0), baseline=baseline, tolerances=(0.1, 0.1)):
        alone = paper_gpu.baseline_us(gpu, slo.nf, slo.rate_kpps, baseline)
        assert slo.latency_us == pytest.approx(1.1 * alone, abs=1e-3)
        assert slo.batch == (256 if baseline == paper_gpu.FIXED_BATCH else None)
