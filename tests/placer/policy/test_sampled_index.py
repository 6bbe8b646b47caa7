"""The sampled index and its estimate of interference, on toy NICs. GPUs where nearly every arrival has a rate of its
own."""

import copy
import math
import random
from collections import Counter
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest

from placer.evaluate.checks import check_plan, slas_kept
from placer.model.feasibility import below_sla, keeps_slas
from placer.model.fleet import Fleet
from placer.model.nic import Nic, Tenant
from placer.model.nic_kind import NicKind
from placer.model.oracle import PredictorOracle
from placer.model.sla import Sla
from placer.policy import sampled_index
from placer.policy.gpu_index import GpuIndex
from placer.policy.interference import LEARNING_RATE, LEAST_LOSS, Interference
from placer.policy.rejection import Cause, Reason
from placer.policy.rules import BEST_FIT, FIRST_FIT, LOOK_AHEAD, RULES_BY_NAME, Rule
from placer.policy.sampled_index import SampledIndex
from placer.policy.sampled_kernels import learn_losses
from placer.strategies import find_strategy
from placer.testing.strategies import TOY_TRAFFIC, ToyOracle, catalogue
from predictor import load_models
from predictor.contention import workload_table
from predictor.predictors.tomur import TomurPredictor
from profiles import TrafficProfile, Workload
from tests.placer.toy_gpu import mixed, promised
from tests.predictor.made_up import CRYPTO, LOOKUP, PLAIN

KIND = catalogue((None, 1.0)).kinds[0]


def tenant(identity: str, nf: str, drop: float) -> Tenant:
    return Tenant(identity, Workload(nf, TOY_TRAFFIC), Sla(max_drop=drop))


def index_of(*nics: list[Tenant], rule: Rule = FIRST_FIT) -> SampledIndex:
    """An index over NICs with these tenants, numbered from 1."""
    fleet, index = Fleet([KIND]), SampledIndex(KIND, ToyOracle(), rule)
    for number, tenants in enumerate(nics, start=1):
        nic = Nic(f"nic-{number}", KIND, number)
        fleet.adopt(nic, tenants)
        index.enter(nic)
    return index


def chosen(index: SampledIndex, arriving: Tenant) -> str | None:
    """The id of the NIC that the index finds."""
    found = index.best(arriving)
    return None if found is None else found[1].id


def test_a_nic_with_many_times_the_usual_tenants_has_room_for_all() -> None:
    """Forty of an NF that takes no cores, in a place before another NIC's; of that, nothing is overwritten."""
    kind = replace(KIND, cores_of={**KIND.cores_of, "a": 0})
    fleet, index = Fleet([kind]), SampledIndex(kind, ToyOracle(), FIRST_FIT)
    nics = [Nic(f"nic-{number}", kind, number) for number in (1, 2)]
    for nic, tenants in zip(nics, ([tenant("y", "c", 0.5)], [tenant("z", "b", 0.5)]), strict=True):
        fleet.adopt(nic, tenants)
        index.enter(nic)
    index.left(nics[0], nics[0].tenants_by_id.pop("y"))
    nics[0].tenants_by_id |= {f"{number}": tenant(f"{number}", "a", 0.9) for number in range(40)}
    index.enter(nics[0])
    assert len(index.rows_in_use()) == 41 + 1  # that of the last one once more


def test_a_tenant_that_comes_again_as_another_nf_is_taken_as_that() -> None:
    """It was looked at before, was placed elsewhere, and is now put on the NIC by name."""
    nic = Nic("nic-1", KIND, 1)
    fleet, index = Fleet([KIND]), SampledIndex(KIND, ToyOracle(), FIRST_FIT)
    fleet.adopt(nic, [tenant("y", "b", 0.9), tenant("z", "b", 0.9)])
    index.enter(nic)
    assert chosen(index, tenant("x", "a", 0.9)) == "nic-1"
    nic.tenants_by_id["x"] = again = tenant("x", "d", 0.9)
    index.joined(nic, again)
    assert chosen(index, tenant("w", "d", 0.9)) is None  # of 8 cores, 2 + 2 + 3 are taken


