"""Corrections: predictions move to what was measured, fading away from it, and one tenant moves little. The corrected
oracle: what is asked for again and again is what is asked for once."""

from collections import Counter
from collections.abc import Sequence
from math import exp, log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from placer.fleet.learning.corrected_oracle import CorrectedOracle
from placer.fleet.learning.corrections import NEAR_WEIGHTS, Estimate, LearntCorrections
from placer.fleet.learning.ledger import Ledger, LedgerEntry, ProductionReading, agree_on
from placer.model.oracle import co_location_of
from placer.testing.strategies import TOY_TRAFFIC
from profiles import CoLocation, Workload
from tests.placer.fleet.learning.toy_predictor import ToyPredictor

A, B, C, D = (Workload(nf, TOY_TRAFFIC) for nf in "abcd")
MODEL = "toy-0"
PREDICTED = Estimate(100.0, 95.0, 0.03)


def learn(
    corrections: LearntCorrections,
    *beside: Workload,
    tenant: str,
    kpps: float,
    offered: float | None = 1e3,
    below: bool = False,
) -> None:
    one = ProductionReading(MODEL, co_location_of([A, *beside]), A, tenant, kpps, offered, 1, below)
    corrections.learn(corrections.ledger.add(one), MODEL, A, PREDICTED)


def learn_of_four(corrections: LearntCorrections, *beside: Workload, first: int = 1, **measured: float) -> None:
    """The same of four tenants."""
    for tenant in range(first, first + 4):
        learn(corrections, *beside, tenant=str(tenant), **measured)


@pytest.fixture
def corrections() -> LearntCorrections:
    return LearntCorrections(Ledger())


def corrected(corrections: LearntCorrections, *beside: Workload) -> float:
    """The median prediction of `a` beside others, which is 100 before corrections."""
    return corrections.shift((MODEL, A, co_location_of(beside))).median(PREDICTED)


def test_nothing_learnt_moves_nothing() -> None:
    """The median and the throughput at risk are those of the model."""
    shift = LearntCorrections(Ledger()).shift((MODEL, A, (B,)))
    assert (shift.median(PREDICTED), shift.at_risk(PREDICTED)) == pytest.approx((100.0, 95.0))


def test_tenants_who_agree_move_a_prediction_to_what_they_measured(corrections: LearntCorrections) -> None:
    """Four of them 94 % of the way."""
    learn_of_four(corrections, B, kpps=80.0)
    assert corrected(corrections, B) == pytest.approx(100 * 0.8 ** (4 / 4.25))


def test_a_single_tenant_moves_a_prediction_by_one_usual_error_at_most() -> None:
    """Half of two, whether it reports 50 or 500 kpps."""
    for kpps, sign in [(50.0, -1), (500.0, 1)]:
        corrections = LearntCorrections(Ledger())
        learn(corrections, B, tenant="1", kpps=kpps)
        assert corrected(corrections, B) == pytest.approx(100 * exp(sign * 0.03))


def test_two_tenants_move_a_prediction_by_twice_as_much_and_three_as_far_as_they_agree(
    corrections: LearntCorrections,
) -> None:
    """Two halved throughputs are four usual errors; of three the median counts."""
    for tenant, expected in (("1", -0.03), ("2", -0.12 * 2 / 2.25), ("3", log(0.5) * 3 / 3.25)):
        learn(corrections, B, tenant=tenant, kpps=50.0)
        assert log(corrected(corrections, B) / 100.0) == pytest.approx(expected)


def test_what_was_measured_beside_others_does_not_change_an_nf_alone(corrections: LearntCorrections) -> None:
    """Its throughput alone was measured before it was deployed; what is measured alone counts beside others."""
    learn_of_four(corrections, B, kpps=80.0)
    assert corrected(corrections) == 100.0
    learn_of_four(corrections, kpps=80.0, first=5)
    assert corrected(corrections, C) < 95.0


