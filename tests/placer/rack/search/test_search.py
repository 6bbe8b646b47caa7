"""The linear programs under all relaxations."""

import json
import time
from dataclasses import replace
from itertools import product
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placer.rack.chain import Chain
from placer.rack.files.json_twins import chains_of, rack_of
from placer.rack.plan import Status, answer
from placer.rack.rack import Rack
from placer.rack.search import branch_and_bound
from placer.rack.search import fleet_plan as fleet_plan_module
from placer.rack.search.branch_and_bound import Search
from placer.rack.search.fleet_bound import fleet_bound
from placer.rack.search.fleet_plan import FleetProgram, _Column, fleet_plan
from placer.rack.search.partial_layouts import find_options, options_of
from placer.rack.stages.stage_oracles import BlockStages
from placer.rack.strategies.optimal import best_plan, exact_plan
from tests.effort import examples
from tests.placer.rack import instances, lemur
from tests.placer.rack.exhaustive import best_rates, faults
from tests.placer.rack.small import ON_SERVER, ON_SWITCH, Json, chain, rack, server
from tests.placer.rack.test_best_plan import answered

ONE = np.ones(1)
NOBODY = np.zeros(1, dtype=np.int64)


def test_a_program_beyond_its_limits_has_no_solution() -> None:
    """One column that uses 2 of a limit of 1."""
    assert branch_and_bound.largest_gain(ONE, 2.0 * np.ones((1, 1)), ONE, NOBODY, ONE) is None


def test_a_solver_that_gives_up_proves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its answer is an error, never that there is no solution."""
    monkeypatch.setattr(
        branch_and_bound, "linprog", lambda *_, **__: SimpleNamespace(status=4, x=None, message="numbers")
    )
    with pytest.raises(ArithmeticError, match="numbers"):
        branch_and_bound.largest_gain(ONE, np.ones((1, 1)), ONE, NOBODY, ONE)


@pytest.mark.parametrize("seed", range(5))
def test_a_large_program_is_solved_over_a_part_of_its_columns(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The gain is that of the whole program, and the weights keep its limits; what has no solution has none."""
    rng = np.random.default_rng(seed)
    gains, uses, owners = rng.integers(0, 50, 400) * 1.0, rng.integers(0, 9, (3, 400)) * 1.0, rng.integers(0, 4, 400)
    limits, sizes = np.array([3.0, 5.0, 9.0]), np.ones(4)
    whole = branch_and_bound.largest_gain(gains, uses, limits, owners, sizes)
    monkeypatch.setattr(branch_and_bound, "SIFTED_COLUMNS", 100)
    monkeypatch.setattr(branch_and_bound, "ADDED_COLUMNS", 8)
    solved: list[int] = []
    program = branch_and_bound._largest
    monkeypatch.setattr(branch_and_bound, "_largest", lambda *a: (solved.append(len(a[0])), program(*a))[1])
    parts = branch_and_bound.largest_gain(gains, uses, limits, owners, sizes)
    assert whole and parts and parts.gain == pytest.approx(whole.gain, rel=1e-9) and max(solved) < 400
    assert (uses @ parts.weights <= limits * (1 + 1e-6)).all()
    assert np.bincount(owners, parts.weights) == pytest.approx(sizes)
    assert branch_and_bound.largest_gain(gains, uses + 10.0, limits, owners, sizes) is None


def marginal(chains: list[Json], on: Json) -> float | None:
    """Of the best plan, which keeps all limits; None if there is none."""
    found = answered({"chains": chains}, on)
    assert faults({"chains": chains}, on, found) == []
    assert found["status"] == ("optimal" if found["chains"] else "infeasible")
    return found["marginal_mbps"] if found["chains"] else None


@pytest.mark.parametrize(
    "nfs",
    [
        {},  # nothing runs it
        {"smartnic": {"cycles": 10}},  # no server has a SmartNIC
        {"server": {"cycles": 17_000_000}},  # four cores carry 5 Mbps
    ],
)
def test_an_nf_that_fits_nowhere_makes_the_instance_infeasible(nfs: Json) -> None:
    """There is no layout or allocation of cores at all, and that is no fault of the input."""
    assert marginal([chain("a", "X", t_min_mbps=100)], rack({"X": nfs})) is None


