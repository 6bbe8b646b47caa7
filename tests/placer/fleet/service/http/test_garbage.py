"""Searches for garbage stay short, and nothing is lost by that: no request leaves a cycle behind."""

from __future__ import annotations

import asyncio
import gc
import json
from collections.abc import Iterator
from pathlib import Path

from placer.fleet.engine import Engine
from placer.fleet.protocol import Reader
from placer.fleet.service.http.app import Posted
from placer.fleet.service.http.routes import QuestionRoutes
from placer.fleet.service.http.server import make_writer, short_searches
from placer.fleet.state.store import State
from placer.fleet.what_if import WhatIf
from placer.model.fleet import Fleet
from placer.testing.strategies import TOY_TRAFFIC, ToyOracle, catalogue

KINDS = catalogue((3, 1.0)).kinds


QUESTION = b'{"nf": "a", "sla_drop": 0.9, "top": 3, "explain": true}'


def events() -> Iterator[bytes]:
    """Arrivals, departures, and lines that are refused."""
    for number in range(60):
        yield json.dumps({"event": "arrive", "id": f"x{number}", "nf": "abcd"[number % 4], "sla_drop": 0.9}).encode()
        yield json.dumps({"event": "depart", "id": f"x{number - 4}"}).encode()
        yield b'{"event": "arrive", "id": ""}'


def test_events_and_questions_leave_no_cycle_of_objects_behind(tmp_path: Path) -> None:
    """A cycle would never be freed, since old objects are not searched."""

    async def study() -> list[object]:
        with State(tmp_path / "s.db", KINDS) as state:
            engine = Engine(Fleet(KINDS), [ToyOracle()])
            writer = make_writer(engine, Reader(TOY_TRAFFIC, lambda workload: (), engine.workload_of), state)
            running = asyncio.create_task(writer.run())
            questions = QuestionRoutes(writer, WhatIf(engine))
            for _ in range(2):  # what is imported with the first request leaves cycles behind, once
                gc.collect()
                for line in events():
                    await writer.submit([line])
                    await questions.ask(Posted(QUESTION, [], administers=True))
            left = cycles()
            writer.stop()
            await running
            return left

    gc.disable()
    try:
        assert asyncio.run(study()) == []
    finally:
        gc.enable()


def cycles() -> list[object]:
    """What only a search frees."""
    gc.set_debug(gc.DEBUG_SAVEALL)
    gc.collect()
    gc.set_debug(0)
    found = list(gc.garbage)
    gc.garbage.clear()
    return found


def test_what_survives_two_searches_is_left_out_of_all_that_follow_until_the_end() -> None:
    """The fleet is not searched any more; afterwards everything is as before."""
    with short_searches():
        frozen = gc.get_freeze_count()
        kept = [[number] for number in range(1_000)]
        gc.collect(1)
        assert gc.get_freeze_count() >= frozen + len(kept)
    assert gc.get_freeze_count() == 0