def test_a_correction_fades_with_the_competitors_that_differ(corrections: LearntCorrections) -> None:
    """One more or fewer less than exact, another one less, and two more not at all."""
    learn_of_four(corrections, B, C, kpps=80.0)
    exact, fewer, other, far = (corrected(corrections, *beside) for beside in [(B, C), (B,), (B, D), (D,)])
    assert exact < fewer < other < far == 100.0


def test_a_measured_co_location_keeps_less_of_its_spread(corrections: LearntCorrections) -> None:
    """Where less was measured than predicted, the throughput at risk comes nearer to the corrected median."""
    learn_of_four(corrections, B, kpps=80.0)
    shift = corrections.shift((MODEL, A, (B,)))
    assert 0.95 < shift.at_risk(PREDICTED) / shift.median(PREDICTED) < 1.0 and shift.median(PREDICTED) < 85.0


def test_what_was_measured_above_a_prediction_makes_placement_bolder_only_there(corrections: LearntCorrections) -> None:
    """The throughput at risk rises where it was measured; near there it stays, unless the NF has drifted."""
    learn_of_four(corrections, B, kpps=120.0)
    there, near = (corrections.shift((MODEL, A, (B, *more))) for more in ((), (C,)))
    assert 110.0 < there.at_risk(PREDICTED) < there.median(PREDICTED)
    assert near.median(PREDICTED) > 102.0 and near.at_risk(PREDICTED) == pytest.approx(95.0)
    corrections.set_drift(MODEL, A.nf, False, 1.2)
    assert corrections.shift((MODEL, A, (B, C))).at_risk(PREDICTED) == pytest.approx(114.0)


def test_a_rise_leaves_a_margin_for_the_noise_of_readings(corrections: LearntCorrections) -> None:
    """Four tenants measure 105: a usual error of 3 % is left by a quarter, and readings are off by half a percent."""
    learn_of_four(corrections, B, kpps=105.0)
    weight = 4 / 4.25
    margin = log(0.95) * ((1 - weight) + (weight * 0.005 / 0.03) ** 2) ** 0.5
    found = corrections.shift((MODEL, A, (B,))).at_risk(PREDICTED)
    assert found == pytest.approx(100 * 1.05**weight * exp(margin))
    for tenant in "5678":
        learn(corrections, B, tenant=tenant, kpps=115.0)
        learn(corrections, B, tenant=f"low {tenant}", kpps=95.0)
    assert 95.0 <= corrections.shift((MODEL, A, (B,))).at_risk(PREDICTED) < found


def test_lower_bounds_above_a_prediction_make_placement_no_bolder(corrections: LearntCorrections) -> None:
    """Nobody lost packets, so nothing says how far such a reading may be off."""
    learn_of_four(corrections, B, kpps=105.0, offered=105.0)
    shift = corrections.shift((MODEL, A, (B,)))
    assert shift.median(PREDICTED) > 104.0 and shift.at_risk(PREDICTED) == pytest.approx(95.0)


def test_where_few_readings_would_show_that_a_rise_was_wrong_placement_gets_no_bolder(
    corrections: LearntCorrections,
) -> None:
    """One in three readings of the NF, anywhere, is of an instance that lost no packets; then two in fifteen."""
    for tenant in "1234":
        learn(corrections, B, tenant=tenant, kpps=105.0)
        if tenant in "12":
            learn(corrections, C, D, tenant=tenant, kpps=50.0, offered=50.0)
    assert corrections.shift((MODEL, A, (B,))).at_risk(PREDICTED) == pytest.approx(95.0)
    for number in range(8):
        learn(corrections, C, tenant=str(number), kpps=100.0)
    assert corrections.shift((MODEL, A, (B,))).at_risk(PREDICTED) == pytest.approx(95.0), "nothing new was read here"
    learn(corrections, B, tenant="5", kpps=105.0)
    assert corrections.shift((MODEL, A, (B,))).at_risk(PREDICTED) > 100.0


