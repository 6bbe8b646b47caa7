"""Plans whose NFs on the switch are packed as tables, by hand and against all sets of NFs."""

import json
import sys
from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placer.rack.chain import Chain
from placer.rack.contention.loop import RackInstance
from placer.rack.files.json_twins import chains_of, rack_of
from placer.rack.files.written_twins import write_rack
from placer.rack.plan import Limit, Status
from placer.rack.rack import Rack
from placer.rack.reasons.infeasible import explain_infeasible
from placer.rack.search.fleet_plan import fleet_plan
from placer.rack.stages.stage_oracles import check_stages, stage_oracle
from placer.rack.stages.tables.table_stages import CompilerError, StageCompiler, TableStages
from placer.rack.strategies.optimal import best_plan
from profiles import InputError
from tests.placer.rack import instances, lemur
from tests.placer.rack.exhaustive import best_rates
from tests.placer.rack.stages.tables.test_packing import everything, nats


def lemur_rack(stages: int, servers: int = 1) -> Rack:
    rack = lemur.rack(switch={"stages": stages})
    copies = tuple(replace(rack.servers[0], name=f"s{at}") for at in range(servers))
    return replace(rack, servers=copies, stage_oracle="tables")


def test_eleven_nats_leave_one_to_a_server() -> None:
    """As Lemur places them (section 5.2): ten fit the switch's 12 stages."""
    ten, eleven = nats(10), nats(11)
    assert best_plan([ten], lemur_rack(12)).chains[0].layout.subgroups == ()
    oracle = TableStages(lemur_rack(12), [eleven])
    assert not oracle.fits(everything(eleven))
    assert all(oracle.fits(everything(eleven) - {(0, nf)}) for nf in range(1, 12))
    plan = best_plan([eleven], lemur_rack(12))
    assert plan.status is Status.OPTIMAL and plan.chains[0].layout.subgroups


def test_known_verdicts_are_those_of_the_packer() -> None:
    """What was answered before, of larger and smaller sets, changes no answer."""
    chains = lemur.chains((1, 2), 0.5)
    on = lemur_rack(7)
    oracle = stage_oracle(on, chains)
    able = [one for one in sorted(everything(*chains)) if on.costs[chains[one[0]].nfs[one[1]].nf].switch_blocks]
    for size in (4, 7, 2, 5):
        for some in list(combinations(able, size))[::40]:
            assert oracle.fits(frozenset(some)) == stage_oracle(on, chains).fits(frozenset(some))


@pytest.mark.parametrize("delta", [0.5, 1, 2, 4])
def test_lemurs_sets_reach_their_optima_with_twelve_stages(delta: float) -> None:
    """Stages are no bottleneck of these chains, as in the paper (section 5.2)."""
    plan = best_plan(lemur.chains((1, 2, 3), delta), lemur_rack(12))
    expected = lemur.OPTIMA_GBPS[1, 2, 3][lemur.RATE_DELTAS.index(delta)]
    assert plan.status is Status.OPTIMAL
    assert sum(one.rate_mbps for one in plan.chains) / 1000 == pytest.approx(expected, abs=0.01)


@pytest.mark.parametrize("stages", [4, 12])
def test_plans_of_many_servers_fit_the_stages(stages: int) -> None:
    """And nothing is better than the bound, which counts blocks of TCAM."""
    on = lemur_rack(stages, servers=3)
    chains = [replace(one, name=f"{one.name}_{copy}") for copy in range(3) for one in lemur.chains((3,), 0.5)]
    plan = fleet_plan(chains, on, time_limit=2)
    tables = frozenset((at, nf) for at, one in enumerate(plan.chains) for nf in one.layout.on_switch)
    assert plan.chains and stage_oracle(on, chains).fits(tables)
    assert plan.bound_mbps is not None and plan.bound_mbps >= plan.marginal_mbps - 1e-6


def test_too_few_stages_are_in_the_conflict() -> None:
    """IPv4Fwd runs on the switch only and needs four stages, with the steering before it."""
    chains = lemur.chains((2,), 0.5)
    assert best_plan(chains, lemur_rack(4)).chains
    plan = explain_infeasible(best_plan(chains, lemur_rack(3)), chains)
    assert plan.status is Status.INFEASIBLE
    assert plan.conflict == (Limit("blocks", "switch"),) and plan.changes == ()


