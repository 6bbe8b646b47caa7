"""Strategies, on cases worked by hand, and decisions replayed over measured co-locations."""

from types import SimpleNamespace

import numpy as np
import pytest

from placer.model.arrival import Arrival
from placer.model.plan import Placement, Plan
from placer.model.sla import Sla
from placer.strategies import STRATEGIES, budget, find_strategy
from placer.strategies.budget import LeftOutOracle, Replayed, arrivals_to_replay, judge, left_out_co_locations
from placer.testing.strategies import SOLO_KPPS, TOY_TRAFFIC, ToyCatalogue, arrival, catalogue
from predictor.contention.intervals import ErrorModel, TrafficScale
from predictor.contention.left_out import LeftOutCoLocation
from profiles import InputError, TrafficProfile, Workload


def place(strategy: str, arrivals: list[Arrival], nics: ToyCatalogue | None = None) -> Plan:
    """The plan of the strategy of that name."""
    return find_strategy(strategy).build(nics or catalogue(), "toy").place(arrivals)


def homes(plan: Plan) -> dict[str, str | None]:
    """Where each arrival went."""
    return {placement.arrival.id: placement.nic for placement in plan.placements}


def test_monopolization_shares_nothing() -> None:
    """Every arrival has a NIC of its own, and a NIC that emptied is the next to be used."""
    plan = place("monopolization", [arrival("1", 0, "a"), arrival("2", 1, "a", departure=2), arrival("3", 3, "a")])
    assert homes(plan) == {"1": "nic-1", "2": "nic-2", "3": "nic-2"}


def test_greedy_prefers_the_nic_with_most_left_and_opens_none_while_one_fits() -> None:
    """After d on the first NIC and a third b on a second, an a joins the NIC whose scarcest resource is less used."""
    trace = [arrival("1", 0, "d"), arrival("2", 1, "d"), arrival("3", 2, "d"), arrival("4", 3, "a")]
    assert homes(place("greedy", trace)) == {"1": "nic-1", "2": "nic-1", "3": "nic-2", "4": "nic-2"}


def test_greedy_counts_every_resource() -> None:
    """Four c take 96 % of the cache and all 8 cores; a fifth resource user has to open a NIC."""
    trace = [arrival(str(i), i, "c") for i in range(5)]
    assert homes(place("greedy", trace))["3"] == "nic-1" and homes(place("greedy", trace))["4"] == "nic-2"


def test_contention_aware_keeps_the_slas_of_old_and_new_tenants() -> None:
    """c loses 2 x 0.05 next to one b, which its SLA of 10 % allows and one of 9 % does not, whichever arrived first."""
    for drop, shared in ((0.10, True), (0.09, False)):
        for trace in (
            [arrival("1", 0, "c", drop), arrival("2", 1, "b", 0.5)],
            [arrival("2", 0, "b", 0.5), arrival("1", 1, "c", drop)],
        ):
            plan = homes(place("contention-aware", trace))
            assert (plan["1"] == plan["2"]) is shared


def test_departures_free_capacity() -> None:
    """Where the first tenant left at the moment the third comes, the third takes its place."""
    trace = [arrival("1", 0, "c", 0.0, departure=5), arrival("2", 1, "c", 0.0), arrival("3", 5, "a", 0.0)]
    assert homes(place("contention-aware", trace)) == {"1": "nic-1", "2": "nic-2", "3": "nic-1"}
    freed = place("contention-aware", [arrival("1", 0, "d", 0.03, 5), arrival("2", 1, "a", 0.03),
                                       arrival("3", 5, "a", 0.03)])  # fmt: skip
    assert homes(freed) == {"1": "nic-1", "2": "nic-1", "3": "nic-1"}


