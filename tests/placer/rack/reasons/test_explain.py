"""Verdicts on layouts: what forbids them, and what they cost, against an exhaustive search and by hand."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from placer.rack.files.json_twins import chains_of, rack_of
from placer.rack.plan import SWITCH_SITE, RackPlan, Status
from placer.rack.reasons.explain import LayoutCause, LayoutQuestions, LayoutVerdict
from placer.rack.strategies.optimal import best_plan
from placer.report.rack.plan import bottlenecks, rack_use
from tests.placer.rack import instances, lemur
from tests.placer.rack.exhaustive import best_rates_within
from tests.placer.rack.search.test_search import copies, rack_of_servers
from tests.placer.rack.small import ON_SERVER, ON_SWITCH, Json, chain, rack, server

WITH_PLAN = (LayoutCause.COSTS, LayoutCause.AS_GOOD)


def questions(chains: Json, on: Json) -> LayoutQuestions | None:
    plan = best_plan(chains_of(chains, "chains"), rack_of(on, "rack"))
    return LayoutQuestions(plan, 60.0) if plan.chains else None


def placement(verdict: LayoutVerdict) -> Mapping[str, str]:
    layout = verdict.layout
    names = [device.name for device in layout.rack.devices]
    return {nf.id: "switch" if site == SWITCH_SITE else names[site]
            for nf, site in zip(layout.chain.nfs, layout.sites, strict=True)}  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("generator", [instances.everyday, instances.edges])
def test_verdicts_agree_with_an_exhaustive_search(generator: instances.Generator) -> None:
    """The best plan with a layout forced is as good as the verdict says, or there is none."""
    seen = set()
    for seed in range(6):
        chains, on = generator(seed)
        asked = questions(chains, on)
        for number, one in enumerate(chains["chains"] if asked else []):
            assert asked
            for verdict in asked.explanation(number, 4).verdicts:
                best = best_rates_within(chains, on, {one["name"]: dict(placement(verdict))}, 0)
                seen.add(verdict.cause)
                assert verdict.proven and (best is not None) == (verdict.cause in WITH_PLAN), (seed, verdict)
                if best is not None:
                    assert verdict.marginal_mbps == pytest.approx(float(best.marginal), rel=1e-7, abs=1e-6)
    assert {LayoutCause.COSTS, LayoutCause.AS_GOOD} <= seen


def verdicts(on: Json, *chains: Json) -> dict[str, LayoutVerdict]:
    """Of the first chain, by the device of its first NF."""
    asked = questions({"chains": list(chains)}, on)
    assert asked
    return {placement(one)["f0"]: one for one in asked.explanation(0, 10).verdicts}


BOTH = {"X": ON_SERVER | ON_SWITCH}


@pytest.mark.parametrize(
    ("nfs", "changes", "on", "cause", "needs", "has"),
    [
        (BOTH, {"d_max_us": 2.5}, {}, LayoutCause.LATENCY, 3, 2.5),
        (BOTH, {"t_min_mbps": 30_000}, {"cores": 2}, LayoutCause.CORES, 3, 2),
        (BOTH, {"t_min_mbps": 30_000}, {"nic_mbps": 20_000}, LayoutCause.NIC, 30_000, 20_000),
        ({"X": {"server": {"cycles": 1700, "replicable": False}} | ON_SWITCH}, {"t_min_mbps": 30_000}, {},
         LayoutCause.ONE_CORE, 30_000, 12_000),
    ],
)  # fmt: skip
def test_what_forbids_a_layout_alone_is_named(
    nfs: Json, changes: Json, on: Json, cause: LayoutCause, needs: float, has: float
) -> None:
    """X is on the switch; on the server, a limit would be violated, and the verdict says by how much."""
    found = verdicts(rack(nfs, server("s0", **on)), chain("a", "X", **changes))["s0"]
    assert (found.cause, found.needs, found.has) == (cause, needs, has)


def test_tables_that_fit_no_stage_are_named() -> None:
    found = verdicts(rack(BOTH, switch={"stages": 0}), chain("a", "X"))
    assert found["switch"].cause is LayoutCause.STAGES


def test_tables_of_an_openflow_switch_have_an_order() -> None:
    """X comes after Y in the chain, and before it on the switch."""
    on = rack({"X": ON_SERVER | ON_SWITCH, "Y": ON_SERVER | ON_SWITCH},
              switch={"stages": None, "kind": "openflow", "table_order": ["X", "Y"]})  # fmt: skip
    asked = questions({"chains": [chain("a", "YX")]}, on)
    assert asked
    causes = {tuple(placement(one).values()): one.cause for one in asked.explanation(0, 10).verdicts}
    assert causes["switch", "switch"] is LayoutCause.TABLE_ORDER


@pytest.mark.long
def test_on_many_servers_a_verdict_is_about_the_servers_of_the_chain() -> None:
    """As on one server: chain 3 with ACL on the switch costs 2,218 Mbps; the rest of the rack stays."""
    plan = best_plan(copies(3, 0.5), rack_of_servers(3))
    number = next(at for at, one in enumerate(plan.chains) if one.chain.name == "3_0")
    found = LayoutQuestions(plan, 60.0).explanation(number, 12).verdicts
    on_switch = next(one for one in found if placement(one)["ACL"] == "switch" and placement(one)["LB"] == "switch")
    assert (on_switch.cause, on_switch.proven) == (LayoutCause.COSTS, False)
    assert on_switch.cost_mbps == pytest.approx(2218.0, abs=0.1)


def test_a_layout_that_is_better_than_an_unproven_plan_is_called_better() -> None:
    """The plan gives chain 3 less than its layout allows, and less than any other."""
    plan = best_plan(lemur.chains((3,), 0.5), lemur.rack())
    worse = replace(plan, chains=(replace(plan.chains[0], rate_mbps=400.0),), status=Status.FEASIBLE)
    found = LayoutQuestions(worse, 60.0).explanation(0, 3).verdicts
    assert all(one.cause is LayoutCause.BETTER and one.cost_mbps and one.cost_mbps < 0 for one in found)


def plan(t_max: float = 10_000, nic: float = 10_000, cycles: float = 100) -> RackPlan:
    """A, B on the switch and on a server with two cores, of 1 GHz; packets of 1,000 bits."""
    chain: dict[str, Any] = {
        "name": "c", "packet_size": 125, "t_min_mbps": 0, "t_max_mbps": t_max,
        "nfs": [{"id": "x", "nf": "A"}, {"id": "y", "nf": "B"}], "edges": [["x", "y"]],
    }  # fmt: skip
    server = {"name": "s0", "cores": 2, "clock_mhz": 1000, "nic_mbps": nic}
    nfs = {"A": {"switch": {"blocks": 1}}, "B": {"server": {"cycles": cycles}}}
    return best_plan(chains_of({"chains": [chain]}, "c"), rack_of({"servers": [server], "nfs": nfs}, "r"))


@pytest.mark.parametrize(
    ("found", "limits"),
    [
        (plan(t_max=500), ["t_max"]),
        (plan(nic=700), ["NIC of s0, in", "NIC of s0, out"]),
        (plan(cycles=1000), ["y on s0"]),
        (plan(cycles=200, t_max=10_000, nic=10_000), ["t_max", "y on s0", "NIC of s0, in", "NIC of s0, out"]),
    ],
)
def test_everything_that_is_used_up_limits_a_chain(found: RackPlan, limits: list[str]) -> None:
    assert bottlenecks(found.chains[0], rack_use(found)) == limits


def test_use_is_that_of_all_chains() -> None:
    use = rack_use(plan(cycles=1000))
    assert (use.cores, use.nic_in, use.nic_out) == ((2,), (2000.0,), (2000.0,))
