"""The best plan of small instances is that of an exhaustive search with exact fractions, and Lemur's optima are met."""

import json
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placer.rack.files.json_twins import chains_of, rack_of
from placer.rack.plan import answer
from placer.rack.strategies.optimal import best_plan
from placer.verify.chains import chain_certificate_of
from placer.verify.chains.plan import plan_faults
from tests.effort import examples
from tests.placer.rack import instances, lemur
from tests.placer.rack.chain_ways import ChainWays
from tests.placer.rack.checker import faults
from tests.placer.rack.exhaustive import BestRates, best_rates, is_feasible
from tests.placer.rack.small import ON_SERVER, ON_SWITCH, Json, chain, rack, server
from tests.placer.rack.table_search import fits_stages

GENERATORS = [instances.everyday, instances.edges, instances.openflow, instances.racks]
IN_CHUNKS = [range(begin, begin + 100) for begin in range(1000, 2000, 100)]  # ten hundreds


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
@pytest.mark.parametrize("generator", GENERATORS)
def test_small_instances_agree_with_an_exhaustive_search(generator: instances.Generator) -> None:
    """Status and marginal throughput agree, and each plan keeps all limits."""
    assert instances.faulty(disagreements, generator, range(examples(10 if generator is instances.racks else 30))) == {}


@pytest.mark.slow
@pytest.mark.parametrize("seeds", IN_CHUNKS, ids=str)
@pytest.mark.parametrize("generator", GENERATORS)
def test_a_thousand_instances_agree_with_an_exhaustive_search(generator: instances.Generator, seeds: range) -> None:
    """As above, for instances that no other test draws."""
    assert instances.faulty(disagreements, generator, seeds) == {}


@given(st.sampled_from(GENERATORS), st.integers(10_000, 10**9))
@settings(max_examples=examples(20))
def test_any_instance_agrees_with_an_exhaustive_search(generator: instances.Generator, seed: int) -> None:
    """Instances of `make test-all` change from run to run; the seed is named where one disagrees."""
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


def answer_of(best: BestRates, chains: Json, on: Json) -> Json:
    """The optimum as an ANSWER; numbers are fractions as text."""
    placed = [
        {
            "name": one["name"],
            "rate_mbps": str(rate),
            "latency_us": str(ChainWays(one, on).latency(way.placement)),
            "placement": dict(way.placement),
            "subgroups": [{"on": site, "nfs": list(nfs), "cores": cores} for site, nfs, cores in way.groups],
        }
        for one, rate, way in zip(chains["chains"], best.rates, best.ways, strict=True)
    ]
    marginal = str(best.marginal)
    return {
        "status": "optimal",
        "proven": True,
        "marginal_mbps": marginal,
        "bound_mbps": marginal,
        "seconds": 0,
        "chains": placed,
    }


def marginal(on: Json, *chains: Json) -> Fraction | None:
    best = best_rates({"chains": chains}, on)
    return best.marginal if best else None


def test_cores_bound_the_rate() -> None:
    """1,700 cycles at 1.7 GHz and 12,000 bits a packet: 12,000 Mbps a core, and three cores reach t_max."""
    one = chain("a", "X", t_min_mbps=500, t_max_mbps=30_000)
    assert marginal(rack({"X": ON_SERVER}, server("s0", cores=1)), one) == 11_500
    assert marginal(rack({"X": ON_SERVER}, server("s0", cores=2)), one) == 23_500
    assert marginal(rack({"X": ON_SERVER}, server("s0", cores=4)), one) == 29_500
    assert marginal(rack({"X": {"server": {"cycles": 1700, "replicable": False}}}), one) == 11_500


def test_a_subgroup_pays_for_all_packets_that_reach_it() -> None:
    """Two thirds of the packets reach f1 and all reach the others: 1,700 * (1 + 2/3 + 1) cycles on one core.

    The entry branches, so that the subgroup may have one core only.
    """
    one = chain("a", "XXX", edges=[["f0", "f1", "2/3"], ["f0", "f2", "1/3"], ["f1", "f2", 1]])
    assert marginal(rack({"X": ON_SERVER}), one) == 12_000 / Fraction(8, 3)