def test_losses_are_learned_from_predictions() -> None:
    """`a` loses 5 % per neighbour `b`, and `b` 1 % per `a`."""
    interference = Interference(KIND)
    a, b = interference.number_of["a"], interference.number_of["b"]
    for _ in range(200):
        logs = np.log((0.9, 0.98, 0.98))
        learn_losses(interference.loss, np.array((a, b, b)), logs, LEARNING_RATE, LEAST_LOSS)
    assert interference.loss[a, b] == pytest.approx(-math.log(0.9) / 2, rel=0.01)
    assert interference.loss[b] @ [one in (a, b) for one in range(4)] == pytest.approx(-math.log(0.98), rel=0.01)


def test_full_nics_are_filled_first() -> None:
    """Next to two `d` two cores are free, next to one five; both keep every SLA."""
    nics = [[tenant("1", "d", 0.5)], [tenant("2", "d", 0.5), tenant("3", "d", 0.5)]]
    assert chosen(index_of(*nics, rule=BEST_FIT), tenant("9", "b", 0.5)) == "nic-2"
    assert chosen(index_of(*nics, rule=FIRST_FIT), tenant("9", "b", 0.5)) == "nic-1"
    assert chosen(index_of(*nics, rule=LOOK_AHEAD), tenant("9", "b", 0.5)) == "nic-2"


def test_nics_that_violate_an_sla_are_passed_over_however_many_they_are() -> None:
    """Forty NICs with a `c` that accepts nothing do not hide the one on which `b` fits."""
    nics = [[tenant(str(number), "c", 0.0)] for number in range(40)]
    assert chosen(index_of(*nics), tenant("x", "b", 0.5)) is None
    assert chosen(index_of(*nics, [tenant("y", "d", 0.5)]), tenant("x", "b", 0.5)) == "nic-41"


def test_an_arrival_that_no_nic_takes_is_explained_by_free_cores() -> None:
    """Two `d` leave two cores, which `d` does not fit; four are free next to two `c` that accept nothing."""
    index = index_of([tenant("1", "d", 0.5), tenant("2", "d", 0.5)], [tenant("3", "c", 0.0), tenant("4", "c", 0.0)])
    arriving = tenant("9", "d", 0.5)
    assert index.last_resort(arriving) is None
    assert [(reason.nics, reason.cause) for reason in index.reasons(arriving)] == [
        (1, Cause.CORES),
        (1, Cause.SAMPLED_SLA),
    ]
    assert (index.tally(arriving).too_few_cores, index.tally(arriving).fit) == (1, None)


class FollowingObserver:
    """Lets an index follow a fleet."""

    def __init__(self, index: SampledIndex) -> None:
        self.joined, self.left = index.joined, index.left

    def service_changed(self, nic: Nic) -> None:
        """No NIC goes out of service."""


class CountingOracle(PredictorOracle):
    """Counts the NICs that are checked. `compiled`: whether the index may do so by itself."""

    checked, compiled = 0, True

    @property
    def is_checked(self) -> bool:
        self.checked += 1
        return self.compiled and super().is_checked


def test_nics_are_checked_in_the_order_of_rough_estimates(made_up_models: Path) -> None:
    """All traffic differs, and instances come and go: every SLA is met, and most of the NICs checked first take the
    arrival. What `meets` answers leads to the same NICs as the index by itself."""
    by_itself, asking = _placed(made_up_models, compiled=True), _placed(made_up_models, compiled=False)
    assert by_itself == asking


def _placed(made_up_models: Path, *, compiled: bool) -> list[str]:
    """The NICs of 300 instances, of which a third leave; all are as the test above says."""
    predictor, homes = load_models(made_up_models).predictors["tomur"], list[str]()
    oracle, draw, present = CountingOracle(predictor, 0.05), random.Random(0), list[str]()
    oracle.compiled = compiled
    kind = NicKind(0, "made-up", 6, {nf.name: 1 for nf in (PLAIN, CRYPTO, LOOKUP)})
    fleet, index, joined = Fleet([kind]), SampledIndex(kind, oracle, LOOK_AHEAD), 0
    for number in range(300):
        traffic = TrafficProfile(draw.randrange(1, 100_000), draw.randrange(64, 1_500), draw.randrange(1_000))
        nf, drop = draw.choice(list(kind.cores_of)), draw.choice((0.05, 0.1, 0.2))
        arriving = Tenant(f"{number}", Workload(nf, traffic), Sla(max_drop=drop))
        found = index.best(arriving)
        nic = fleet.open(kind) if found is None else found[1]
        joined += found is not None
        fleet.place(arriving, nic)
        index.joined(nic, arriving)
        present.append(arriving.id)
        homes.append(nic.id)
        if number % 3 == 0:
            gone = fleet.nic_of(name := present.pop(draw.randrange(len(present))))
            assert gone is not None
            leaving = gone.tenants_by_id[name]
            fleet.remove(name)
            index.left(gone, leaving)
    assert [nic.id for nic in fleet.nics.values() if below_sla(PredictorOracle(predictor, 0.05), nic.tenants)] == []
    assert 150 < joined <= oracle.checked < 2 * joined
    return homes


