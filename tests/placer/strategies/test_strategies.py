"""Strategies, on cases worked by hand."""

import pytest

from placer.model.arrival import Arrival
from placer.model.plan import Plan
from placer.model.sla import Sla
from placer.strategies import STRATEGIES, find_strategy
from placer.testing.strategies import TOY_TRAFFIC, ToyCatalogue, arrival, catalogue
from profiles import InputError, Workload


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
        arrival("1", 1, "b", 0.5),
        arrival("2", 2, "c", 0.0, nic="x"),
        arrival("3", 3, "d", 0.5, nic="y"),
        arrival("4", 4, "d", 0.5, 5, nic="y"),
        arrival("5", 6, "d", 0.5),
        arrival("6", 7, "d", 0.5),
    ]
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
