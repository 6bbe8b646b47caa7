"""`placer online`, `explain` and `rebalance` from end to end, with the recorded models. Commands run in this process,
except where a state is to be continued by another one."""

import csv
import json
import re
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from random import Random

import pytest

from placer.fleet.learning.actions import ActionKind, ModelAction
from placer.fleet.state.file import reading
from placer.fleet.state.saved_learning import ask
from tests.placer.commands.conftest import Ended, Placer, run_placer
from traces.arrivals import Recipe, generate

REPO = Path(__file__).parents[3]

GIVEN = ("--risk", 0.22)  # saves the time to choose a risk where a test is about something else


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


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("trace") / "arrivals.csv"
    path.write_text("".join(generate(Recipe(count=20, seed=5))), encoding="utf-8")
    return path


@pytest.mark.long
def test_a_fleet_continues_from_its_state_and_is_rebalanced(placer: Placer, trace: Path, tmp_path: Path) -> None:
    """Ten leave in another process; then tenants move together, once, and the same ones in a copy of the state."""
    with trace.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    state, copy = tmp_path / "fleet.db", tmp_path / "copy.db"
    arrive = [{"event": "arrive", "id": r["id"], "nf": r["nf"], "sla_drop": float(r["sla_drop"])} for r in rows]
    came = lines_of(placer("online", "--state", state, *GIVEN, "--quiet", stdin="\n".join(map(json.dumps, arrive))))
    assert {answer["status"] for answer in came} == {"placed"}
    leave = [{"event": "depart", "id": row["id"]} for row in rows[::2]]
    left = process("online", "--state", state, *GIVEN, stdin="\n".join(map(json.dumps, leave)))
    assert {answer["status"] for answer in left} == {"left"}
    assert lines_of(placer("online", "--state", state, "--backup", copy, "--quiet")) == []
    (planned,) = lines_of(placer("rebalance", "--state", state, "--budget", 50, *GIVEN))
    (done,) = lines_of(placer("rebalance", "--state", state, "--budget", 50, "--apply", *GIVEN))
    (again,) = lines_of(placer("rebalance", "--state", copy, "--budget", 50, "--apply", *GIVEN))
    assert planned == done == again and done["status"] == "rebalanced"
    moved = done["moves"][-1]  # type: ignore[index]
    more = [{"event": "rebalance", "budget": 50}, {"event": "where", "id": moved["id"]}]
    twice, where = lines_of(placer("online", "--state", state, *GIVEN, stdin="\n".join(map(json.dumps, more))))
    assert twice["status"] == "as-it-was" and where["nic"] == moved["to"]


def test_a_state_with_rates_is_refused_by_a_predictor_without(placer: Placer, tmp_path: Path) -> None:
    """It would take every tenant for saturated."""
    state = tmp_path / "s.db"
    line = json.dumps({"event": "arrive", "id": "a", "nf": "NAT", "rate_kpps": 500})
    assert placer("online", "--state", state, "--risk", 0.5, stdin=line).status == 0
    for command in (("online", "--risk", 0.5), ("rebalance",)):
        status, out, err = placer(*command, "--state", state, "--predictor", "slomo", "--quiet")
        assert (status, out) == (2, "")
        assert err.startswith("--predictor: slomo knows no offered rates and no cores\nhint: --predictor tomur")


@pytest.mark.long
@pytest.mark.parametrize("online", [True, False])
def test_a_fleet_of_nics_and_gpus_has_the_placements_of_run(placer: Placer, tmp_path: Path, online: bool) -> None:
    """Of arrivals one after another, and of the plan that a fleet begins with."""
    trace, plan = REPO / "examples" / "mixed.csv", tmp_path / "plan.csv"
    common = ("--fleet", REPO / "examples" / "mixed-fleet.toml", "--quiet")
    placer("run", trace, *common, "--strategy", "contention-aware", "--risk", 0.5, "--plan", plan)
    planned = {row["id"]: row["nic"] for row in csv.DictReader(plan.open(encoding="utf-8"))}
    assert set(planned.values()) == {"nic-1", "nic-2"}
    keys = ("sla_drop", "rate_kpps", "sla_latency_us")
    events = [
        {"event": "arrive", "id": row["id"], "nf": row["nf"], **{key: float(row[key]) for key in keys if row[key]}}
        if online
        else {"event": "where", "id": row["id"]}
        for row in csv.DictReader(trace.open(encoding="utf-8"))
    ]
    begun = () if online else ("--arrivals", trace, "--plan", plan)
    answers = lines_of(placer("online", *common, "--risk", 0.5, *begun, stdin="\n".join(map(json.dumps, events))))
    assert {answer["id"]: answer["nic"] for answer in answers} == planned


