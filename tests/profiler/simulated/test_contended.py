"""The card of `simulated:contended` meets the published figures that it is calibrated to."""

import io
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from placer.inputs.arrivals import read_arrivals
from placer.inputs.catalogue import Cards, open_catalogue
from placer.model.arrival import Arrival
from placer.model.catalogue import Catalogue
from placer.optimal import optimal_plan
from placer.strategies.greedy import Greedy
from profiler.profiling import profile
from profiler.simulated import BLUEFIELD_2_CONTENDED, CONTENDED_NFS, SimulatedTestbed
from profiler.testbeds import open_testbed
from profiles import BenchLoad, InputError, Workload
from traces.arrivals import TABLE_2_NFS, Recipe, generate

CONTENDED = "simulated:contended"
TRACES = Path(__file__).parents[3] / "traces"
RECORDED = TRACES / "bluefield-2-contended-simulated"
CARD = SimulatedTestbed(card=BLUEFIELD_2_CONTENDED, nfs=CONTENDED_NFS)
TRAFFIC = CARD.describe().traffic
SEEDS = range(5)


def first(names: list[tuple[str, ...]]) -> np.ndarray:
    """Noise-free throughput (kpps) of the first NF of each co-location at default traffic."""
    runs = CARD.run_many([[Workload(name, TRAFFIC) for name in co_location] for co_location in names], noise=False)
    return np.array([run.measurements[0].throughput_kpps for run in runs])


def drops(name: str) -> list[float]:
    """Median and 95th percentile of the drop (%) with one, two or three others, each number as likely."""
    others = [other for other in TABLE_2_NFS if other != name]
    groups = [[(name, *chosen) for chosen in combinations(others, count)] for count in (1, 2, 3)]
    dropped = np.concatenate([100 * (1 - first(group) / first([(name,)])) for group in groups])
    weights = np.concatenate([np.full(len(group), 1 / len(group) / 3) for group in groups])
    order = np.argsort(dropped)
    reached = np.cumsum(weights[order])
    return [float(dropped[order][np.searchsorted(reached, share)]) for share in (0.5, 0.95)]


@pytest.fixture(scope="module")
def catalogue() -> Iterator[Catalogue]:
    """The contended card without `--models`."""
    with ExitStack() as stack:
        yield open_catalogue(Cards(testbed=CONTENDED), stack, lambda message: None)


def arrivals(seed: int) -> list[Arrival]:
    return list(read_arrivals(io.StringIO("".join(generate(Recipe(seed=seed)))), TRAFFIC, lambda workload: []))


def test_drops_reach_the_upper_ends_of_figure_1() -> None:
    """Medians lie between 1.9 and 10.6 %, 95th percentiles between 4.2 and 62.2 %; the highest are near both ends."""
    medians, tails = zip(*(drops(name) for name in TABLE_2_NFS), strict=True)
    assert all(1.9 <= median <= 10.6 for median in medians)
    assert all(4.2 <= tail <= 62.2 for tail in tails) and max(medians) > 10 and max(tails) > 60


@pytest.mark.long
def test_the_optimum_has_three_nfs_per_nic(catalogue: Catalogue) -> None:
    """Published: monopolization needs 196 % more NICs than the optimum, greedy 19 %."""
    truth = catalogue.truth()
    assert truth is not None
    optimal, greedy = [], []
    for seed in SEEDS:
        trace = arrivals(seed)
        optimum = optimal_plan([arrival.tenant for arrival in trace], catalogue.kinds, truth)
        assert optimum.proven
        optimal.append(len(optimum.nics))
        greedy.append(len({placed.nic for placed in Greedy(catalogue).place(trace).placements}))
    assert 2.9 < np.mean([500 / nics for nics in optimal]) < 3.1
    assert 190 < np.mean([100 * (500 / nics - 1) for nics in optimal]) < 210
    assert 15 < np.mean([100 * (one / nics - 1) for one, nics in zip(greedy, optimal, strict=True)]) < 23


def test_mem_benches_contend_more_than_any_three_nfs() -> None:
    """The profile covers the contention of co-located NFs: three benches at their maximum slow every NF more."""
    hardest = BenchLoad.of("mem-bench", {"wss_mb": 24, "access_mops": 180})
    quiet = [name for name in TABLE_2_NFS if name not in ("FlowMonitor", "NIDS")]
    for name in TABLE_2_NFS:
        run = CARD.run([Workload(name, TRAFFIC), *[hardest] * 3], noise=False)
        assert run.measurements[0].throughput_kpps < first([(name, *chosen) for chosen in combinations(quiet, 3)]).min()


def test_the_spec_opens_a_card_of_its_own() -> None:
    """Testbed and NIC model have names of their own; NFs, cores and traffic are those of the other card."""
    described, other = (open_testbed(spec).describe() for spec in (CONTENDED, "simulated"))
    assert described == CARD.describe()
    assert (described.name, described.nic.model) == ("simulated-bluefield-2-contended", "bluefield-2-contended")
    assert (other.name, other.nic.model) == ("simulated-bluefield-2", "bluefield-2")
    assert (described.nfs, described.attributes) == (other.nfs, other.attributes)


def test_each_card_uses_its_own_models(catalogue: Catalogue) -> None:
    """Without `--models`, the models are those of the testbed's card."""
    assert catalogue.models[0].testbed == CARD.describe() and catalogue.specs == (CONTENDED,)
    with ExitStack() as stack:
        plain = open_catalogue(Cards(), stack, lambda message: None)
        assert plain.models[0].testbed == SimulatedTestbed().describe() and plain.specs == ("simulated",)


def test_models_of_one_card_are_not_evaluated_on_the_other(catalogue: Catalogue, tmp_path: Path) -> None:
    """Models in a folder are evaluated on their own card; the other card is refused."""
    catalogue.models[0].save(tmp_path / "models")
    with ExitStack() as stack:
        assert open_catalogue(Cards(models=tmp_path / "models"), stack, lambda message: None).specs == (CONTENDED,)
        with pytest.raises(InputError, match="is a bluefield-2, the models were trained on a bluefield-2-contended"):
            open_catalogue(Cards(models=tmp_path / "models", testbed="simulated"), stack, lambda message: None)


@pytest.mark.parametrize(
    ("spec", "folder"),
    [pytest.param(CONTENDED, RECORDED, marks=pytest.mark.long), ("simulated", TRACES / "bluefield-2-simulated")],
)
def test_recorded_runs_are_those_of_the_card(spec: str, folder: Path, tmp_path: Path) -> None:
    """Profiling one NF with the seed of the recorded profile measures the recorded bytes again."""
    recorded = profile(open_testbed(spec), tmp_path / "profile", nfs=["ACL"], cores=(1, 2, 4))
    for file in ("ACL/solo.csv", "ACL/memory.csv"):
        assert (recorded / file).read_bytes() == (folder / file).read_bytes()
