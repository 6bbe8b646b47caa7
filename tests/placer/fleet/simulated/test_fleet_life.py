"""The life of a fleet: the same events, the same bytes; what drifts, who knows it and what it costs. Measurements of a
simulated production: noise, lost and wrong readings, too little offered, lies. Retraining in a simulated production
takes as many events as the file says. Counts of violations and alarms."""

from collections.abc import Sequence
from itertools import chain
from math import log
from statistics import fmean, pstdev

import pytest

from placer.evaluate.evaluation import evaluate
from placer.fleet.events import JudgedInstance, Learned, Measure, MeasuredInstance
from placer.fleet.learning.actions import ActionKind, ModelAction, RetrainedModel
from placer.fleet.learning.learning import Feedback
from placer.fleet.learning.ledger import SATURATED_OFFER
from placer.fleet.learning.retraining import TrainedModels
from placer.fleet.simulated.fleet_life import AlarmTally, SlaTally
from placer.fleet.simulated.monitor import Monitor, TrueDrift
from placer.fleet.simulated.outcome import BY_HAND, LATE_AFTER, WITH_FEEDBACK, WITHOUT_FEEDBACK, DriftAlarm
from placer.fleet.simulated.simulation import SimulatedRetraining
from placer.inputs.production import SLA_PROMISED, SLA_RELATIVE, LiarTable, MonitorTable
from placer.model.arrival import Arrival
from placer.model.fleet import Fleet
from placer.model.oracle import PredictorOracle
from placer.model.plan import Placement, Plan
from placer.testing.strategies import TOY_TRAFFIC, ToyOracle, arrival
from profiles import CoLocation, Workload
from tests.placer.fleet.learning.toy_predictor import ToyPredictor
from tests.placer.fleet.simulated.toy_world import KINDS, life_of, nic_of, play, tenant, truth_of

SLOW = TrueDrift("c", 40, None, 0.8)


def arrivals_of(count: int, *, stay: float | None = None, drop: float = 0.1) -> list[Arrival]:
    """One arrival a second, of each NF in turn."""
    return [
        arrival(str(one), float(one), "abcd"[one % 4], drop, None if stay is None else one + stay)
        for one in range(count)
    ]


@pytest.mark.parametrize("stay", [None, 7.5, 7.0])
def test_without_drift_exact_predictions_violate_nothing(stay: float | None) -> None:
    """Measured or not, with departures or without; every fleet places alike."""
    for name in (WITHOUT_FEEDBACK, BY_HAND):
        outcome = play(name, arrivals_of(60, stay=stay))
        assert (outcome.violated, outcome.placed, outcome.rejected) == (0, 60, 0)
        assert outcome.late_placed is None and outcome.late_violations_pct is None


class SlowOracle(ToyOracle):
    """`c` has four fifths of its throughput."""

    def _query(self, co_locations: Sequence[CoLocation]) -> Sequence[Sequence[float]]:
        return [
            [kpps * (0.8 if one.nf == "c" else 1.0) for one, kpps in zip(co_location, found, strict=True)]
            for co_location, found in zip(co_locations, super()._query(co_locations), strict=True)
        ]


def test_violations_are_those_of_the_evaluation_of_the_same_plan() -> None:
    """A drift that holds from the first event on: promises are relative to what the slower NF does alone."""
    arrivals = arrivals_of(200)
    life = life_of(WITHOUT_FEEDBACK, arrivals, TrueDrift("c", 1, None, 0.8))
    outcome = life.play(WITHOUT_FEEDBACK, lambda done, total: None)
    homes = [life.engine.fleet.nic_of(one.id) for one in arrivals]
    placements = [Placement(one, home.id, home.kind) for one, home in zip(arrivals, homes, strict=True) if home]
    evaluation = evaluate(Plan(WITHOUT_FEEDBACK, None, tuple(placements), 0.0), KINDS, [SlowOracle()])
    assert outcome.violated == evaluation.violated and outcome.violated > 5
    assert outcome.nics == evaluation.nics


