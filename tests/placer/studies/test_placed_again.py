"""The strategy of the recommended plan on traces drawn from the given one, and on any number of NICs."""

from dataclasses import replace

import pytest

from placer.evaluate.evaluation import Evaluation
from placer.inputs.catalogue import Cards
from placer.progress import Progress
from placer.run import Comparison, RunRequest, run
from placer.studies.placed_again import default_draws, place_again
from profiles import TrafficProfile, Workload
from traces.arrivals import Recipe, generate

QUIET = Progress(quiet=True)


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    """Forty arrivals on five NICs, which are too few."""
    folder = tmp_path_factory.mktemp("again")
    trace, fleet = folder / "arrivals.csv", folder / "fleet.toml"
    trace.write_text("".join(generate(Recipe(count=40, seed=5))), encoding="utf-8")
    fleet.write_text('[[nic]]\nmodel = "bluefield-2"\ncount = 5\n', encoding="utf-8")
    return run(RunRequest(str(trace), ("contention-aware",), ("tomur",), Cards(fleet=fleet)), QUIET)


def again(compared: Comparison, draws: int = 2, strategy: str = "contention-aware") -> Comparison:
    return place_again(compared, strategy, "tomur", 2.0, rejects=True, draws=draws, progress=QUIET)


def arrivals_of(evaluation: Evaluation) -> list[str]:
    """Ids of a plan, without the numbers of the draw."""
    return [placement.arrival.id.partition("~")[0] for placement in evaluation.plan.placements]


@pytest.mark.long
def test_traces_are_drawn_by_the_seed(compared: Comparison) -> None:
    """As many arrivals as there are, drawn from them; the same seed draws the same, another one others."""
    first, second, other = again(compared), again(compared), again(replace(compared, seed=1))
    assert len(first.similar) == 2
    assert [arrivals_of(one) for one in first.similar] == [arrivals_of(one) for one in second.similar]
    assert [one.nics for one in first.similar] == [one.nics for one in second.similar]
    assert [arrivals_of(one) for one in first.similar] != [arrivals_of(one) for one in other.similar]
    known = {arrival.id for arrival in compared.arrivals}
    for one in first.similar:
        assert len(one.plan.placements) == 40 and set(arrivals_of(one)) < known
        assert one.nics <= 5 and one.violations_pct is not None and one.expected_violations_pct is not None


@pytest.mark.long
def test_nothing_is_drawn_by_default_where_it_would_take_long(compared: Comparison) -> None:
    """Three traces of a trace that is short and of few workloads, else none."""
    arrivals = compared.arrivals
    traffic = [TrafficProfile(1000 + number, 1500, 600) for number in range(101)]
    many = [replace(arrivals[0], workload=Workload("NAT", one)) for one in traffic]
    assert [default_draws(one) for one in (arrivals, arrivals * 250, arrivals * 251, many[:100], many)] == [
        3,
        3,
        0,
        3,
        0,
    ]


@pytest.mark.long
def test_any_number_of_nics_places_all(compared: Comparison) -> None:
    """Arrivals that five NICs reject have a place; with no limit there is nothing to ask."""
    (asked,) = compared.evaluations
    unlimited = again(compared, 0).unlimited
    assert asked.plan.rejected > 0 and unlimited is not None
    assert unlimited.plan.rejected == 0 and unlimited.nics > 5
    kinds = tuple(replace(kind, count=None) for kind in compared.catalogue.kinds)
    assert again(replace(compared, catalogue=replace(compared.catalogue, kinds=kinds)), 0).unlimited is None


@pytest.mark.long
def test_nothing_is_measured_in_a_lab(compared: Comparison) -> None:
    """With another testbed than a simulated one, violations are expected only."""
    (one,) = again(replace(compared, catalogue=replace(compared.catalogue, specs=("exec:false",))), 1).similar
    assert one.violations_pct is None and one.expected_violations_pct is not None


def test_a_plan_by_measuring_is_not_made_again(compared: Comparison) -> None:
    """Its name is no strategy."""
    assert again(compared, strategy="contention-aware measured") is compared
