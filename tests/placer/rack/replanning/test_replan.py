"""Replanning: SLOs first, then the fewest moves, then the largest rates; against an exhaustive search, and by hand."""

import json
from random import Random
from typing import Any

import pytest

from placer.rack.files.json_twins import chains_of, rack_of
from placer.rack.plan import Status, answer
from placer.rack.replanning.moves import OldPlaces, PlacedNf
from placer.rack.replanning.replan import Replanned, replan
from placer.rack.search.branch_and_bound import MixtureProgram
from placer.rack.strategies.optimal import exact_plan
from tests.placer.rack import instances, lemur
from tests.placer.rack.exhaustive import BestRates, best_rates_within, faults
from tests.placer.rack.small import ON_SERVER, ON_SWITCH, Json, chain, rack, server

Places = dict[str, dict[str, str]]
MOST = 12  # moves that the exhaustive search is asked for


def old_places(chains: Json, places: Places) -> OldPlaces:
    """Places of NFs that were what they are now."""
    kinds = {(one["name"], nf["id"]): nf["nf"] for one in chains["chains"] for nf in one["nfs"]}
    return {name: {nf: PlacedNf(kinds[name, nf], on) for nf, on in own.items()} for name, own in places.items()}


def replanned(chains: Json, on: Json, places: Places, **more: Any) -> Replanned:
    return replan(chains_of(chains, "chains"), rack_of(on, "rack"), old_places(chains, places), **more)


def answered(found: Replanned) -> dict[str, Any]:
    """As another program reads it."""
    parsed: dict[str, Any] = json.loads(json.dumps(answer(found.plan)))
    return parsed


def drawn(generator: instances.Generator, seed: int) -> tuple[Json, Json, Places]:
    """An instance with any old place for each NF, but for some that are new."""
    chains, on = generator(seed)
    random = Random(f"places {seed}")
    names = {"server": [], "smartnic": [], "switch": ["switch"]}
    for one in on["servers"]:
        names["server"].append(one["name"])
        names["smartnic"] += [one["smartnic"]["name"]] if "smartnic" in one else []
    places: Places = {}
    for one in chains["chains"]:
        if random.random() < 0.2:
            continue
        places[one["name"]] = {}
        for nf in one["nfs"]:
            sites = [name for kind in on["nfs"][nf["nf"]] for name in names[kind]]
            if sites and random.random() < 0.9:
                places[one["name"]][nf["id"]] = random.choice(sites)
    return chains, on, places


def fewest(chains: Json, on: Json, places: Places) -> tuple[int, BestRates] | None:
    """The fewest moves with which a plan exists, and its best rates; None if there is none."""
    if best_rates_within(chains, on, places, MOST * 10) is None:
        return None
    for moves in range(MOST):
        if best := best_rates_within(chains, on, places, moves):
            return moves, best
    raise AssertionError("more moves than expected")


def disagreements(chains: Json, on: Json, places: Places) -> list[str]:
    """In what the answer and the exhaustive search differ."""
    found, best = replanned(chains, on, places), fewest(chains, on, places)
    if best is None:
        return [] if found.plan.status is Status.INFEASIBLE else [f"{found.plan.status}, and there is no plan"]
    wrong = faults(chains, on, answered(found))
    moves, rates = best
    if (found.plan.status, len(found.moves), found.least_moves) != (Status.OPTIMAL, moves, moves):
        wrong.append(f"{found.plan.status} with {len(found.moves)} moves, at least {found.least_moves}; best {moves}")
    if found.plan.marginal_mbps != pytest.approx(float(rates.marginal), rel=1e-7, abs=1e-7):
        wrong.append(f"{found.plan.marginal_mbps} Mbps; best {float(rates.marginal)}")
    return wrong


@instances.seed_ranges(6, range(1000, 1200))
@pytest.mark.parametrize("generator", [instances.everyday, instances.edges])
def test_small_instances_agree_with_an_exhaustive_search(generator: instances.Generator, seeds: range) -> None:
    """The number of moves and the marginal throughput are the best ones, from any old places."""
    each = {seed: disagreements(*drawn(generator, seed)) for seed in seeds}
    assert {seed: wrong for seed, wrong in each.items() if wrong} == {}


def three_servers(generator: instances.Generator, seed: int) -> tuple[Json, Json, Places]:
    """An instance with three servers, like the first ones."""
    chains, on = generator(seed)
    servers = [on["servers"][at % len(on["servers"])] | {"name": f"s{at}"} for at in range(3)]
    for at, one in enumerate(servers):
        if nic := one.get("smartnic"):
            one["smartnic"] = nic | {"name": f"n{at}"}
    return drawn(lambda _: (chains, on | {"servers": servers}), seed)