def test_a_fleet_of_gpus_only_needs_no_predictor(placer: Placer, tmp_path: Path) -> None:
    """Its admission test decides: 20 us are kept by nothing."""
    fleet = tmp_path / "fleet.toml"
    fleet.write_text(f'[[nic]]\nmodel = "titan-xp"\ncount = 1\ndevice = "{REPO / "examples" / "gpu.json"}"\n')
    arrive = {"event": "arrive", "nf": "IPSec", "rate_kpps": 250}
    events = [{**arrive, "id": f"{latency}", "sla_latency_us": latency} for latency in (700, 20)]
    answers = lines_of(placer("online", "--fleet", fleet, stdin="\n".join(map(json.dumps, events))))
    assert [answer["status"] for answer in answers] == ["placed", "rejected"]


@pytest.mark.long
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


@pytest.fixture(scope="module")
def plan(trace: Path) -> Path:
    """The plans of two strategies for the twenty arrivals; both reject none."""
    path = trace.with_name("plan.csv")
    only = ("--strategy", "contention-aware", "--strategy", "greedy", "--predictor", "tomur")
    assert run_placer("run", trace, *only, "--plan", path, "--quiet").status == 0
    return path


def rows_of(plan: Path, strategy: str) -> dict[str, str]:
    with plan.open(encoding="utf-8") as file:
        return {row["id"]: row["nic"] for row in csv.DictReader(file) if row["strategy"] == strategy}


ARRIVAL = json.dumps({"event": "arrive", "id": "later", "nf": "ACL", "sla_drop": 0.5})


@pytest.mark.long
def test_a_fleet_begins_with_a_plan(placer: Placer, trace: Path, plan: Path) -> None:
    """Every instance is on its NIC of the plan, and an arrival goes to one of these."""
    planned = rows_of(plan, "contention-aware")
    where = [json.dumps({"event": "where", "id": identity}) for identity in planned]
    ended = placer(
        "online", "--arrivals", trace, "--plan", plan, "--plan-strategy", "contention-aware", *GIVEN,
        stdin="\n".join([*where, ARRIVAL]),
    )  # fmt: skip
    *found, arrived = lines_of(ended)
    assert {answer["id"]: answer["nic"] for answer in found} == planned and arrived["nic"] in planned.values()
    nics = len(set(planned.values()))
    assert (
        f"20 of 20 instances of {trace} are placed on {nics} NICs by the plan of contention-aware, tomur"
        in ended.stderr
    )


@pytest.mark.long
def test_a_plan_keeps_what_the_trace_says_already_runs(placer: Placer, trace: Path, plan: Path, tmp_path: Path) -> None:
    """With the NIC of the plan for the last instance the fleet begins; with another one it is refused."""
    *before, last = trace.read_text(encoding="utf-8").splitlines()
    home = rows_of(plan, "greedy")[last.split(",")[0]]
    for nic, status in ((home, 0), ("nic-99", 2)):
        running = tmp_path / "running.csv"
        rows = [f"{before[0]},nic", *(f"{row}," for row in before[1:]), f"{last},{nic}"]
        running.write_text("\n".join(rows) + "\n", encoding="utf-8")
        ended = placer("online", "--arrivals", running, "--plan", plan, "--plan-strategy", "greedy", *GIVEN)
        assert ended.status == status
    assert f"{plan}: nic: nf-20 already runs on nic-99, and is on {home} in the plan" in ended.stderr


