"""A service over toy NICs, for tests that kill it: `python -m tests.placer.fleet.service.toy_service STATE`."""

import sys
from pathlib import Path

from placer.fleet.engine import Engine
from placer.fleet.protocol import Reader
from placer.fleet.queued_fleet import QUEUE
from placer.fleet.service.jsonlines import serve
from placer.fleet.state.store import State
from placer.testing.strategies import TOY_TRAFFIC, ToyOracle, catalogue

KINDS = catalogue((3, 1.0)).kinds


def service(state: State) -> tuple[Engine, Reader]:
    """The engine over the toy NICs of the state, with a queue, and the reader of its events."""
    engine = Engine(state.fleet, [ToyOracle()], waiting=state.waiting, when_full=QUEUE)
    return engine, Reader(TOY_TRAFFIC, lambda workload: (), engine.workload_of)


def main(path: str) -> None:
    with State(Path(path), KINDS) as state:
        serve(sys.stdin.buffer, sys.stdout, *service(state), state)


if __name__ == "__main__":
    main(sys.argv[1])
