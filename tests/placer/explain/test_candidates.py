"""Explanations of arrivals, and unused capacity by cause, in cases computed by hand; also with offered rates."""

import json
import random
from collections.abc import Sequence
from dataclasses import replace

import pytest

from placer.explain.candidates import Explanation, explain
from placer.explain.waste import Waste, waste_of
from placer.model.arrival import Arrival
from placer.model.nic_kind import NicKind
from placer.model.sla import Sla
from placer.policy.rejection import Cause
from placer.policy.rules import FIRST_FIT, LOOK_AHEAD
from placer.report.text.explanation import (
    CAUSE_TEXTS,
    cause_text,
    explanation_json,
    explanation_table,
    waste_json,
    waste_table,
)
from placer.strategies.contention_aware import ContentionAware
from placer.testing.strategies import CORES_BY_NF, TOY_TRAFFIC, ToyCatalogue, ToyOracle, arrival, catalogue
from profiles import CoLocation, InputError, Workload


def explanation_of(arrivals: list[Arrival], only: str, count: int | None = None) -> Explanation:
    """Why one of the arrivals went where it went."""
    return next(iter(explain(arrivals, catalogue((count, 1.0)).kinds, [ToyOracle()], FIRST_FIT, only)))


TRACE = [
    arrival("1", 0, "c", 0.04),  # loses 2 x 0.05 next to b
    arrival("2", 1, "b", 0.5),
    arrival("3", 2, "d", 0.5),  # with it, c would lose 2 x 0.03
    arrival("4", 3, "d", 0.5),
    arrival("5", 4, "b", 0.5),
]


def test_every_class_of_nics_has_a_verdict() -> None:
    """`c` would violate its SLA next to `b`, a NIC with `b` and two `d` has no cores left, so a NIC is opened."""
    explanation = explanation_of(TRACE, "5")
    by_nic = {verdict.nics: verdict for verdict in explanation.verdicts}
    first, second, new = by_nic["nic-1",], by_nic["nic-2",], by_nic[()]
    assert explanation.nic == "nic-3"
    assert (first.cause, first.resource, first.violated) == (Cause.TENANT_SLA, "contention", TRACE[0].workload)
    assert [(nf.kpps, nf.required_kpps) for nf in first.nfs if nf.workload.nf == "c"] == [
        (pytest.approx(360.0), pytest.approx(384.0))
    ]
    assert (second.cause, second.free_cores) == (Cause.CORES, 0) and new.fits and new.chosen


def test_the_arrival_itself_may_be_the_one_whose_sla_would_be_violated() -> None:
    """`c` loses 10 % next to `b`, and accepts 4 %."""
    explanation = explanation_of([arrival("1", 0, "b", 0.5), arrival("2", 1, "c", 0.04)], "2")
    assert [verdict.cause for verdict in explanation.verdicts] == [Cause.ARRIVAL_SLA, None]


def test_a_fleet_without_free_nics_is_a_cause() -> None:
    """With two NICs the last arrival is rejected: a new one would fit, but none is left."""
    explanation = explanation_of(TRACE, "5", count=2)
    assert explanation.nic is None and explanation.verdicts[-1].cause == Cause.NONE_LEFT


def test_departed_tenants_are_not_considered() -> None:
    """`c` left before `b` came, so no NIC is in use."""
    explanation = explanation_of([arrival("1", 0, "c", 0.04, departure=1), arrival("2", 1, "b", 0.5)], "2")
    assert [verdict.nics for verdict in explanation.verdicts] == [()]


def test_an_unknown_arrival_is_refused() -> None:
    """There is nothing to explain."""
    with pytest.raises(InputError, match="'9' is not among"):
        explanation_of(TRACE, "9")


def test_the_table_names_the_nic_and_each_cause() -> None:
    """One line per verdict."""
    table = explanation_table(explanation_of(TRACE, "5"))
    assert "went to nic-3; it fits on 0 of 2 NICs in use." in table
    assert "c would violate its SLA (contention)" in table and "too few free cores" in table
    assert "a new toy-0" in table


