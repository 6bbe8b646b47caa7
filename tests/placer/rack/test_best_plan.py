"""The best plan of small instances is that of an exhaustive search with exact fractions, and Lemur's optima are met."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placer.rack.files.json_twins import chains_of, rack_of
from placer.rack.place import best_plan
from placer.rack.plan import answer
from tests.effort import examples
from tests.placer.rack import instances, lemur
from tests.placer.rack.checker import faults
from tests.placer.rack.exhaustive import best_rates, is_feasible

GENERATORS = [instances.everyday, instances.edges, instances.openflow, instances.racks]
IN_CHUNKS = [range(begin, begin + 100) for begin in range(1000, 2000, 100)]
"""Ten hundreds."""


def answered(chains: instances.Json, rack: instances.Json) -> dict[str, Any]:
    """The answer as another program reads it."""
    found = answer(best_plan(chains_of(chains, "chains"), rack_of(rack, "rack")))
    parsed: dict[str, Any] = json.loads(json.dumps(found))
    return parsed


def disagreements(chains: instances.Json, rack: instances.Json) -> list[str]:
    """In what the answer and the exhaustive search differ, and all that is wrong with the answer."""
    found, best = answered(chains, rack), best_rates(chains, rack)
    wrong = faults(chains, rack, found)
    if (found["status"] == "infeasible") != (best is None):
        return [*wrong, f"{found['status']}, and the exhaustive search finds {best}"]
    if best is None:
        return wrong
    marginal = float(best.marginal)
    if found["status"] != "optimal" or found["marginal_mbps"] != pytest.approx(marginal, rel=1e-7, abs=1e-7):
        wrong.append(f"{found['status']} with {found['marginal_mbps']}, and the best is {marginal}")
    return wrong


def differing(generator: instances.Generator, seeds: range) -> dict[int, list[str]]:
    """The disagreements by seed."""
    each = {seed: disagreements(*generator(seed)) for seed in seeds}
    return {seed: wrong for seed, wrong in each.items() if wrong}


@pytest.mark.long
@pytest.mark.parametrize("generator", GENERATORS)
def test_small_instances_agree_with_an_exhaustive_search(generator: instances.Generator) -> None:
    """Status and marginal throughput agree, and each plan keeps all limits."""
    assert differing(generator, range(examples(10 if generator is instances.racks else 30))) == {}


@pytest.mark.slow
@pytest.mark.parametrize("seeds", IN_CHUNKS, ids=str)
@pytest.mark.parametrize("generator", GENERATORS)
def test_a_thousand_instances_agree_with_an_exhaustive_search(generator: instances.Generator, seeds: range) -> None:
    """As above, for instances that no other test draws."""
    assert differing(generator, seeds) == {}


@given(st.sampled_from(GENERATORS), st.integers(10_000, 10**9))
@settings(max_examples=examples(20))
def test_any_instance_agrees_with_an_exhaustive_search(generator: instances.Generator, seed: int) -> None:
    """Instances of `make test-all` change from run to run; the seed is named where one disagrees."""
    assert disagreements(*generator(seed)) == []


@pytest.mark.long
@pytest.mark.parametrize("generator", GENERATORS)
def test_a_third_of_the_instances_is_infeasible(generator: instances.Generator) -> None:
    """Between 20 and 40 %: both answers are tried often."""
    infeasible = sum(not is_feasible(*generator(seed)) for seed in range(40))
    assert 8 <= infeasible <= 16


@pytest.mark.parametrize("numbers", lemur.OPTIMA_GBPS, ids=lambda numbers: "".join(map(str, numbers)))
@pytest.mark.parametrize("at", range(len(lemur.RATE_DELTAS)), ids=[f"delta {delta}" for delta in lemur.RATE_DELTAS])
def test_lemurs_chains_reach_their_optima(numbers: tuple[int, ...], at: int) -> None:
    """The aggregate rate is that of an independent program to 0.01 Gbps, and each plan keeps all limits."""
    chains = {"chains": [lemur.chain_json(number, lemur.RATE_DELTAS[at]) for number in numbers]}
    found, optimum = answered(chains, lemur.rack_json()), lemur.OPTIMA_GBPS[numbers][at]
    assert faults(chains, lemur.rack_json(), found) == []
    assert found["status"] == ("optimal" if optimum else "infeasible")
    gbps = sum(one["rate_mbps"] for one in found["chains"]) / 1000
    assert gbps == pytest.approx(optimum or 0, abs=0.01)