def test_a_rack_may_give_tables_and_memory() -> None:
    """Its own tables replace those of the library; JSON that is written is read again."""
    twin = lemur.rack_json(switch={"stages": 12, "tcam": {"blocks": 12, "bits": 44, "entries": 512}})
    large = {"name": "rules", "match": "ternary", "key": {"ip.src": 32, "ip.dst": 32}, "entries": 100_000}
    twin["nfs"]["ACL"]["switch"] = {"blocks": 3, "tables": [large]}
    rack = rack_of(twin, "rack")
    assert rack_of(write_rack(rack), "rack") == rack
    chains = lemur.chains((3,), 0.5)
    acl = frozenset({(0, 1)})
    assert not TableStages(rack, chains).fits(acl)
    assert TableStages(rack_of(lemur.rack_json(switch={"stages": 12}), "rack"), chains).fits(acl)


def test_nfs_whose_cycles_grow_keep_their_tables() -> None:
    """Prediction of contention gives them names that no library knows."""
    chains = lemur.chains((3,), 0.5)
    asked = RackInstance(chains, check_stages(lemur.rack(switch={"stages": 12}), chains, "tables"))
    grown = asked.grow({(0, 1, False): Fraction(3, 2)})
    assert grown.chains[0].nfs[1].nf != "ACL"
    assert best_plan(grown.chains, grown.rack).status is Status.OPTIMAL


def test_nfs_without_tables_are_refused() -> None:
    """By name, with the key of the rack file that would give them."""
    chains, rack = renamed(lemur.chains((3,), 0.5))
    with pytest.raises(InputError) as refused:
        check_stages(rack, chains, "tables")
    (fault,) = refused.value.faults
    assert "the tables of Firewall on the switch are not known" in str(fault)
    assert fault.hint == "tables = [...] beside blocks, in [nf.Firewall.switch] of the rack"


def renamed(chains: tuple[Chain, ...]) -> tuple[list[Chain], Rack]:
    """ACL as Firewall, which is no NF of the library."""
    rack = lemur.rack(switch={"stages": 12})
    nfs = [[replace(nf, nf="Firewall") if nf.nf == "ACL" else nf for nf in chain.nfs] for chain in chains]
    costs = dict(rack.costs) | {"Firewall": rack.costs["ACL"]}
    return [replace(one, nfs=tuple(own)) for one, own in zip(chains, nfs, strict=True)], replace(rack, costs=costs)


