"""What every strategy must do, on traces of a toy world."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace

from placer.evaluate.checks import InvalidPlan, check_plan
from placer.model.arrival import Arrival
from placer.model.plan import Plan
from placer.strategies import Strategy
from placer.testing.toy import CORES, ToyCatalogue, arrival, catalogue

TRACES = 8
PREDICTOR = "toy"

FLEETS = {
    "NICs without limit": catalogue(),
    "two NICs": catalogue((2, 1.0)),
    "one NIC that costs less, others without limit": catalogue((1, 0.5), (None, 1.0)),
    "two kinds, two NICs of each": catalogue((2, 2.0), (2, 1.0)),
}


def check_strategy(strategy: type[Strategy], *, seed: int = 0) -> None:
    """Hold a strategy to its constraints on random traces and fleets of a toy world.

    Every arrival is decided once; cores and NIC counts are kept; NFs go only to NICs that run them; the same trace
    gives the same plan; a strategy that placed one trace places the next as if it were new.

    Raises
    ------
    AssertionError
        With the first fact that does not hold, the fleet and the number of the trace.
    """
    assert isinstance(getattr(strategy, "name", None), str) and strategy.name, f"{strategy.__name__} has no name"
    for fleet, nics in FLEETS.items():
        used = strategy(nics, PREDICTOR)
        for number, trace in enumerate(_traces(seed)):
            place = f"{strategy.name}, fleet of {fleet}, trace {number}"
            plan = strategy(nics, PREDICTOR).place(trace)
            _check_constraints(plan, trace, nics, place)
            assert _decisions(strategy(nics, PREDICTOR).place(trace)) == _decisions(plan), f"{place}: plans differ"
            assert _decisions(used.place(trace)) == _decisions(plan), f"{place}: an earlier trace changes the plan"
    _check_hosting(strategy)
    assert not strategy(catalogue(), PREDICTOR).place([]).placements, f"{strategy.name}: an empty trace has placements"


def _check_constraints(plan: Plan, trace: Sequence[Arrival], nics: ToyCatalogue, place: str) -> None:
    try:
        check_plan(plan, trace, nics.kinds)
    except InvalidPlan as invalid:
        raise AssertionError(f"{place}: {invalid}") from invalid


def _check_hosting(strategy: type[Strategy]) -> None:
    """The cheaper kind does not run NF d, so d goes to the other."""
    nics = catalogue((None, 0.5), (None, 1.0))
    without_d = replace(nics.kinds[0], cores_of={nf: cores for nf, cores in CORES.items() if nf != "d"})
    nics = replace(nics, kinds=(without_d, nics.kinds[1]))
    for placement in strategy(nics, PREDICTOR).place([arrival("1", 0, "a"), arrival("2", 1, "d")]).placements:
        kind = placement.kind
        assert kind is None or kind.hosts(placement.arrival.workload), (
            f"{strategy.name} places {placement.arrival.workload.nf} on a NIC that does not run it"
        )


def _decisions(plan: Plan) -> list[tuple[str, str | None]]:
    return [(placement.arrival.id, placement.nic) for placement in plan.placements]


def _traces(seed: int) -> Iterator[list[Arrival]]:
    """Random traces, some of whose instances leave, often at the moment when another arrives."""
    draw = random.Random(seed)
    for _ in range(TRACES):
        times = sorted(draw.randrange(12) for _ in range(draw.randrange(1, 16)))
        yield [
            arrival(
                str(number),
                float(time),
                draw.choice("abcd"),
                draw.choice([0.0, 0.05, 0.1, 0.2, 0.5]),
                None if draw.random() < 0.5 else float(time + draw.randrange(1, 6)),
            )
            for number, time in enumerate(times)
        ]
