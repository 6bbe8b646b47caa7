"""Traffic that differs from instance to instance: what is compared by stand-ins, and when NICs are sampled instead."""

import random
from collections.abc import Iterator, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placer.model.feasibility import below_sla
from placer.model.fleet import Fleet
from placer.model.nic import Tenant
from placer.model.sla import Sla
from placer.policy.class_index import ClassIndex
from placer.policy.nic_index import RECURS_FROM
from placer.policy.rules import LOOK_AHEAD
from placer.policy.sampled_index import LAST_RESORT, SampledIndex
from placer.policy.selector import Selector
from placer.policy.stand_ins import StandIns
from placer.testing.strategies import CORES_BY_NF, ToyOracle, catalogue
from profiles import CoLocation, TrafficProfile, Workload
from tests.placer.policy.test_selector import placed

KIND = catalogue((None, 1.0)).kinds[0]
USUAL_FLOWS = 1_000
MOST_ASKED = 80  # co-locations that one event may ask for: those of a decision, and those of a few steps of a rebuild


class FlowsOracle(ToyOracle):
    """A neighbour costs more with more flows: at 4,000 twice what it costs at 1,000."""

    def _query(self, co_locations: Sequence[CoLocation]) -> Sequence[Sequence[float]]:
        answers, before = [], self.queries
        for co_location, shared in zip(co_locations, super()._query(co_locations), strict=True):
            flows = [workload.traffic.as_dict()["flows"] / USUAL_FLOWS for workload in co_location]
            alone = super()._query([(workload,) for workload in co_location])
            answers.append(
                [
                    max(solo[0] - (solo[0] - kpps) * ((sum(flows) - own) / max(len(flows) - 1, 1)) ** 0.5, 1.0)
                    for solo, kpps, own in zip(alone, shared, flows, strict=True)
                ]
            )
        self.queries = before + len(co_locations)
        return answers


def tenant(identity: object, nf: str, drop: float, flows: int = USUAL_FLOWS) -> Tenant:
    return Tenant(f"{identity}", Workload(nf, TrafficProfile(flows, 1500, 0)), Sla(max_drop=drop))


def selector_with_stand_ins(oracle: ToyOracle) -> Selector:
    """All NFs are expected at their usual traffic."""
    expected = [tenant(f"expected {nf}", nf, 0.3) for nf in "abcd"]
    return Selector(Fleet([KIND]), [oracle], LOOK_AHEAD, expected=expected, stand_ins=True)


def asked(selector: Selector, oracle: ToyOracle, arrivals: Sequence[Tenant]) -> Iterator[int]:
    """How many co-locations each arrival asks for, as the engine handles it."""
    for arrival in arrivals:
        before = oracle.queries
        placed(selector, arrival)
        selector.advance()
        yield oracle.queries - before


def test_the_nearest_workload_of_the_same_nf_stands_in() -> None:
    """Of another NF only where it takes as many cores, and of none where nothing in the table does."""
    assert CORES_BY_NF["b"] == CORES_BY_NF["c"] != CORES_BY_NF["d"]
    stand_ins = StandIns(KIND, [Workload("b", TrafficProfile(flows, 1500, 0)) for flows in (1_000, 8_000)])
    columns = [stand_ins.column(Workload("b", TrafficProfile(flows, 1500, 0))) for flows in (1_200, 6_000, 90_000)]
    assert columns == [0, 1, 1] and stand_ins.column(Workload("c", TrafficProfile(7_000, 1500, 0))) == 1
    assert stand_ins.column(Workload("d", TrafficProfile(1_000, 1500, 0))) is None


@given(
    st.lists(
        st.tuples(st.sampled_from("abcd"), st.sampled_from((0.05, 0.1, 0.2, 0.3)), st.integers(0, 12)), max_size=60
    )
)
def test_every_sla_is_met_by_the_workloads_themselves(drawn: list[tuple[str, float, int]]) -> None:
    """A stand-in chooses what is tried; whether it fits is asked of the oracle."""
    selector = selector_with_stand_ins(FlowsOracle())
    for number, (nf, drop, more) in enumerate(drawn):
        placed(selector, tenant(number, nf, drop, USUAL_FLOWS + 500 * more))
        selector.advance()
    truth = FlowsOracle()
    assert [nic.id for nic in selector.fleet.nics.values() if below_sla(truth, nic.tenants)] == []


def test_one_arrival_with_other_traffic_waits_for_no_table() -> None:
    """A few NICs are predicted with it; before, a table of all co-locations was."""
    oracle = FlowsOracle()
    selector = selector_with_stand_ins(oracle)
    assert sum(asked(selector, oracle, [tenant(number, "abcd"[number % 4], 0.2) for number in range(200)])) == 0
    assert max(asked(selector, oracle, [tenant("other", "b", 0.2, 2_345)])) <= MOST_ASKED
    assert isinstance(selector.indexes[0], ClassIndex)


def test_a_workload_that_recurs_is_in_the_next_table() -> None:
    """From then on its decisions ask for nothing."""
    oracle = FlowsOracle()
    selector = selector_with_stand_ins(oracle)
    mixed = [tenant(number, "abcd"[number % 4], 0.2, 3_000 if number % 50 == 7 else 1_000) for number in range(400)]
    assert max(asked(selector, oracle, mixed)) <= MOST_ASKED
    assert mixed[7].workload in selector.indexes[0].table.columns  # type: ignore[attr-defined]
    assert sum(asked(selector, oracle, [tenant("again", mixed[7].workload.nf, 0.2, 3_000)])) == 0
    assert RECURS_FROM <= 400 // 50


@pytest.mark.long
def test_nics_are_sampled_while_most_traffic_differs_and_no_event_asks_for_all() -> None:
    """Both ways take many events, each a few steps; afterwards tables are compared again."""
    oracle, draw = FlowsOracle(), random.Random(0)
    selector = selector_with_stand_ins(oracle)
    usual = [tenant(number, "abcd"[number % 4], 0.2) for number in range(400)]
    differing = [tenant(f"d{n}", "abcd"[n % 4], 0.2, draw.randrange(500, 8_000)) for n in range(400)]
    again = [tenant(f"u{number}", "abcd"[number % 4], 0.2) for number in range(6_000)]
    most = [max(asked(selector, oracle, usual))]
    most.append(max(asked(selector, oracle, differing)))
    assert isinstance(selector.indexes[0], SampledIndex)
    most.append(max(asked(selector, oracle, again)))
    assert isinstance(selector.indexes[0], ClassIndex) and max(most) <= MOST_ASKED < LAST_RESORT


def test_nics_that_are_sampled_have_scores_by_which_the_chosen_one_is_the_best() -> None:
    """kube-scheduler takes the node with the best score; asking learns nothing, so it is the same twice."""
    oracle, draw = FlowsOracle(), random.Random(0)
    selector = selector_with_stand_ins(oracle)
    for number in range(300):
        placed(selector, tenant(number, "abcd"[number % 4], 0.2, draw.randrange(500, 8_000)))
        selector.advance()
    assert isinstance(selector.indexes[0], SampledIndex)
    arriving, nics = tenant("next", "b", 0.2, 3_000), list(selector.fleet.nics.values())
    scores = selector.scores_on(arriving, nics)
    assert selector.scores_on(arriving, nics) == scores
    assert 0 < sum(score < float("inf") for score in scores.values()) < len(nics)
    best, nic = selector.rank(arriving, 1)[0]
    assert scores[nic.id] == best  # type: ignore[union-attr]