def test_lower_bounds_below_a_prediction_do_not_hold_back_what_others_measured(corrections: LearntCorrections) -> None:
    """As many tenants that were offered too little as tenants that lost packets: these are believed as if alone."""
    for tenant in "1234":
        learn(corrections, B, tenant=tenant, kpps=80.0)
        learn(corrections, B, tenant=f"idle {tenant}", kpps=50.0, offered=50.0)
    assert corrected(corrections, B) == pytest.approx(100 * 0.8 ** (4 / 4.25))


def test_drift_changes_every_co_location_of_an_nf(corrections: LearntCorrections) -> None:
    """Beside others, and not alone, until that is seen, too."""
    corrections.set_drift(MODEL, "a", False, 0.85)
    assert corrected(corrections, B) == corrected(corrections, C, D) == pytest.approx(85.0)
    assert corrected(corrections) == 100.0


def test_drift_is_not_counted_twice(corrections: LearntCorrections) -> None:
    """What was measured since is compared with predictions that have it already."""
    corrections.set_drift(MODEL, "a", False, 0.85)
    learn_of_four(corrections, B, kpps=85.0)
    assert corrected(corrections, B) == corrected(corrections, B, C) == pytest.approx(85.0)


def test_where_tenants_were_below_their_sla_placement_leaves_room_for_the_noise_of_readings(
    corrections: LearntCorrections,
) -> None:
    """Two standard errors of what they agree on, whatever that is; and none where all SLAs were kept."""
    exact = Estimate(100.0, 100.0, 0.03)
    for beside, kpps, below in ((B, 98.0, True), (C, 98.0, False), (D, 102.0, True)):
        for tenant in "1234":
            learn(corrections, beside, tenant=tenant, kpps=kpps, below=below)
    violated, kept, more = (corrections.shift((MODEL, A, (beside,))) for beside in (B, C, D))
    assert violated.at_risk(exact) == pytest.approx(violated.median(exact) * exp(-0.01))
    assert kept.at_risk(exact) == pytest.approx(kept.median(exact))
    assert more.at_risk(exact) == pytest.approx(more.median(exact) * exp(-0.01))


def test_outliers_make_no_more_doubt_than_two_usual_errors(corrections: LearntCorrections) -> None:
    """Five tenants of whom three are far off, and one was below its SLA: a tenth is left, not a third."""
    for tenant, kpps in enumerate((233.5, 99.6, 47.9, 35.3, 100.3)):
        learn(corrections, B, tenant=str(tenant), kpps=kpps, below=kpps < 50)
    assert corrections.shift((MODEL, A, (B,))).doubt == pytest.approx(0.06)


def test_what_idle_tenants_did_speaks_against_outliers(corrections: LearntCorrections) -> None:
    """Three outliers far below, and six tenants that reached nearly all without being asked for more."""
    for tenant, kpps in enumerate((34.0, 40.0, 60.0)):
        learn(corrections, B, tenant=f"off {tenant}", kpps=kpps)
    for tenant in range(6):
        learn(corrections, B, tenant=f"idle {tenant}", kpps=97.0, offered=97.0)
    assert corrected(corrections, B) == pytest.approx(100.0)


Readings = st.lists(
    st.tuples(
        st.lists(st.sampled_from([B, C, D]), max_size=3).map(co_location_of),
        st.sampled_from("12345"),
        st.floats(60.0, 130.0),
    ),
    max_size=25,
)


@given(Readings, st.lists(st.sampled_from([B, C, D]), max_size=3).map(co_location_of))
@pytest.mark.long
def test_what_is_near_counts_by_how_many_competitors_differ(
    readings: list[tuple[CoLocation, str, float]], competitors: CoLocation
) -> None:
    """As by comparing with every co-location that was measured, one by one; readings come between questions."""
    ledger = Ledger()
    corrections = LearntCorrections(ledger)
    for beside, tenant, kpps in readings:
        learn(corrections, *beside, tenant=tenant, kpps=kpps)
        corrections.shift((MODEL, A, co_location_of(competitors)))
    expected, weights = 0.0, 1.0
    for _, _, entry in ledger.entries():
        more = (Counter(entry.competitors) - Counter(competitors)).total()
        fewer = (Counter(competitors) - Counter(entry.competitors)).total()
        if competitors and max(more, fewer) == 1:
            moved, weight = said(entry)
            nearness = weight * NEAR_WEIGHTS[2 if more and fewer else 1]
            expected, weights = expected + nearness * moved, weights + nearness
    near = expected / weights
    own = ledger.find(MODEL, A, competitors)
    moved, weight = (0.0, 0.0) if own is None else said(own)
    shift = corrections.shift((MODEL, A, co_location_of(competitors)))
    assert shift.by == pytest.approx(near + weight * (moved - near), abs=1e-12)


