"""The examples run as they are.

Lemur's five chains, from their text to packets: what the example does with a switch, a server and a SmartNIC.
"""

import ast
import json
import os
import re
import runpy
import shutil
import subprocess
import sys
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import pytest

from placer.rack.compiler.execute import execute_rack, find_programs
from placer.rack.files.plan_file import read_plan
from profiles import InputError
from tests.nfs.captures import read_capture, write_capture
from tests.reference.compare import RackOutcome, ReferenceRun

EXAMPLES = Path(__file__).parents[2] / "examples"
PRINTED = {"follow_a_packet.py": "switch -> n0: 113 bytes, path 1, index 254: chain5/UrlFilter is next"}
"""A part of what each example prints."""
ELSEWHERE = ("compile_and_run.py",)  # has tests of its own, below
NEEDS = {"follow_a_packet.py": "clang"}


def test_every_example_has_a_test() -> None:
    """The folder has no other example."""
    assert {path.name for path in EXAMPLES.glob("*.py")} == {*PRINTED, *ELSEWHERE}


@pytest.mark.parametrize("name", [*PRINTED, *ELSEWHERE])
def test_an_example_begins_with_a_docstring(name: str) -> None:
    """Its first paragraph describes what the example shows; the next one names the command that does the same."""
    docstring = ast.get_docstring(ast.parse((EXAMPLES / name).read_text(encoding="utf-8")))
    assert docstring
    summary, _, details = docstring.partition("\n\n")
    assert summary.endswith(".") and details.startswith("This is what `placer ")


@pytest.mark.long
@pytest.mark.parametrize("name", PRINTED)
def test_an_example_runs_in_an_empty_folder(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It needs no file of the project, and prints its result."""
    if (needed := NEEDS.get(name)) and shutil.which(needed) is None:
        pytest.skip(f"{needed} not installed: `make deps` installs it")
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(EXAMPLES / name))
    assert PRINTED[name] in capsys.readouterr().out


REPO = Path(__file__).parents[2]
EXTEND = REPO / "examples" / "extend"
PACKAGES = ("experiments", "placer", "predictor", "profiler", "profiles", "traces")
ROOMS = {
    "half_full.py": "placer/strategies",
    "linear_drop.py": "predictor/predictors",
    "formula.py": "profiler/testbeds",
    "nic_model.py": "placer/model/constraints",
}


CONFORMS = (
    "from placer.strategies import STRATEGIES\n"
    "from placer.model.constraints import CONSTRAINTS\n"
    "from placer.testing import check_constraint, check_predictor, check_strategy, check_testbed\n"
    "check_constraint(CONSTRAINTS['nic_model'], ('toy-0', 'toy-1|toy-4'))\n"
    "check_strategy(STRATEGIES['half-full'])\ncheck_predictor('linear-drop')\ncheck_testbed('formula:0.2')\n"
)
"""The kit that their page recommends."""

SCRIPT = """
import contextlib, io, json, sys
from placer.cli import main
ended = []
for arguments in json.loads(sys.argv[1]):
    sys.argv = ["placer", *arguments]
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
        try:
            main()
        except SystemExit as stopped:
            ended.append([stopped.code or 0, out.getvalue(), err.getvalue()])
exec(json.loads(sys.stdin.read()))
print(json.dumps(ended))
"""
"""Runs commands one after the other, then checks; prints how the commands ended."""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the packages, with every example copied into its room and no other edit."""
    folder = tmp_path_factory.mktemp("project")
    for package in PACKAGES:
        shutil.copytree(REPO / package, folder / package, ignore=_not_machine_code)
    for file, room in ROOMS.items():
        shutil.copy(EXTEND / file, folder / room)
    return folder


def _not_machine_code(folder: str, names: list[str]) -> list[str]:
    """What caches hold beside machine code, which takes a minute to compile again."""
    cache = Path(folder).name == "__pycache__"
    return [name for name in names if cache and not name.endswith((".nbi", ".nbc"))]


def test_every_example_has_a_room() -> None:
    assert {path.name for path in EXTEND.glob("*.py")} == set(ROOMS)


@pytest.mark.long
def test_a_profile_a_predictor_and_plans_come_from_four_copied_files(project: Path, tmp_path: Path) -> None:
    """The testbed is profiled, the predictor trained on that, the strategy compared on both, and the constraint kept.
    Hints list what is in the rooms, and all four conform; one process does it all."""
    trace, models = tmp_path / "arrivals.csv", tmp_path / "models"
    constrained = tmp_path / "constrained.csv"
    constrained.write_text("id,time,nf,sla_drop,nic_model\na,0,Counter,0.1,formula-nic\nb,1,Counter,0.1,another\n")
    trace.write_text(
        "id,time,nf,sla_drop\n" + "".join(f"{i},{i},{nf},0.1\n" for i, nf in enumerate(["Forwarder", "Counter"] * 8))
    )
    strategies = ("--strategy", "half-full", "--strategy", "contention-aware", "--strategy", "optimal")
    commands = [
        ("profile", "--testbed", "formula", "--out", tmp_path / "profile", "--quota", 60, "--quiet"),
        ("train", tmp_path / "profile", "--out", models, "--predictor", "linear-drop"),
        ("run", trace, "--models", models, "--testbed", "formula", "--format", "json", "--quiet", *strategies),
        ("run", constrained, "--models", models, "--testbed", "formula", "--format", "json", "--quiet"),
        ("run", trace, "--strategy", "half-ful"),
    ]
    given = json.dumps([list(map(str, command)) for command in commands])
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, given], input=json.dumps(CONFORMS), cwd=project, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    *succeeded, misspelt = json.loads(done.stdout)
    assert [status for status, _, _ in succeeded] == [0, 0, 0, 0], succeeded
    rows = {(row["strategy"], row["predictor"]): row for row in json.loads(succeeded[2][1])["strategies"]}
    assert rows["half-full", None]["nics"] == 8  # two NFs of two cores on eight
    assert rows["contention-aware", "linear-drop"]["nics"] < 8
    assert rows["optimal", None]["sla_violations_pct"] == 0
    assert {row["rejected"] for row in json.loads(succeeded[3][1])["strategies"]} == {1}
    assert misspelt[0] == 2 and "did you mean half-full?" in misspelt[2]