def test_a_chain_on_the_switch_alone_needs_no_nic() -> None:
    """No packet crosses a NIC, so that t_max is reached, with and without servers."""
    chains = [chain("a", "XX", t_min_mbps=100)]
    assert marginal(chains, rack({"X": ON_SWITCH})) == 99_900
    assert marginal(chains, rack({"X": ON_SWITCH}, servers=[])) == 99_900


@pytest.mark.parametrize("number", [3, 4, 5])
def test_the_search_ends_where_tables_fit_by_halves(number: int) -> None:
    """Two stages of one block hold two tables; the relaxation shares them between all chains, and the search ends."""
    chains = [chain(f"c{at}", "X", t_min_mbps=100, t_max_mbps=30_000 + at) for at in range(number)]
    on = rack({"X": ON_SERVER | ON_SWITCH}, switch={"stages": 2, "blocks_per_stage": 1})
    largest = [30_000 + at for at in range(number)]
    on_server = {3: 30_000, 4: 40_000, 5: 40_000}[number]  # of its NIC, by one chain or by several
    assert marginal(chains, on) == pytest.approx(sum(largest[-2:]) + on_server - 100 * number)


def test_a_search_whose_time_is_over_solves_one_program_and_has_its_bound() -> None:
    """Cuts and first plans are looked for as long as there is time; Found.bound holds all the same."""
    asked = [chain(f"c{at}", "X", t_min_mbps=100, t_max_mbps=30_000 + at) for at in range(5)]
    chains = chains_of({"chains": asked}, "chains")
    on = rack_of(rack({"X": ON_SERVER | ON_SWITCH}, switch={"stages": 2, "blocks_per_stage": 1}), "rack")
    oracle: Any = SimpleNamespace(fits=BlockStages(on, chains).fits)  # nothing else is known of it
    found = Search(on, [options_of(asking, on) for asking in chains], oracle, time_limit=-1).run()
    assert found.nodes == 1 and found.chosen is None
    assert found.bound >= 30_003 + 30_004 + 40_000 - 500


def test_options_that_count_no_tables_are_not_refuted_when_the_time_is_over() -> None:
    """The one option of each chain has all NFs on the switch, which do not fit; it stands for those with fewer."""
    on = rack_of(rack({"X": ON_SERVER | ON_SWITCH}, switch={"stages": 12, "blocks_per_stage": 24}), "rack")
    chains = chains_of({"chains": [chain(name, "X" * 20, t_max_mbps=1000) for name in "ab"]}, "chains")
    options = [find_options(each, on, (), time.monotonic() + 60).options for each in chains]
    assert [*map(len, options)] == [1, 1]
    found = Search(on, options, BlockStages(on, chains), time_limit=0, counted=[frozenset()] * 2).run()
    assert (found.chosen, found.bound) == (None, 2000)
    assert not found.proven


def test_tables_between_others_have_no_room_in_the_first_and_last_stage() -> None:
    """Of three stages with two blocks: first and last NFs of three have two stages, the ones in the middle one."""
    chains = chains_of({"chains": [chain(name, "XXX", t_max_mbps=30_000) for name in "abc"]}, "chains")
    on = rack_of(rack({"X": ON_SERVER | ON_SWITCH}, switch={"stages": 3, "blocks_per_stage": 2}), "rack")
    options = [options_of(one, on) for one in chains]
    search = Search(on, options, BlockStages(on, chains), time_limit=-1)
    assert search.run().bound == pytest.approx(2 * 30_000 + 4 * 12_000 / 3)  # the third one has four cores
    assert search.relaxation.stages is not None
    assert search.relaxation.stages.room == [6, 4, 2, 4, 2, 2]
    whole = [int(one.on_switch.all(axis=1).argmax()) for one in options]
    needs = [own[row].tolist() for own, row in zip(search.relaxation.stages.blocks, whole, strict=True)]
    assert needs == [[3, 2, 1, 2, 1, 1]] * 3