def test_rows_of_workloads_that_left_are_given_to_others(made_up_models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 400 different workloads at most 12 are present: NICs are chosen as where every row is kept."""
    rows, choices = [], []
    for kept in (10_000, 16):
        monkeypatch.setattr(workload_table, "LEAST_RELEASED", kept)
        predictor, draw, present = load_models(made_up_models).predictors["tomur"], random.Random(1), list[str]()
        kind = NicKind(0, "made-up", 6, {nf.name: 1 for nf in (PLAIN, CRYPTO, LOOKUP)})
        fleet, index = Fleet([kind]), SampledIndex(kind, PredictorOracle(predictor, 0.05), LOOK_AHEAD)
        fleet.observer = FollowingObserver(index)
        found = []
        for number in range(400):
            traffic = TrafficProfile(draw.randrange(1, 100_000), draw.randrange(64, 1_500), draw.randrange(1_000))
            arriving = Tenant(f"{number}", Workload(draw.choice(list(kind.cores_of)), traffic), Sla(max_drop=0.1))
            index.observe(arriving)
            best = index.best(arriving)
            nic = fleet.open(kind) if best is None else best[1]
            fleet.place(arriving, nic)
            found.append(nic.id)
            present.append(arriving.id)
            if len(present) > 12:
                fleet.remove(present.pop(draw.randrange(len(present))))
        assert isinstance(predictor, TomurPredictor)
        rows.append(len(predictor._table._index))
        choices.append(found)
    assert choices[0] == choices[1]
    assert rows[1] <= 64 < 400 <= rows[0]


def test_one_that_is_compared_again_is_not_taken_for_another(
    made_up_models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one that waits is with NICs of other agents, while own arrivals take the rows of workloads that have left."""
    monkeypatch.setattr(workload_table, "LEAST_RELEASED", 4)
    oracle = PredictorOracle(load_models(made_up_models).predictors["tomur"], 0.05)
    kind = NicKind(0, "made-up", 6, {nf.name: 1 for nf in (PLAIN, CRYPTO, LOOKUP)})
    (fleet, own), (other_fleet, others) = ((Fleet([kind]), SampledIndex(kind, oracle, BEST_FIT)) for _ in range(2))
    waiting = Tenant("waits", Workload(PLAIN.name, TrafficProfile(500, 900, 5)), Sla(max_drop=0.5))
    _place_at_rates(other_fleet, others, oracle, range(3))
    found = others.rank(waiting, 1)
    _place_at_rates(fleet, own, oracle, range(3, 60))
    assert len(found) == 1 and others.rank(waiting, 1) == found


def test_a_change_in_one_step_is_leaving_and_joining(made_up_models: Path) -> None:
    """Rates of instances change on a fleet and on its copy, in one step on the first one: the same is known of NICs."""
    oracle = PredictorOracle(load_models(made_up_models).predictors["tomur"], 0.05)
    kind = NicKind(0, "made-up", 6, {nf.name: 1 for nf in (PLAIN, CRYPTO, LOOKUP)}, line_rate_gbps=1e6)
    fleet, index = Fleet([kind]), SampledIndex(kind, oracle, LOOK_AHEAD)
    _place_at_rates(fleet, index, oracle, range(400))
    other_fleet, other = copy.deepcopy((fleet, index), {id(oracle): oracle})
    draw = random.Random(5)
    for _ in range(60):
        nic = draw.choice([nic for nic in fleet.nics.values() if len(nic.tenants_by_id) > 1])
        before = draw.choice(nic.tenants)
        rate = before.workload.rate_kpps * draw.uniform(0.6, 1.05)
        after = replace(before, workload=replace(before.workload, rate_kpps=rate))
        fleet.change(after)
        assert index.change(nic, before, after)
        home = other_fleet.nics[nic.id]
        other.left(home, before)
        other_fleet.change(after)
        other.joined(home, after)
        assert [*nic.tenants_by_id] == [*home.tenants_by_id] and next(reversed(nic.tenants_by_id)) == after.id
    places = [sampled.place for sampled in index._nics.values()]
    for known, expected in zip(map(index._views, places), map(other._views, places), strict=True):
        assert all(map(np.array_equal, known, expected))


def test_a_copy_decides_as_its_original(made_up_models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A copy after 40 arrivals, on 100 more: it chooses the NICs that the original then chooses, with the same scores,
    though both have offered rates, which are scaled, and few rows, which each takes from workloads that have left."""
    monkeypatch.setattr(workload_table, "LEAST_RELEASED", 4)
    oracle = PredictorOracle(load_models(made_up_models).predictors["tomur"], 0.05)
    kind = NicKind(0, "made-up", 6, {nf.name: 1 for nf in (PLAIN, CRYPTO, LOOKUP)})
    fleet, index = Fleet([kind]), SampledIndex(kind, oracle, LOOK_AHEAD)
    _place_at_rates(fleet, index, oracle, range(40))
    copied = copy.deepcopy((fleet, index), {id(oracle): oracle})
    assert copied[1]._checks is index._checks  # a copied table of workloads has views of arrays that nobody reads
    assert _place_at_rates(*copied, oracle, range(40, 140)) == _place_at_rates(fleet, index, oracle, range(40, 140))


def test_what_a_trial_found_holds_in_the_next_one(made_up_models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Copies of an arrival are placed again in each of five trials, and one more is found in each; arrivals in between
    change NICs. Where checks of earlier trials are forgotten, the same NICs are found, with the same scores."""
    found = []
    for remembered in (True, False):
        with monkeypatch.context() as patch:
            if not remembered:
                patch.setattr(SampledIndex, "_as_tried", lambda *given: object())
            oracle = PredictorOracle(load_models(made_up_models).predictors["tomur"], 0.05)
            kind = NicKind(0, "made-up", 6, {nf.name: 1 for nf in (PLAIN, CRYPTO, LOOKUP)})
            fleet, index = Fleet([kind]), SampledIndex(kind, oracle, LOOK_AHEAD)
            found.append(_place_at_rates(fleet, index, oracle, range(30)))
            copies = list[tuple[Tenant, Nic]]()
            for turn in range(5):
                index.begin_trial()
                copies = [(copied, nic) for copied, nic in copies if fleet.nics.find(nic.id) is nic]
                for copied, nic in copies:
                    fleet.place(copied, nic)
                    index.joined(nic, copied)
                arriving = Tenant(f"copy {turn}", Workload(PLAIN.name, TrafficProfile(500, 900, 5)), Sla(max_drop=0.4))
                best = index.best(arriving)
                assert best is not None
                copies.append((arriving, best[1]))
                found[-1].append((best[0], best[1].id))
                for copied, nic in reversed(copies[:-1]):
                    fleet.remove(copied.id)
                    index.left(nic, copied)
                index.end_trial()
                found[-1] += _place_at_rates(fleet, index, oracle, range(30 + turn, 31 + turn))
    assert found[0] == found[1]
    assert len({nic.id for _, nic in copies}) < 5  # NICs get several copies


def test_what_a_trial_found_does_not_hold_for_other_models() -> None:
    """A NIC is as in a copy of the index, which remembers nothing, when the arrival of a trial is placed there again
    after other models have come, whose revision is the same."""
    index, arriving = index_of([tenant("y", "b", 0.9)]), Tenant("x", Workload("c", TOY_TRAFFIC), Sla(min_kpps=1.0))
    index.begin_trial()
    assert chosen(index, arriving) == "nic-1"
    index.end_trial()
    margins = []
    for each in (copy.deepcopy(index), index):
        each.follow(ToyOracle(speed=2.0))
        nic = each._nics[1].nic
        each.begin_trial()
        nic.tenants_by_id["x"] = arriving
        each.joined(nic, arriving)
        margins.append(each._arrays[2][each._nics[1].place, :2].tolist())
        each.end_trial()
    assert margins[0] == margins[1]


@pytest.mark.long
def test_nics_whose_margins_are_surely_enough_are_not_checked(
    made_up_models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Instances at rates come and go. Most are placed without a check: every SLA is met, on as many NICs as where all
    are checked. `rank` finds what `best` does, and what is expected of a change is so."""
    nics, check, expected = [], Mock(wraps=sampled_index.check_arrival), Counter[bool | None]()
    monkeypatch.setattr(sampled_index, "check_arrival", check)
    for checks_all in (True, False):
        placed = 0
        check.reset_mock()
        oracle = PredictorOracle(load_models(made_up_models).predictors["tomur"], 0.05)
        kind = NicKind(0, "made-up", 6, {nf.name: 1 for nf in (PLAIN, CRYPTO, LOOKUP)})
        fleet, index = Fleet([kind]), SampledIndex(kind, oracle, LOOK_AHEAD)
        if checks_all:
            monkeypatch.setattr(index, "_goes_unchecked", lambda arriving: False)
        draw, changes = random.Random(3), random.Random(4)
        for number in range(800):
            workload = Workload(draw.choice(list(kind.cores_of)), TrafficProfile(draw.randrange(1, 100_000), 900, 100))
            rate = oracle.solo(workload) * math.exp(draw.uniform(math.log(0.05), math.log(0.95)))
            arriving = Tenant(f"{number}", replace(workload, rate_kpps=rate), Sla(max_drop=0.0))
            before = check.call_count
            ranked, asked = index.rank(arriving, 1), check.call_count - before
            best = index.best(arriving)
            assert [nic for _, nic in ranked] == ([] if best is None else [best[1]])
            assert check.call_count - before == 2 * asked, "who asks finds what is checked, too"
            nic = fleet.open(kind) if best is None else best[1]
            placed += best is not None
            fleet.place(arriving, nic)
            index.joined(nic, arriving)
            if number > 300:
                home = fleet.nic_of(identity := f"{draw.randrange(number)}")
                if home is not None:
                    leaving = home.tenants_by_id[identity]
                    fleet.remove(identity)
                    index.left(home, leaving)
                nic = changes.choice([*fleet.nics.values()])
                before, headroom = changes.choice(nic.tenants), changes.choice((0.0, 0.1))
                rate = before.workload.rate_kpps * changes.uniform(0.5, 2.0)
                after = replace(before, workload=replace(before.workload, rate_kpps=rate))
                others = [tenant for tenant in nic.tenants if tenant is not before]
                found = index.expects(nic, before, after, headroom)
                expected[found] += 1
                assert found in (None, keeps_slas(kind, oracle, [*others, after], (after, headroom)))
        nics.append(len(fleet.nics))
        assert [nic.id for nic in fleet.nics.values() if below_sla(oracle, nic.tenants)] == []
    assert check.call_count < 0.6 * placed
    assert nics[1] <= 1.02 * nics[0]
    assert min(expected[found] for found in (None, True, False)) > 20


def test_a_new_nf_is_checked_until_it_is_known_how_well_it_is_estimated(
    made_up_models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of an NF that has come 200 times, light instances go unchecked; of one that has not, all of the first."""
    check = Mock(wraps=sampled_index.check_arrival)
    monkeypatch.setattr(sampled_index, "check_arrival", check)
    oracle = PredictorOracle(load_models(made_up_models).predictors["tomur"], 0.05)
    kind = NicKind(0, "made-up", 6, {nf.name: 1 for nf in (PLAIN, CRYPTO, LOOKUP)})
    fleet, index = Fleet([kind]), SampledIndex(kind, oracle, LOOK_AHEAD)
    checked: dict[str, list[int]] = {PLAIN.name: [], CRYPTO.name: []}
    for number in range(240):
        workload = Workload((PLAIN if number < 220 else CRYPTO).name, TrafficProfile(1_000 + 100 * number, 900, 100))
        arriving = Tenant(f"{number}", replace(workload, rate_kpps=0.3 * oracle.solo(workload)), Sla(max_drop=0.0))
        check.reset_mock()
        best = index.best(arriving)
        checked[workload.nf] += [check.call_count] if best is not None else []
        nic = fleet.open(kind) if best is None else best[1]
        fleet.place(arriving, nic)
        index.joined(nic, arriving)
    assert sum(checked[PLAIN.name][-50:]) <= 2
    assert len(checked[CRYPTO.name]) > 10 and min(checked[CRYPTO.name][:10]) == 1


def _place_at_rates(
    fleet: Fleet, index: SampledIndex, oracle: PredictorOracle, numbers: range
) -> list[tuple[float, str]]:
    """The scores and NICs of these arrivals, each of which leaves when the twelfth after it comes."""
    homes = list[tuple[float, str]]()
    for number in numbers:
        draw = random.Random(number)
        traffic = TrafficProfile(draw.randrange(1, 100_000), draw.randrange(64, 1_500), draw.randrange(1_000))
        workload = Workload(draw.choice(list(index.kind.cores_of)), traffic)
        workload = replace(workload, rate_kpps=oracle.solo(workload) * draw.uniform(0.2, 0.9))
        arriving = Tenant(f"{number}", workload, Sla(max_drop=0.02))
        index.observe(arriving)
        found = index.best(arriving)
        nic = fleet.open(index.kind) if found is None else found[1]
        fleet.place(arriving, nic)
        index.joined(nic, arriving)
        homes.append((0.0 if found is None else found[0], nic.id))
        if (gone := fleet.nic_of(name := f"{number - 12}")) is not None:
            leaving = gone.tenants_by_id[name]
            fleet.remove(name)
            index.left(gone, leaving)
    return homes


def filled(rule: Rule, *rates: float) -> tuple[GpuIndex, list[Nic]]:
    catalogue = mixed()
    fleet = Fleet(catalogue.kinds)
    index = GpuIndex(catalogue.kinds[1], catalogue.gpus[1], rule)
    nics = []
    for number, rate in enumerate(rates):
        nics.append(fleet.open(catalogue.kinds[1]))
        tenant = promised(f"on-{number}", "b", rate, 900.0).tenant
        fleet.place(tenant, nics[-1])
        index.joined(nics[-1], tenant)
    return index, nics


@pytest.mark.parametrize(("rule", "chosen"), [("first-fit", 0), ("best-fit", 2), ("worst-fit", 1), ("look-ahead", 2)])
def test_rules_compare_what_is_left_of_the_scarcest_resource(rule: str, chosen: int) -> None:
    """Of 1000 kpps, 500, 100, 700 and 950 are taken: 200 more fit three GPUs. On the second workers are scarcer: it
    loses a quarter of what it has left, the others a fifth."""
    index, nics = filled(RULES_BY_NAME[rule], 500.0, 100.0, 700.0, 950.0)
    found = index.best(promised("new", "a", 200.0, 900.0).tenant)
    assert found is not None and found[1] is nics[chosen]


def test_a_gpu_that_rejects_the_arrival_or_a_tenant_is_passed_over() -> None:
    """An arrival that must be first on the bus delays a tenant that bears no delay."""
    catalogue = mixed()
    fleet = Fleet(catalogue.kinds)
    index = GpuIndex(catalogue.kinds[1], catalogue.gpus[1], RULES_BY_NAME["first-fit"])
    nic = fleet.open(catalogue.kinds[1])
    tenant = promised("urgent", "a", 1.0, 31.0).tenant
    fleet.place(tenant, nic)
    index.enter(nic)
    more_urgent = promised("more", "a", 1.0, 30.0).tenant
    assert index.best(more_urgent) is None and index.last_resort(more_urgent) is None
    assert list(index.reasons(more_urgent)) == [Reason("toy-gpu", (), 1, Cause.SAMPLED_SLA)]
    fleet.remove("urgent")
    index.left(nic, tenant)
    assert index.tally(more_urgent).nics == 0 and index.opening_score(more_urgent) is not None
    assert index.opening_score(promised("hopeless", "a", 1.0, 29.0).tenant) is None


@pytest.mark.parametrize("rule", list(RULES_BY_NAME))
def test_plans_of_different_rates_keep_every_promise(rule: str) -> None:
    """Forty NFs, each at a rate of its own, are all placed, and GPUs are shared."""
    trace = [promised(str(n), "ab"[n % 2], 100.0 + n, 45.0 + 7 * (n % 5), n) for n in range(40)]
    catalogue = mixed()
    plan = find_strategy(f"contention-aware:{rule}").build(catalogue, "toy").place(trace)
    check_plan(plan, trace, catalogue.kinds)
    assert not any(slas_kept(plan, catalogue.oracles("toy"))) and plan.rejected == 0
    assert len({placement.nic for placement in plan.placements}) <= 20
