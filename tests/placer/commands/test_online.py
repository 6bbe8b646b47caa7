"""`placer online`, `explain` and `rebalance` from end to end, with the recorded models."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from pathlib import Path

import pytest

from traces.arrivals import Recipe, generate

REPO = Path(__file__).parents[3]


def placer(*arguments: object, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """How a command ended."""
    return subprocess.run(
        [sys.executable, "-m", "placer", *map(str, arguments)],
        input=stdin, capture_output=True, text=True, cwd=REPO, check=False,
    )  # fmt: skip


def told(*arguments: object, stdin: str = "") -> list[dict[str, object]]:
    """The JSON lines that a command printed, which must succeed."""
    ended = placer(*arguments, "--quiet", stdin=stdin)
    assert ended.returncode == 0, ended.stderr
    return [json.loads(line) for line in ended.stdout.splitlines()]


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Forty arrivals."""
    path = tmp_path_factory.mktemp("trace") / "arrivals.csv"
    path.write_text("".join(generate(Recipe(count=40, seed=5))), encoding="utf-8")
    return path


def test_a_fleet_goes_on_where_it_ended_and_is_rebalanced(trace: Path, tmp_path: Path) -> None:
    """Twenty leave in a second process; then tenants move together, once, and a third process finds them there."""
    with trace.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    state = tmp_path / "fleet.db"
    arrive = [{"event": "arrive", "id": r["id"], "nf": r["nf"], "sla_drop": float(r["sla_drop"])} for r in rows]
    came = told("online", "--state", state, stdin="\n".join(map(json.dumps, arrive)))
    assert {answer["status"] for answer in came} == {"placed"}
    leave = [{"event": "depart", "id": row["id"]} for row in rows[::2]]
    left = told("online", "--state", state, stdin="\n".join(map(json.dumps, leave)))
    assert {answer["status"] for answer in left} == {"left"}
    (only_told,) = told("rebalance", "--state", state, "--budget", 50)
    (done,) = told("rebalance", "--state", state, "--budget", 50, "--apply")
    (again,) = told("rebalance", "--state", state, "--budget", 50, "--apply")
    assert only_told == done
    assert done["status"] == "rebalanced"
    assert again["status"] == "as-it-was"
    (moved,) = told("online", "--state", state, stdin=json.dumps({"event": "depart", "id": done["moves"][-1]["id"]}))  # type: ignore[index]
    assert moved["moves"][0]["from"] == done["moves"][-1]["to"]  # type: ignore[index]


def test_every_decision_is_explained_as_the_plan_has_it(trace: Path, tmp_path: Path) -> None:
    """The NIC in the explanation of every arrival is the one in the plan of `placer run`."""
    plan = tmp_path / "plan.csv"
    assert (
        placer("run", trace, "--strategy", "contention-aware", "--predictor", "tomur", "--plan", plan).returncode == 0
    )
    with plan.open(encoding="utf-8") as file:
        planned = {row["id"]: row for row in csv.DictReader(file)}
    explained = told("explain", trace, "--every")
    assert {str(one["id"]): one["nic"] for one in explained} == {key: row["nic"] for key, row in planned.items()}
    assert planned["nf-01"]["reason"].startswith("0 of 0 NICs in use fit")


def test_idle_room_and_one_arrival_are_told(trace: Path) -> None:
    """As a table for people; an unknown id and an unknown rule are refused."""
    assert "order of arrival" in placer("explain", trace).stdout
    assert "free cores" in placer("explain", trace, "nf-40").stdout
    refused = placer("explain", trace, "nobody"), placer("explain", trace, "--rule", "dice")
    assert [ended.returncode for ended in refused] == [2, 2]
    assert "look-ahead" in refused[1].stderr
