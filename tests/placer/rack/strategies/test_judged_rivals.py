"""Rivals on random instances, judged by a checker that shares no code with placing, and by the best plan."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placer.rack.files.json_twins import chains_of, rack_of
from placer.rack.plan import Status, answer
from placer.rack.strategies import CHAIN_STRATEGIES
from tests.effort import examples
from tests.placer.rack import instances
from tests.placer.rack.exhaustive import best_rates, faults

RIVALS = [name for name in CHAIN_STRATEGIES if name != "optimal"]
GENERATORS = [instances.everyday, instances.edges, instances.openflow, instances.racks]
NEAR = 1e-7


def faults_of_rivals(chains: instances.Json, rack: instances.Json) -> dict[str, list[str]]:
    """By strategy, what is wrong with its plan, or with the reason that it gives for none."""
    best = best_rates(chains, rack)
    found = {}
    for name in RIVALS:
        plan = CHAIN_STRATEGIES[name](
            chains_of(chains, "chains"), rack_of(rack, "rack"), time_limit=5.0, notify=lambda message: None
        )
        given: dict[str, Any] = json.loads(json.dumps(answer(plan)))
        if not given["chains"]:
            if not plan.notes or plan.status is not Status.UNKNOWN:
                found[name] = [f"{plan.status} without a plan, and {plan.notes}"]
            continue
        wrong = faults(chains, rack, given | {"bound_mbps": given["marginal_mbps"]})  # rivals give no bound
        if best is None or given["marginal_mbps"] > float(best.marginal) * (1 + NEAR) + NEAR:
            wrong.append(f"{given['marginal_mbps']} is better than the best plan")
        if wrong:
            found[name] = wrong
    return found


@instances.seed_ranges(6, range(1000, 1300))
@pytest.mark.parametrize("generator", GENERATORS)
def test_rivals_keep_all_limits_and_are_never_better(generator: instances.Generator, seeds: range) -> None:
    """On one server and several, with programmable and OpenFlow switches."""
    assert instances.faulty(faults_of_rivals, generator, seeds) == {}


@given(st.sampled_from(GENERATORS), st.integers(10_000, 10**9))
@settings(max_examples=examples(4))
def test_rivals_on_any_instance(generator: instances.Generator, seed: int) -> None:
    """Instances change from run to run with NEW_DRAWS=1; the seed is named where one is wrong."""
    assert faults_of_rivals(*generator(seed)) == {}
