"""`placer chain place --stages`: what decides whether NFs fit the switch, and tables in the rack file."""

import json
import sys
from pathlib import Path

import pytest

from tests.placer.commands.conftest import Ended, Placer, refuse

RACK = """[switch]
stages = 12
[[server]]
name = "s0"
cores = 4
clock_mhz = 1000
nic_mbps = 40_000
[nf]
Match = {switch = {blocks = 0}}
NAT = {server = {cycles = 100, replicable = false}, switch = {blocks = 0}}
IPv4Fwd = {switch = {blocks = 0}}
"""
COMPILER = """import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    print(json.dumps({"id": asked["id"], "fits": len(asked["tables"]) < 30}), flush=True)
"""


def place(placer: Placer, folder: Path, nats: int, *more: object, stages: int = 12) -> Ended:
    """A Match in front of so many NATs, each on a branch."""
    (folder / "rack.toml").write_text(RACK.replace("stages = 12", f"stages = {stages}"), encoding="utf-8")
    text = f"slo c: 10 Mbps to 100 Gbps\nchain c: Match -> {nats} x 1/{nats} NAT -> IPv4Fwd\n"
    (folder / "edge.chains").write_text(text, encoding="utf-8")
    return placer("chain", "place", folder / "edge.chains", "--rack", folder / "rack.toml", "--format", "json", *more)


def on_servers(stdout: str) -> int:
    """NFs that are not on the switch."""
    (chain,) = json.loads(stdout)["chains"]
    return sum(site != "switch" for site in chain["placement"].values())


def test_tables_take_stages_that_blocks_do_not_count(placer: Placer, tmp_path: Path) -> None:
    """Ten NATs fit 12 stages, of eleven at least one goes to the server; without blocks to count, all fit."""
    assert on_servers(place(placer, tmp_path, 10, "--stages", "tables")[1]) == 0
    assert on_servers(place(placer, tmp_path, 11, "--stages", "tables")[1]) >= 1
    assert on_servers(place(placer, tmp_path, 11, "--stages", "blocks")[1]) == 0


def test_explain_and_replan_count_the_tables_that_place_counts(placer: Placer, tmp_path: Path) -> None:
    """Eleven NATs: the layout with all on the switch does not fit, and a plan by blocks loses it by tables."""
    plan = tmp_path / "plan.json"
    assert on_servers(place(placer, tmp_path, 11, "--plan", plan)[1]) == 0
    question = ("chain", "explain", tmp_path / "edge.chains", "--rack", tmp_path / "rack.toml", "--chain", "c")
    everywhere = ("--placement", " ".join(f"NAT_{at}=switch" for at in range(1, 12)))
    for stages, verdict in (("blocks", "as good"), ("tables", "stages")):
        ended = placer(*question, *everywhere, "--stages", stages)
        assert ended.status == 0 and verdict in ended.stdout, ended.stdout
    ended = placer("chain", "replan", plan, tmp_path / "edge.chains", "--stages", "tables", "--format", "json")
    assert ended.status == 0 and on_servers(ended.stdout) >= 1


def test_stages_are_what_cannot_be_kept(placer: Placer, tmp_path: Path) -> None:
    """Steering and the three tables of IPv4Fwd need four."""
    status, stdout, stderr = place(placer, tmp_path, 2, "--stages", "tables", "--format", "table", stages=3)
    assert (status, stderr) == (0, "") and "These limits cannot be kept together: stages of switch.\n" in stdout


def test_a_compiler_of_the_command_line_decides(placer: Placer, tmp_path: Path) -> None:
    """This one has room for 29 tables; ten NATs with steering, a branch, Match and routes are 36."""
    (tmp_path / "compiler.py").write_text(COMPILER, encoding="utf-8")
    ended = place(placer, tmp_path, 10, "--stages", f"exec:{sys.executable} {tmp_path / 'compiler.py'}")
    assert on_servers(ended[1]) >= 3


def test_a_compiler_that_fails_is_an_error(placer: Placer, tmp_path: Path) -> None:
    """One line with what it did; exit 1."""
    status, stdout, stderr = place(placer, tmp_path, 2, "--stages", "exec:false")
    assert (status, stdout) == (1, "") and "compiler `false` ended without an answer (exit status 1)" in stderr


@pytest.mark.parametrize(
    ("stages", "message"),
    [
        ("fast", "--stages: 'fast' is none\nhint: one of blocks, tables, exec:PROGRAM\n"),
        ("exec:", "--stages: exec: names no program\nhint: exec:PROGRAM, such as exec:./p4-stages\n"),
        ("exec:'", "--stages: exec:': No closing quotation\n"),
    ],
)
def test_other_names_are_refused(placer: Placer, tmp_path: Path, stages: str, message: str) -> None:
    status, stdout, stderr = place(placer, tmp_path, 2, "--stages", stages)
    assert (status, stdout) == (2, "") and message in stderr


def test_a_certificate_of_tables_holds_their_packing(placer: Placer, tmp_path: Path) -> None:
    """The tables of another rack are others; a compiler's word is no proof."""
    file, rack = tmp_path / "certificate.json", tmp_path / "rack.toml"
    assert place(placer, tmp_path, 10, "--stages", "tables", "--certificate", file).status == 0
    assert "is optimal" in placer("verify", file, "--rack", rack).stdout
    tables = 'switch = {blocks = 0, tables = [{name = "t", key = {f = 8}}]}'
    rack.write_text(RACK.replace("IPv4Fwd = {switch = {blocks = 0}}", f"IPv4Fwd = {{{tables}}}"), encoding="utf-8")
    ended = placer("verify", file, "--rack", rack)
    assert (ended.status, ended.stderr) == (1, f"rack: IPv4Fwd differs from {rack}\n")
    ended = place(placer, tmp_path, 2, "--stages", "exec:cat", "--certificate", tmp_path / "none.json")
    assert ended.status == 2 and not (tmp_path / "none.json").exists()
    assert (
        ended.stderr == "--certificate: holds no proof of --stages exec:cat\nhint: --stages blocks or --stages tables\n"
    )


def test_a_rack_file_starts_no_program(tmp_path: Path) -> None:
    """Nor does it choose what decides."""
    (tmp_path / "edge.chains").write_text("slo c: 10 Mbps to 100 Gbps\nchain c: NAT\n", encoding="utf-8")
    for key in ('stages = "exec:touch x"', 'stage_oracle = "exec:touch x"'):
        (tmp_path / "rack.toml").write_text(RACK.replace("stages = 12", key), encoding="utf-8")
        assert "rack.toml:2: switch." in refuse(
            "chain", "place", tmp_path / "edge.chains", "--rack", tmp_path / "rack.toml"
        )
    assert not (tmp_path / "x").exists()
