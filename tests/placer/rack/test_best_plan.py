"""The best plan of small instances is that of an exhaustive search, and Lemur's optima are met."""

import json
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placer.rack.files.json_twins import chains_of, rack_of
from placer.rack.plan import answer
from placer.rack.strategies.optimal import best_plan
from tests.effort import examples
from tests.placer.rack import instances, lemur
from tests.placer.rack.exhaustive import best_rates, faults, is_feasible
from tests.placer.rack.small import ON_SERVER, ON_SWITCH, Json, chain, rack, server

GENERATORS = [instances.everyday, instances.edges, instances.openflow, instances.racks, instances.sockets]


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


@pytest.mark.long
@instances.seed_ranges(examples(30), range(1000, 2000))
@pytest.mark.parametrize("generator", GENERATORS)
def test_small_instances_agree_with_an_exhaustive_search(generator: instances.Generator, seeds: range) -> None:
    """Status and marginal throughput agree, and each plan keeps all limits."""
    assert instances.faulty(disagreements, generator, seeds) == {}


@given(st.sampled_from(GENERATORS), st.integers(10_000, 10**9))
@settings(max_examples=examples(20))
def test_any_instance_agrees_with_an_exhaustive_search(generator: instances.Generator, seed: int) -> None:
    """Instances change from run to run with NEW_DRAWS=1; the seed is named where one disagrees."""
    assert disagreements(*generator(seed)) == []


@pytest.mark.long
@pytest.mark.parametrize("generator", GENERATORS)
def test_a_third_of_the_instances_is_infeasible(generator: instances.Generator) -> None:
    """Between 20 and 40 %: both answers are tried often."""
    assert 8 <= sum(not is_feasible(*generator(seed)) for seed in range(40)) <= 16


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


def marginal(on: Json, *chains: Json) -> float | None:
    """Of the best plan, which keeps all limits and is that of the exhaustive search; None if there is none."""
    asked = {"chains": list(chains)}
    assert disagreements(asked, on) == []
    found: float | None = answered(asked, on)["marginal_mbps"]
    return found


def test_cores_bound_the_rate() -> None:
    """1,700 cycles at 1.7 GHz and 12,000 bits a packet: 12,000 Mbps a core, and three cores reach t_max."""
    one = chain("a", "X", t_min_mbps=500, t_max_mbps=30_000)
    assert marginal(rack({"X": ON_SERVER}, server("s0", cores=1)), one) == pytest.approx(11_500)
    assert marginal(rack({"X": ON_SERVER}, server("s0", cores=2)), one) == pytest.approx(23_500)
    assert marginal(rack({"X": ON_SERVER}, server("s0", cores=4)), one) == pytest.approx(29_500)
    assert marginal(rack({"X": {"server": {"cycles": 1700, "replicable": False}}}), one) == pytest.approx(11_500)


def test_a_subgroup_pays_for_all_packets_that_reach_it() -> None:
    """Two thirds of the packets reach f1 and all reach the others: 1,700 * (1 + 2/3 + 1) cycles on one core.

    The entry branches, so that the subgroup may have one core only.
    """
    one = chain("a", "XXX", edges=[["f0", "f1", "2/3"], ["f0", "f2", "1/3"], ["f1", "f2", 1]])
    assert marginal(rack({"X": ON_SERVER}), one) == pytest.approx(12_000 * 3 / 8)


def test_nics_are_shared_at_a_vertex() -> None:
    """Of 10,000 Mbps in and out, both chains have their least; the first crosses twice, so the second gets the rest."""
    nfs = {"X": {"server": {"cycles": 17}}, "P": ON_SWITCH}
    twice = chain("a", "XPX", t_min_mbps=1000)
    once = chain("b", "X", t_min_mbps=1000, t_max_mbps=7000)
    on = rack(nfs, server("s0", nic_mbps=10_000))
    best = best_rates({"chains": [twice, once]}, on)
    assert best and best.rates == pytest.approx((1500, 7000))
    assert marginal(on, twice, once) == pytest.approx(6500)


def test_latency_counts_crossings_and_cycles() -> None:
    """Two crossings of 1 us and 1,700 cycles at 1.7 GHz are 3 us; over two servers it is four crossings and 2 us."""
    one = chain("a", "X", d_max_us=3)
    assert marginal(rack({"X": ON_SERVER}), one) == pytest.approx(40_000)
    assert marginal(rack({"X": ON_SERVER}), one | {"d_max_us": 2.99}) is None
    slow = server("s0", cores=1, smartnic={"name": "n0", "cores": 1, "clock_mhz": 1700})
    beside = {"X": ON_SERVER, "Y": {"smartnic": {"cycles": 1700}}}
    both = chain("a", "XY", d_max_us=4)
    assert marginal(rack(beside, slow), both) == pytest.approx(12_000)
    apart = rack(beside, slow | {"cores": 0}, server("s1"))
    assert marginal(apart, both) is None
    assert marginal(apart, both | {"d_max_us": 6}) == pytest.approx(12_000)


def test_tables_follow_one_another_only_along_edges_on_the_switch() -> None:
    """Two tables in a row need two stages; with a server between them, packets pass the switch anew."""
    on = rack({"P": ON_SWITCH, "X": ON_SERVER}, switch={"stages": 1, "blocks_per_stage": 9})
    assert marginal(on, chain("a", "PXP")) is not None
    assert marginal(on, chain("a", "PPX")) is None


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"proven": False}, "status optimal with proven False"),
        ({"status": "feasible"}, "status feasible with proven True"),
        ({"bound_mbps": 39_999}, "marginal .* is above the bound 39999"),
        ({"bound_mbps": 40_001}, "optimal, and the bound 40001 is above"),
    ],
)
def test_an_answer_that_contradicts_itself_is_noticed(change: Json, fault: str) -> None:
    """What a certificate does not have; the rest is what `placer verify` refuses."""
    asked, on = {"chains": [chain("a", "X")]}, rack({"X": ON_SERVER})
    assert [bool(re.match(fault, each)) for each in faults(asked, on, answered(asked, on) | change)] == [True]