def test_json_holds_every_class() -> None:
    """With the resource as the cause where an SLA would be violated."""
    parsed = json.loads(explanation_json(explanation_of(TRACE, "5")))
    assert [verdict["breaks"] for verdict in parsed["verdicts"]] == ["c", None, None]
    assert [verdict["cause"] for verdict in parsed["verdicts"]] == ["contention", "cores", None]


def test_full_nics_take_one_line_unless_all_are_listed() -> None:
    """Five NICs with two `d` each and one with `b` and two `d` are full for another `d`."""
    trace = [arrival(str(number), number, "d", 0.5) for number in range(10)]
    trace += [arrival("b", 10, "b", 0.5), arrival("last", 11, "d", 0.5)]
    explanation = explanation_of(trace, "last")
    lines = [line for line in explanation_table(explanation).splitlines() if "too few" in line]
    assert len(lines) == 1 and lines[0].split()[:5] == ["5", "nic-1,", "nic-2,", "nic-3", "+2"]
    assert "0 to 2" in lines[0]
    listed = [line for line in explanation_table(explanation, everything=True).splitlines() if "too few" in line]
    assert sorted(line.split()[1] for line in listed) == [f"nic-{number}" for number in range(1, 6)]


def test_a_trace_with_departures_is_explained_as_it_is_placed() -> None:
    """Every arrival is explained on the NIC of its plan, although the end of such a trace is not planned for."""
    nfs = ["abcd"[(7 * number) % 4] for number in range(60)]
    trace = [
        arrival(f"{number:02}", number, nf, 0.05 + 0.01 * (number % 16), number + 25 if number % 3 else None)
        for number, nf in enumerate(nfs)
    ]
    plan = ContentionAware(catalogue(), "toy", oracles=[ToyOracle()]).place(trace)
    explained = {one.arrival.id: one.nic for one in explain(trace, catalogue().kinds, [ToyOracle()], LOOK_AHEAD, None)}
    assert explained == {one.arrival.id: one.nic for one in plan.placements}


def test_what_already_runs_is_seen_and_not_explained() -> None:
    """b goes to the NIC of d, because c accepts nothing beside it; nothing was decided about d."""
    trace = [arrival("c", 5, "c", 0.0, nic="x"), arrival("d", 6, "d", 0.5, nic="y"), arrival("b", 7, "b", 0.5)]
    explanation = explanation_of(trace, "b")
    assert explanation.nic == "y"
    assert {verdict.nics: verdict.cause for verdict in explanation.verdicts} == {
        ("x",): Cause.TENANT_SLA, ("y",): None, (): None
    }  # fmt: skip
    running = explanation_of(trace, "d")
    assert (running.nic, running.verdicts) == ("y", ())
    text = "d (d, flows 1000, packet_size 1500, mtbr 0) already runs on y, and stays there.\n"
    assert explanation_table(running) == text
    assert json.loads(explanation_json(running)) == {"id": "d", "nic": "y", "verdicts": []}


@pytest.mark.parametrize(
    ("trace", "idle"),
    [
        ([arrival("1", 0, "d"), arrival("2", 1, "d")], {"cores": 2 / 8}),  # two cores are free, d takes three
        ([arrival("1", 0, "b", 0.0), arrival("2", 1, "b", 0.0)], {"SLA too tight to share": 12 / 8}),
        # the SLA of each is met next to one other, not two; on the second NIC there is one c, and another would fit
        ([arrival(str(i), i, "c", 0.2) for i in range(3)], {"order of arrival": 6 / 8, "contention": 4 / 8}),
        ([arrival("1", 0, "c", 0.5)], {"order of arrival": 6 / 8}),  # another c would fit
    ],
)
def test_unused_cores_have_the_cause_of_the_smallest_violation(trace: list[Arrival], idle: dict[str, float]) -> None:
    """Of all violations that an arrival of the trace would have caused on the NIC."""
    waste = waste_of(trace, catalogue().kinds, [ToyOracle()], FIRST_FIT)
    assert waste.idle == idle and waste.filled + sum(waste.idle.values()) == pytest.approx(waste.nics)


