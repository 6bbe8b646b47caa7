"""A service that is killed again and again learns, and decides, as one that never was."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from random import Random

import pytest

from placer.fleet.learning.actions import ActionKind, ModelAction
from placer.fleet.state.saved_learning import ask
from placer.fleet.state.store import reading

REPO = Path(__file__).parents[3]
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
        assert self.process.stdin is not None
        assert self.process.stdout is not None
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


@pytest.mark.parametrize(("events", "kills"), [(100, 1), pytest.param(300, 200, marks=pytest.mark.slow)])
def test_kills_change_neither_answers_nor_state(tmp_path: Path, made_up_models: Path, events: int, kills: int) -> None:
    """The ledger, what operators asked for, evidence and placements are equal, byte by byte."""
    chosen = set(Random(1).sample(range(events - 1), kills))
    answers = play(tmp_path / "one.db", made_up_models, events, set())
    assert play(tmp_path / "other.db", made_up_models, events, chosen) == answers
    rows = []
    for name in ("one.db", "other.db"):
        with closing(sqlite3.connect(tmp_path / name)) as file:
            rows.append(list(file.iterdump()))
    assert rows[0] == rows[1]
    assert any("action 2" in row for row in rows[0])