@pytest.mark.parametrize(
    ("name", "message"), [("table", "'table' is none"), ("exec", "'exec' is none"), ("exec:", "exec: names no program")]
)
def test_other_oracles_are_refused(name: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        check_stages(lemur.rack(switch={"stages": 12}), lemur.chains((3,), 0.5), name)


def disagreements(seed: int) -> list[str]:
    """In what the best plan and that of an exhaustive search over plans and packings differ."""
    chains, twin = instances.tabled(seed)
    read, rack = chains_of(chains, "chains"), replace(rack_of(twin, "rack"), stage_oracle="tables")
    plan, best = best_plan(read, rack), best_rates(chains, twin, by_tables=True)
    if best is None:
        return [] if plan.status is Status.INFEASIBLE else [f"{plan.status}, and no plan is possible"]
    if plan.status is not Status.OPTIMAL or plan.marginal_mbps != pytest.approx(
        float(best.marginal), rel=1e-7, abs=1e-7
    ):
        return [f"{plan.status} with {plan.marginal_mbps}, and the best is {float(best.marginal)}"]
    return []


@pytest.mark.long
def test_plans_with_tables_agree_with_an_exhaustive_search() -> None:
    """Lazy cuts forbid what the packer refuses, and nothing else."""
    found = {seed: disagreements(seed) for seed in range(30)}
    assert {seed: wrong for seed, wrong in found.items() if wrong} == {}


@given(st.integers(10_000, 10**9))
@settings(max_examples=10, deadline=None)
def test_any_plan_with_tables_agrees_with_an_exhaustive_search(seed: int) -> None:
    """Instances change from run to run; the seed is named where one disagrees."""
    assert disagreements(seed) == []


COUNTS = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    with open(sys.argv[1], "a") as log:
        log.write(line)
    print(json.dumps({"id": asked["id"], "fits": len(asked["tables"]) <= asked["stages"]}), flush=True)
"""
"""A compiler that gives each table a stage of its own."""


def with_compiler(folder: Path, stages: int | None) -> Rack:
    (folder / "compiler.py").write_text(COUNTS, encoding="utf-8")
    command = f"exec:{sys.executable} {folder / 'compiler.py'} {folder / 'log'}"
    return check_stages(lemur.rack(switch={"stages": stages}), lemur.chains((3,), 0.5), command)


def test_a_compiler_decides_what_fits(tmp_path: Path) -> None:
    """Steering and IPv4Fwd take four tables; LB would take two more, ACL one."""
    chains = lemur.chains((3,), 0.5)
    assert best_plan(chains, with_compiler(tmp_path, 3)).status is Status.INFEASIBLE
    assert best_plan(chains, with_compiler(tmp_path, 4)).chains[0].layout.on_switch == (4,)
    lines = (tmp_path / "log").read_text(encoding="utf-8").splitlines()
    asked = json.loads(next(line for line in reversed(lines) if "routes" in line))
    assert asked["stages"] == 4
    assert asked["tcam"] == {"blocks": 24, "bits": 44, "entries": 512}
    routes = next(one for one in asked["tables"] if one["name"] == "chain3/IPv4Fwd/routes")
    assert routes["key"] == {"ip.dst": 32} and routes["match"] == "lpm"
    assert ["steering", "chain3/IPv4Fwd/routes", "match"] in asked["dependencies"]


def test_it_is_not_asked_again(tmp_path: Path) -> None:
    """Not even by another search of the same process."""
    chains, rack = lemur.chains((3,), 0.5), with_compiler(tmp_path, 5)
    best_plan(chains, rack)
    questions = (tmp_path / "log").read_text(encoding="utf-8")
    best_plan(chains, rack)
    assert (tmp_path / "log").read_text(encoding="utf-8") == questions


def test_a_compiler_needs_a_number_of_stages(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="the rack has no number of stages"):
        with_compiler(tmp_path, None)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ("", "answered with what is not JSON"),
        ("no", "answered with what is not JSON: no"),
        ("[" * 100_000, "answered with what is not JSON"),
        ('{"fits": true}', "did not answer with an object whose id is 0"),
        ('{"id": 1, "fits": true}', "did not answer with an object whose id is 0"),
        ('{"id": 0, "fits": 1}', "answered without `fits` true or false"),
        ("7", "did not answer with an object"),
    ],
)
def test_a_wrong_answer_ends_the_compiler(tmp_path: Path, answer: str, message: str) -> None:
    """The error names what it answered, and holds what it wrote to stderr."""
    program = tmp_path / "compiler.py"
    program.write_text(f"import sys\nsys.stdin.readline()\nprint('oh', file=sys.stderr)\nprint({answer!r})\n")
    with pytest.raises(CompilerError, match=message) as failed:
        StageCompiler(f"{sys.executable} {program}").fits({})
    assert "on stderr:\n  oh" in str(failed.value)


def test_a_compiler_that_ends_is_an_error() -> None:
    with pytest.raises(CompilerError, match=r"`true` ended without an answer \(exit status 0\)"):
        StageCompiler("true").fits({})


def test_an_answer_that_takes_too_long_ends_the_compiler(tmp_path: Path) -> None:
    with pytest.raises(CompilerError, match=r"gave no answer within 0\.05 s"):
        StageCompiler("sleep 60", timeout=0.05).fits({})


def test_a_compiler_that_cannot_be_started_is_named() -> None:
    with pytest.raises(CompilerError, match=r"compiler `\./no-such-program` cannot be started"):
        StageCompiler("./no-such-program")