@given(st.integers(0, 10**9))
@settings(max_examples=examples(60))
def test_what_fits_the_stages_keeps_to_the_room_of_each_part(seed: int) -> None:
    """Random chains with branches, and random NFs of them on the switch."""
    rng = np.random.default_rng(seed)
    pairs = [(tail, head) for head in range(1, 5) for tail in range(head) if head == tail + 1 or rng.random() < 0.3]
    number = [sum(tail == other for other, _ in pairs) for tail in range(5)]
    edges = [[f"f{tail}", f"f{head}", f"1/{number[tail]}", f"src port {head}"] for tail, head in pairs]
    asked = [chain(name, "".join(rng.choice(["X", "Y"], 5)), edges=edges) for name in "ab"]
    kinds = {"X": ON_SERVER | ON_SWITCH, "Y": ON_SERVER | {"switch": {"blocks": 2}}}
    stages = {"stages": int(rng.integers(0, 7)), "blocks_per_stage": int(rng.integers(1, 4))}
    on, chains = rack_of(rack(kinds, switch=stages), "rack"), chains_of({"chains": asked}, "chains")
    rows = rng.random((2, 10, 5)) < 0.5
    oracle = BlockStages(on, chains)
    needs = oracle.needs(chains, list(rows))
    for one, other in product(range(10), range(10)):
        tables = [(0, nf) for nf in np.flatnonzero(rows[0, one])] + [(1, nf) for nf in np.flatnonzero(rows[1, other])]
        if oracle.fits(frozenset(tables)):
            assert (needs.blocks[0][one] + needs.blocks[1][other] <= needs.room).all()


def test_all_on_the_switch_is_found_where_parts_do_not_fit() -> None:
    """Encapsulation takes two of three stages once packets cross to servers; without, three tables fit in a row.

    Two of the tables do not fit the stage that is left. That forbids them together in every other plan.
    """
    chains = chains_of({"chains": [chain("a", "XXY", t_max_mbps=12_000)]}, "chains")
    on = rack_of(
        rack(
            {"X": ON_SWITCH, "Y": ON_SERVER | ON_SWITCH},
            switch={"stages": 3, "blocks_per_stage": 1},
            overheads={"stages": 2},
        ),
        "rack",
    )
    search = Search(on, [options_of(chains[0], on)], BlockStages(on, chains))
    search.relaxation.cuts.append(frozenset({(0, 0), (0, 1)}))
    assert search.run().marginal == 12_000


def test_a_chain_of_too_many_layouts_for_the_heuristic_is_no_fault() -> None:
    """The search has no plan in time, and Lemur's heuristic lists all layouts: nothing is known but a bound."""
    on = rack({"X": ON_SERVER | ON_SWITCH}, switch={"stages": 12, "blocks_per_stage": 24})
    plan = best_plan(chains_of({"chains": [chain("a", "X" * 40)]}, "c"), rack_of(on, "r"), time_limit=0.5)
    assert plan.status in (Status.UNKNOWN, Status.FEASIBLE, Status.OPTIMAL) and plan.bound_mbps


def test_a_rate_just_above_what_the_nic_carries_is_not_rounded_to_t_max() -> None:
    """t_max is 5e-7 beyond the NIC: the rate is the NIC's."""
    chains = [chain("a", "X", t_min_mbps=999, t_max_mbps=1000.0005)]
    assert marginal(chains, rack({"X": ON_SERVER}, server("s0", nic_mbps=1000))) == pytest.approx(1, abs=1e-9)


