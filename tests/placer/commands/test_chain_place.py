"""`placer chain place`: the table, the JSON, the plan file, and what is refused."""

import json
import re
from pathlib import Path

import pytest

from placer.rack.files.json_twins import chains_of, rack_of
from tests.placer.commands.conftest import Placer, refuse

EXAMPLES = Path(__file__).parents[3] / "examples"
EDGE, RACK = EXAMPLES / "edge.chains", EXAMPLES / "rack.toml"

SMALL_RACK = """crossing_us = 5
[[server]]
name = "s0"
cores = 4
clock_mhz = 1000
nic_mbps = 10_000
[nf]
A = {switch = {blocks = 1}, server = {cycles = 100}}
B = {server = {cycles = 1000}}
"""


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A server with four cores of 1 GHz; packets of 125 bytes: B carries 1 Gbps a core."""
    (tmp_path / "rack.toml").write_text(SMALL_RACK, encoding="utf-8")
    return tmp_path


def place(placer: Placer, folder: Path, text: str, *more: object) -> tuple[int, str, str]:
    (folder / "edge.chains").write_text(f"packets: 125 B\n{text}", encoding="utf-8")
    return placer("chain", "place", folder / "edge.chains", "--rack", folder / "rack.toml", *more)


def test_the_table_says_where_how_fast_and_why_not_faster(placer: Placer, small: Path) -> None:
    """b reaches its t_max with one core; a has the other three, and 10 us + 1 us of latency."""
    text = """slo a: 1 Gbps to 100 Gbps, at most 12 us
slo b: 0 Mbps to 500 Mbps
chain a: A -> B
chain b: B -> A -> last=B
"""
    status, stdout, stderr = place(placer, small, text)
    assert (status, stderr) == (0, "")
    assert (
        re.sub(r"\d\.\d\d s", "T", stdout)
        == """\
chain  rate Mbps    t_min      t_max  latency us  slack us  cores
a        3,000.0  1,000.0  100,000.0       11.00      1.00      3
b          476.2      0.0      500.0       12.10         -      1

chain  limited by
a      B on s0
b      B A last on s0

Paths, with the cores of each subgroup:
  a
    switch: A
    s0: B (3 cores)
  b
    s0: B A last (1 core)

device  cores  used  NIC Mbps       in      out
s0          4     4  10,000.0  3,476.2  3,476.2
switch: 1 NFs; its stages are without a bound

Aggregate 3,476.2 Mbps, of which 2,476.2 Mbps beyond the least rates.
Optimal, proven: no plan gives more. Solved in T.
"""
    )


def test_json_is_the_answer(placer: Placer) -> None:
    """Keys of CONTRACTS 9, and the published optimum of 27.51 Gbps."""
    ended = placer("chain", "place", EDGE, "--rack", RACK, "--format", "json")
    answer = json.loads(ended.stdout)
    assert (ended.status, ended.stderr) == (0, "")
    assert set(answer) == {
        "status", "proven", "marginal_mbps", "bound_mbps", "seconds", "chains", "conflict", "relaxations",
    }  # fmt: skip
    assert (answer["status"], answer["proven"]) == ("optimal", True)
    assert sum(one["rate_mbps"] for one in answer["chains"]) == pytest.approx(27_510, abs=10)
    first = answer["chains"][0]
    assert set(first) == {"name", "rate_mbps", "latency_us", "placement", "subgroups"}
    assert first["placement"]["IPv4Fwd"] == "switch" and first["subgroups"][0]["on"] == "s0"


def test_a_strategy_is_printed_with_its_gap(placer: Placer) -> None:
    ended = placer("chain", "place", EDGE, "--rack", RACK, "--strategy", "greedy")
    assert ended.status == 0 and "limited by" in ended.stdout
    assert "No plan gives more than 24,663.2 Mbps beyond the least rates: the gap is 61.24 %." in ended.stdout


def test_a_strategy_that_finds_the_optimum_is_proven(placer: Placer) -> None:
    ended = placer("chain", "place", EDGE, "--rack", RACK, "--strategy", "minimum-bounce", "--format", "json")
    assert json.loads(ended.stdout)["status"] == "optimal"


def test_infeasible_chains_are_answered(placer: Placer, small: Path) -> None:
    text = "slo a: 9 Gbps to 10 Gbps\nchain a: B\n"
    status, stdout, stderr = place(placer, small, text)
    assert (status, stderr) == (0, "")
    assert stdout.startswith("Infeasible, proven: no plan keeps the SLOs of all chains on this rack.\n")
    answer = json.loads(place(placer, small, text, "--format", "json")[1])
    assert (answer["status"], answer["proven"], answer["chains"]) == ("infeasible", True, [])


def test_a_strategy_without_a_plan_gives_its_reason(placer: Placer, small: Path) -> None:
    """Bounces take four cores for two subgroups; together A and B reach 1.9 Gbps with less."""
    text = "slo a: 1600 Mbps to 10 Gbps\nchain a: B -> A -> last=B\n"
    status, stdout, _ = place(placer, small, text, "--strategy", "software-preferred")
    assert status == 0 and "3,2" not in stdout
    text = "slo a: 1950 Mbps to 10 Gbps\nchain a: B -> A -> last=B\n"
    status, stdout, _ = place(placer, small, text, "--strategy", "software-preferred")
    assert status == 0 and stdout.splitlines()[:2] == [
        "software-preferred finds no plan. Another strategy may find one.",
        "software-preferred: a reaches 1,904.8 Mbps of its t_min, 1,950.0 Mbps.",
    ]


def test_the_plan_file_holds_answer_chains_and_rack(placer: Placer, small: Path) -> None:
    plan = small / "out" / "plan.json"
    text = "slo a: 1 Gbps to 10 Gbps\nchain a: A -> B\n"
    status, stdout, _ = place(placer, small, text, "--plan", plan, "--format", "json")
    written = json.loads(plan.read_text(encoding="utf-8"))
    assert status == 0 and written["answer"] == json.loads(stdout)
    assert [one.name for one in chains_of(written["chains"], "x")] == ["a"]
    assert rack_of(written["rack"], "x").servers[0].name == "s0"
    assert [one.name for one in plan.parent.iterdir()] == ["plan.json"]
    assert place(placer, small, text, "--out", small / "same.json")[0] == 0
    assert json.loads((small / "same.json").read_text(encoding="utf-8"))["chains"] == written["chains"]


def test_parameters_that_change_nothing_are_noted(placer: Placer, small: Path) -> None:
    status, _, stderr = place(placer, small, "slo a: 1 Gbps to 10 Gbps\nchain a: A(rules=9) -> B\n")
    assert status == 0 and "note: parameters of A do not change what an NF costs" in stderr
    assert place(placer, small, "slo a: 1 Gbps to 10 Gbps\nchain a: A(rules=9) -> B\n", "--quiet")[2] == ""


def test_faults_of_both_files_are_named_at_once(placer: Placer, small: Path) -> None:
    (small / "rack.toml").write_text(SMALL_RACK.replace("4", "-4"), encoding="utf-8")
    status, stdout, stderr = place(placer, small, "slo a: 1 Gb to 2 Gbps\nchain a: A -> [1/2 B\n")
    assert (status, stdout) == (2, "")
    assert [line.split("/")[-1] for line in stderr.splitlines()] == [
        "edge.chains:2: column 10: the unit 'Gb' is not known",
        "edge.chains:3: column 15: the '[' is not closed",
        "rack.toml:4: server.cores: -4 is below 0",
        "hint: did you mean Gbps?",
        "hint: write ] where it ends",
    ]


def test_an_nf_that_is_not_in_the_rack_is_named(placer: Placer, small: Path) -> None:
    status, stdout, stderr = place(placer, small, "slo a: 1 Gbps to 2 Gbps\nchain a: A -> [1/2 Bee | 1/2 B]\n")
    assert (status, stdout) == (2, "")
    assert "edge.chains:3: column 20: NF Bee is not in the rack\nhint: one of A, B" in stderr


@pytest.mark.parametrize(
    ("more", "fault"),
    [
        (("--strategy", "gready"), "--strategy: 'gready' is not a strategy for chains\nhint: did you mean greedy?"),
        (("--format", "csv"), "--format: 'csv' is not understood\nhint: it is one of table, json"),
        (("--plan", EDGE), "edge.chains is also the file of CHAINS"),
        (("--plan", EXAMPLES), "examples cannot be written"),
        (("--report", EXAMPLES), "--report"),
        (("--report", "both", "--plan", "both"), "is also the file of --plan"),
        (("--certificate", "both", "--plan", "both"), "is also the file of --plan"),
        (("--rack", "none"), "none: No such file or directory"),
        (("--time-limit", 0), "greater than or equal to 0.1"),
    ],
)
def test_what_is_no_option_is_refused(
    more: tuple[object, ...], fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is written."""
    monkeypatch.chdir(tmp_path)
    assert fault in refuse("chain", "place", EDGE, "--rack", RACK, *more)
    assert list(tmp_path.iterdir()) == []


