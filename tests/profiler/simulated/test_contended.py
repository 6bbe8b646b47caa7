"""The card of `simulated:contended` meets the published figures that it is calibrated to."""

import io
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from placer.inputs import models
from placer.inputs.arrivals import read_arrivals
from placer.inputs.catalogue import Cards, open_catalogue
from placer.model.arrival import Arrival
from placer.model.catalogue import Catalogue
from placer.optimal import optimal_plan
from placer.strategies.greedy import Greedy
from predictor import Models, train
from profiler.profiling import profile
from profiler.simulated import SimulatedTestbed
from profiler.testbeds import open_testbed
from profiles import InputError
from profiles.profile import Profile
from tests.effort import THOROUGH
from tests.profiler.simulated.test_calibration import CONTENDED as CARD
from tests.profiler.simulated.test_calibration import TABLE_2, drops
from traces.arrivals import Recipe, generate

CONTENDED = "simulated:contended"
TRACES = Path(__file__).parents[3] / "traces"
RECORDED = TRACES / "bluefield-2-contended-simulated"
TRAFFIC = CARD.describe().traffic
SEEDS = range(5)


@pytest.fixture(scope="module")
def catalogue(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Catalogue]:
    """The contended card without `--models`; models of one NF, if not all tests run: `make test` needs no others."""
    cache = tmp_path_factory.mktemp("models")

    def train_one(profile: Profile) -> Models:
        return train(replace(profile, nfs={"ACL": profile.nfs["ACL"]}))

    with ExitStack() as stack:
        with pytest.MonkeyPatch.context() as patch:
            if not THOROUGH:
                patch.setattr(models, "train", train_one)
                patch.setattr(models, "platformdirs", SimpleNamespace(user_cache_path=lambda name: cache / name))
            opened = open_catalogue(Cards(testbed=CONTENDED), stack, lambda message: None)
        yield opened


def arrivals(seed: int) -> list[Arrival]:
    return list(read_arrivals(io.StringIO("".join(generate(Recipe(seed=seed)))), TRAFFIC, lambda workload: []))


def test_drops_reach_the_upper_ends_of_figure_1() -> None:
    """Medians lie between 1.9 and 10.6 %, 95th percentiles between 4.2 and 62.2 %; the highest are near both ends."""
    medians, tails = zip(*(drops(name, CARD) for name in TABLE_2), strict=True)
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


def test_the_spec_opens_a_card_of_its_own() -> None:
    """Testbed and NIC model have names of their own; NFs, cores and traffic are those of the other card."""
    described, other = (open_testbed(spec).describe() for spec in (CONTENDED, "simulated"))
    assert described == CARD.describe()
    assert (described.name, described.nic.model) == ("simulated-bluefield-2-contended", "bluefield-2-contended")
    assert (other.name, other.nic.model) == ("simulated-bluefield-2", "bluefield-2")
    assert (described.nfs, described.attributes) == (other.nfs, other.attributes)


@pytest.mark.long
def test_each_card_uses_its_own_models(catalogue: Catalogue) -> None:
    """Without `--models`, the models are those of the testbed's card."""
    assert catalogue.models[0].testbed == CARD.describe() and catalogue.specs == (CONTENDED,)
    with ExitStack() as stack:
        plain = open_catalogue(Cards(), stack, lambda message: None)
        assert plain.models[0].testbed == SimulatedTestbed().describe() and plain.specs == ("simulated",)


@pytest.mark.long
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
@pytest.mark.long
def test_recorded_runs_are_those_of_the_card(spec: str, folder: Path, tmp_path: Path) -> None:
    """Profiling one NF with the seed of the recorded profile measures the recorded bytes again."""
    recorded = profile(open_testbed(spec), tmp_path / "profile", nfs=["ACL"], cores=(1, 2, 4))
    for file in ("ACL/solo.csv", "ACL/memory.csv"):
        assert (recorded / file).read_bytes() == (folder / file).read_bytes()