@pytest.mark.long
@pytest.mark.parametrize(
    ("beyond", "fits"),
    [
        (1e-6, False),
        (1e-7, False),  # within the tolerance of solvers
        (3e-9, False),
        (5e-10, True),  # within that of CONTRACTS 9
        (0, True),
    ],
)
@pytest.mark.parametrize("cycles", [0, 17, 1700])
def test_limits_hold_to_a_billionth(beyond: float, fits: bool, cycles: int) -> None:
    """Rates, cores, latency: a limit may be missed by 1e-9 of it and no more, whatever a solver allows itself."""
    costs = {"server": {"cycles": cycles}}
    nics = [server("s0", nic_mbps=1000), server("s1", nic_mbps=1000)]
    alone = [chain("a", "X", t_min_mbps=1000 * (1 + beyond))]
    assert (marginal(alone, rack({"X": costs}, nics[0])) is not None) == fits
    both = [chain("a", "X", t_min_mbps=500 * (1 + 2 * beyond)), chain("b", "X", t_min_mbps=500)]
    assert (marginal(both, rack({"X": costs}, nics[0])) is not None) == fits
    third = chain("c", "X", t_min_mbps=1000)
    assert (marginal([*both, third], rack({"X": costs}, *nics)) is not None) == fits
    if cycles:
        full = [chain("a", "X", t_min_mbps=1700 * 12_000 / cycles * (1 + beyond), t_max_mbps=10**7)]
        assert (marginal(full, rack({"X": costs}, server("s0", cores=1, nic_mbps=10**7))) is not None) == fits
        late = [chain("a", "X", d_max_us=(2 + cycles / 1700) * (1 - beyond))]
        assert (marginal(late, rack({"X": costs})) is not None) == fits


def rack_of_servers(servers: int) -> Rack:
    """Lemur's rack with so many servers."""
    rack = lemur.rack()
    return replace(rack, servers=tuple(replace(rack.servers[0], name=f"s{number}") for number in range(servers)))


def copies(number: int, delta: float) -> tuple[Chain, ...]:
    return chains_of({"chains": copies_json(number, delta)}, "chains")


def copies_json(number: int, delta: float) -> list[Json]:
    names = [(chain, f"{chain}_{copy}") for chain in (1, 2, 3, 4) for copy in range(number)]
    return [lemur.chain_json(chain, delta, name) for chain, name in names]


@pytest.mark.long
@pytest.mark.parametrize("servers", [3, 10])
def test_equal_loads_on_equal_servers_are_proven_optimal(servers: int) -> None:
    """With delta 0.5, each server gives what one server gives by itself, and the bound says that more is impossible."""
    alone = exact_plan(copies(1, 0.5), lemur.rack())
    plan = best_plan(copies(servers, 0.5), rack_of_servers(servers))
    assert plan.status is Status.OPTIMAL
    assert plan.marginal_mbps == pytest.approx(servers * alone.marginal_mbps, rel=1e-9)
    assert len(plan.chains) == 4 * servers


def test_a_plan_of_twenty_chains_keeps_all_limits() -> None:
    """No device has more cores than it has, no NIC carries more than it can, and each chain has its least rate."""
    chains, on = copies(5, 1.0), rack_of_servers(5)
    servers = [lemur.rack_json()["servers"][0] | {"name": server.name} for server in on.servers]
    asked = {"chains": copies_json(5, 1.0)}
    assert faults(asked, lemur.rack_json() | {"servers": servers}, dict(answer(fleet_plan(chains, on)))) == []


@pytest.mark.parametrize("delta", [0.5, 1.0, 2.0])
def test_the_bound_is_never_below_a_plan(delta: float) -> None:
    """For one server, the exact optimum; for several, the plan."""
    assert (
        fleet_bound(copies(1, delta), lemur.rack()) >= exact_plan(copies(1, delta), lemur.rack()).marginal_mbps - 1e-6
    )
    plan = fleet_plan(copies(4, delta), rack_of_servers(4))
    assert plan.bound_mbps is not None and plan.bound_mbps >= plan.marginal_mbps - 1e-6


@pytest.mark.parametrize("chains", [3, 5])
def test_contents_hold_each_chain_once(chains: int) -> None:
    """Each chain takes what one NIC carries: more servers that all hold the same chains would carry no more."""
    asked = {"chains": [chain(f"c{number}", "A", t_min_mbps=number) for number in range(chains)]}
    on = rack({"A": ON_SERVER}, *(server(f"s{number}") for number in range(3)))
    plan = fleet_plan(chains_of(asked, "chains"), rack_of(on, "rack"))
    assert plan.status is Status.OPTIMAL
    assert sum(placed.rate_mbps for placed in plan.chains) == pytest.approx(3 * 40_000)


