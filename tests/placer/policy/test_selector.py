"""The selector: which NICs are compared, and when co-locations are predicted anew. The lowest NIC number of a class,
against a sorted list."""

import random

import pytest

from placer.model.fleet import Fleet
from placer.model.nic import Nic, Tenant
from placer.model.sla import Sla
from placer.policy import pattern_table
from placer.policy.class_index import ClassIndex
from placer.policy.class_slots import LowestNumbers
from placer.policy.pattern_table import PatternTable, TooManyPatterns
from placer.policy.rejection import Cause, Tally
from placer.policy.rules import BEST_FIT, FIRST_FIT, LOOK_AHEAD, RULES_BY_NAME, Rule
from placer.policy.sampled_index import SampledIndex
from placer.policy.selector import LoosestSlas, Selector
from placer.testing.strategies import SOLO_KPPS, TOY_TRAFFIC, ToyOracle, catalogue
from profiles import TrafficProfile, Workload

KIND = catalogue((None, 1.0)).kinds[0]


def tenant(identity: str, nf: str, sla: float | Sla) -> Tenant:
    """A tenant with an SLA, or one that accepts a drop."""
    return Tenant(identity, Workload(nf, TOY_TRAFFIC), sla if isinstance(sla, Sla) else Sla(max_drop=sla))


def selector_of(*nics: list[Tenant], rule: Rule = FIRST_FIT) -> Selector:
    fleet = Fleet([KIND])
    for number, tenants in enumerate(nics, start=1):
        fleet.adopt(Nic(f"nic-{number}", KIND, number), tenants)
    return Selector(fleet, [ToyOracle()], rule)


def placed(selector: Selector, arriving: Tenant) -> str:
    """The NIC on which an arrival is placed."""
    selector.observe(arriving)
    choice = selector.choose(arriving)
    assert choice is not None
    nic = choice if isinstance(choice, Nic) else selector.fleet.open(choice)
    selector.fleet.place(arriving, nic)
    return nic.id


def test_a_looser_sla_extends_what_is_predicted() -> None:
    """Next to three others `c` loses 48 %: the fourth of them shares only where all accept that."""
    selector = selector_of()
    assert placed(selector, tenant("1", "c", 0.1)) == "nic-1"
    assert placed(selector, tenant("2", "c", 0.1)) == "nic-2"
    assert [placed(selector, tenant(str(number), "c", 0.5)) for number in range(3, 8)] == ["nic-3"] * 4 + ["nic-4"]


def test_the_loosest_sla_is_rounded_up() -> None:
    """To steps of 5 %; an SLA in kpps counts by its share of the throughput alone, and for its workload only."""
    loosest = LoosestSlas()
    for one in (tenant("1", "a", 0.07), tenant("2", "b", Sla(min_kpps=0.72 * SOLO_KPPS["b"])), tenant("3", "b", 0.1)):
        loosest.include(one)
    drops = {nf: loosest.accepted_drop(Workload(nf, TOY_TRAFFIC), SOLO_KPPS[nf]) for nf in "ab"}
    assert drops == {"a": pytest.approx(0.1), "b": pytest.approx(0.3)}
    assert loosest.accepted_drop(Workload("b", TOY_TRAFFIC), 0.5 * SOLO_KPPS["b"]) == pytest.approx(0.1)


