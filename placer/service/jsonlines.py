"""The service: events come as lines, and each is answered with one, after it is on disk."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from typing import IO

from placer.online.engine import Engine
from placer.online.events import Refused
from placer.online.protocol import Reader, answer_line, refusal_line
from placer.online.store import State

TOGETHER = 256
"""Events put on disk at once when they come faster than the disk is."""

CHUNK = 1 << 16


def serve(source: IO[bytes], sink: IO[str], engine: Engine, reader: Reader, state: State | None) -> None:
    """Answer every line of `source` until it ends.

    An answer is written once its event is on disk. Events that are there already are put on disk together.
    """
    # nothing here is cyclic, and looking for cycles among 400,000 tenants would hold up decisions for half a second
    gc.disable()
    for lines in _batches(source.fileno()):
        answers = [_answer(line, engine, reader, state) for line in lines]
        if state is not None:
            state.commit()
        sink.writelines(f"{answer}\n" for answer in answers)
        sink.flush()


def _answer(line: bytes, engine: Engine, reader: Reader, state: State | None) -> str:
    try:
        event = reader.read(line)
        answer = engine.handle(event)
    except Refused as refused:
        return refusal_line(refused)
    if state is not None:
        state.record(event, answer, engine.fleet)
    return answer_line(event, answer)


def _batches(source: int) -> Iterator[list[bytes]]:
    """Whole lines as they come: those that are there, at most `TOGETHER` at once."""
    rest = b""
    while chunk := os.read(source, CHUNK):
        *lines, rest = (rest + chunk).split(b"\n")
        filled = [line for line in lines if line.strip()]
        for first in range(0, len(filled), TOGETHER):
            yield filled[first : first + TOGETHER]
    if rest.strip():
        yield [rest]
