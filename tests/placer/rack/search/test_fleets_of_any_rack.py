"""Column generation on small racks of several servers, judged by an exhaustive search with exact fractions."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placer.rack.files.json_twins import chains_of, rack_of
from placer.rack.plan import answer
from placer.rack.search.fleet_plan import fleet_plan
from tests.effort import examples
from tests.placer.rack import instances
from tests.placer.rack.checker import faults
from tests.placer.rack.exhaustive import best_rates

GENERATORS = [instances.racks, instances.everyday, instances.openflow]
SECONDS = 2.0
IN_CHUNKS = [range(begin, begin + 50) for begin in range(1000, 1300, 50)]


def faults_of_fleet(chains: instances.Json, rack: instances.Json) -> list[str]:
    """All that is wrong with the plan of column generation, which may be worse than the best one but not prove so."""
    plan = fleet_plan(chains_of(chains, "chains"), rack_of(rack, "rack"), time_limit=SECONDS)
    found: dict[str, Any] = json.loads(json.dumps(answer(plan)))
    wrong, best = faults(chains, rack, found), best_rates(chains, rack)
    if best is None:
        return [*wrong, "a plan where none is possible"] if found["chains"] else wrong
    marginal = float(best.marginal)
    near = 1e-7 * max(marginal, 1.0)
    if found["status"] == "infeasible":
        wrong.append(f"infeasible, and {marginal} is possible")
    elif found["bound_mbps"] is not None and found["bound_mbps"] < marginal - near:
        wrong.append(f"the bound {found['bound_mbps']} is below {marginal}")
    elif found["status"] == "optimal" and abs(found["marginal_mbps"] - marginal) > near:
        wrong.append(f"optimal with {found['marginal_mbps']}, and {marginal} is possible")
    return wrong


def faulty(generator: instances.Generator, seeds: range) -> dict[int, list[str]]:
    """What is wrong, by seed."""
    each = {seed: faults_of_fleet(*generator(seed)) for seed in seeds}
    return {seed: wrong for seed, wrong in each.items() if wrong}


@pytest.mark.parametrize("generator", GENERATORS)
def test_plans_of_fleets_are_sound_and_never_above_their_bound(generator: instances.Generator) -> None:
    """Each plan keeps all limits, no plan is better than the bound, and what is infeasible is so."""
    assert faulty(generator, range(examples(12))) == {}


@pytest.mark.slow
@pytest.mark.parametrize("seeds", IN_CHUNKS, ids=str)
@pytest.mark.parametrize("generator", GENERATORS)
def test_hundreds_of_fleets_are_sound(generator: instances.Generator, seeds: range) -> None:
    """As above, for instances that no other test draws."""
    assert faulty(generator, seeds) == {}


@given(st.sampled_from(GENERATORS), st.integers(10_000, 10**9))
@settings(max_examples=examples(8))
def test_the_plan_of_any_fleet_is_sound(generator: instances.Generator, seed: int) -> None:
    """Instances of `make test-all` change from run to run; the seed is named where one is wrong."""
    assert faults_of_fleet(*generator(seed)) == []