def test_the_loosest_slas_of_the_last_workloads_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where each arrival has a rate of its own, a service would keep one for each."""
    monkeypatch.setattr(pattern_table, "MOST_LEAST", 2)
    loosest = LoosestSlas()
    for name in "abc":
        loosest.include(tenant(name, name, Sla(min_kpps=40.0)))
    kept = [loosest.accepted_drop(tenant(name, name, 0.0).workload, 80.0) for name in "abc"]
    assert kept == [0.0, 0.5, 0.5]


def test_of_an_offered_rate_a_share_is_required_whatever_the_throughput_alone() -> None:
    """An instance that must carry 60 of 100 kpps accepts to lose two fifths of its throughput alone."""
    loosest, workload = LoosestSlas(), Workload("a", TOY_TRAFFIC, 60.0)
    loosest.include(Tenant("1", workload, Sla(max_drop=0.0)))
    assert loosest.accepted_drop(workload, SOLO_KPPS["a"]) == pytest.approx(0.45)


def test_a_nic_that_violates_every_sla_takes_no_arrival_and_is_explained() -> None:
    """Three `c` that accept 10 % lose 32 %: their NIC has two free cores, but no co-location in the table."""
    selector = selector_of([tenant(str(number), "c", 0.1) for number in range(3)])
    arriving = tenant("9", "b", 0.15)
    assert placed(selector, arriving) == "nic-2"
    selector.fleet.remove("9")
    assert selector.tally(arriving) == Tally(1, 0, 0)
    assert selector.tally(tenant("9", "d", 0.1)) == Tally(1, 1, 0)
    assert selector.reasons(arriving)[0].cause == Cause.TENANT_SLA
    assert selector.reasons(tenant("9", "d", 0.1))[0].cause == Cause.CORES


def test_a_nic_takes_arrivals_again_once_its_slas_are_met() -> None:
    """When two of three `c` have left, the other has the NIC alone."""
    selector = selector_of([tenant(str(number), "c", 0.1) for number in range(3)])
    selector.fleet.remove("0")
    selector.fleet.remove("1")
    assert placed(selector, tenant("9", "a", 0.1)) == "nic-1"


def test_co_locations_that_violate_every_sla_do_not_count_against_the_limit() -> None:
    """Twelve workloads form more than 200 co-locations by cores; few of them keep 95 %."""
    for drop, index in ((0.01, ClassIndex), (0.9, SampledIndex)):
        selector = Selector(Fleet([KIND]), [ToyOracle()], FIRST_FIT, most_patterns=200)
        for number in range(40):
            workload = Workload("abcd"[number % 4], TrafficProfile(1000 + number % 12, 1500, 0))
            placed(selector, Tenant(str(number), workload, Sla(max_drop=drop)))
        assert type(selector.indexes[0]) is index


def test_the_tightest_class_that_fits_is_filled_first() -> None:
    """Where only `b` and `d` arrive, a NIC with two `d` has room for one `b`, and looks-ahead keeps no NIC for it."""
    for rule in (BEST_FIT, LOOK_AHEAD):
        selector = selector_of(rule=rule)
        for number in range(60):
            selector.observe(tenant(f"before {number}", "bdd"[number % 3], 0.5))
        homes = [placed(selector, tenant(str(number), "ddb"[number % 3], 0.5)) for number in range(30)]
        assert len(set(homes)) == 10


@pytest.mark.parametrize("rule", RULES_BY_NAME.values())
def test_the_same_arrivals_get_the_same_nics(rule: Rule) -> None:
    """Prices are renewed by number of arrivals, not by the clock."""
    plans = []
    for _ in range(2):
        selector = selector_of(rule=rule)
        plans.append([placed(selector, tenant(str(n), "abcd"[n * n % 7 % 4], 0.05 * (n % 6))) for n in range(120)])
    assert plans[0] == plans[1]


def test_what_is_expected_is_predicted_before_the_first_arrival() -> None:
    """With tenants like those that come, the first arrivals ask the oracle nothing; without, they do."""
    asked = []
    for expected in ([], [tenant(f"expected-{nf}", nf, 0.2) for nf in "abcd"]):
        oracle = ToyOracle()
        selector = Selector(Fleet([KIND]), [oracle], LOOK_AHEAD, expected=expected)
        before = oracle.queries
        for nf in "abcd":
            placed(selector, tenant(nf, nf, 0.1))
        asked.append(oracle.queries - before)
    assert asked[0] > 0 and asked[1] == 0


@pytest.mark.long
def test_the_lowest_number_is_found_whatever_came_and_left() -> None:
    """Most numbers leave again, so that the heap is renewed several times."""
    slots: dict[int, int] = {}
    numbers, draw = LowestNumbers(3, slots), random.Random(0)
    for _ in range(20_000):
        number = draw.randrange(2_000)
        if slots.get(number) == 3:
            slots[number] = draw.choice([0, 1])
            numbers.size -= 1
        elif draw.random() < 0.5 or len(slots) < 10:
            slots[number] = 3
            numbers.add(number)
        here = [number for number, slot in slots.items() if slot == 3]
        assert numbers.lowest() == min(here, default=None) and numbers.size == len(here)


def test_numbers_of_nics_that_left_do_not_pile_up() -> None:
    """Of ten thousand NICs that pass through a class one is left."""
    slots = {0: 3}
    numbers = LowestNumbers(3, slots)
    numbers.add(0)
    for number in range(1, 10_000):
        slots[number] = 3
        numbers.add(number)
        slots[number] = 0
        numbers.size -= 1
    assert numbers.lowest() == 0 and len(numbers) < 1_000


def test_tables_that_begin_with_the_same_one_do_not_share_what_they_learn() -> None:
    """Two go on from one table: the second workload is `b` in the one, which is given up, and `c` in the other."""
    a, b, c = (Workload(nf, TOY_TRAFFIC) for nf in "abc")
    oracle = ToyOracle()
    first = PatternTable(KIND, [a], oracle)
    with pytest.raises(TooManyPatterns):
        PatternTable(KIND, [a, b], oracle, most=4, before=first)
    second = PatternTable(KIND, [a, c], oracle, before=first)
    assert second.kpps.tolist() == PatternTable(KIND, [a, c], ToyOracle()).kpps.tolist()