def test_drops_relative_to_what_an_nf_does_now_are_not_violated_by_its_drift() -> None:
    """Alone it slows as much as beside others; what was promised in kpps before is violated."""
    kept, broken = (life_of(WITHOUT_FEEDBACK, arrivals_of(60), SLOW, sla=sla) for sla in (SLA_RELATIVE, SLA_PROMISED))
    assert kept.play(WITHOUT_FEEDBACK, lambda done, total: None).violated == 0
    assert broken.play(WITHOUT_FEEDBACK, lambda done, total: None).violated > 0


def test_a_drift_violates_promises_of_before_although_nothing_moves() -> None:
    """Every `c` that was placed before has less than 90 % of what was promised; `a`, `b` and `d` do as before."""
    outcome = play(BY_HAND, arrivals_of(60), SLOW)
    before = sum(number % 4 == 2 for number in range(39))
    assert outcome.violated == before and outcome.points[-1].violating == before


def test_who_does_not_know_of_a_drift_predicts_too_much_for_those_who_come_later() -> None:
    """A `c` is promised 90 % of the 320 kpps that it has alone since, and is placed as if it had 400."""
    arrivals = arrivals_of(400)
    without, by_hand = play(WITHOUT_FEEDBACK, arrivals, SLOW), play(BY_HAND, arrivals, SLOW)
    late = sum(number + 1 >= SLOW.start + LATE_AFTER for number in range(400))
    assert without.late_placed == by_hand.late_placed == late and by_hand.late_violated == 0
    assert (without.late_violated or 0) > 10


def test_points_hold_what_is_believed() -> None:
    """The true factor by hand, none without feedback; the last point is that of the last event."""
    by_hand, without = (play(name, arrivals_of(60), SLOW) for name in (BY_HAND, WITHOUT_FEEDBACK))
    assert [point.believed["c"] for point in by_hand.points] == pytest.approx([1.0] * 39 + [0.8] * 21)
    assert {point.believed["c"] for point in without.points} == {1.0}
    assert by_hand.points[-1].event == 60 and by_hand.points[-1].tenants == 60


def test_a_drift_that_ends_is_undone_by_hand() -> None:
    """From its end on, predictions are those of before."""
    believed = [point.believed["c"] for point in play(BY_HAND, arrivals_of(60), TrueDrift("c", 20, 40, 0.8)).points]
    assert believed == pytest.approx([1.0] * 19 + [0.8] * 20 + [1.0] * 21)


def test_a_measured_fleet_reads_every_instance_it_should() -> None:
    """All tenants of all NICs after each of eight arrivals: 1 + 2 + ... + 8 readings."""
    assert play(WITH_FEEDBACK, arrivals_of(8), measure=MonitorTable(share=1.0)).readings == 36
    assert play(WITHOUT_FEEDBACK, arrivals_of(8)).readings == 0


@pytest.mark.long
def test_same_seed_same_outcome() -> None:
    """To the last figure, with noise, outliers and drift."""
    rough = MonitorTable(share=0.3, noise_pct=3, lost_pct=10, outliers_pct=10, unsaturated_pct=20)
    first, second = (play(WITH_FEEDBACK, arrivals_of(60, stay=30.5), SLOW, measure=rough) for _ in range(2))
    assert first == second and first.readings > 50


@pytest.mark.long
def test_feedback_without_noise_places_no_worse_than_none() -> None:
    """Of arrivals after the drift, fewer violate their SLA than without."""
    quiet = MonitorTable(share=0.2, noise_pct=0.0)
    arrivals = arrivals_of(300)
    learned, without = play(WITH_FEEDBACK, arrivals, SLOW, measure=quiet), play(WITHOUT_FEEDBACK, arrivals, SLOW)
    assert (learned.late_violated or 0) < (without.late_violated or 0)


