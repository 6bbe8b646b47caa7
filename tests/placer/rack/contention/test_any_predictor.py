"""Any monotone predictor on any small instance: the loop ends, and what it returns keeps every limit by prediction."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st

from placer.rack.contention.co_location import co_locations
from placer.rack.contention.loop import MOST_ROUNDS, ContendedPlan, plan_under_contention
from placer.rack.files.json_twins import chains_of, rack_of
from placer.rack.place import best_plan
from placer.rack.plan import Status, answer
from tests.effort import examples
from tests.placer.rack import small
from tests.placer.rack.checker import faults
from tests.placer.rack.contention.by_hand import by_kind, nil
from tests.placer.rack.strategies.test_any_instance import KINDS, chains, racks

FACTORS = st.fixed_dictionaries({kind: st.sampled_from([0.0, 0.03, 0.2, 1.0]) for kind in KINDS})


@pytest.mark.long
@settings(max_examples=examples(40), phases=[Phase.explicit, Phase.generate], derandomize=True)
@given(chains(), racks(), FACTORS, FACTORS)
def test_keeps_every_limit_by_prediction(
    asked: dict[str, Any], rack: dict[str, Any], sensitivity: dict[str, float], pressure: dict[str, float]
) -> None:
    """By a checker that shares no code with placing: with cycles as asked, and with cycles as predicted."""
    growth = by_kind(sensitivity, pressure)
    found = plan_under_contention(chains_of(asked, "chains"), rack_of(rack, "rack"), growth, best_plan)
    assert found.rounds <= MOST_ROUNDS
    assert (found.plan.status is Status.INFEASIBLE) == (found.by_cycles.status is Status.INFEASIBLE)
    if not found.plan.chains:
        assert found.plan.status is Status.INFEASIBLE or found.plan.notes
        return
    assert faults(asked, rack, dict(answer(found.plan))) == []
    assert faults(*grown(asked, rack, found), dict(answer(found.predicted))) == []
    for device, placed in co_locations(found.plan.chains, found.plan.rack):
        for one, factors in zip(placed, growth(device, [each.member for each in placed]), strict=True):
            for at, factor in zip(one.member.nfs, factors, strict=True):
                assert found.factors[one.chain][at] >= factor
    assert found.plan.marginal_mbps <= found.by_cycles.marginal_mbps * (1 + 1e-9) + 1e-6
    assert found.plan.bound_mbps == pytest.approx(found.by_cycles.bound_mbps)


BRANCHED = [["f0", "f1", "1/3"], ["f0", "f2", "2/3"], ["f1", "f3"], ["f2", "f3"]]


def grown(asked: dict[str, Any], rack: dict[str, Any], found: ContendedPlan) -> tuple[dict[str, Any], dict[str, Any]]:
    """The instance with each NF of each chain as a kind of its own, whose cycles on cores have grown."""
    nfs: dict[str, Any] = {}
    renamed = []
    for number, chain in enumerate(asked["chains"]):
        own = []
        for at, nf in enumerate(chain["nfs"]):
            kind = f"{number}.{at}"
            factor = found.factors[number][at]
            costs = rack["nfs"][nf["nf"]]
            nfs[kind] = {
                place: cost if place == "switch" else cost | {"cycles": cost["cycles"] * factor}
                for place, cost in costs.items()
            }
            own.append(nf | {"nf": kind})
        renamed.append(chain | {"nfs": own})
    return {"chains": renamed}, rack | {"nfs": nfs}


BELOW_ITS_BOUND = {
    "chains": [
        small.chain("c0", "AAAC", packet_size=125, t_min_mbps=100, edges=BRANCHED),
        small.chain("c1", "D", packet_size=125, t_min_mbps=100),
    ]
}
THREE_CORES = small.rack(
    {kind: {"server": {"cycles": cycles}} for kind, cycles in {"A": 110, "C": 100, "D": 100}.items()},
    small.server("s0", cores=3, clock_mhz=1000, nic_mbps=4000),
)
"""Its proven plan is below the bound by more than 1e-9, as the tolerance of the search allows."""


@settings(max_examples=8, deadline=None, phases=[Phase.explicit, Phase.generate], derandomize=True)
@given(chains(), racks())
@example(BELOW_ITS_BOUND, THREE_CORES)
def test_without_contention_it_is_the_plain_plan(asked: dict[str, Any], rack: dict[str, Any]) -> None:
    """A predictor without contention leaves the plan of the program as it is."""
    found = plan_under_contention(chains_of(asked, "chains"), rack_of(rack, "rack"), nil, best_plan)
    assert found.plan.chains == found.by_cycles.chains and found.plan.status == found.by_cycles.status