GAP_US = 10


@pytest.fixture(scope="module", params=[0, 1000], ids=["root", "user"])
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The folder in which the example ran, as root and as another user, and what it printed."""
    user, folder = request.param, tmp_path_factory.mktemp("run")
    if user == 0 and os.geteuid() != 0:
        pytest.skip("the kernel loads programs of the SmartNIC for root only")
    try:
        find_programs(with_nics=user == 0)
    except InputError:
        pytest.skip("programs of the rack are not built: `make deps nfs` builds them")
    pytest.importorskip("cryptography", reason="cryptography is not installed: the reference cannot encrypt")
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(StringIO()) as printed:
        patch.chdir(folder)
        patch.setattr(os, "geteuid", lambda: user)
        runpy.run_path(str(EXAMPLES / "compile_and_run.py"))
    return folder, printed.getvalue()


@pytest.mark.long
def test_packets_pass_every_network_function(run: tuple[Path, str]) -> None:
    """None has counters of 0, and both a filter of an ACL and an entry of a UrlFilter drop some."""
    _, printed = run
    rows = {found[1]: tuple(map(int, found.groups()[1:])) for found in re.finditer(ROW, printed, re.MULTILINE)}
    assert len(rows) == 38 and all(entered > 0 for entered, _, _ in rows.values())
    assert {name for name, (_, _, dropped) in rows.items() if dropped} == DROPPING
    assert "203 packets came from the world" in printed


ROW = r"^(chain[1-5]/\w+) +(\d+) +(\d+) +(\d+)$"
DROPPING = {"chain1/UrlFilter", "chain3/ACL", "chain5/ACL", "chain5/UrlFilter"}


@pytest.mark.long
def test_packets_leave_as_the_reference_says(run: tuple[Path, str]) -> None:
    """The reference knows of no devices."""
    folder, _ = run
    frames = read_capture(folder / "lemur-in.pcap")
    reference = ReferenceRun(
        read_plan(folder / "lemur-plan.json").chains,
        [(1_000_000 + GAP_US * at, frame) for at, frame in enumerate(frames)],
    )
    assert reference.differences(RackOutcome(read_capture(folder / "lemur-out.pcap"))) == []


def test_only_root_has_a_smartnic(run: tuple[Path, str]) -> None:
    """Else the server encrypts, and the first line says so."""
    folder, printed = run
    assert (folder / "lemur/nics/n0/nic.c").exists() != printed.startswith("Not root: the rack has no SmartNIC")


def test_the_packet_that_the_docs_follow_leaves_as_they_show(
    run: tuple[Path, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Processes and interpreters send the same bytes."""
    folder, _ = run
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(EXAMPLES / "follow_a_packet.py"))
    hops = [
        bytes.fromhex("".join(re.findall(r"^  [0-9a-f]{4}  ([0-9a-f ]{47})", hop, re.MULTILINE)))
        for hop in capsys.readouterr().out.split("\n\n")
    ]
    execute_rack(folder / "lemur", write_capture(tmp_path / "in.pcap", hops[:1]), tmp_path / "out.pcap")
    assert read_capture(tmp_path / "out.pcap") == [hops[5]]