def test_a_fleet_begins_with_the_priorities_of_a_trace(placer: Placer, tmp_path: Path) -> None:
    """Who waits for the only NIC gets it by priority, not by arrival."""
    (tmp_path / "fleet.toml").write_text('[[nic]]\nmodel = "bluefield-2"\ncount = 1\n', encoding="utf-8")
    rows = [*(f"r{at},{at},ACL,0.5,0\n" for at in range(4)), "low,5,ACL,0.5,-1\n", "high,6,ACL,0.5,9\n"]
    (tmp_path / "t.csv").write_text(f"id,time,nf,sla_drop,priority\n{''.join(rows)}", encoding="utf-8")
    options = ("--arrivals", tmp_path / "t.csv", "--fleet", tmp_path / "fleet.toml", "--when-full", "queue")
    (answer,) = lines_of(placer("online", *options, *GIVEN, stdin='{"event": "depart", "id": "r0"}'))
    assert [move["id"] for move in answer["moves"]] == ["r0", "high"]  # type: ignore[index, attr-defined]


def test_a_fleet_begins_with_a_trace_that_is_placed_online(placer: Placer, trace: Path) -> None:
    """Without a plan, and without a state."""
    (answer,) = lines_of(placer("online", "--arrivals", trace, *GIVEN, stdin='{"event": "where", "id": "nf-20"}'))
    assert answer["status"] == "placed"


@pytest.mark.long
def test_a_restart_after_a_plan_changes_nothing(placer: Placer, trace: Path, plan: Path, tmp_path: Path) -> None:
    """Answers and state are those of a process that never stopped; the same command continues without the plan."""
    some = ["nf-03", "nf-11", "nf-12", "nf-19"]
    events = [*(json.dumps({"event": "depart", "id": identity}) for identity in some), ARRIVAL]
    events.append(json.dumps({"event": "rebalance", "budget": 20}))
    begin = ("--arrivals", trace, "--plan", plan, "--plan-strategy", "greedy", *GIVEN)
    one, other = tmp_path / "one.db", tmp_path / "other.db"
    uninterrupted = placer("online", "--state", one, *begin, stdin="\n".join(events))
    begun = placer("online", "--state", other, *begin)
    halves = [placer("online", "--state", other, *begin, stdin="\n".join(half)) for half in (events[:3], events[3:])]
    assert begun.stdout + halves[0].stdout + halves[1].stdout == uninterrupted.stdout
    for half in halves:
        assert f"{other} already has a fleet; ignored: {trace} and {plan}" in half.stderr
        assert "decided otherwise" not in half.stderr
    assert contents(one) == contents(other)


def contents(state: Path) -> list[str]:
    """What is in a state, whenever it was written."""
    with closing(sqlite3.connect(state)) as file:
        file.execute("UPDATE log SET time = NULL")
        return [row for row in file.iterdump() if "log_times" not in row]


@pytest.mark.long
def test_unused_capacity_and_one_arrival_are_explained_as_tables(placer: Placer, trace: Path) -> None:
    """An unknown id and an unknown rule are refused."""
    assert "order of arrival" in placer("explain", trace, *GIVEN).stdout
    short, long = (
        placer("explain", trace, "nf-20", *GIVEN).stdout,
        placer("explain", trace, "nf-20", "--all", *GIVEN).stdout,
    )
    assert "free cores" in short and len(long.splitlines()) > len(short.splitlines())
    refused = placer("explain", trace, "unknown"), placer("explain", trace, "--rule", "dice")
    assert [ended.status for ended in refused] == [2, 2] and "look-ahead" in refused[1].stderr