@pytest.mark.long
def test_a_found_drift_is_an_alarm_that_is_right() -> None:
    """In the order of readings; what is believed from then on is close to the truth."""
    quiet = MonitorTable(share=0.2, noise_pct=1.0)
    outcome = play(WITH_FEEDBACK, arrivals_of(160), SLOW, measure=quiet)
    found = outcome.count_until_found(SLOW)
    assert found is not None and found < 60
    assert outcome.false_alarms == 0 and outcome.points[-1].believed["c"] == pytest.approx(0.8, rel=0.05)
    assert outcome.count_until_found(TrueDrift("b", 40, None, 0.8)) is None


def below(identity: str) -> Learned:
    """A measurement that shows the instance below its SLA."""
    return Learned("noted", instances=(JudgedInstance(identity, 1.0, None, None, True),))


def test_who_was_below_the_sla_once_is_counted_although_it_recovers() -> None:
    """`c` loses 16 % beside `c`, more than 10; alone again it keeps its SLA."""
    slas = SlaTally(truth_of())
    slas.judge([nic_of(tenant("1", "c"), tenant("2", "c", 0.2))], 1)
    assert (slas.now, slas.violated) == ({"1"}, {"1"})
    slas.judge([nic_of(tenant("1", "c"))], 2)
    assert (slas.now, slas.violated) == (set(), {"1"})


def test_who_leaves_is_no_longer_below_its_sla() -> None:
    """But was."""
    slas = SlaTally(truth_of())
    slas.judge([nic_of(tenant("1", "c"), tenant("2", "c", 0.2))], 1)
    slas.left("1")
    assert (slas.now, slas.violated) == (set(), {"1"})


def test_repeats_are_nics_that_violate_only_after_the_place_was_measured() -> None:
    """Two NICs before the measurement do not count, one after it does; other co-locations do not."""
    slas = SlaTally(truth_of())

    def violate(name: str, *more: str) -> None:
        nic = nic_of(tenant(f"{name}-1", "c"), tenant(f"{name}-2", "c", 0.2), *(tenant(one, "a") for one in more))
        nic.id = name
        slas.judge([nic], 1)
        if name == "second":
            slas.note_measurement(nic, below("second-1"))

    violate("first")
    violate("second")
    assert slas.count_repeated() == 0
    violate("third")
    violate("fourth", "x")
    assert slas.count_repeated() == 1


def test_a_wrong_reading_starts_no_repeats() -> None:
    """It is not the ground truth that says so."""
    slas = SlaTally(truth_of())
    nic = nic_of(tenant("1", "c"))
    slas.judge([nic], 1)
    slas.note_measurement(nic, below("1"))
    assert slas.count_repeated() == 0


@pytest.mark.parametrize(("nf", "event", "false"), [("a", 9, True), ("a", 10, False), ("b", 10, True)])
def test_an_alarm_is_false_unless_the_nf_has_changed(nf: str, event: int, false: bool) -> None:
    """Before its drift, or of another NF."""
    alarms = AlarmTally(truth_of(TrueDrift("a", 10, None, 0.5)))
    alarms.note_factors(event, {nf: 0.5})
    assert [alarm.false for alarm in alarms.alarms] == [false]


def test_readings_are_counted_from_the_drift_on() -> None:
    """Three readings of `a` after it, not the two before; those of `b` go on."""
    alarms = AlarmTally(truth_of(TrueDrift("a", 10, None, 0.5)))
    alarms.read(["a", "a", "b"])
    alarms.turn(10)
    alarms.read(["a", "a", "a", "b"])
    alarms.note_factors(12, {"a": 0.5, "b": 0.9})
    assert alarms.alarms == [DriftAlarm(12, "a", 0.5, 3, False), DriftAlarm(12, "b", 0.9, 2, True)]


class InstantRetrainer:
    """Is due all the time, and fails at some trainings."""

    def __init__(self, *failing: int) -> None:
        self.failing = failing
        self.started: list[int] = []

    def is_due(self, feedback: Feedback) -> bool:
        return True

    def start(self, feedback: Feedback, event: int) -> None:
        self.started.append(event)

    def wait(self) -> None:
        """There is nothing to wait for."""

    def take(self) -> TrainedModels | None:
        if len(self.started) in self.failing:
            return None
        return TrainedModels({}, {"toy-0": RetrainedModel(ToyPredictor())}, self.started[-1])