def said(entry: LedgerEntry) -> tuple[float, float]:
    """What tenants agree on, where one or two move by at most two usual errors each, and how far they are believed."""
    votes = entry.votes(PREDICTED.kpps).exact
    most = 0.06 * len(votes) if len(votes) < 3 else 9.0
    weight = 0.5 if len(votes) == 1 else len(votes) / (len(votes) + 0.25)
    return min(max(agree_on(votes), -most), most), weight


WORKLOADS = [Workload(nf, TOY_TRAFFIC) for nf in "abc"]
CO_LOCATIONS = st.lists(st.sampled_from(WORKLOADS), min_size=1, max_size=4).map(co_location_of)


class DigitsPredictor(ToyPredictor):
    """Its last digits depend on how much is asked for at once."""

    def throughput(
        self, co_locations: Sequence[Sequence[Workload]], *, risk: float | None = None
    ) -> list[NDArray[np.float64]]:
        return [one * (1.0 + 1e-15 * len(co_locations)) for one in super().throughput(co_locations, risk=risk)]


def oracle(predictor: ToyPredictor | None = None) -> CorrectedOracle:
    return CorrectedOracle(predictor or ToyPredictor(), 0.2, MODEL, LearntCorrections(Ledger()))


def learn_share(learning: CorrectedOracle, co_location: CoLocation, tenant: str, share: float) -> None:
    """Learn that each workload of a co-location does this share of what was predicted."""
    for workload, estimate in zip(co_location, learning.estimates(co_location), strict=True):
        kpps = share * estimate.kpps
        reading = ProductionReading(MODEL, co_location, workload, tenant, kpps, 2 * kpps, 1, share < 1)
        learning.corrections.learn(learning.corrections.ledger.add(reading), MODEL, workload, estimate)


@given(st.lists(st.tuples(CO_LOCATIONS, st.sampled_from("123"), st.floats(0.7, 1.2)), max_size=12), CO_LOCATIONS)
def test_what_follows_a_workload_answers_as_if_asked_anew(
    readings: list[tuple[CoLocation, str, float]], followed: CoLocation
) -> None:
    """After every reading, and after an NF was found to have changed."""
    learning = oracle()
    asked = [(workload, followed) for workload in dict.fromkeys(followed)]
    answers = learning.following(asked)

    def check() -> None:
        now = learning.by_workload(followed)
        assert [answer() for answer in answers] == pytest.approx([now[workload] for workload, _ in asked], rel=1e-12)

    check()
    for co_location, tenant, share in readings:
        learn_share(learning, co_location, tenant, share)
        check()
    learning.corrections.set_drift(MODEL, followed[0].nf, len(followed) == 1, 0.85)
    check()


def test_estimates_do_not_depend_on_what_else_is_asked_for() -> None:
    """One by one, as after a restart, and all at once."""
    together, alone = oracle(DigitsPredictor()), oracle(DigitsPredictor())
    co_locations = [co_location_of([one, other]) for one in WORKLOADS for other in WORKLOADS]
    together.following([(one[0], one) for one in co_locations])
    assert [together.estimates(one) for one in co_locations] == [alone.estimates(one) for one in co_locations]


def test_intervals_are_asked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """They do not change with what is learnt, and take the predictor a millisecond."""
    learning, place = oracle(), co_location_of(WORKLOADS)
    bounds = learning.bounds(place)
    monkeypatch.setattr(learning.predictor, "predict", None)
    learn_share(learning, place, "1", 0.8)
    assert learning.bounds(place) == bounds