@pytest.mark.long
def test_the_risk_of_a_budget_is_reported(placer: Placer, tmp_path: Path) -> None:
    """On stderr at the start: chosen by typical arrivals, by arrivals like the tenants of a state, or given."""
    state = tmp_path / "fleet.db"
    arrive = json.dumps({"event": "arrive", "id": "a", "nf": "ACL", "sla_drop": 0.1})
    begun = placer("online", "--state", state, "--budget", 5, stdin=arrive)
    assert re.search(
        r"^risk 0\.\d+, chosen by typical arrivals for a budget of 5 % SLA violations$", begun.stderr, re.M
    )
    assert "budget" not in begun.stdout
    again = placer("online", "--state", state)
    assert re.search(r"^risk 0\.\d+, chosen by arrivals like its tenants for a budget of 2 % SLA ", again.stderr, re.M)
    moved = placer("rebalance", "--state", state, "--budget", 3, "--sla-budget", 1)
    assert "chosen by arrivals like its tenants for a budget of 1 % SLA violations" in moved.stderr
    assert json.loads(moved.stdout)["budget"] == 3
    assert "risk 0.1, as given" in placer("online", "--risk", 0.1).stderr


NFS = ("plain", "crypto-pipeline", "lookup-serial")
FROZEN_AT, RELEASED_AT = 40, 80


class Service:
    """`placer online` as a process of its own."""

    def __init__(self, state: Path, models: Path) -> None:
        command = [sys.executable, "-m", "placer", "online", "--state", state, "--models", models, "--risk", "0.22"]
        self.process = subprocess.Popen(
            [*map(str, command), "--repair", "1", "--quiet"],
            cwd=REPO, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip

    def answer(self, line: str) -> str:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline()

    def end(self, *, kill: bool) -> None:
        """End it, by SIGKILL or by the end of its input."""
        if kill:
            self.process.kill()
        self.process.communicate()


def line_of(number: int, placed: dict[str, str]) -> str:
    """An event that only depends on its number and on where instances are."""
    draw = Random(number)
    if number < 20 or draw.random() < 0.3:
        arrival = {"id": f"t{number}", "nf": draw.choice(NFS), "sla_drop": round(draw.uniform(0.05, 0.2), 2)}
        return json.dumps({"event": "arrive", **arrival})
    if draw.random() < 0.2:
        return json.dumps({"event": "depart", "id": draw.choice(sorted(placed))})
    nic = placed[draw.choice(sorted(placed))]
    kpps = [(one, round(draw.uniform(300, 900), 1)) for one in sorted(placed) if placed[one] == nic]
    instances = [{"id": one, "throughput_kpps": value, "offered_kpps": 1e5} for one, value in kpps]
    return json.dumps({"event": "measured", "nic": nic, "window_s": 1, "instances": instances})


def play(state: Path, models: Path, count: int, kills: set[int]) -> list[str]:
    """The answers to so many events; after some, the service is killed."""
    answers: list[str] = []
    placed: dict[str, str] = {}
    service = Service(state, models)
    for number in range(count):
        if number in (FROZEN_AT, RELEASED_AT):
            with reading(state) as file:
                ask(file, ModelAction(ActionKind.FREEZE if number == FROZEN_AT else ActionKind.UNFREEZE))
        answers.append(service.answer(line_of(number, placed)))
        found = json.loads(answers[-1])
        assert found["ok"], found
        for move in found["moves"]:
            placed.pop(move["id"], None)
            if move["to"] is not None:
                placed[move["id"]] = move["to"]
        if number in kills:
            service.end(kill=True)
            service = Service(state, models)
    service.end(kill=False)
    return answers


@pytest.mark.parametrize(
    ("events", "kills"), [pytest.param(100, 1, marks=pytest.mark.long), pytest.param(300, 200, marks=pytest.mark.slow)]
)
def test_kills_change_neither_answers_nor_state(tmp_path: Path, made_up_models: Path, events: int, kills: int) -> None:
    """The ledger, what operators asked for, evidence and placements are equal, byte by byte; not the time of day."""
    chosen = set(Random(1).sample(range(events - 1), kills))
    answers = play(tmp_path / "one.db", made_up_models, events, set())
    assert play(tmp_path / "other.db", made_up_models, events, chosen) == answers
    rows = [contents(tmp_path / name) for name in ("one.db", "other.db")]
    assert rows[0] == rows[1] and any("action 2" in row for row in rows[0])
