"""The service answers every line with one, and nothing that it acknowledged is lost when it is killed."""

import gc
import io
import json
import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import pytest

from placer.failures import failure_of
from placer.fleet.events import Decision, Move, TakenPlace
from placer.fleet.protocol import Reader
from placer.fleet.service.jsonlines import LONGEST_LINE, _batches, serve
from placer.fleet.state.saved import Unwritable
from placer.fleet.state.store import State
from placer.testing.strategies import TOY_TRAFFIC, ToyOracle
from tests.placer.fleet.audit import Auditor
from tests.placer.fleet.service.toy_service import KINDS, service

REPO = Path(__file__).parents[4]
ARRIVE = {"event": "arrive", "id": "a", "nf": "d", "sla_drop": 0.1}


def start(state: Path) -> subprocess.Popen[str]:
    """A service in a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "tests.placer.fleet.service.toy_service", str(state)],
        cwd=REPO, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip


def serve_here(state: State, chunks: Iterable[bytes], sink: io.StringIO) -> None:
    """Serve these bytes in this process, as they come from another one."""
    reading, writing = os.pipe()

    def send() -> None:
        with os.fdopen(writing, "wb", buffering=0) as pipe, suppress(BrokenPipeError):
            for chunk in chunks:
                pipe.write(chunk)

    sender = threading.Thread(target=send)
    sender.start()
    try:
        with os.fdopen(reading, "rb") as source:
            serve(source, sink, *service(state), state)
    finally:
        sender.join()
        gc.enable()


def answers_to(path: Path, *lines: str) -> list[dict[str, object]]:
    """The answers of a service with this state that reads these lines and ends."""
    sink = io.StringIO()
    with State(path, KINDS) as state:
        serve_here(state, (f"{line}\n".encode() for line in lines), sink)
    return [json.loads(answer) for answer in sink.getvalue().splitlines()]


OF_NICS = ("fail", "drain", "return", "cordon", "uncordon", "leave")


def may_change_nothing(answer: dict[str, object]) -> bool:
    """Whether the answer may be that of an event which was sent again, and is then not logged."""
    same = ("cordoned", "up", "joined", "gone", "placed", "reserved", "queued")
    return answer["status"] in same and not answer["moves"] and "reasons" not in answer


def random_event(random: random.Random, number: int) -> dict[str, object]:
    """An event that can often happen."""
    kind = random.choice(["arrive"] * 6 + ["depart"] * 3 + ["change", "join", "reserve", "take", *OF_NICS])
    if kind in OF_NICS:
        return {"event": kind, "nic": f"nic-{random.randint(1, 3)}"}
    if kind == "join":  # again
        return {"event": kind, "nic": f"nic-{random.randint(1, 3)}", "nic_model": KINDS[0].model}
    if kind == "arrive":
        return {
            "event": kind,
            "id": f"nf-{number}",
            "nf": random.choice("abcd"),
            "sla_drop": random.choice([0.03, 0.1]),
        }
    if kind in ("reserve", "take"):
        reserved = {"id": f"reserved-{random.randint(1, 4)}", "nf": "a", "sla_drop": 0.5}
        return {"event": "arrive", **reserved} if kind == "take" else {"event": kind, **reserved, "ttl_s": 0.002}
    chosen = f"nf-{random.randint(max(0, number - 20), number)}"
    return {"event": kind, "id": chosen} | ({"sla_drop": random.choice([0.01, 0.2])} if kind == "change" else {})


def kill_and_check(folder: Path, kills: int, seed: int) -> None:
    """Send events to a service, kill it at random times, and compare the state with what was acknowledged."""
    draw, state, acknowledged, number = random.Random(seed), folder / "state.db", [], 0
    for _ in range(kills):
        running = start(state)
        assert running.stdin is not None and running.stdout is not None
        for _ in range(draw.randint(3, 60)):
            number += 1
            running.stdin.write(json.dumps(random_event(draw, number)) + "\n")
            running.stdin.flush()
            if draw.random() < 0.9:
                acknowledged.append(running.stdout.readline())
        time.sleep(draw.random() * 0.002)
        running.kill()
        acknowledged += running.stdout.readlines()
        running.wait()
    kept = iter([json.loads(answer) for _, answer in audited(state)])
    changing = [answer for answer in map(json.loads, acknowledged) if answer["ok"] and not may_change_nothing(answer)]
    assert all(answer in kept for answer in changing)


def read_decision(line: str) -> Decision:
    """The decision that is on a line of the log, without its reasons."""
    answer = json.loads(line)
    moves = tuple(Move(move["id"], move["from"], move["to"], cores=move.get("cores")) for move in answer["moves"])
    at_risk, queued = (tuple(answer.get(key, ())) for key in ("at_risk", "queued"))
    if answer["event"] == "arrive" and answer["status"] != "rejected" and not (moves or "reasons" in answer):
        return TakenPlace(answer["status"], found_on=answer["nic"])
    return Decision(answer["status"], moves, at_risk, queued, cores=answer.get("cores"))


def audited(path: Path) -> list[tuple[str, str]]:
    """The log, after an auditor replayed it and found the fleet in the file."""
    with State(path, KINDS) as state:
        log = list(state.log())
        kind_of = {nic.id: nic.kind.index for nic in (*state.fleet.all_nics(), *state.fleet.gone.values())}
        auditor = Auditor(KINDS, [ToyOracle()], exhaustive=False)
        reader = Reader(TOY_TRAFFIC, lambda workload: (), lambda one: auditor.tenants[one].workload, of_log=True)
        for line, answer in log:
            auditor.follow(reader.read(line), read_decision(answer), kind_of)
        assert {tenant.id: nic.id for nic in state.fleet.nics.values() for tenant in nic.tenants} == auditor.places
        assert {tenant.id for tenant in state.waiting} == auditor.waiting
        assert set(state.fleet.out_of_service) == set(auditor.closed)
        assert set(state.fleet.gone) == auditor.gone
        return log


@pytest.mark.long
def test_nothing_acknowledged_is_lost(tmp_path: Path) -> None:
    """Four kills at random times, between events and during them."""
    kill_and_check(tmp_path, kills=2, seed=1)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
def test_nothing_acknowledged_is_lost_in_many_kills(tmp_path: Path, seed: int) -> None:
    """Two hundred kills."""
    kill_and_check(tmp_path, kills=20, seed=seed)


@pytest.mark.long
def test_nothing_acknowledged_is_lost_with_the_files_next_to_the_state(tmp_path: Path) -> None:
    """Killed right after an answer; then every file but the state itself is lost."""
    state = tmp_path / "state.db"
    running = start(state)
    assert running.stdin is not None and running.stdout is not None
    for number in range(20):
        running.stdin.write(json.dumps(ARRIVE | {"id": str(number), "nf": "a"}) + "\n")
        running.stdin.flush()
        assert json.loads(running.stdout.readline())["ok"]
    running.kill()
    running.communicate()
    for path in tmp_path.iterdir():
        if path != state:
            path.unlink()
    assert len(audited(state)) == 20


def test_a_repeated_arrival_is_answered_with_its_placement(tmp_path: Path) -> None:
    """As after a kill between commit and answer; another body of the same id stays an error."""
    line, state = json.dumps(ARRIVE), tmp_path / "state.db"
    (first,) = answers_to(state, line)
    again, where, other = answers_to(
        state, line, json.dumps({"event": "where", "id": "a"}), json.dumps(ARRIVE | {"sla_drop": 0.2})
    )
    assert (first["status"], first["nic"], first["moves"]) == (
        "placed", "nic-1", [{"id": "a", "from": None, "to": "nic-1"}]
    )  # fmt: skip
    assert again == first | {"moves": []} and (where["status"], where["nic"]) == ("placed", "nic-1")
    assert other == {"ok": False, "error": "'a' already exists with another NF, traffic or SLA; send a change"}
    assert len(audited(state)) == 1


def test_a_line_that_is_too_long_is_refused_and_the_service_goes_on(tmp_path: Path) -> None:
    """The next line is answered."""
    long, short = answers_to(tmp_path / "state.db", '{"event": "' + "x" * (3 * LONGEST_LINE), json.dumps(ARRIVE))
    assert long == {"ok": False, "error": f"the line is longer than {LONGEST_LINE:,} bytes"} and short["ok"]


def test_only_the_beginning_of_a_line_that_is_too_long_is_kept(tmp_path: Path) -> None:
    """Else what is kept would be copied again and again, in quadratic time."""
    path = tmp_path / "lines"
    path.write_bytes(b"x" * (4 * LONGEST_LINE) + b"\nshort\n")
    with path.open("rb") as file:
        lines = [line for batch in _batches(file.fileno()) for line in batch]
    assert [len(line) for line in lines] == [LONGEST_LINE + 1, len(b"short")]


def test_a_line_of_the_largest_length_is_read(tmp_path: Path) -> None:
    """Blanks before the closing brace make it as long as is allowed; one more is refused."""
    line = json.dumps(ARRIVE)
    padded = line[:-1] + " " * (LONGEST_LINE - len(line)) + "}"
    answers = answers_to(tmp_path / "state.db", padded, padded.replace(" }", "  }"), line)
    assert [answer["ok"] for answer in answers] == [True, False, True]


def test_every_line_is_answered_once_however_it_arrives(tmp_path: Path) -> None:
    """In pieces, several at once, with blank lines and without a last line end."""
    text = b"\n \n".join(json.dumps(ARRIVE | {"id": str(number), "nf": "a"}).encode() for number in range(9))
    for size in (1, 50, len(text)):
        sink = io.StringIO()
        with State(tmp_path / f"{size}.db", KINDS) as state:
            serve_here(state, (text[at : at + size] for at in range(0, len(text), size)), sink)
        answers = [json.loads(answer) for answer in sink.getvalue().splitlines()]
        assert [answer["id"] for answer in answers] == [str(number) for number in range(9)]


@pytest.mark.long
def test_a_full_disk_ends_the_service_and_keeps_what_was_acknowledged(tmp_path: Path) -> None:
    """A limit on the pages of the file stands for the disk: one line on stderr, and exit status 1."""
    path, sink = tmp_path / "state.db", io.StringIO()
    lines = (json.dumps(ARRIVE | {"id": f"{number}-{'x' * 200}"}).encode() + b"\n" for number in range(4_000))
    with pytest.raises(Unwritable, match="full") as failed, State(path, KINDS) as state:
        state._file.execute("PRAGMA max_page_count = 400")
        serve_here(state, lines, sink)
    message, status = failure_of(failed.value) or ("", 0)
    assert (status, len(message.splitlines())) == (1, 1)
    acknowledged = [json.loads(answer) for answer in sink.getvalue().splitlines()]
    assert 0 < len(acknowledged) < 4_000
    assert [json.loads(answer) for _, answer in audited(path)] == [answer for answer in acknowledged if answer["ok"]]