def actions(retrainer: InstantRetrainer, events: int) -> dict[int, Sequence[ModelAction]]:
    """What is due, by event; every version that comes is known from then on."""
    feedback = Feedback(KINDS, [PredictorOracle(ToyPredictor())])
    retraining = SimulatedRetraining(feedback, retrainer, takes=3)  # type: ignore[arg-type]
    found = {}
    for event in range(1, events + 1):
        due = retraining.due(event)
        for one in due:
            assert one.version is not None and list(retraining.models(one.version)) == ["toy-0"]
            feedback.versions[one.version] = feedback.champion
        if due:
            found[event] = due
    return found


def test_a_version_comes_so_many_events_after_its_training_began() -> None:
    """Trained with what was measured before; the next training begins afterwards."""
    retrainer = InstantRetrainer()
    assert actions(retrainer, 9) == {
        4: (ModelAction(ActionKind.CANARY, 2, 0),),
        8: (ModelAction(ActionKind.CANARY, 3, 4),),
    }
    assert retrainer.started == [0, 4, 8]


def test_a_training_that_fails_brings_no_version() -> None:
    """And the next one begins."""
    assert actions(InstantRetrainer(1), 9) == {8: (ModelAction(ActionKind.CANARY, 2, 4),)}


EVENTS = range(1, 1001)


def fleet_of(nics: int) -> Fleet:
    """So many NICs with one `b` each, which has 200 kpps."""
    fleet = Fleet(KINDS)
    for number in range(nics):
        fleet.place(tenant(str(number), "b"), fleet.open(KINDS[0]))
    return fleet


def measured(settings: MonitorTable, *liars: LiarTable, nics: int = 1, seed: int = 1) -> list[Measure]:
    fleet, monitor = fleet_of(nics), Monitor(settings, liars, truth_of(), seed)
    return list(chain.from_iterable(monitor.measure(event, fleet) for event in EVENTS))


def readings(settings: MonitorTable, *liars: LiarTable) -> list[MeasuredInstance]:
    return [one for event in measured(settings, *liars) for one in event.instances]


def is_capacity(one: MeasuredInstance) -> bool:
    return one.offered_kpps is not None and one.offered_kpps >= SATURATED_OFFER * one.throughput_kpps


def test_readings_scatter_around_the_truth_as_much_as_they_should() -> None:
    """2 % around 200 kpps; more than that is offered."""
    logs = [log(one.throughput_kpps / 200.0) for one in readings(MonitorTable(noise_pct=2.0)) if is_capacity(one)]
    assert len(logs) == 1000 and fmean(logs) == pytest.approx(0.0, abs=0.003)
    assert pstdev(logs) == pytest.approx(0.02, rel=0.1)


def test_the_share_of_nics_is_measured_every_so_many_events_at_least_one() -> None:
    """A fifth of ten NICs is two, a hundredth still one."""
    two = measured(MonitorTable(every=100, share=0.2), nics=10)
    assert len(two) == 20 and len({one.nic for one in two}) > 5
    assert len(measured(MonitorTable(every=100, share=0.01), nics=10)) == 10


def test_lost_wrong_and_unsaturated_readings_are_as_frequent_as_they_should_be() -> None:
    """3 in 10 are lost, 1 in 5 of the others is wrong by 1.5 at least, 1 in 2 of the rest is a lower bound."""
    found = readings(MonitorTable(noise_pct=0.0, lost_pct=30, outliers_pct=20, unsaturated_pct=50))
    wrong = [one for one in found if is_capacity(one) and abs(log(one.throughput_kpps / 200.0)) > log(1.49)]
    low = [one for one in found if not is_capacity(one)]
    assert len(found) == pytest.approx(700, abs=50) and len(wrong) == pytest.approx(0.2 * len(found), abs=45)
    assert len(low) == pytest.approx(0.4 * len(found), abs=55)
    assert all(one.throughput_kpps <= 200.0 for one in low)
    assert {one.throughput_kpps > 200.0 for one in wrong} == {True, False}


