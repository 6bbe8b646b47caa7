"""The service over JSON lines: events come as lines, and each is answered with one line after it is on disk."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from typing import IO

from placer.fleet.engine import Engine
from placer.fleet.event_lines import decision_line, refusal_line
from placer.fleet.events import Refused
from placer.fleet.protocol import Reader
from placer.fleet.service.expiring import LOOK_EVERY_S, expire_due
from placer.fleet.state.store import State

MAX_EVENTS_PER_WRITE = 256
"""Largest number of events that are put on disk at once, when they come faster than the disk writes."""

CHUNK_BYTES = 1 << 16

LONGEST_LINE = 1_000_000  # bytes of a line; a longer one is refused without being kept in memory


def serve(source: IO[bytes], sink: IO[str], engine: Engine, reader: Reader, state: State | None) -> None:
    """Answer every line of `source` until it ends.

    An answer is written once its event is on disk. Events that have arrived already are put on disk together; before
    them, reservations end that are due, which is looked at every `LOOK_EVERY_S` at most; what came of it is in the next
    answer, as nobody asked for it.
    """
    # nothing here is cyclic, and a search for cycles among 400,000 tenants would delay decisions by half a second
    gc.disable()
    looked = 0.0
    for lines in _batches(source.fileno()):
        expired = list[str]()
        if (now := reader.clock()) >= looked + LOOK_EVERY_S:
            expired = expire_due(engine, state, now)
            looked = now
        answers = [_answer(line, engine, reader, state) for line in lines]
        if expired:
            answers[0] = f'{answers[0][:-1]}, "expired": [{", ".join(expired)}]}}'
        if state is not None:
            state.commit()
        sink.writelines(f"{answer}\n" for answer in answers)
        sink.flush()


def _answer(line: bytes, engine: Engine, reader: Reader, state: State | None) -> str:
    try:
        if len(line) > LONGEST_LINE:
            raise Refused(f"the line is longer than {LONGEST_LINE:,} bytes")
        event = reader.read(line)
        decision = engine.handle(event)
    except Refused as refused:
        return refusal_line(refused)
    if state is not None:
        state.record(event, decision, engine.fleet)
    return decision_line(event, decision)


def _batches(source: int) -> Iterator[list[bytes]]:
    """Lines that have arrived, at most `MAX_EVENTS_PER_WRITE` at once; of too long a line only its beginning."""
    begun = bytearray()
    while chunk := os.read(source, CHUNK_BYTES):
        first, *others = chunk.split(b"\n")
        begun += first[: LONGEST_LINE + 1 - len(begun)]
        if others:
            lines = [line for line in (bytes(begun), *others[:-1]) if line.strip()]
            begun = bytearray(others[-1])
            for at in range(0, len(lines), MAX_EVENTS_PER_WRITE):
                yield lines[at : at + MAX_EVENTS_PER_WRITE]
    if begun.strip():
        yield [bytes(begun)]