@pytest.mark.parametrize("generator", [instances.everyday, instances.edges])
@pytest.mark.long
def test_on_more_servers_what_is_proven_is_true(
    generator: instances.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Plans are sound, no proof is wrong, and most are as good as those of the exact search."""
    monkeypatch.setattr("placer.rack.replanning.replan.FEW_LAYOUTS", 0)
    as_good = number = 0
    for seed in range(6):
        chains, on, places = three_servers(generator, seed)
        if max(len(one["nfs"]) for one in chains["chains"]) > 4:
            continue
        found = replanned(chains, on, places)
        with monkeypatch.context() as patched:
            patched.setattr("placer.rack.replanning.replan.FEW_SERVERS", 3)
            best = replanned(chains, on, places)
        assert faults(chains, on, answered(found)) == []
        if best.plan.status is Status.INFEASIBLE:
            assert not found.plan.chains
            continue
        assert found.least_moves <= len(best.moves) and found.plan.status is not Status.INFEASIBLE
        number += 1
        if found.plan.chains and len(found.moves) == len(best.moves):
            assert found.plan.bound_mbps is not None
            near = 1e-7 * max(best.plan.marginal_mbps, 1)
            assert found.plan.marginal_mbps - near <= best.plan.marginal_mbps <= found.plan.bound_mbps + near
            as_good += found.plan.marginal_mbps >= best.plan.marginal_mbps - near
        else:
            assert found.plan.status is not Status.OPTIMAL
    assert as_good >= 0.9 * number


EVERYWHERE = {"X": ON_SERVER | ON_SWITCH, "Y": ON_SERVER}


def test_new_chains_and_cores_are_no_moves() -> None:
    """The new chain b takes one of a's four cores, and what is on the server stays there."""
    chains = {"chains": [chain("a", "Y"), chain("b", "XY", t_min_mbps=1000)]}
    found = replanned(chains, rack(EVERYWHERE), {"a": {"f0": "s0"}})
    assert (found.plan.status, found.moves) == (Status.OPTIMAL, ())
    assert sum(sum(one.cores) for one in found.plan.chains) == 4


def test_rates_are_the_last_to_count() -> None:
    """On the switch, X would carry 100 Gbps instead of 40; it stays on the server, because it keeps its SLO there."""
    chains = {"chains": [chain("a", "X", t_min_mbps=1000)]}
    found = replanned(chains, rack(EVERYWHERE), {"a": {"f0": "s0"}})
    assert (found.moves, found.plan.status) == ((), Status.OPTIMAL)
    assert found.plan.marginal_mbps == pytest.approx(39_000)
    chains["chains"][0]["t_min_mbps"] = 50_000
    found = replanned(chains, rack(EVERYWHERE), {"a": {"f0": "s0"}})
    assert [(move.nf, move.source, move.target) for move in found.moves] == [("f0", "s0", "switch")]


def test_an_nf_leaves_a_device_that_is_gone() -> None:
    """That is a move, even where no other plan is possible."""
    chains = {"chains": [chain("a", "YX", t_min_mbps=1000)]}
    on = rack(EVERYWHERE, *(server(name) for name in ("s1", "s2", "s3")))
    found = replanned(chains, on, {"a": {"f0": "s0", "f1": "switch"}})
    assert [(move.nf, move.source) for move in found.moves] == [("f0", "s0")]
    assert found.fewest_proven


def test_another_kind_of_nf_is_new() -> None:
    """An NF that keeps its id but not its kind moves nothing."""
    chains = chains_of({"chains": [chain("a", "X", t_min_mbps=50_000)]}, "chains")
    found = replan(chains, rack_of(rack(EVERYWHERE), "rack"), {"a": {"f0": PlacedNf("Y", "s0")}})
    assert found.moves == () and found.plan.chains


def four_hundred(changed: Json | None = None) -> Replanned:
    """A hundred servers, each with Lemur's chains as one server has them, and one chain changed."""
    numbers, servers = (1, 2, 3, 4), range(100)
    one = exact_plan(lemur.chains(numbers, 0.5), lemur.rack())
    chains = [lemur.chain_json(number, 0.5, f"c{number}_{copy}") for copy in servers for number in numbers]
    places: Places = {}
    for at, each in enumerate(chains):
        placement = {nf.id: one.chains[at % 4].site_name(on) for on, nf in enumerate(one.chains[at % 4].chain.nfs)}
        places[each["name"]] = {nf: "switch" if on == "switch" else f"s{at // 4}" for nf, on in placement.items()}
    chains[10] |= changed or {}
    alike = [lemur.rack_json()["servers"][0] | {"name": f"s{number}"} for number in servers]
    return replanned({"chains": chains}, lemur.rack_json(servers=alike), places)


@pytest.mark.long
def test_a_changed_least_rate_among_400_chains_moves_one_nf_and_is_proven(monkeypatch: pytest.MonkeyPatch) -> None:
    """ACL leaves the server of the chain, so that Dedup may have more cores; nothing else moves.

    Few relaxations are solved, of the hundreds that a search over all chains would take.
    """
    solved: list[object] = []
    solve = MixtureProgram.solve

    def counted(program: MixtureProgram, *arguments: Any, **options: Any) -> Any:
        solved.append(program)
        return solve(program, *arguments, **options)

    monkeypatch.setattr(MixtureProgram, "solve", counted)
    before, after = four_hundred(), four_hundred({"t_min_mbps": 900})
    assert (before.plan.status, before.moves) == (Status.OPTIMAL, ())
    assert [(move.chain, move.nf, move.source, move.target) for move in after.moves] == [
        ("c3_2", "ACL", "s2", "switch")
    ]
    assert after.plan.status is Status.OPTIMAL and after.fewest_proven
    assert len(solved) < 40
