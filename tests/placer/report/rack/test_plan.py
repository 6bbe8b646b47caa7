"""Plans of chains as text: what is known of them, in a sentence."""

from dataclasses import replace

import pytest

from placer.rack.plan import Limit, LimitChange, RackPlan, Status
from placer.rack.strategies.optimal import best_plan
from placer.report.rack.plan import rack_report
from tests.placer.rack.lemur import chains, rack


def text(plan: RackPlan, strategy: str = "optimal") -> str:
    return rack_report(plan, strategy, "table")


def test_a_plan_says_how_good_it_is_known_to_be() -> None:
    """Chain 3 alone: 8 Gbps beyond its least rate."""
    best = best_plan(chains((3,), 0.5), rack())
    mbps = best.marginal_mbps
    assert "Optimal, proven: no plan gives more. Solved in" in text(best)
    with_gap = replace(best, status=Status.FEASIBLE, bound_mbps=2 * mbps)
    assert f"No plan gives more than {2 * mbps:,.1f} Mbps beyond the least rates: the gap is 50.00 %." in text(with_gap)
    assert "Not proven optimal, without a bound." in text(replace(best, status=Status.FEASIBLE, bound_mbps=None))


def test_slack_is_what_the_latency_is_below_d_max() -> None:
    (chain,) = chains((3,), 0.5)
    chain = replace(chain, slo=replace(chain.slo, d_max_us=chain.slo.t_min_mbps * 0 + 45))
    row = text(best_plan([chain], rack())).splitlines()[1].split()
    assert float(row[4]) + float(row[5]) == pytest.approx(45)


def test_without_a_plan_it_says_what_is_known() -> None:
    assert text(RackPlan(rack(), Status.INFEASIBLE)).startswith("Infeasible, proven: no plan keeps the SLOs")
    assert "within the time limit. That there is none is not proven." in text(RackPlan(rack(), Status.UNKNOWN))
    noted = text(RackPlan(rack(), Status.UNKNOWN, notes=("more subgroups than cores",)), "greedy")
    assert noted.splitlines()[:2] == [
        "greedy finds no plan. Another strategy may find one.",
        "greedy: more subgroups than cores.",
    ]


def test_a_conflict_and_what_would_be_enough_are_worded() -> None:
    """Rounded to the side that is enough."""
    changes = [("t_min", "c", 597.019), ("d_max", "c", 35.001), ("cores", "s0", 18), ("nic_mbps", "s0", 40_000.001),
               ("blocks", "switch", 25)]  # fmt: skip
    plan = RackPlan(
        rack(),
        Status.INFEASIBLE,
        conflict=(Limit("t_min", "c"), Limit("nic_mbps", "s0")),
        changes=tuple(LimitChange(Limit(kind, of), to) for kind, of, to in changes),
    )
    assert text(plan).splitlines()[1:-1] == [
        "These limits cannot be kept together: t_min of c, NIC of s0.",
        "Each of these changes is enough alone:",
        "  c: t_min at most 597.01 Mbps",
        "  c: d_max at least 35.01 us",
        "  s0: 18 cores",
        "  s0: a NIC of 40,000.01 Mbps",
        "  switch: 25 blocks per stage",
    ]
