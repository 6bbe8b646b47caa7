"""`placer chain explain`: verdicts on other layouts, what-if placements, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.placer.commands.conftest import Placer

EXAMPLES = Path(__file__).parents[3] / "examples"
EDGE, RACK = EXAMPLES / "edge.chains", EXAMPLES / "rack.toml"


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
    stdout = explain(placer, "--chain", "chain1", "--layouts", 2)[1]
    assert stdout.endswith("Not shown, on s0 switch: 13 possible\n")


def test_a_placement_is_answered(placer: Placer) -> None:
    """As JSON: the best plan with ACL on the switch; LB may be anywhere."""
    answer = json.loads(explain(placer, "--chain", "chain3", "--placement", "ACL=switch", "--format", "json")[1])
    (layout,) = answer["chains"][0]["layouts"]
    assert layout["placement"]["ACL"] == "switch"
    assert (layout["cause"], layout["proven"]) == ("costs", True)
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
    assert (status, stdout) == (2, "")
    assert fault in stderr