def test_what_already_runs_stays_and_takes_part() -> None:
    """On x, c accepts nothing beside it; d and d on y leave room for b, and the second d leaves at 5 s. Monopolization
    shares neither; greedy takes the NIC with most left, which is x; contention-aware finds that only y has room, and at
    6 s, when two more d arrive, room for one."""
    trace = [
        arrival("1", 1, "b", 0.5), arrival("2", 2, "c", 0.0, nic="x"), arrival("3", 3, "d", 0.5, nic="y"),
        arrival("4", 4, "d", 0.5, 5, nic="y"), arrival("5", 6, "d", 0.5), arrival("6", 7, "d", 0.5),
    ]  # fmt: skip
    nics = {name: homes(place(name, trace)) for name in ("monopolization", "greedy", "contention-aware")}
    for plan in nics.values():
        assert (plan["2"], plan["3"], plan["4"]) == ("x", "y", "y")
    assert {plan["1"] for plan in nics.values()} == {"nic-3", "x", "y"}
    assert nics["monopolization"]["1"] == "nic-3" and nics["greedy"]["1"] == "x"
    assert nics["contention-aware"] == {"1": "y", "2": "x", "3": "y", "4": "y", "5": "y", "6": "nic-3"}


@pytest.mark.parametrize("name", ["monopolization", "greedy", "contention-aware"])
def test_limited_fleets_reject_what_does_not_fit(name: str) -> None:
    """With two NICs, of which the cheaper is taken first, a third d that may not share is rejected."""
    nics = catalogue((1, 2.0), (1, 1.0))
    plan = place(name, [arrival(str(i), i, "d", 0.0) for i in range(5)], nics)
    assert plan.placements[0].kind is nics.kinds[1] and plan.rejected == (1 if name == "greedy" else 3)


def test_contention_aware_rejects_an_sla_above_the_solo_throughput() -> None:
    """An SLA above the solo throughput is rejected, one at the solo throughput is not."""
    trace = [Arrival(str(kpps), 0, Workload("a", TOY_TRAFFIC), Sla(min_kpps=kpps)) for kpps in (100.0, 100.1)]
    assert homes(place("contention-aware", trace)) == {"100.0": "nic-1", "100.1": None}


@pytest.mark.parametrize("rule", ["look-ahead", "first-fit", "best-fit", "worst-fit"])
def test_a_rule_is_a_variant_of_contention_aware(rule: str) -> None:
    """Its plans bear the variant's name."""
    assert place(f"contention-aware:{rule}", [arrival("1", 0, "a")]).strategy == f"contention-aware:{rule}"


def test_best_fit_fills_the_fuller_nic_and_worst_fit_the_emptier() -> None:
    """After d and c on one NIC and a d on another, an a goes to the first by best fit, to the second by worst fit."""
    trace = [arrival("1", 0, "d", 0.2), arrival("2", 1, "d", 0.2), arrival("3", 2, "d", 0.2), arrival("4", 3, "a", 0.2)]
    assert homes(place("contention-aware:best-fit", trace))["4"] == "nic-1"
    assert homes(place("contention-aware:worst-fit", trace))["4"] == "nic-2"


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("gredy", "did you mean greedy?"),
        ("greedy:best-fit", "greedy has no variants"),
        ("contention-aware:bestfit", "one of contention-aware:look-ahead, contention-aware:best-fit"),
        ("contention-aware:", "one of contention-aware:look-ahead"),
    ],
)
def test_an_unknown_strategy_is_refused_with_those_there_are(name: str, hint: str) -> None:
    with pytest.raises(InputError) as refused:
        find_strategy(name)
    assert hint in str(refused.value)


def test_strategies_are_listed_from_the_simplest_on() -> None:
    assert list(STRATEGIES)[:3] == ["monopolization", "greedy", "contention-aware"]


A, B = (Workload(nf, TOY_TRAFFIC) for nf in "ab")
ERRORS = ErrorModel.even(TrafficScale(np.zeros(3), np.ones(3)), np.linspace(-0.04, 0.04, 41))


