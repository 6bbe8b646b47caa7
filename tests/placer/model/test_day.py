"""A day in parts: what tenants carry in each, how plans are judged and evaluated, and which are invalid."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from placer.evaluate.checks import InvalidPlan, check_plan, slas_kept
from placer.evaluate.evaluation import evaluate
from placer.model.arrival import Arrival
from placer.model.day import parts_of
from placer.model.nic import Tenant
from placer.model.nic_kind import NicKind
from placer.model.oracle import Oracle
from placer.model.plan import Placement, Plan
from placer.model.sla import Sla
from placer.optimal.planned.judges import DayJudge, OracleJudge
from placer.testing.strategies import TOY_TRAFFIC
from profiles import CoLocation, Workload

KIND = NicKind(0, "toy", 8, {"a": 2})
NAT = Workload("a", TOY_TRAFFIC, 100.0)
ALL = Sla(max_drop=0.0)


class Shared(Oracle):
    """Instances share 150 kpps by what is offered to them; less is offered than that, and each could carry 150."""

    def _query(self, co_locations: Sequence[CoLocation]) -> Sequence[Sequence[float]]:
        return [
            [150.0 * min(1.0, workload.rate_kpps / sum(other.rate_kpps for other in together)) for workload in together]
            if sum(workload.rate_kpps for workload in together) > 150.0
            else [150.0] * len(together)
            for together in co_locations
        ]


def _tenant(identity: str, *day: float, sla: Sla = ALL) -> Tenant:
    return Tenant(identity, NAT, sla, day=day)


def _rates(parts: Sequence[Sequence[Tenant]]) -> list[dict[str, float]]:
    return [{tenant.id: tenant.workload.rate_kpps for tenant in part} for part in parts]


def test_each_part_has_those_that_carry_something() -> None:
    """Equal parts are one, an empty part is none, and without a day the rate is the same all day."""
    together = [_tenant("x", 1.0, 0.2, 1.0, 0.0), _tenant("y", 0.0, 0.5, 0.0, 0.0)]
    assert _rates(parts_of(together)) == [{"x": 100.0}, {"x": 20.0, "y": 50.0}]
    assert _rates(parts_of([*together, _tenant("z")]))[-1] == {"z": 100.0}
    assert parts_of([_tenant("z")]) == [(_tenant("z"),)]


def test_the_busiest_parts_are_exceeded_by_no_other() -> None:
    together = [_tenant("x", 1.0, 0.2, 0.9, 0.2), _tenant("y", 0.3, 0.5, 0.3, 0.4)]
    assert _rates(parts_of(together, busiest=True)) == [{"x": 100.0, "y": 30.0}, {"x": 20.0, "y": 50.0}]


def test_a_smallest_throughput_requires_no_more_than_is_offered() -> None:
    """60 kpps of 100 are 60 of 80, and all of 50."""
    parts = parts_of([_tenant("x", 0.8, 0.5, sla=Sla(min_kpps=60.0))])
    assert [tenant.required_kpps(150.0) for (tenant,) in parts] == [60.0 * 0.995, 50.0 * 0.995]


def test_the_costliest_part_counts() -> None:
    """Where both have their peak in one part they are short, and where one has it in each they are not."""
    judge = DayJudge(OracleJudge(Shared()))
    together, apart = judge.costs(
        [[_tenant("x", 1.0, 0.1), _tenant("y", 0.9, 0.1)], [_tenant("x", 1.0, 0.1), _tenant("y", 0.1, 1.0)]]
    )
    assert (min(together) > 1.0, apart) == (True, [0.0, 0.0])
    assert judge.judge.costs([[_tenant("x"), _tenant("y")]])[0][0] > 1.0


def _plan(*days: tuple[float, ...], kind: NicKind = KIND) -> Plan:
    arrivals = [Arrival(str(at), float(at), NAT, ALL, day=day) for at, day in enumerate(days)]
    return Plan("x", None, tuple(Placement(arrival, "n", kind) for arrival in arrivals), 0.0)


def test_an_sla_is_violated_in_any_part() -> None:
    """Of 90 kpps, 71 are carried in the second part; the other instance carries 79 of 100 then."""
    stays = evaluate(_plan((0.1, 1.0), (0.1, 0.9), kind=KIND), [KIND], [Shared()]).stays or {}
    assert {identity: stay.sla_met for identity, stay in stays.items()} == {"0": False, "1": False}
    assert stays["1"].throughput_kpps == pytest.approx(150 * 90 / 190)
    assert (stays["1"].solo_kpps, stays["1"].required_kpps) == (90.0, pytest.approx(89.55))
    kept = evaluate(_plan((0.1, 1.0), (0.9, 0.1)), [KIND], [Shared()])
    assert (kept.violated, kept.short_by_pct) == (0, None)


def test_the_checker_of_slas_asks_for_every_part() -> None:
    assert not list(slas_kept(_plan((0.1, 1.0), (0.9, 0.1)), [Shared()]))
    assert len(list(slas_kept(_plan((0.1, 1.0), (0.1, 0.9)), [Shared()]))) == 2
    assert len(list(slas_kept(_plan((), ()), [Shared()]))) == 2


def test_the_line_rate_holds_in_every_part() -> None:
    """100 kpps of 84 bytes on the wire are 0.0672 Gb/s."""
    gbps = KIND.gbps_of(NAT)
    kind = replace(KIND, line_rate_gbps=1.2 * gbps)
    for days, fits in (([(0.1, 1.0), (1.0, 0.2)], True), ([(0.1, 1.0), (1.0, 0.3)], False), ([(), (0.1, 0.3)], False)):
        plan = _plan(*days, kind=kind)
        arrivals = [placement.arrival for placement in plan.placements]
        if fits:
            check_plan(plan, arrivals, [kind])
        else:
            with pytest.raises(InvalidPlan, match="Gb/s offered"):
                check_plan(plan, arrivals, [kind])


def test_a_plan_must_have_the_loads_of_the_trace() -> None:
    plan = _plan((0.1, 1.0))
    with pytest.raises(InvalidPlan, match="is another arrival in the plan than in the trace"):
        check_plan(plan, [replace(plan.placements[0].arrival, day=(0.2, 1.0))], [KIND])
