"""Events of tenants and NICs, drawn at random, and the check of their history: the log is decided on once more.

An engine that is never killed decides on the log, event after event. It answers as the service has answered, and what
it writes is what the service has written, however often that was killed. Every answer that a client got is the one in
the log under its version; without a version of its own, what the fleet answers at that version. Answers are in an order
of time, and an event without an answer happened at most once.
"""

from __future__ import annotations

import json
import random
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from placer.fleet.engine import Engine
from placer.fleet.event_lines import MAX_LISTED_CLASSES, decision_line
from placer.fleet.events import DryRun, ExpectedDecision, FleetEvent, Lookup, Refused
from placer.fleet.protocol import Reader
from placer.fleet.queued_fleet import QUEUE
from placer.fleet.state.saved_fleet import TENANT_COLUMNS
from placer.fleet.state.store import State
from placer.model.fleet import Fleet
from placer.model.nic import Tenant
from placer.model.sla import Sla
from placer.policy.rules import BEST_FIT
from placer.testing.strategies import TOY_TRAFFIC, ToyOracle, catalogue
from profiles import Workload
from tests.placer.fleet.audit import Auditor

KINDS = catalogue((12, 1.0)).kinds
JOINING = {
    f"extra-{number}": {"pool": "edge" if number % 2 else "", "domain": f"r{number // 3}"} for number in range(6)
}
NAMES = [f"i{number}" for number in range(100)]  # so many that an event often does not try all that wait
OF_NICS = ("join", "join", "leave", "cordon", "uncordon", "uncordon", "drain", "fail", "return", "return", "return")
OF_TENANTS = ("arrive", "arrive", "arrive", "depart", "change", "group", "where")
SHARE_OF_NICS, DRY_RUNS, REBALANCES, PREEMPTS = 0.2, 0.1, 0.01, 0.4

EXPECTED = [Tenant(nf, Workload(nf, TOY_TRAFFIC), Sla(max_drop=0.9)) for nf in "abcd"]

Row = dict[str, Any]
Log = Sequence[tuple[str, str]]
TABLES = {
    "nics": "SELECT id, kind, number, service, pool, domain FROM nics ORDER BY id",
    "tenants": f"SELECT {TENANT_COLUMNS} FROM tenants ORDER BY coalesce(nic, ''), place",
}


def engine_of(fleet: Fleet, waiting: Sequence[Tenant] = (), events: int = 0) -> Engine:
    """An engine whose decisions depend on nothing but the fleet, the queue and the number of the last event: its rule
    forecasts no arrivals, and what a NIC is worth to an NF counts whether or not one has come yet."""
    return Engine(fleet, [ToyOracle()], BEST_FIT, when_full=QUEUE, waiting=waiting, expected=EXPECTED, events=events)


def draw_event(draw: random.Random) -> Row:
    """An event on an instance or a NIC; what an instance is follows from its name."""
    if draw.random() < REBALANCES:
        event: Row = {"event": "rebalance", "budget": 3}
    elif draw.random() < SHARE_OF_NICS:
        kind = draw.choice(OF_NICS)
        nic = draw.choice([*JOINING, *(() if kind in ("join", "leave") else (f"nic-{n}" for n in range(1, 13)))])
        place = {key: name for key, name in JOINING.get(nic, {}).items() if name}
        event = {"event": kind, "nic": nic} | ({"nic_model": "toy-0", **place} if kind == "join" else {})
    else:
        kind, name = draw.choice(OF_TENANTS), draw.choice(NAMES)
        event = {"event": kind, "id": name}
        if kind == "arrive":
            event |= _instance(name) | ({"preempt": True} if draw.random() < PREEMPTS else {})
        elif kind == "group":
            members = draw.sample(NAMES, draw.randint(2, 3))
            event |= {"id": f"group-{name}", "arrivals": [{"id": member, **_instance(member)} for member in members]}
        elif kind == "change":
            event["sla_drop"] = draw.choice((0.1, 0.3, 0.9))
    if event["event"] != "where" and draw.random() < DRY_RUNS:
        event["dry_run"] = True
    return event


def _instance(name: str) -> Row:
    draw = random.Random(name)
    found: Row = {
        "nf": draw.choice("abcd"),
        "sla_drop": draw.choice((0.1, 0.3, 0.9)),
        "priority": draw.choice((0, 0, 1, 5)),
    }
    for column in ("spread", "apart", "together"):
        if draw.random() < 0.2:
            found[column] = f"g{draw.randrange(8)}"
    return found | ({"pool": "edge"} if draw.random() < 0.1 else {})


def faults_of_fleet(state: str | Path, history: Sequence[Row], scratch: Path) -> list[str]:
    """What is wrong with a history, and with the log and the tables of the state that it left."""
    log, tables = _read(state)
    acknowledged = [row for row in history if row["return"] is not None and row["answer"]["ok"]]
    faults = [*_replay(log, acknowledged, scratch), *_order(acknowledged), *_doubled(log, history)]
    with closing(sqlite3.connect(scratch)) as file:
        for name, query in TABLES.items():
            faults += _differing(f"table {name}", tables[name], file.execute(query).fetchall())
    return faults


def _differing(what: str, rows: Sequence[object], other: Sequence[object]) -> list[str]:
    pairs = [(row, replayed) for row, replayed in zip(rows, other, strict=False) if row != replayed]
    if len(rows) == len(other) and not pairs:
        return []
    return [f"{what}: {len(rows)} rows, {len(other)} of the replay; differing: {pairs[:1]}"]


