"""`placer chain replan`: the plan, which NFs move, and what is refused. `placer chain explain`: verdicts on other
layouts, what-if placements, and what is refused."""

import json
from pathlib import Path

import pytest

from tests.placer.commands.conftest import Placer, refuse

EXAMPLES = Path(__file__).parents[3] / "examples"
EDGE, RACK = EXAMPLES / "edge.chains", EXAMPLES / "rack.toml"


@pytest.fixture
def plan(placer: Placer, tmp_path: Path) -> Path:
    """The plan of the example, in which ACL of chain3 is on the server."""
    placer("chain", "place", EDGE, "--rack", RACK, "--plan", tmp_path / "plan.json")
    return tmp_path / "plan.json"


@pytest.fixture
def faster(tmp_path: Path) -> Path:
    """The example with a least rate of chain3 that one core does not reach."""
    text = EDGE.read_text(encoding="utf-8")
    text = text.replace("slo chain3, chain4: 307.35", "slo chain3: 900 Mbps to 100 Gbps\nslo chain4: 307.35")
    (tmp_path / "faster.chains").write_text(text, encoding="utf-8")
    return tmp_path / "faster.chains"


def test_the_table_says_what_changed_and_what_moves(placer: Placer, plan: Path, faster: Path) -> None:
    """ACL leaves the server, so that Dedup may have two cores."""
    status, stdout, stderr = placer("chain", "replan", plan, faster)
    assert (status, stderr) == (0, "")
    assert "Optimal, proven: no plan with 1 NF moved gives more. Solved in" in stdout
    assert stdout.endswith("""
chain3: t_min 307.4 -> 900.0 Mbps

chain   moves  from  to
chain3  ACL    s0    switch
1 NF moves; no plan that keeps all SLOs moves fewer.
""")


def test_too_few_moves_are_answered(placer: Placer, plan: Path, faster: Path) -> None:
    """Without moves there is no plan, and the answer says how many are enough."""
    status, stdout, _ = placer("chain", "replan", plan, faster, "--moves", 0)
    assert status == 0
    assert "Infeasible, proven: at least 1 NF must move to keep all SLOs.\nThere is a plan with 1 NF moved.\n" in stdout
    answer = json.loads(placer("chain", "replan", plan, faster, "--moves", 0, "--format", "json").stdout)
    found = [answer[key] for key in ("status", "proven", "chains", "moves", "least_moves", "enough_moves")]
    assert found == ["infeasible", True, [], [], 1, 1]


def test_json_and_plan_file_hold_the_new_plan(placer: Placer, plan: Path, faster: Path) -> None:
    """The new plan may replace the old one, and replanned again, nothing moves."""
    answer = json.loads(placer("chain", "replan", plan, faster, "--plan", plan, "--format", "json").stdout)
    assert answer["moves"] == [{"chain": "chain3", "nf": "ACL", "from": "s0", "to": "switch"}]
    assert (answer["status"], answer["least_moves"], answer["enough_moves"]) == ("optimal", 1, None)
    again = json.loads(placer("chain", "replan", plan, faster, "--format", "json").stdout)
    assert (again["moves"], again["marginal_mbps"]) == ([], pytest.approx(answer["marginal_mbps"]))
    assert "No chain changed.\n\nNo NF moves.\n" in placer("chain", "replan", plan, faster).stdout


def test_new_and_removed_chains_are_named(placer: Placer, plan: Path, tmp_path: Path) -> None:
    text = EDGE.read_text(encoding="utf-8").replace("chain4", "other")
    (tmp_path / "other.chains").write_text(text, encoding="utf-8")
    stdout = placer("chain", "replan", plan, tmp_path / "other.chains").stdout
    assert stdout.endswith("\nother: new\nchain4: removed\n\nNo NF moves.\n")


def test_that_contention_is_not_looked_at_is_noted(placer: Placer, plan: Path, tmp_path: Path) -> None:
    """`place` would look at it on a rack that names a testbed."""
    text = '[testbed]\nspec = "simulated:server"\n' + RACK.read_text(encoding="utf-8").replace("crossing_us = 6", "")
    (tmp_path / "rack.toml").write_text("crossing_us = 6\n" + text, encoding="utf-8")
    ended = placer("chain", "replan", plan, EDGE, "--rack", tmp_path / "rack.toml")
    assert ended.status == 0 and "note: contention between subgroups" in ended.stderr


@pytest.mark.long
def test_infeasible_chains_are_explained(placer: Placer, plan: Path, faster: Path) -> None:
    """As by `place`: no number of moves would be enough."""
    faster.write_text(faster.read_text(encoding="utf-8").replace("900 Mbps", "90 Gbps"), encoding="utf-8")
    stdout = placer("chain", "replan", plan, faster).stdout
    assert "Infeasible, proven: no plan keeps the SLOs of all chains on this rack." in stdout
    assert "chain3: t_min at most" in stdout


