"""`placer online`, `explain` and `rebalance` from end to end, with the recorded models.

Commands run in this process, except where a state is to be continued by another one.
"""

from __future__ import annotations

import csv
import gc
import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.placer.commands.conftest import Ended, Placer
from traces.arrivals import Recipe, generate

REPO = Path(__file__).parents[3]

GIVEN = ("--risk", 0.22)
"""Saves the time to choose a risk where a test is about something else."""


def process(*arguments: object, stdin: str = "") -> list[dict[str, object]]:
    """The JSON lines that `placer` printed as a process of its own, which must succeed."""
    ended = subprocess.run(
        [sys.executable, "-m", "placer", *map(str, arguments), "--quiet"],
        input=stdin, capture_output=True, text=True, cwd=REPO, check=False,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    return lines_of(Ended(ended.returncode, ended.stdout, ended.stderr))


def lines_of(ended: Ended) -> list[dict[str, object]]:
    """The JSON lines that a command printed, which must have succeeded."""
    assert ended.status == 0, ended.stderr
    return [json.loads(line) for line in ended.stdout.splitlines()]


@pytest.fixture
def fed(placer: Placer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Callable[..., Ended]]:
    """Runs `placer` in this process with a text as its standard input."""

    def run(*arguments: object, stdin: str = "") -> Ended:
        events = tmp_path / "stdin"
        events.write_text(stdin, encoding="utf-8")
        with events.open(encoding="utf-8") as file:
            monkeypatch.setattr(sys, "stdin", file)
            return placer(*arguments)

    yield run
    gc.enable()
    gc.unfreeze()


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Forty arrivals."""
    path = tmp_path_factory.mktemp("trace") / "arrivals.csv"
    path.write_text("".join(generate(Recipe(count=40, seed=5))), encoding="utf-8")
    return path


def test_a_fleet_continues_from_its_state_and_is_rebalanced(
    fed: Callable[..., Ended], trace: Path, tmp_path: Path
) -> None:
    """Twenty leave in a second process; then tenants move together, once, in any process the same ones."""
    with trace.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    state, copy = tmp_path / "fleet.db", tmp_path / "copy.db"
    arrive = [{"event": "arrive", "id": r["id"], "nf": r["nf"], "sla_drop": float(r["sla_drop"])} for r in rows]
    came = process("online", "--state", state, *GIVEN, stdin="\n".join(map(json.dumps, arrive)))
    assert {answer["status"] for answer in came} == {"placed"}
    leave = [{"event": "depart", "id": row["id"]} for row in rows[::2]]
    left = process("online", "--state", state, *GIVEN, stdin="\n".join(map(json.dumps, leave)))
    assert {answer["status"] for answer in left} == {"left"}
    assert lines_of(fed("online", "--state", state, "--backup", copy, "--quiet")) == []
    (planned,) = lines_of(fed("rebalance", "--state", state, "--budget", 50, *GIVEN))
    (done,) = lines_of(fed("rebalance", "--state", state, "--budget", 50, "--apply", *GIVEN))
    (again,) = process("rebalance", "--state", copy, "--budget", 50, "--apply", *GIVEN)
    assert planned == done == again
    assert done["status"] == "rebalanced"
    moved = done["moves"][-1]  # type: ignore[index]
    more = [{"event": "rebalance", "budget": 50}, {"event": "where", "id": moved["id"]}]
    twice, where = lines_of(fed("online", "--state", state, *GIVEN, stdin="\n".join(map(json.dumps, more))))
    assert twice["status"] == "as-it-was"
    assert where["nic"] == moved["to"]


def test_a_state_that_cannot_be_used_is_refused(fed: Callable[..., Ended], tmp_path: Path) -> None:
    """Exit status 2 and one line that names the file, for an empty file and for a backup of no state."""
    (tmp_path / "empty.db").touch()
    for arguments, message in (
        (["--state", tmp_path / "empty.db"], "empty.db: is not the state of a fleet"),
        (["--backup", tmp_path / "copy.db"], "--backup: there is no state to copy"),
    ):
        ended = fed("online", "--quiet", *arguments)
        assert ended.status == 2
        assert message in ended.stderr.splitlines()[0]
    assert (tmp_path / "empty.db").read_bytes() == b""


def test_explanations_agree_with_the_plan(placer: Placer, trace: Path, tmp_path: Path) -> None:
    """The NIC in the explanation of every arrival is the one in the plan of `placer run`."""
    plan = tmp_path / "plan.csv"
    only = ("--strategy", "contention-aware", "--predictor", "tomur")
    assert placer("run", trace, *only, "--plan", plan).status == 0
    with plan.open(encoding="utf-8") as file:
        planned = {row["id"]: row for row in csv.DictReader(file)}
    explained = lines_of(placer("explain", trace, "--every"))
    assert {str(one["id"]): one["nic"] for one in explained} == {key: row["nic"] for key, row in planned.items()}
    assert planned["nf-01"]["reason"].startswith("0 of 0 NICs in use fit")


def test_unused_capacity_and_one_arrival_are_explained_as_tables(placer: Placer, trace: Path) -> None:
    """An unknown id and an unknown rule are refused."""
    assert "order of arrival" in placer("explain", trace, *GIVEN).stdout
    short, long = (
        placer("explain", trace, "nf-40", *GIVEN).stdout,
        placer("explain", trace, "nf-40", "--all", *GIVEN).stdout,
    )
    assert "free cores" in short
    assert len(long.splitlines()) > len(short.splitlines())
    refused = placer("explain", trace, "unknown"), placer("explain", trace, "--rule", "dice")
    assert [ended.status for ended in refused] == [2, 2]
    assert "look-ahead" in refused[1].stderr


def test_the_risk_of_a_budget_is_reported(fed: Callable[..., Ended], tmp_path: Path) -> None:
    """On stderr at the start: chosen by typical arrivals, by arrivals like the tenants of a state, or given."""
    state = tmp_path / "fleet.db"
    arrive = json.dumps({"event": "arrive", "id": "a", "nf": "ACL", "sla_drop": 0.1})
    begun = fed("online", "--state", state, "--budget", 5, stdin=arrive)
    assert re.search(
        r"^risk 0\.\d+, chosen by typical arrivals for a budget of 5 % SLA violations$", begun.stderr, re.M
    )
    assert "budget" not in begun.stdout
    again = fed("online", "--state", state)
    assert re.search(r"^risk 0\.\d+, chosen by arrivals like its tenants for a budget of 2 % SLA ", again.stderr, re.M)
    moved = fed("rebalance", "--state", state, "--budget", 3, "--sla-budget", 1)
    assert "chosen by arrivals like its tenants for a budget of 1 % SLA violations" in moved.stderr
    assert json.loads(moved.stdout)["budget"] == 3
    assert "risk 0.1, as given" in fed("online", "--risk", 0.1).stderr


@pytest.mark.parametrize(
    ("arguments", "printed"),
    [
        (["online", "--budget", "0"], "--budget: 0 is not above 0 and at most 100"),
        (["online", "--budget", "1", "--risk", "0.1"], "--budget: is given together with --risk"),
        (["rebalance", "--sla-budget", "101"], "--sla-budget: 101 is not above 0 and at most 100"),
        (["rebalance", "--sla-budget", "1", "--risk", "0.1"], "--sla-budget: is given together with --risk"),
        (["online", "--testbed", "host"], "--testbed: there are no recorded models of 'host'"),
    ],
)
def test_bad_budgets_and_testbeds_are_refused(
    fed: Callable[..., Ended], tmp_path: Path, arguments: list[str], printed: str
) -> None:
    """Exit status 2 with a hint, before a state is made."""
    state = tmp_path / "fleet.db"
    ended = fed(*arguments, "--state", state)
    assert (ended.status, ended.stdout) == (2, "")
    assert printed in ended.stderr
    assert "hint: " in ended.stderr
    assert not state.exists()
