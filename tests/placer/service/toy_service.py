"""A service over the toy world, to be killed: `python -m tests.placer.service.toy_service STATE`."""

from __future__ import annotations

import sys
from pathlib import Path

from placer.online.engine import QUEUE, Engine
from placer.online.protocol import Reader
from placer.online.store import State
from placer.service.jsonlines import serve
from tests.toy import TRAFFIC, ToyOracle, catalogue

KINDS = catalogue((3, 1.0)).kinds


def main(path: str) -> None:
    """Serve until stdin ends."""
    state = State(Path(path), KINDS)
    fleet, waiting = state.fleet()
    engine = Engine(fleet, [ToyOracle()], waiting=waiting, when_full=QUEUE)
    serve(sys.stdin.buffer, sys.stdout, engine, Reader(TRAFFIC, lambda workload: (), engine.workload_of), state)


if __name__ == "__main__":
    main(sys.argv[1])
