"""The service answers every line with one, and nothing that it acknowledged is lost when it is killed."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from placer.online.engine import QUEUE, Engine
from placer.online.events import Refused
from placer.online.protocol import Reader, read_answer
from placer.online.store import State
from profiles import InputError
from tests.placer.online.audit import Auditor
from tests.placer.service.toy_service import KINDS
from tests.toy import TRAFFIC, ToyOracle, catalogue

REPO = Path(__file__).parents[3]


def start(state: Path) -> subprocess.Popen[str]:
    """A service of its own process."""
    return subprocess.Popen(
        [sys.executable, "-m", "tests.placer.service.toy_service", str(state)],
        cwd=REPO, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip


def some_event(draw: random.Random, number: int) -> dict[str, object]:
    """An event that often makes sense."""
    kind = draw.choice(["arrive"] * 6 + ["depart"] * 3 + ["change", "fail", "drain", "return"])
    if kind in ("fail", "drain", "return"):
        return {"event": kind, "nic": f"nic-{draw.randint(1, 3)}"}
    if kind == "arrive":
        return {"event": kind, "id": f"nf-{number}", "nf": draw.choice("abcd"), "sla_drop": draw.choice([0.03, 0.1])}
    chosen = f"nf-{draw.randint(max(0, number - 20), number)}"
    return {"event": kind, "id": chosen} | ({"sla_drop": draw.choice([0.01, 0.2])} if kind == "change" else {})


def killed_and_checked(folder: Path, kills: int, seed: int) -> None:
    """Feed events to a service, kill it at some time, and hold what it left to what it acknowledged."""
    draw, state, acknowledged, number = random.Random(seed), folder / "state.db", [], 0
    for _ in range(kills):
        service = start(state)
        assert service.stdin is not None
        assert service.stdout is not None
        for _ in range(draw.randint(3, 60)):
            number += 1
            service.stdin.write(json.dumps(some_event(draw, number)) + "\n")
            service.stdin.flush()
            if draw.random() < 0.9:
                acknowledged.append(service.stdout.readline())
        time.sleep(draw.random() * 0.002)
        service.kill()
        acknowledged += service.stdout.readlines()
        service.wait()
    kept = [json.loads(answer) for _, answer in audited(state)]
    said = [answer for answer in map(json.loads, acknowledged) if answer["ok"]]
    remaining = iter(kept)
    assert all(answer in remaining for answer in said)


def audited(path: Path) -> list[tuple[str, str]]:
    """The log, after an engine that went through the same events found the same, and the state is what it says."""
    state = State(path, KINDS)
    log = list(state.log())
    fleet, waiting = state.fleet()
    kind_of = {nic.id: nic.kind.index for nic in fleet.known()}
    auditor = Auditor(KINDS, [ToyOracle()], exhaustive=False)
    reader = Reader(TRAFFIC, lambda workload: (), lambda one: auditor.tenants[one].workload)
    for line, answer in log:
        auditor.follow(reader.read(line), read_answer(answer), kind_of)
    assert {tenant.id: nic.id for nic in fleet.nics.values() for tenant in nic.tenants} == auditor.places
    assert {tenant.id for tenant in waiting} == auditor.waiting
    assert set(fleet.out_of_service) == set(auditor.closed)
    state.close()
    return log


def test_nothing_acknowledged_is_lost(tmp_path: Path) -> None:
    """Four kills at random times, between events and amid them."""
    killed_and_checked(tmp_path, kills=4, seed=1)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
def test_nothing_acknowledged_is_lost_however_often(tmp_path: Path, seed: int) -> None:
    """Two hundred kills."""
    killed_and_checked(tmp_path, kills=20, seed=seed)


def test_a_state_in_use_or_of_another_fleet_is_refused(tmp_path: Path) -> None:
    """Two services never decide on one fleet, and a file that is something else is not overwritten."""
    state = State(tmp_path / "s.db", KINDS)
    with pytest.raises(InputError, match="in use"):
        State(tmp_path / "s.db", KINDS)
    state.close()
    with pytest.raises(InputError, match="another fleet"):
        State(tmp_path / "s.db", catalogue((1, 1.0), (1, 1.0)).kinds)
    (tmp_path / "text").write_text("no database, but a text that is long enough to be told from one " * 20)
    with pytest.raises(InputError, match="no state"):
        State(tmp_path / "text", KINDS)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("nonsense", "Invalid JSON"),  # no JSON
        ('{"event": "dance"}', "'dance'"),  # no event
        ('{"event": "arrive", "id": "x", "nf": "a"}', "no SLA"),
        ('{"event": "arrive", "id": "x", "nf": "a", "sla_drop": 1.5}', "less than 1"),
        ('{"event": "arrive", "id": "x", "nf": "a", "sla_drop": 0.1, "sla_min_kpps": 5}', "two SLAs"),
        ('{"event": "arrive", "id": "", "nf": "a", "sla_drop": 0.1}', "at least 1 character"),
        ('{"event": "arrive", "id": "x", "nf": "a", "sla_drop": 0.1, "colour": 3}', "colour"),
        ('{"event": "arrive", "id": "x", "nf": "z", "sla_drop": 0.1}', "no NIC hosts 'z'"),
        ('{"event": "depart", "id": "nobody"}', "'nobody' is not here"),
        ('{"event": "change", "id": "nobody", "sla_drop": 0.1}', "'nobody' is not here"),
        ('{"event": "fail", "nic": "nic-9"}', "never|not a NIC"),
        ('{"event": "return", "nic": "nic-1"}', "not out of service"),
    ],
)
def test_events_that_make_no_sense_are_refused(line: str, message: str, tmp_path: Path) -> None:
    """Each with what is wrong, and nothing is changed."""
    state = State(tmp_path / "s.db", KINDS)
    engine = Engine(state.fleet()[0], [ToyOracle()], when_full=QUEUE)
    reader = Reader(TRAFFIC, lambda workload: (), engine.workload_of)
    with pytest.raises(Refused, match=message):
        engine.handle(reader.read(line))
    assert list(engine.fleet.known()) == []
    state.close()
