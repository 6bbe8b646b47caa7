"""The certificates of Lemur's instances, of random ones and of fleets are accepted, and prove what the plan claims.
Whether tables fit the stages of a switch, as the check decides it."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placer.rack.files.json_twins import chains_of, rack_of
from placer.rack.files.written_twins import write_chains, write_rack
from placer.rack.plan import Status
from placer.rack.proofs.certificate import certificate_of, weaker_claim
from placer.rack.rack import MatchKind, Rack, StageMemory, SwitchTable
from placer.rack.stages.stage_oracles import BlockStages, check_stages
from placer.rack.stages.tables.packing import Memories, TablePacking, table_program
from placer.rack.strategies import run_strategy
from placer.rack.strategies.optimal import best_plan
from placer.verify.chains.stage_fit import fits
from placer.verify.chains.table_fit import TableFit
from profiles import InputError
from tests.effort import examples
from tests.placer.rack import instances, lemur
from tests.placer.rack.search.test_search import rack_of_servers
from tests.placer.rack.small import ON_SERVER, ON_SWITCH, chain, rack, server
from tests.placer.verify.chains.certified import Json, certified, faults_in, wrong_with

GENERATORS = [instances.everyday, instances.edges, instances.sockets]
ALL = [(numbers, delta) for numbers in lemur.OPTIMA_GBPS for delta in lemur.RATE_DELTAS]
QUICK = [((1, 2, 3, 4), 0.5), ((1, 3, 4), 1), ((1, 3, 4), 4), ((1, 2, 3), 3)]


def lemurs(numbers: tuple[int, ...], delta: float) -> tuple[Json, Json]:
    return {"chains": [lemur.chain_json(number, delta) for number in numbers]}, lemur.rack_json()


@pytest.mark.parametrize(
    ("numbers", "delta"), [*QUICK, *(pytest.param(*case, marks=pytest.mark.slow) for case in ALL if case not in QUICK)]
)
def test_certificates_of_lemurs_chains(numbers: tuple[int, ...], delta: float) -> None:
    """34 optima and 6 instances without a plan; quickly one with prices, one with a split, one of no plan."""
    assert wrong_with(*lemurs(numbers, delta)) == []


@instances.seed_ranges(examples(10), range(2000, 2500))
@pytest.mark.parametrize("generator", GENERATORS)
def test_certificates_of_random_instances(generator: instances.Generator, seeds: range) -> None:
    """Branches, SmartNICs, two servers, stages: each optimum, and that there is no plan, is proven."""
    assert instances.faulty(wrong_with, generator, seeds) == {}


@pytest.mark.long
@pytest.mark.parametrize("beyond", [1e-6, 3e-9, 5e-10])
def test_certificates_where_a_limit_is_missed_by_little(beyond: float) -> None:
    """Solvers allow themselves more than the model does; the prices of the limit alone prove that it is missed."""
    nics = [server("s0", nic_mbps=1000), server("s1", nic_mbps=1000)]
    alone = [chain("a", "X", t_min_mbps=1000 * (1 + beyond))]
    both = [chain("a", "X", t_min_mbps=500 * (1 + 2 * beyond)), chain("b", "X", t_min_mbps=500)]
    third = chain("c", "X", t_min_mbps=1000)
    full = [chain("a", "X", t_min_mbps=12_000 * (1 + beyond), t_max_mbps=10**7)]
    late = [chain("a", "X", d_max_us=3 * (1 - beyond))]
    assert wrong_with({"chains": alone}, rack({"X": ON_SERVER}, nics[0])) == []
    assert wrong_with({"chains": both}, rack({"X": ON_SERVER}, nics[0])) == []
    assert wrong_with({"chains": [*both, third]}, rack({"X": ON_SERVER}, *nics)) == []
    assert wrong_with({"chains": full}, rack({"X": ON_SERVER}, server("s0", cores=1, nic_mbps=10**7))) == []
    assert wrong_with({"chains": late}, rack({"X": ON_SERVER})) == []


def test_a_cut_proves_what_the_stages_allow() -> None:
    """Two stages of one block hold two of four tables; prices of blocks alone do not prove that one after one fits."""
    chains = {"chains": [chain(f"c{at}", "XX", t_max_mbps=30_000 + at) for at in range(3)]}
    claims = certified(chains, rack({"X": ON_SERVER | ON_SWITCH}, switch={"stages": 3, "blocks_per_stage": 1}))
    assert (claims["plan"]["status"], faults_in(claims)) == ("optimal", [])


def test_all_on_the_switch_needs_no_stages_for_encapsulation() -> None:
    """A cut that holds only where packets cross to servers does not forbid the plan with all NFs on the switch."""
    switch = {"stages": 3, "blocks_per_stage": 1}
    on = rack({"X": ON_SWITCH, "Y": ON_SERVER | ON_SWITCH}, switch=switch, overheads={"stages": 2})
    claims = certified({"chains": [chain("a", "XXY", t_max_mbps=12_000)]}, on)
    assert (claims["plan"]["bound_mbps"], faults_in(claims)) == (12_000, [])
    claims["proof"]["cuts"] = [[["a", "f0"], ["a", "f1"]]]
    claims["proof"]["tree"] = [{"prices": {"gain": 0, "cuts": {"0": 1}}}]
    claims["plan"] = {"status": "infeasible", "marginal_mbps": None, "bound_mbps": None, "chains": []}
    assert faults_in(claims) == ["bound: that there is no plan is not proven"]


@pytest.mark.parametrize(("number", "chains", "status"), [(2, 3, "optimal"), (3, 45, "infeasible")])
def test_equal_servers_count_as_one_machine(number: int, chains: int, status: str) -> None:
    """A chain for each server is proven optimal; forty-five that need a core each do not fit forty-two."""
    given = {"chains": [lemur.chain_json(number, 0.5, f"c{at}") for at in range(chains)]}
    claims = certified(given, dict(write_rack(rack_of_servers(3))))
    assert claims["proof"]["servers"] == "together"
    assert (claims["plan"]["status"], faults_in(claims)) == (status, [])


def test_a_plan_without_a_proof_of_its_bound_claims_the_bound_that_is_proven() -> None:
    """Without time, the bound is that of no prices at all: each chain at its t_max."""
    chains, on = lemur.chains((1, 3, 4), 1), lemur.rack()
    plan = best_plan(chains, on)
    claims = certificate_of(plan, chains, seconds=0)
    written = claims["plan"]
    assert isinstance(written, dict) and (written["status"], faults_in({**claims})) == ("feasible", [])
    assert written["bound_mbps"] >= plan.bound_mbps
    assert (
        weaker_claim(plan, claims)
        == f"note: the certificate says feasible, and proves a bound of {written['bound_mbps']:,.1f} Mbps"
    )
    assert weaker_claim(plan, certificate_of(plan, chains)) is None


@pytest.mark.parametrize("strategy", ["greedy", "software-preferred"])
def test_plans_of_other_strategies_are_certified_with_the_bound_of_the_best(strategy: str) -> None:
    """A plan that is not the best one is feasible; where the strategy finds none, the bound alone is proven."""
    chains, on = lemur.chains((1, 3, 4), 1), lemur.rack()
    plan = run_strategy(strategy, chains, on)
    claims = {**certificate_of(plan, chains)}
    written = claims["plan"]
    assert isinstance(written, dict)
    assert (written["status"], faults_in(claims)) == ("feasible" if plan.chains else "unknown", [])
    assert written["bound_mbps"] == plan.bound_mbps


def test_nothing_is_claimed_where_nothing_is_known() -> None:
    """A plan alone, without a bound, is a certificate, too."""
    chains, on = chains_of({"chains": [chain("a", "X")]}, "chains"), rack_of(rack({"X": ON_SERVER}), "rack")
    claims = {**certificate_of(replace(best_plan(chains, on), status=Status.FEASIBLE), chains), "proof": None}
    claims["plan"] = {**claims["plan"], "bound_mbps": None}  # type: ignore[dict-item]
    assert faults_in(claims) == [] and claims["chains"] == write_chains(chains)


def fit_stages(kinds: list[str], stages: int, most: int) -> tuple[bool | None, bool]:
    """Whether the tables of chains fit stages of so many blocks: by the check, and by placing. A letter is a table of
    0 to 3 blocks."""
    chains = chains_of({"chains": [chain(f"c{at}", one) for at, one in enumerate(kinds)]}, "chains")
    nfs = {kind: {"switch": {"blocks": blocks}} for blocks, kind in enumerate("ABCD")}
    on = rack_of(rack(nfs, switch={"stages": stages, "blocks_per_stage": most}), "rack")
    tables = [(number, nf) for number, one in enumerate(kinds) for nf in range(len(one))]
    return fits(chains, on, tables), BlockStages(on, chains).fits(frozenset(tables))


@pytest.mark.parametrize(
    ("kinds", "stages", "most", "fit"),
    [
        (["B"], 0, 1, False),
        (["BB"], 1, 9, False),  # one after the other
        (["BB"], 2, 1, True),
        (["C", "C", "C"], 2, 3, False),  # six blocks in six, but none can be split
        (["C", "B", "C", "B"], 2, 3, True),
        (["D", "BC", "B"], 2, 4, True),  # C needs the second stage, so that D or the last B goes first
        (["AA"], 1, 0, False),
        (["AA"], 2, 0, True),
    ],
)
def test_a_table_lies_in_one_stage_after_those_before_it(kinds: list[str], stages: int, most: int, fit: bool) -> None:
    assert fit_stages(kinds, stages, most) == (fit, fit)


@given(st.lists(st.text("ABCD", min_size=1, max_size=5), min_size=1, max_size=3), st.integers(0, 6), st.integers(1, 4))
def test_the_check_and_placing_agree_on_what_fits(kinds: list[str], stages: int, most: int) -> None:
    """They share no code."""
    checked, placed = fit_stages(kinds, stages, most)
    assert checked is placed


def tables_of(kinds: str) -> Rack:
    """Kinds of NFs with tables that wait for each other in all ways, on stages of little memory."""
    by_kind = {
        "A": (SwitchTable("a", {"f": 8}, MatchKind.TERNARY, 6, ("g", "meta.own")), SwitchTable("b", {"meta.own": 4})),
        "B": (SwitchTable("a", {"g": 20}, MatchKind.EXACT, 9, ("f",)),),
        "C": (SwitchTable("a", {"h": 12}, MatchKind.TERNARY, 3, ("g",)), SwitchTable("b", {}, writes=("meta.class",))),
        "D": (SwitchTable("a", {"h": 4}, MatchKind.LPM, 5, ("h",)),),
    }
    on = rack_of(rack({kind: {"switch": {"blocks": 1}} for kind in kinds}), "rack")
    costs = {kind: replace(cost, switch_tables=by_kind[kind]) for kind, cost in on.costs.items()}
    memory = StageMemory(50, 40, 512)
    return replace(on, costs=costs, switch=replace(on.switch, tcam=memory, sram=replace(memory, blocks=2, entries=4)))


@given(st.lists(st.text("ABCD", min_size=1, max_size=5), min_size=1, max_size=3), st.integers(1, 9), st.booleans())
def test_a_packing_is_accepted_and_windows_of_stages_are_the_same(kinds: list[str], stages: int, splits: bool) -> None:
    """Those of the packer, which shares no code with the check; a packing by hand of one table more is refused."""
    on = tables_of("ABCD")
    texts = [chain(f"c{at}", one) for at, one in enumerate(kinds)]
    if splits and len(kinds[0]) > 2:
        texts[0]["edges"] = [
            ["f0", "f1", "1/2"],
            ["f0", "f2", "1/2"],
            *([f"f{at}", f"f{at + 1}"] for at in range(1, len(kinds[0]) - 1)),
        ]
    chains = chains_of({"chains": texts}, "chains")
    nfs = [(number, nf) for number, one in enumerate(kinds) for nf in range(len(one))]
    given_tables = {kind: cost.switch_tables or () for kind, cost in on.costs.items()}
    program = table_program(frozenset(nfs), chains, given_tables)
    packer, fit = TablePacking(program, Memories(on.switch.tcam, on.switch.sram)), TableFit(chains, on, nfs, stages)
    assert fit.is_impossible() == packer.is_impossible(stages)
    if packer.fits(stages):
        packed = packer.pack(stages)
        assert packed is not None
        packing = {table.name: sorted(rows.items()) for table, rows in zip(program.tables, packed, strict=True)}
        assert list(fit.faults(packing)) == []
        for name, rows in packing.items():
            assert list(fit.faults({**packing, name: [*rows, (stages, 1)]}))
            assert list(fit.faults({other: of for other, of in packing.items() if other != name}))
            if name != "steering":
                assert list(fit.faults({**packing, name: [(0, sum(number for _, number in rows))]}))


@pytest.mark.parametrize(("numbers", "stages", "cuts"), [((1, 2, 3), 7, 4), ((1, 2, 3, 4), 12, 0)])
def test_certificates_of_tables(numbers: tuple[int, ...], stages: int, cuts: int) -> None:
    """An optimum with the packing of its tables; what does not fit is proven by windows of stages."""
    chains = lemur.chains(numbers, 0.5)
    on = check_stages(lemur.rack(switch={"stages": stages}), chains, "tables")
    claims = json.loads(json.dumps(certificate_of(best_plan(chains, on), chains)))
    assert (claims["plan"]["status"], faults_in(claims)) == ("optimal", [])
    assert len(claims["proof"]["cuts"]) == cuts
    claims["plan"]["packing"]["steering"] = [[1, 3]]
    assert any("does not wait for steering" in fault for fault in faults_in(claims))
    name, cost = next((nf, cost) for nf, cost in claims["rack"]["nfs"].items() if "tables" in cost.get("switch", {}))
    listed = cost["switch"].pop("tables")
    with pytest.raises(InputError, match=f"the tables of {name} on the switch are not listed"):
        faults_in(claims)
    cost["switch"]["tables"] = listed
    claims["plan"]["packing"] = None
    assert faults_in(claims) == ["plan: the packing is not of the tables of the NFs on the switch"]


@pytest.mark.parametrize(("on_switch", "fit"), [(2, False), (3, True)])
def test_stages_for_encapsulation_are_taken_only_where_packets_cross(on_switch: int, fit: bool) -> None:
    """Three in a row fit three stages; two of them do not fit the one that encapsulation leaves."""
    chains = chains_of({"chains": [chain("a", "XXX")]}, "chains")
    switch = {"stages": 3, "blocks_per_stage": 1}
    on = rack_of(rack({"X": {"switch": {"blocks": 1}}}, switch=switch, overheads={"stages": 2}), "rack")
    assert fits(chains, on, [(0, nf) for nf in range(on_switch)]) is fit


def test_a_question_that_takes_too_long_stays_open(monkeypatch: pytest.MonkeyPatch) -> None:
    """Then a cut is not accepted, and a plan is not said to fit."""
    blocks = (5, 4, 3, 3, 3, 2)  # 5 + 3 + 2 and 4 + 3 + 3, which is not what taking the largest first finds
    nfs = {f"X{one}": {"switch": {"blocks": one}} for one in blocks}
    each = [chain(f"c{at}", "X", nfs=[{"id": "f0", "nf": f"X{one}"}]) for at, one in enumerate(blocks)]
    chains = chains_of({"chains": each}, "chains")
    on = rack_of(rack(nfs, switch={"stages": 2, "blocks_per_stage": 10}), "rack")
    tables = [(at, 0) for at in range(len(blocks))]
    assert fits(chains, on, tables) is True
    monkeypatch.setattr("placer.verify.chains.stage_fit.MOST_STATES", 3)
    assert fits(chains, on, tables) is None