def test_what_takes_long_is_announced(placer: Placer, monkeypatch: pytest.MonkeyPatch) -> None:
    """On stderr, and not with --quiet."""
    monkeypatch.setattr("placer.commands.chain_place.AFTER_S", 0.0)
    ended = placer("chain", "place", EDGE, "--rack", RACK)
    assert ended.status == 0 and "placing 4 chains, at most 60 s\n" in ended.stderr
    assert placer("chain", "place", EDGE, "--rack", RACK, "--quiet").stderr == ""


def test_conflict_and_changes_are_in_the_answer(placer: Placer, small: Path) -> None:
    """Three cores carry 3 Gbps, four 4 Gbps; B alone has no other place."""
    text = "slo a: 4500 Mbps to 5 Gbps\nchain a: B\n"
    answer = json.loads(place(placer, small, text, "--format", "json")[1])
    assert {"kind": "cores", "of": "s0", "to": 5} in answer["relaxations"]
    assert {"kind": "t_min", "of": "a"} in answer["conflict"]
    assert "  s0: 5 cores\n" in place(placer, small, text)[1]


def test_a_chain_of_a_hundred_nfs_is_placed(placer: Placer, small: Path) -> None:
    """More than numpy's arrays have dimensions."""
    path = " -> ".join(["Monitor"] * 99)
    (small / "long.chains").write_text(f"slo a: 1 Mbps to 2 Mbps\nchain a: {path} -> IPv4Fwd\n", encoding="utf-8")
    rack = Path(__file__).parents[3] / "examples" / "rack.toml"
    status, stdout, _ = placer("chain", "place", small / "long.chains", "--rack", rack)
    assert status == 0 and "Optimal, proven" in stdout


PLACE_QUIETLY = ["chain", "place", EXAMPLES / "edge.chains", "--rack", EXAMPLES / "rack.toml", "--quiet"]


@pytest.mark.long
def test_a_report_is_written_beside_the_table(placer: Placer, tmp_path: Path) -> None:
    """It needs no network, and names the command that makes it again."""
    file = tmp_path / "rack.html"
    status, stdout, stderr = placer(*PLACE_QUIETLY, "--report", file)
    assert (status, stderr) == (0, "") and "Optimal, proven" in stdout
    html = file.read_text(encoding="utf-8")
    assert "<title>Chains on a rack: edge.chains</title>" in html
    assert "placer chain place " in html and "--report FILE.html" in html