def test_nics_are_shared_at_a_vertex() -> None:
    """Of 10,000 Mbps in and out, both chains have their least; the first crosses twice, so the second gets the rest."""
    nfs = {"X": {"server": {"cycles": 17}}, "P": ON_SWITCH}
    twice = chain("a", "XPX", t_min_mbps=1000)
    once = chain("b", "X", t_min_mbps=1000, t_max_mbps=7000)
    best = best_rates({"chains": [twice, once]}, rack(nfs, server("s0", nic_mbps=10_000)))
    assert best and best.rates == (1500, 7000)


def test_latency_counts_crossings_and_cycles() -> None:
    """Two crossings of 1 us and 1,700 cycles at 1.7 GHz are 3 us; over two servers it is four crossings and 2 us."""
    one = chain("a", "X", d_max_us=3)
    assert marginal(rack({"X": ON_SERVER}), one) == 40_000
    assert marginal(rack({"X": ON_SERVER}), one | {"d_max_us": 2.99}) is None
    slow = server("s0", cores=1, smartnic={"name": "n0", "cores": 1, "clock_mhz": 1700})
    beside = {"X": ON_SERVER, "Y": {"smartnic": {"cycles": 1700}}}
    both = chain("a", "XY", d_max_us=4)
    assert marginal(rack(beside, slow), both) == 12_000
    apart = rack(beside, slow | {"cores": 0}, server("s1"))
    assert marginal(apart, both) is None
    assert marginal(apart, both | {"d_max_us": 6}) == 12_000


@pytest.mark.parametrize(
    ("blocks", "before", "stages", "most", "fits"),
    [
        ({}, {}, 0, 1, True),
        ({"a": 1}, {}, 0, 1, False),
        ({"a": 1, "b": 1}, {"b": "a"}, 1, 9, False),  # one after the other
        ({"a": 1, "b": 1}, {"b": "a"}, 2, 1, True),
        ({"a": 2, "b": 2, "c": 2}, {}, 2, 3, False),  # six blocks in six, but none can be split
        ({"a": 2, "b": 1, "c": 2, "d": 1}, {}, 2, 3, True),
        ({"a": 3, "b": 1, "c": 2, "d": 1}, {"c": "b"}, 2, 4, True),  # c needs the second stage, so d or b goes first
        ({"a": 0, "b": 0}, {"b": "a"}, 1, 0, False),
        ({"a": 0, "b": 0}, {"b": "a"}, 2, 0, True),
    ],
)
def test_stages_hold_tables(blocks: dict[str, int], before: dict[str, str], stages: int, most: int, fits: bool) -> None:
    """A table lies in one stage, after those before it."""
    earlier = {table: set(before.get(table, "")) for table in blocks}
    assert fits_stages(blocks, earlier, stages, most) == fits


@pytest.mark.long
@pytest.mark.parametrize("generator", [instances.everyday, instances.edges])
def test_the_optimum_passes_the_verifier(generator: instances.Generator) -> None:
    """Each optimum keeps all limits as `placer verify` computes them, and all rates a little higher do not."""
    claims = {"certificate": 1, "kind": "chains", "proof": None}
    for seed in range(200, 230):
        chains, on = generator(seed)
        if best := best_rates(chains, on):
            plan = answer_of(best, chains, on)
            plan = {key: plan[key] for key in ("status", "marginal_mbps", "bound_mbps", "chains")}
            plan |= {key: float(Fraction(plan[key])) for key in ("marginal_mbps", "bound_mbps")}
            certificate = claims | {"chains": chains, "rack": on, "plan": plan}
            for one, rate in zip(plan["chains"], best.rates, strict=True):
                one |= {"rate_mbps": float(rate), "latency_us": float(Fraction(one["latency_us"]))}
            assert list(plan_faults(chain_certificate_of(certificate, "x"))) == [], seed
            for one, rate in zip(plan["chains"], best.rates, strict=True):
                one["rate_mbps"] = float(rate * Fraction("1.00001") + Fraction("0.001"))
            assert list(plan_faults(chain_certificate_of(certificate, "x"))), seed