def test_waste_is_of_the_peak() -> None:
    """When most NICs are in use, the first of the later equal moments does not count."""
    trace = [arrival("1", 0, "d", 0.0, departure=5), arrival("2", 1, "d", 0.0), arrival("3", 6, "a", 0.5)]
    waste = waste_of(trace, catalogue().kinds, [ToyOracle()], FIRST_FIT)
    assert (waste.nics, waste.filled) == (2, pytest.approx(6 / 8))


def test_waste_is_printed_in_nics_and_percent() -> None:
    """For people with the cause in words."""
    waste = Waste(4, 3.0, {"cores": 0.5, "regex": 0.5})
    table = waste_table(waste)
    assert "12.5" in table and "too few free cores" in table and "contention for regex" in table
    assert json.loads(waste_json(waste)) == {"nics": 4, "filled": 3.0, "idle": {"cores": 0.5, "regex": 0.5}}


def test_every_cause_has_words_for_people() -> None:
    """A resource of contention has its name."""
    assert set(CAUSE_TEXTS) == set(Cause) and cause_text("contention") == "contention"


def test_a_fleet_without_unused_capacity_gets_a_sentence() -> None:
    assert waste_table(Waste(1, 1.0, {})) == "1 NIC in use at the peak; every core is used.\n"


KIND = NicKind(0, "toy-0", 8, CORES_BY_NF, core_counts=dict.fromkeys(CORES_BY_NF, (1, 2, 4)))


class CoresOracle(ToyOracle):
    """As the toy oracle, with a throughput in proportion to the cores."""

    def _query(self, co_locations: Sequence[CoLocation]) -> Sequence[Sequence[float]]:
        answers = super()._query(co_locations)
        return [
            [kpps * (one.cores or CORES_BY_NF[one.nf]) / CORES_BY_NF[one.nf] for one, kpps in pairs]
            for pairs in (zip(*pair, strict=True) for pair in zip(co_locations, answers, strict=True))
        ]


def loaded(identity: str, time: float, nf: str, kpps: float, drop: float = 0.0, cores: int = 0) -> Arrival:
    """An arrival to which a rate is offered."""
    return Arrival(identity, time, Workload(nf, TOY_TRAFFIC, kpps, cores=cores), Sla(max_drop=drop))


def explanation_of_load(arrivals: Sequence[Arrival], only: str, kind: NicKind = KIND) -> Explanation:
    """Why one of the arrivals went where it went."""
    return next(iter(explain(arrivals, [kind], [CoresOracle()], FIRST_FIT, only)))


def test_a_trace_with_rates_is_explained_as_it_is_placed() -> None:
    """On the NIC and on the number of cores of its plan, whatever cores the trace gives."""
    draw = random.Random(0)
    trace = []
    for number in range(40):
        nf, cores = draw.choice("abcd"), draw.choice((0, 0, 2))
        most = 100 * {"a": 1, "b": 1, "c": 2, "d": 2.6}[nf] * (cores or 4)
        trace.append(loaded(f"{number:02}", number, nf, most * draw.uniform(0.1, 0.9), draw.choice((0, 0.1)), cores))
    plan = ContentionAware(ToyCatalogue((KIND,), (), ()), "toy", oracles=[CoresOracle()]).place(trace)
    explained = list(explain(trace, [KIND], [CoresOracle()], LOOK_AHEAD, None))
    assert [(one.arrival, one.nic) for one in explained] == [(one.arrival, one.nic) for one in plan.placements]
    assert len({placement.arrival.workload.cores for placement in plan.placements}) == 3
    for one in explained:
        (chosen,) = [verdict for verdict in one.verdicts if verdict.chosen]
        assert one.arrival.workload in [nf.workload for nf in chosen.nfs]