def test_faults_of_all_files_are_named_at_once(plan: Path, tmp_path: Path) -> None:
    """A plan is checked as any input, and faults name what is wrong."""
    document = json.loads(plan.read_text(encoding="utf-8"))
    placement = document["answer"]["chains"][0]["placement"]
    placement["ACL"] = "s9"
    del placement["Encrypt"]
    document["answer"]["chains"][1]["name"] = "chain9"
    plan.write_text(json.dumps(document), encoding="utf-8")
    (tmp_path / "a.chains").write_text("chain a\n", encoding="utf-8")
    printed = refuse("chain", "replan", plan, tmp_path / "a.chains")
    assert "answer.chains.0.placement: the NFs are not those of the chain: Encrypt" in printed
    assert "answer.chains.0.placement.ACL: there is no device 's9'" in printed
    assert "answer.chains.1.name: there is no chain 'chain9'" in printed and "a.chains:1" in printed


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        ("{", "plan.json:1: is not JSON"),
        ("{}", "plan.json: answer: is missing"),
        ('{"answer": {"chains": 1}, "chains": {}, "rack": {}}', "plan.json: answer.chains: 1 is not a list"),
        ("[]", "hint: a plan is what `placer chain place --plan FILE` writes"),
    ],
)
def test_what_is_no_plan_is_refused(plan: Path, content: str, fault: str) -> None:
    plan.write_text(content, encoding="utf-8")
    assert fault in refuse("chain", "replan", plan, EDGE)


def explain(placer: Placer, *more: object) -> tuple[int, str, str]:
    return placer("chain", "explain", EDGE, "--rack", RACK, *more)


def test_the_table_says_what_other_layouts_cost(placer: Placer) -> None:
    """Chain 3 has three other layouts; the one nearest in rate costs 9.7 Mbps."""
    status, stdout, stderr = explain(placer, "--chain", "chain3", "--quiet")
    assert (status, stderr) == (0, "")
    assert (
        stdout
        == """\
The plan gives 24,663.2 Mbps beyond the least rates; proven.

chain3, 596.6 Mbps: Dedup ACL Limiter on s0; LB IPv4Fwd on switch
devices    instead                  verdict
s0 switch  LB on s0                 costs 9.7 Mbps: chain3 -9.7
s0 switch  ACL on switch            costs 2,218.0 Mbps: chain2 -2,236.1, chain3 +18.1
s0 switch  ACL on switch, LB on s0  costs 2,218.0 Mbps: chain2 -2,236.1, chain3 +18.1
"""
    )


def test_layouts_that_are_not_shown_are_counted(placer: Placer) -> None:
    assert explain(placer, "--chain", "chain1", "--layouts", 2)[1].endswith("Not shown, on s0 switch: 13 possible\n")


def test_a_placement_is_answered(placer: Placer) -> None:
    """As JSON: the best plan with ACL on the switch; LB may be anywhere."""
    answer = json.loads(explain(placer, "--chain", "chain3", "--placement", "ACL=switch", "--format", "json")[1])
    (layout,) = answer["chains"][0]["layouts"]
    assert layout["placement"]["ACL"] == "switch" and (layout["cause"], layout["proven"]) == ("costs", True)
    assert layout["cost_mbps"] == pytest.approx(2218.0, abs=0.1)
    assert layout["marginal_mbps"] == pytest.approx(answer["marginal_mbps"] - layout["cost_mbps"])
    assert "as in the plan" in explain(placer, "--chain", "chain3", "--placement", "ACL=s0")[1]


def test_without_a_plan_the_answer_is_that_of_place(placer: Placer, tmp_path: Path) -> None:
    text = EDGE.read_text(encoding="utf-8").replace("307.35 Mbps", "30 Gbps")
    (tmp_path / "edge.chains").write_text(text, encoding="utf-8")
    ended = placer("chain", "explain", tmp_path / "edge.chains", "--rack", RACK)
    assert ended.status == 0 and ended.stdout.startswith("Infeasible, proven")


@pytest.mark.parametrize(
    ("more", "fault"),
    [
        (("--chain", "chan1"), "--chain: there is no chain 'chan1'\nhint: did you mean chain1?"),
        (("--placement", "ACL=s0"), "--placement: needs a chain\nhint: --chain chain1"),
        (("--chain", "chain3", "--placement", "ACL"), "'ACL' is not of the form NF=DEVICE"),
        (("--chain", "chain3", "--placement", "ALC=s0"), "chain3 has no NF 'ALC'\nhint: did you mean ACL?"),
        (("--chain", "chain3", "--placement", "ACL=s1"), "there is no device 's1'"),
        (("--chain", "chain3", "--placement", "Dedup=switch"), "Dedup does not run on switch"),
        (("--chain", "chain3", "--placement", "ACL=s0 ACL=switch"), "'ACL' is given twice"),
        (("--chain", "chain3", "--placement", " "), "names no NF"),
        (("--format", "csv"), "--format: 'csv' is not understood"),
    ],
)
def test_what_is_no_option_is_refused(placer: Placer, more: tuple[object, ...], fault: str) -> None:
    status, stdout, stderr = explain(placer, *more)
    assert (status, stdout) == (2, "") and fault in stderr