def test_nothing_is_measured_above_what_was_offered() -> None:
    """The engine would refuse it."""
    settings = MonitorTable(noise_pct=10, outliers_pct=30, unsaturated_pct=30)
    assert all(one.throughput_kpps <= (one.offered_kpps or 0.0) for one in readings(settings))


def test_a_liar_reports_its_factor_of_the_truth_and_others_do_not() -> None:
    """By name, or as a share of all, always the same ones."""
    quiet = MonitorTable(noise_pct=0.0, share=1.0)
    assert {one.throughput_kpps for one in readings(quiet, LiarTable(tenant="0", factor=0.5))} == {100.0}
    assert {one.throughput_kpps for one in readings(quiet, LiarTable(tenant="1", factor=0.5))} == {200.0}
    half = measured(MonitorTable(noise_pct=0.0, share=1.0, every=500), LiarTable(share=0.5, factor=2.0), nics=40)
    lying = {one.nic for one in half if one.instances[0].throughput_kpps == 400.0}
    honest = {one.nic for one in half if one.instances[0].throughput_kpps == 200.0}
    assert len(lying) + len(honest) == 40 and 10 < len(lying) < 30


def test_a_reading_does_not_depend_on_who_else_is_measured() -> None:
    """Fleets that place differently still read alike; another seed reads otherwise."""
    settings = MonitorTable(share=1.0)
    alone = measured(settings)
    beside = [event for event in measured(settings, nics=2) if event.nic == "nic-1"]
    assert [one.instances for one in alone] == [one.instances for one in beside]
    assert measured(settings, seed=2) != alone


def test_what_drifted_is_measured() -> None:
    """Half from the second event on."""
    monitor = Monitor(MonitorTable(noise_pct=0.0), (), truth_of(TrueDrift("b", 2, None, 0.5)), 1)
    fleet = fleet_of(1)
    kpps = [one.instances[0].throughput_kpps for event in (1, 2) for one in monitor.measure(event, fleet)]
    assert kpps == pytest.approx([200.0, 100.0])


def test_a_drift_holds_from_its_first_event_up_to_its_end() -> None:
    """The event of its end is the first without it."""
    truth = truth_of(TrueDrift("a", 10, 20, 0.5))
    assert [truth.factor("a", event) for event in (9, 10, 19, 20)] == [1.0, 0.5, 0.5, 1.0]
    assert [truth.turns(event) for event in (9, 10, 19, 20)] == [False, True, False, True]
    assert [truth.last_turn("a", event) for event in (9, 10, 19, 20)] == [None, 10, 10, 20]
    assert truth.factor("b", 10) == 1.0 and truth.last_turn("b", 10) is None


def test_drifts_of_one_nf_multiply() -> None:
    """Half of half is a quarter."""
    truth = truth_of(TrueDrift("a", 1, None, 0.5), TrueDrift("a", 5, None, 0.5))
    assert [truth.factor("a", event) for event in (1, 5)] == [0.5, 0.25]


def test_an_nf_drifts_alone_and_beside_others_and_leaves_them_as_they_are() -> None:
    """`c` has 400 kpps alone and 4 % less beside one `a`, which has 8 % less than its 100."""
    truth = truth_of(TrueDrift("c", 2, None, 0.5))
    nic = nic_of(tenant("1", "c"), tenant("2", "a"))
    a, c = Workload("a", TOY_TRAFFIC), Workload("c", TOY_TRAFFIC)
    assert truth.throughput(nic, 1) == pytest.approx({a: 92.0, c: 384.0})
    assert truth.throughput(nic, 2) == pytest.approx({a: 92.0, c: 192.0})
    assert [truth.solo(KINDS[0], c, event) for event in (1, 2)] == [400.0, 200.0]