def test_the_verdict_is_on_the_fewest_cores_that_suffice_there() -> None:
    """A second `d` of 480 kpps has 2 of 8 cores (267 kpps each); on four it would carry more than twice as much."""
    explanation = explanation_of_load([loaded("1", 0, "d", 480), loaded("2", 1, "d", 480)], "2")
    assert [verdict.fits for verdict in explanation.verdicts] == [True, True]
    assert [nf.workload.cores for nf in explanation.verdicts[0].nfs] == [2, 2]
    assert explanation.verdicts[0].nfs[0].headroom_pct == pytest.approx(100 * (2 * 0.97 * 800 / 3 / 480 - 1))
    table = explanation_table(explanation)
    assert "2 (d on 2 cores, flows 1000, packet_size 1500, mtbr 0, 480 kpps) went to nic-1" in table
    assert "d on 2 cores 517/478 +8 %" in table
    (first, _) = json.loads(explanation_json(explanation))["verdicts"][0]["company"]
    assert (first["predicted_kpps"], first["rate_kpps"], first["cores"]) == (480, 480, 2)
    assert (first["capacity_kpps"], first["headroom_pct"]) == (pytest.approx(517.333), pytest.approx(7.78, abs=0.01))


@pytest.mark.parametrize(
    ("trace", "kind", "causes"),
    [
        # packets of 1,500 and 20 bytes: 500 kpps are 6.08 Gb/s
        ([loaded("1", 0, "d", 500), loaded("2", 1, "d", 500)], replace(KIND, line_rate_gbps=10), ["line-rate", None]),
        ([loaded("2", 0, "d", 500)], replace(KIND, line_rate_gbps=6), ["line-rate"]),
        ([loaded("2", 0, "d", 1100)], KIND, ["rate"]),  # four cores carry 1,067 kpps
        ([loaded("1", 0, "d", 900, 0, 8), loaded("2", 1, "d", 500)], replace(KIND, core_counts={"d": (2, 8)}),
         ["cores", None]),
        ([loaded("1", 0, "d", 1000), loaded("2", 1, "d", 1060)], KIND, ["contention", None]),
        ([loaded("2", 1, "d", 500, 0, 3)], replace(KIND, core_counts={"d": (2, 4)}, cores_of={"d": 2}), ["not hosted"]),
    ],
)  # fmt: skip
def test_what_keeps_a_rate_off_a_nic_is_named(trace: list[Arrival], kind: NicKind, causes: list[str | None]) -> None:
    """On the NICs in use, then on a new one."""
    verdicts = json.loads(explanation_json(explanation_of_load(trace, "2", kind)))["verdicts"]
    assert [verdict["cause"] for verdict in verdicts] == causes
    assert explanation_table(explanation_of_load(trace, "2", kind))


def test_where_a_tenant_is_in_the_way_the_arrival_has_the_cores_that_it_needs() -> None:
    """`c` on four cores carries 800 kpps alone, and 752 beside the `d` that needs two cores for 450."""
    trace = [loaded("1", 0, "c", 780, cores=4), loaded("2", 1, "d", 450)]
    (beside, new) = explanation_of_load(trace, "2").verdicts
    assert (beside.cause, beside.violated) == (Cause.TENANT_SLA, trace[0].workload)
    assert [nf.workload.cores for nf in beside.nfs] == [4, 2] and new.chosen


def test_waste_counts_the_cores_that_were_given() -> None:
    """`d` of 240 kpps has one of eight cores; with a further one, 5 Gb/s of port would have to carry 5.84."""
    trace = [loaded("1", 0, "d", 240)]
    waste = waste_of(trace, [KIND], [CoresOracle()], FIRST_FIT)
    assert (waste.filled, waste.idle) == (1 / 8, {Cause.ORDER: 7 / 8})
    full = waste_of(trace, [replace(KIND, line_rate_gbps=5)], [CoresOracle()], FIRST_FIT)
    assert full.idle == {Cause.LINE_RATE: 7 / 8}
