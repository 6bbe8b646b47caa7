"""Explanations and waste of instances with offered rates, which get as many cores as it takes."""

import json
import random
from collections.abc import Sequence
from dataclasses import replace

import pytest

from placer.explain.candidates import Explanation, explain
from placer.explain.waste import waste_of
from placer.model.arrival import Arrival
from placer.model.fleet import NicKind
from placer.model.sla import Sla
from placer.policy.rejection import Cause
from placer.policy.rules import FIRST_FIT, LOOK_AHEAD
from placer.report.text.explanation import explanation_json, explanation_table
from placer.strategies.contention_aware import ContentionAware
from placer.testing.strategies import CORES_BY_NF, TOY_TRAFFIC, ToyCatalogue, ToyOracle
from profiles import CoLocation, Workload

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


def explanation_of(arrivals: Sequence[Arrival], only: str, kind: NicKind = KIND) -> Explanation:
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
    """A second `d` of 500 kpps has 2 of 8 cores (267 kpps each); on four it would carry more than twice as much."""
    explanation = explanation_of([loaded("1", 0, "d", 500), loaded("2", 1, "d", 500)], "2")
    assert [verdict.fits for verdict in explanation.verdicts] == [True, True]
    assert [nf.workload.cores for nf in explanation.verdicts[0].nfs] == [2, 2]
    assert explanation.verdicts[0].nfs[0].headroom_pct == pytest.approx(100 * (2 * 0.97 * 800 / 3 / 500 - 1))
    table = explanation_table(explanation)
    assert "2 (d on 2 cores, flows 1000, packet_size 1500, mtbr 0, 500 kpps) went to nic-1" in table
    assert "d on 2 cores 517/498 +3 %" in table
    (first, _) = json.loads(explanation_json(explanation))["verdicts"][0]["company"]
    assert (first["predicted_kpps"], first["rate_kpps"], first["cores"]) == (500, 500, 2)
    assert (first["capacity_kpps"], first["headroom_pct"]) == (pytest.approx(517.333), pytest.approx(3.47))


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
    verdicts = json.loads(explanation_json(explanation_of(trace, "2", kind)))["verdicts"]
    assert [verdict["cause"] for verdict in verdicts] == causes
    assert explanation_table(explanation_of(trace, "2", kind))


def test_where_a_tenant_is_in_the_way_the_arrival_has_the_cores_that_it_needs() -> None:
    """`c` on four cores carries 800 kpps alone, and 752 beside the `d` that needs two cores for 450."""
    trace = [loaded("1", 0, "c", 780, cores=4), loaded("2", 1, "d", 450)]
    (beside, new) = explanation_of(trace, "2").verdicts
    assert (beside.cause, beside.violated) == (Cause.TENANT_SLA, trace[0].workload)
    assert [nf.workload.cores for nf in beside.nfs] == [4, 2] and new.chosen


def test_waste_counts_the_cores_that_were_given() -> None:
    """`d` of 250 kpps has one of eight cores; the port carries 6.08 Gb/s of 5 more, so no further one."""
    trace = [loaded("1", 0, "d", 250)]
    waste = waste_of(trace, [KIND], [CoresOracle()], FIRST_FIT)
    assert (waste.filled, waste.idle) == (1 / 8, {Cause.ORDER: 7 / 8})
    full = waste_of(trace, [replace(KIND, line_rate_gbps=5)], [CoresOracle()], FIRST_FIT)
    assert full.idle == {Cause.LINE_RATE: 7 / 8}