def test_a_content_may_repeat_a_chain_where_that_carries_more() -> None:
    """Two servers of a NIC of 40 Gbps each: of what holds both chains and what holds the first one, both are taken."""
    asked = {"chains": [chain(f"c{number}", "A", t_min_mbps=1 + number) for number in range(2)]}
    on = rack({"A": ON_SERVER}, server("s0"), server("s1"))
    program = FleetProgram(chains_of(asked, "chains"), rack_of(on, "rack"), time.monotonic() + 60)
    free = np.zeros(2)
    for counts in (np.array([1, 1]), np.array([1, 0])):
        program.columns.append(_Column(0, program.pricings[0].best(free, 0.0, counts, counts)[1]))
    chosen = program._whole()
    assert chosen == program.columns
    plans = [sum(placed.rate_mbps for placed in program.placed(columns)) for columns in (chosen, chosen[:1])]
    assert plans[0] > plans[1] == pytest.approx(40_000)


def test_contents_of_sets_of_chains_leave_time_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of sixty-three sets takes as long as it may; and chains that no content holds are counted."""
    asked = {"chains": [chain(f"c{at}", "A", t_min_mbps=at) for at in range(6)]}
    program = FleetProgram(chains_of(asked, "chains"), rack_of(rack({"A": ON_SERVER}), "rack"), time.monotonic() + 60)
    now, price = [program.until - 60.0], program.pricings[0].best

    def slow(*arguments: Any) -> Any:
        now[0] = max(now[0], min(now[0] + 20.0, arguments[-1]))
        return price(*arguments[:-1])

    monkeypatch.setattr(fleet_plan_module, "time", SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr(program.pricings[0], "best", slow)
    program._list_sets()
    assert program.until - now[0] == pytest.approx(36.0)
    relaxed = program._relax(program.sizes, np.ones(1, np.int64))
    held = np.any([column.content.counts for column in program.columns], axis=0)
    assert relaxed.unplaced >= 6 - held.sum() > 0


@pytest.mark.long
def test_a_fleet_plan_keeps_its_time() -> None:
    """Half a million options of each chain are not compared for its bound, and a plan is found all the same."""
    ways = [edge for at in range(1, 9) for edge in (["f0", f"f{at}", "1/8", f"src port {at}"], [f"f{at}", "f9", 1])]
    asked = {
        "chains": [
            chain("one", "A" * 10, edges=ways, t_min_mbps=1),
            chain("two", "A" * 10, edges=ways, packet_size=1400),
        ]
    }
    each = [server(f"s{at}", smartnic={"name": f"n{at}", "cores": 3, "clock_mhz": 1000}) for at in range(3)]
    on = rack({"A": ON_SERVER | ON_SWITCH | {"smartnic": {"cycles": 900}}}, *each)
    begin = time.process_time()
    plan = best_plan(chains_of(asked, "chains"), rack_of(on, "rack"), time_limit=2)
    assert len(plan.chains) == 2
    assert time.process_time() - begin < 4
    with pytest.raises(TimeoutError):
        fleet_bound(chains_of(asked, "chains"), rack_of(on, "rack"), time.monotonic())


def test_too_many_chains_are_infeasible() -> None:
    """Fifteen chains that need a core each do not fit fourteen cores, and the bound says so."""
    chains = chains_of({"chains": [lemur.chain_json(3, 0.5, f"c{number}") for number in range(15 * 3)]}, "chains")
    assert fleet_plan(chains, rack_of_servers(3)).status is Status.INFEASIBLE


GENERATORS = [instances.racks, instances.everyday, instances.openflow]
SECONDS = 2.0


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


@instances.seed_ranges(examples(12), range(1000, 1300), 50)
@pytest.mark.parametrize("generator", GENERATORS)
def test_plans_of_fleets_are_sound_and_never_above_their_bound(generator: instances.Generator, seeds: range) -> None:
    """Each plan keeps all limits, no plan is better than the bound, and what is infeasible is so."""
    assert instances.faulty(faults_of_fleet, generator, seeds) == {}


@given(st.sampled_from(GENERATORS), st.integers(10_000, 10**9))
@settings(max_examples=examples(8))
def test_the_plan_of_any_fleet_is_sound(generator: instances.Generator, seed: int) -> None:
    """Instances change from run to run with NEW_DRAWS=1; the seed is named where one is wrong."""
    assert faults_of_fleet(*generator(seed)) == []
