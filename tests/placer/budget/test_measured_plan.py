"""`placer run --measure`: a plan whose co-locations were measured, in a world that fits on a page."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from placer.budget.card_runs import CardRuns, MeasuredPredictor
from placer.budget.measured_plan import MeasuredPlan, plan_by_measuring
from placer.budget.usage import Needs, OnCard, needs_of
from placer.model.arrival import Arrival
from placer.model.catalogue import Catalogue
from placer.model.nic_kind import NicKind
from placer.model.plan import Placement, Plan
from placer.testing.strategies import CORES_BY_NF, SOLO_KPPS, TOY_TRAFFIC, arrival
from predictor import Models, Predictor
from profiler.testbed import Measurement, Run, RunRefused, Testbed, TestbedError
from profiles import CoLocation, Counters, Load, TestbedDescription, Workload
from tests.placer.commands.conftest import Placer, placer
from traces.arrivals import Recipe, generate

__all__ = ["placer"]

A, B, C, D = (Workload(name, TOY_TRAFFIC) for name in "abcd")
SPREAD = 0.05
Kept = Mapping[CoLocation, float]
"""The share of their solo throughput that the NFs of a co-location keep; 1 where it is not named."""


class Table(Testbed):
    """A card that measures what a table says, exactly, and counts the runs."""

    def __init__(self, kept: Kept, factors: Sequence[float] = (1.0,)) -> None:
        self._kept = kept
        self._factors = factors
        self.requests: Counter[tuple[Load, ...]] = Counter()
        self.seeds: list[int | None] = []

    def describe(self) -> TestbedDescription:
        raise NotImplementedError

    def run(self, loads: Sequence[Load], *, noise: bool = True, seed: int | None = None) -> Run:
        key = cast(CoLocation, tuple(loads))
        share = self._kept.get(key, 1.0) * self._factors[self.requests[key] % len(self._factors)]
        self.requests[key] += 1
        self.seeds.append(seed)
        assert noise
        return Run(tuple(Measurement(SOLO_KPPS[one.nf] * share, Counters(*[1.0] * 7)) for one in key))


class Faulty(Table):
    """It fails with `error` where one of these co-locations is asked for; None reports a throughput of 0 kpps."""

    def __init__(self, victims: Sequence[CoLocation], error: TestbedError | None) -> None:
        super().__init__(dict.fromkeys(victims, 0.0))
        self._victims = victims
        self._error = error

    def run(self, loads: Sequence[Load], *, noise: bool = True, seed: int | None = None) -> Run:
        if tuple(loads) in self._victims and self._error:
            raise self._error
        return super().run(loads, noise=noise, seed=seed)


class Predicted:
    """Predicts by a table; the median errs by 5 %, except for an NF alone."""

    supports_risk = True
    shortfalls = Predictor.shortfalls
    alone_spread = Predictor.alone_spread

    def __init__(self, kept: Kept) -> None:
        self._kept = kept

    def solo(self, workloads: Sequence[Workload]) -> NDArray[np.float64]:
        """As alone."""
        return np.array([SOLO_KPPS[workload.nf] for workload in workloads])

    def throughput(
        self, co_locations: Sequence[Sequence[Workload]], *, risk: float | None = None
    ) -> list[NDArray[np.float64]]:
        """Lower at a small risk."""
        factor = 1.0 if risk is None else float(np.exp(SPREAD * ndtri(risk)))
        return [
            np.array(
                [SOLO_KPPS[n.nf] * self._kept.get(tuple(one), 1.0) * (factor if len(one) > 1 else 1.0) for n in one]
            )
            for one in co_locations
        ]

    def shortfall(
        self, co_locations: Sequence[Sequence[Workload]], required_kpps: Sequence[Sequence[float]]
    ) -> list[NDArray[np.float64]]:
        """Normally distributed errors."""
        expected = self.throughput(co_locations)
        return [
            ndtr(np.log(np.array(need) / kpps) / (SPREAD if len(need) > 1 else 1e-9))
            for kpps, need in zip(expected, required_kpps, strict=True)
        ]


def planned(
    arrivals: Sequence[Arrival], predicted: Kept, true: Kept, most: int, testbed: Table | None = None, **options: Any
) -> tuple[MeasuredPlan, Table]:
    """The plan after at most `most` runs, at the median prediction, and the card that ran them."""
    card = testbed or Table(true)
    models = Models({"toy": cast(Predictor, Predicted(predicted))}, None, TOY_TRAFFIC, {})
    catalogue = Catalogue((NicKind(0, "toy", 8, CORES_BY_NF),), (models,), (card,), risk=0.5)
    return plan_by_measuring(arrivals, catalogue, "toy", most, seed=1, **{"online": True, **options}), card


def nics(found: MeasuredPlan) -> list[set[str]]:
    """The instances of each NIC."""
    together: dict[str | None, set[str]] = {}
    for placement in found.plan.placements:
        together.setdefault(placement.nic, set()).add(placement.arrival.id)
    return sorted(together.values(), key=sorted)


TWO = [arrival("1", 1.0, "a"), arrival("2", 2.0, "b")]


def test_a_co_location_that_is_measured_to_violate_is_left() -> None:
    """Two NFs are predicted to keep all; measured, they lose 20 % of which 10 % are allowed."""
    found, card = planned(TWO, {}, {(A, B): 0.8}, 20)
    assert nics(found) == [{"1"}, {"2"}] and (found.measured_pct, found.runs) == (100.0, 3)
    assert card.requests == {(A,): 1, (B,): 1, (A, B): 1}


def test_a_co_location_that_is_measured_to_fit_stays() -> None:
    """It is needed once each NF is on the NIC, with the first one alone before; that is three runs, and no repeat."""
    found, card = planned(TWO, {}, {}, 20)
    assert nics(found) == [{"1", "2"}]
    assert (found.measured_pct, found.runs, card.requests.total()) == (100.0, 3, 3)


def test_each_kind_of_nic_is_measured_on_its_testbed() -> None:
    """There is one NIC of the cheap kind, which keeps the pair; the other pair is measured to violate on the other."""
    cards = Table({}), Table({(A, B): 0.8})
    models = Models({"toy": cast(Predictor, Predicted({}))}, None, TOY_TRAFFIC, {})
    kinds = NicKind(0, "cheap", 3, CORES_BY_NF, 1, 1.0), NicKind(1, "dear", 3, CORES_BY_NF, None, 2.0)
    catalogue = Catalogue(kinds, (models, models), cards, risk=0.5)
    arrivals = [arrival(str(at), at, nf) for at, nf in enumerate("abab", start=1)]
    found = plan_by_measuring(arrivals, catalogue, "toy", 40, seed=1, online=True)
    assert (found.measured_pct, found.runs) == (100.0, 6)
    assert cards[0].requests == cards[1].requests == {(A,): 1, (B,): 1, (A, B): 1}
    assert [len(one) for one in nics(found)] == [2, 1, 1]


def test_no_more_runs_are_spent_than_there_are() -> None:
    """One run measures an NF alone: no instance rests on measurements, because they share their NIC."""
    found, card = planned(TWO, {}, {(A, B): 0.8}, 1)
    assert found.runs == card.requests.total() == 1 and found.measured_pct == 0.0
    assert nics(found) == [{"1", "2"}]


def test_what_is_too_close_to_an_sla_is_repeated_with_other_noise() -> None:
    """At 90.5 % of which 90 % are required, all runs are spent, on the co-location and on the NFs alone."""
    found, card = planned(TWO, {}, {(A, B): 0.905}, 12)
    assert found.runs == 12 and found.measured_pct == 100.0
    assert all(times > 2 for times in card.requests.values())
    assert len(set(card.seeds)) == max(card.requests.values())


@pytest.mark.parametrize("error", [RunRefused("not together"), TestbedError("they crash"), None])
def test_a_co_location_that_does_not_run_is_left_out(error: TestbedError | None) -> None:
    """It is named, and used no more; the other pairs are measured as before."""
    lines: list[str] = []
    found, card = planned([*TWO, arrival("3", 3.0, "c")], {}, {}, 20, Faulty([(A, B)], error), say=lines.append)
    assert all(not {"1", "2"} <= together for together in nics(found)) and len(nics(found)) == 2
    assert found.measured_pct == 100.0 and card.requests.total() - found.runs <= 2  # a failure is confirmed
    assert "a, b: do not run on the testbed; left out" in lines


def test_an_nf_that_does_not_run_alone_is_predicted() -> None:
    """Its instances are placed, and count as unmeasured; nothing is asked for twice."""
    found, card = planned(TWO, {}, {}, 20, Faulty([(B,)], RunRefused("not alone")))
    assert found.measured_pct < 100.0 and {"1", "2"} == set().union(*nics(found))
    assert found.runs == card.requests.total()


def test_a_testbed_that_ends_is_an_error() -> None:
    """It is not taken for one on which no co-location runs."""
    with pytest.raises(TestbedError, match="cable"):
        planned(TWO, {}, {}, 20, Faulty([(A,), (B,), (A, B)], TestbedError("cable")))


def test_repeats_that_differ_show_the_noise_of_a_run() -> None:
    """Runs of the pair that differ by 10 % make the noise of a run larger."""
    runs = CardRuns(Table({(A, B): 0.9}, (0.95, 1.05)), 0)
    before = runs.noise
    for _ in range(4):
        runs.measure([(A, B)])
    assert runs.noise > 2 * before
    assert runs.mean_log((A, B))[A] == pytest.approx(np.log(90 * np.sqrt(0.95 * 1.05)))


def test_measurement_and_prediction_are_weighed_by_their_precision() -> None:
    """A run with noise of 1 % counts 25 times as much as a prediction that errs by 5 %; what was not run is predicted.
    By hand: 0.5 % of the 5 % are of A alone, so variance 1 / (1 / (0.05^2 - 0.005^2) + 1 / 0.01^2), to which that of A
    alone is added, which was not run."""
    runs = CardRuns(Table({(A, B): 0.8}), 0)
    runs.measure([(A, B)])
    weighed = MeasuredPredictor(cast(Predictor, Predicted({})), runs)
    (pair, other) = weighed.throughput([(B, A), (A, C)])
    together = 0.05**2 - 0.005**2
    expected = 0.8 ** (together / (together + 0.01**2))
    assert pair / [200, 100] == pytest.approx(expected) and other.tolist() == [100, 400]
    ((careful, _),) = weighed.throughput([(A, B)], risk=0.02)
    deviation = np.sqrt(1 / (1 / together + 1 / 0.01**2) + 0.005**2)
    assert careful == pytest.approx(100 * expected * np.exp(ndtri(0.02) * deviation))
    ((short, _),) = weighed.shortfall([(A, B)], [(careful, 1.0)])
    assert short == pytest.approx(0.02)


def test_instances_need_every_co_location_of_their_stay() -> None:
    """An NF whose neighbour comes later and leaves needs three, itself alone among them; an SLA in kpps needs two."""
    kind = NicKind(0, "toy", 8, CORES_BY_NF)
    stays = [arrival("1", 1.0, "a"), arrival("2", 2.0, "b", departure=5.0)]
    plan = Plan("by hand", None, tuple(Placement(one, "nic-1", kind) for one in stays), 0.0)
    needs = needs_of(plan, [kind], [0])
    first, second = frozenset({(0, (A,)), (0, (A, B))}), frozenset({(0, (A, B)), (0, (B,))})
    assert needs.groups == {first: 1, second: 1} and needs.measured_pct({(0, (A,)), (0, (A, B))}) == 50.0


def test_runs_go_first_to_what_completes_most_instances() -> None:
    """Three instances need one run, two need two others: the budget decides how far the list goes."""
    ab, cd, c = (0, (A, B)), (0, (C, D)), (0, (C,))
    needs = Needs(Counter({frozenset[OnCard]({cd, c}): 2, frozenset[OnCard]({ab}): 3}))
    assert needs.next_runs(set(), 1) == [ab] and needs.next_runs(set(), 9) == [ab, c, cd]
    assert needs.next_runs({ab, c, cd}, 9) == []


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """Ten arrivals of the nine NFs at default traffic."""
    path = tmp_path / "arrivals.csv"
    path.write_text("".join(generate(Recipe(count=10, seed=5))), encoding="utf-8")
    return path


@pytest.mark.long
def test_the_command_line_measures_on_the_simulated_card(placer: Placer, trace: Path) -> None:
    """One more row, the runs in the text, and the same bytes for the same seed."""
    plans = [trace.with_name(name) for name in ("1.csv", "2.csv")]
    for plan in plans:
        options = ("run", trace, "--strategy", "contention-aware", "--measure", 8, "--seed", 3)
        ended = placer(*options, "--format", "json", "--plan", plan)
        assert ended.status == 0 and "of 8 runs" in ended.stderr
    rows = json.loads(ended.stdout)["strategies"]
    assert [row["measured_runs"] for row in rows[:-1]] == [None, None]
    assert (rows[-1]["strategy"], rows[-1]["predictor"]) == ("contention-aware measured", "tomur")
    assert 0 < rows[-1]["measured_runs"] <= 8 and 0 < rows[-1]["measured_pct"] <= 100
    assert plans[0].read_bytes() == plans[1].read_bytes()


@pytest.mark.long
def test_the_table_and_the_report_say_how_far_the_plan_was_measured(placer: Placer, trace: Path) -> None:
    page = trace.with_name("page.html")
    only = ("--strategy", "contention-aware", "--predictor", "tomur", "--measure", 1, "--report", page)
    printed = placer("run", trace, *only).stdout
    for text in (printed, page.read_text(encoding="utf-8")):
        assert "contention-aware measured, tomur: 1 run measured; " in text
        assert " % of the instances are on NICs whose co-locations were measured; not measured: " in text


@pytest.mark.parametrize(
    ("arguments", "printed"),
    [
        (("--measure", 5, "--testbed", "none"), "--measure: there is no testbed of a bluefield-2"),
        (("--measure", 5, "--predictor", "slomo"), "--measure: slomo does not estimate its errors"),
        (("--measure", 0), "--measure"),
    ],
)
def test_what_cannot_be_measured_is_refused(
    placer: Placer, trace: Path, arguments: tuple[object, ...], printed: str
) -> None:
    """Before anything is placed, with a hint and exit status 2."""
    ended = placer("run", trace, *arguments)
    assert (ended.status, ended.stdout) == (2, "") and printed in ended.stderr