class Known:
    """A predictor that measured a next to b: a kept 85 %, where 90 % were predicted; b as predicted."""

    def solo(self, workloads: list[Workload]) -> np.ndarray:
        return np.array([SOLO_KPPS[workload.nf] for workload in workloads])

    def left_out(self, default: TrafficProfile) -> dict[tuple[Workload, ...], LeftOutCoLocation]:
        measured, predicted = np.array([85.0, 190.0]), np.array([90.0, 190.0])
        return {(A, B): LeftOutCoLocation(measured, predicted, np.full(2, 0.02), np.full(2, 0.01), (ERRORS,) * 2)}


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> ToyCatalogue:
    """A toy catalogue whose one model is `Known`."""
    monkeypatch.setattr(budget, "FEWEST_MEASURED", 1)
    models = SimpleNamespace(predictors={"toy": Known()}, default_traffic=TOY_TRAFFIC, nfs=("a", "b"))
    return ToyCatalogue(catalogue().kinds, (models,), ())  # type: ignore[arg-type]


def test_only_measured_co_locations_can_share_a_nic(known: ToyCatalogue) -> None:
    """Two a were not measured together, so nothing is left of either; alone it keeps its throughput."""
    oracle = LeftOutOracle(Known(), left_out_co_locations(known, "toy")[0], 0.5)  # type: ignore[arg-type]
    assert oracle.throughput([(A,), (A, A)]) == [(100.0,), (0.0, 0.0)]
    (careful,) = LeftOutOracle(Known(), left_out_co_locations(known, "toy")[0], 0.1).throughput([(A, B)])  # type: ignore[arg-type]
    assert 0 < careful[0] < 90.0


def test_violations_are_counted_by_measurements(known: ToyCatalogue) -> None:
    """a accepts a drop of 12 % and lost 15 %: one violation. By its prediction it is expected now and then."""
    together = [Placement(arrival(nf, 0.0, nf, 0.12), "1", known.kinds[0]) for nf in "ab"]
    found = judge(Plan("contention-aware", "toy", tuple(together), 0.0), known, "toy")
    assert found.violations == 1 and 0 < found.of_predictions <= found.expected < 1


def test_an_nf_alone_violates_nothing(known: ToyCatalogue) -> None:
    """There is no prediction to be wrong."""
    alone = Placement(arrival("a", 0.0, "a", 0.0), "1", known.kinds[0])
    assert judge(Plan("contention-aware", "toy", (alone,), 0.0), known, "toy") == Replayed()


def test_replayed_arrivals_have_the_same_nfs_and_slas_at_default_traffic(known: ToyCatalogue) -> None:
    """Of two arrivals, half of the replay each; a throughput is taken as the drop that it allows."""
    trace = [
        Arrival("1", 0.0, Workload("a", TrafficProfile(9, 64, 0)), Sla(min_kpps=80.0), departure=5.0),
        arrival("2", 1.0, "b", 0.1),
    ]
    replayed = arrivals_to_replay(known, trace)
    assert len(replayed) == budget.LEAST_REPLAYED
    of_a = [one for one in replayed if one.workload == A]
    assert len(of_a) == budget.LEAST_REPLAYED // 2
    assert {round(one.sla.max_drop or 0.0, 6) for one in of_a} == {0.2}
    assert all(one.departure is None for one in replayed) and arrivals_to_replay(known, []) == []
    many = [arrival(str(number), number, "ab"[number % 2], 0.1) for number in range(600)]
    assert len(arrivals_to_replay(known, many)) == budget.REPLAYED_ARRIVALS


def test_with_few_measured_co_locations_nothing_is_replayed(
    known: ToyCatalogue, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One is not enough where fifty are needed; and a catalogue without models has none."""
    monkeypatch.setattr(budget, "FEWEST_MEASURED", 50)
    assert left_out_co_locations(known, "toy") == [] and left_out_co_locations(catalogue(), "toy") == []