def _read(state: str | Path) -> tuple[Log, dict[str, list[tuple[Any, ...]]]]:
    """The log, and the tables, of a file or a database."""
    query = "SELECT event, answer FROM log ORDER BY number"
    if isinstance(state, Path) or "://" not in state:
        with closing(sqlite3.connect(state)) as file:
            return file.execute(query).fetchall(), {name: file.execute(of).fetchall() for name, of in TABLES.items()}
    import psycopg

    with psycopg.connect(state) as connection:
        found = {name: connection.execute(of).fetchall() for name, of in TABLES.items()}
        return connection.execute(query).fetchall(), found


def _replay(log: Log, acknowledged: Sequence[Row], scratch: Path) -> Iterator[str]:
    """Decide on the log with an engine that writes to `scratch`, and on what clients asked on the way."""
    asked: defaultdict[int, list[Row]] = defaultdict(list)
    for row in acknowledged:
        if row["event"]["event"] == "rebalance":  # it takes turns with other events
            continue
        asked[row["answer"]["version"]].append(row)
    engine, auditor = engine_of(Fleet(KINDS)), Auditor(KINDS, [ToyOracle()], exhaustive=False)
    reader = Reader(TOY_TRAFFIC, lambda workload: (), engine.workload_of, of_log=True)
    with State(scratch, KINDS) as state:
        yield from _wrong_answers(engine, reader, asked.pop(0, []), None)
        for number, (line, answer) in enumerate(log, start=1):
            try:
                event = reader.read(line)
                decision = engine.handle(event)
            except Refused as refused:
                yield f"event {number} is refused in the replay: {refused}: {line}"
                return
            if _read_answer(decision_line(event, decision)) != _read_answer(answer):
                yield f"event {number}, {line}: {answer} and in the replay {decision_line(event, decision)}"
                return
            state.record(event, decision, engine.fleet, answer)
            kinds = {nic.id: nic.kind.index for nic in (*engine.fleet.all_nics(), *engine.fleet.gone.values())}
            yield from (f"event {number}: {fault}" for fault in auditor.follow(event, decision, kinds))
            yield from _wrong_answers(engine, reader, asked.pop(number, []), answer)
    yield from (f"an answer has version {version}, after the last event" for version in asked)


def _wrong_answers(engine: Engine, reader: Reader, rows: Sequence[Row], logged: str | None) -> Iterator[str]:
    """Answers of one version that are neither that of its event, which one client has, nor what the fleet says then."""
    owners = 0
    for row in rows:
        answer = {key: value for key, value in row["answer"].items() if key != "version"}
        if _says(engine, reader.read(json.dumps(row["event"])), answer):
            continue
        if logged is None or sort_answer(answer) != _read_answer(logged) or "dry_run" in row["event"]:
            yield f"version {row['answer']['version']}: {row['event']} has the answer {answer}"
        owners += 1
    if owners > 1:
        yield f"{owners} requests have the answer {logged}"


def _says(engine: Engine, event: FleetEvent, answer: Row) -> bool:
    """Whether the fleet answers this now without a change."""
    asked = event if isinstance(event, DryRun) else DryRun(event)
    try:
        found = engine.handle(asked)
    except Refused:
        return False
    looks = asked is event or (isinstance(found, ExpectedDecision) and isinstance(found.decision, Lookup))
    return looks and _read_answer(decision_line(asked, found)) == sort_answer(answer)


def _read_answer(line: str) -> Row:
    return sort_answer(json.loads(line))


def sort_answer(answer: Row) -> Row:
    """The answer with its reasons in an order of their own: theirs is that in which classes of NICs came into being."""
    reasons = sorted(map(json.dumps, answer.get("reasons", ())))
    return answer | {"reasons": reasons if answer.get("classes", 0) <= MAX_LISTED_CLASSES else []}


def _order(acknowledged: Sequence[Row]) -> Iterator[str]:
    """What was asked after an answer has come is answered at its version or a later one."""
    returned = sorted(acknowledged, key=lambda row: row["return"])
    newest, at = 0, 0
    for row in sorted(acknowledged, key=lambda row: row["call"]):
        while returned[at]["return"] < row["call"]:
            newest = max(newest, returned[at]["answer"]["version"])
            at += 1
        if row["answer"]["version"] < newest:
            yield f"{row['event']} was asked after version {newest}, and is answered at {row['answer']['version']}"


def _doubled(log: Log, history: Sequence[Row]) -> Iterator[str]:
    """Events of the log that nobody sent, or that were sent fewer times than they happened."""
    sent = Counter(_subject(row["event"]) for row in history)
    happened = Counter(_subject(json.loads(line)) for line, _ in log)
    yield from (
        f"{subject} was sent {sent[subject]} times" for subject, many in happened.items() if many > sent[subject]
    )
    answers = Counter(row["answer"]["version"] for row in history if row["return"] is not None and row["answer"]["ok"])
    lost = Counter(_subject(row["event"]) for row in history if row["return"] is None)
    for number, (line, _) in enumerate(log, start=1):
        subject = _subject(json.loads(line))
        if not answers[number] and subject[0] != "rebalance":
            lost[subject] -= 1
            if lost[subject] < 0:
                yield f"event {number}, {line}, happened, and no client asked for it that got no other answer"


def _subject(event: Row) -> tuple[str, str]:
    return event["event"], event.get("id") or event.get("nic") or ""
