"""What every strategy must do, on traces of a toy world."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace

from placer.evaluate.checks import InvalidPlan, check_plan
from placer.model.arrival import Arrival
from placer.model.catalogue import Catalogue
from placer.model.groups import UNCONSTRAINED, Constraints
from placer.model.nic_kind import NicKind
from placer.model.oracle import Oracle
from placer.model.plan import Plan
from placer.model.sla import Sla
from placer.strategies import Strategy
from profiles import CoLocation, TrafficProfile, Workload

# A toy world that can be checked by hand: NFs a to d, whose contention is a table that fits on a page.


SOLO_KPPS = {"a": 100.0, "b": 200.0, "c": 400.0, "d": 800.0}
CORES_BY_NF = {"a": 1, "b": 2, "c": 2, "d": 3}
NF_PRESSURE = {"a": 0.02, "b": 0.05, "c": 0.08, "d": 0.03}
NF_SENSITIVITY = {"a": 1.0, "b": 0.5, "c": 2.0, "d": 1.0}
TOY_TRAFFIC = TrafficProfile(1000, 1500, 0)


class ToyOracle(Oracle):
    """An NF loses the sum of its neighbours' pressures, times its own sensitivity; a neighbour never helps."""

    def __init__(self, speed: float = 1.0) -> None:
        super().__init__()
        self.speed = speed
        self.queries = 0

    def _query(self, co_locations: Sequence[CoLocation]) -> Sequence[Sequence[float]]:
        self.queries += len(co_locations)
        answers = []
        for co_location in co_locations:
            total = sum(NF_PRESSURE[workload.nf] for workload in co_location)
            drops = [NF_SENSITIVITY[workload.nf] * (total - NF_PRESSURE[workload.nf]) for workload in co_location]
            shares = [max(0.01, 1 - drop) for drop in drops]
            answers.append(
                [self.speed * SOLO_KPPS[one.nf] * share for one, share in zip(co_location, shares, strict=True)]
            )
        return answers


class ToyCatalogue(Catalogue):
    """A catalogue whose predictors and ground truth are toy oracles, whatever the predictor's name."""

    def oracles(self, predictor: str) -> tuple[Oracle, ...]:
        return tuple(ToyOracle() for _ in self.kinds)

    def truth(self) -> tuple[Oracle, ...]:
        return tuple(ToyOracle() for _ in self.kinds)

    def shares(self, kind: NicKind, workload: Workload) -> dict[str, float]:
        return {"cores": CORES_BY_NF[workload.nf] / kind.cores, "cache": 3 * NF_PRESSURE[workload.nf]}


def catalogue(*kinds: tuple[int | None, float]) -> ToyCatalogue:
    """A catalogue of 8-core NICs, one kind per (count, cost); one kind without limit for none."""
    made = [
        NicKind(i, f"toy-{i}", 8, CORES_BY_NF, count, cost) for i, (count, cost) in enumerate(kinds or [(None, 1.0)])
    ]
    return ToyCatalogue(tuple(made), (), ())


def arrival(
    identity: str, time: float, nf: str, drop: float = 0.1, departure: float | None = None, nic: str | None = None
) -> Arrival:
    """An arrival at toy traffic, which already runs where there is a NIC."""
    return Arrival(identity, time, Workload(nf, TOY_TRAFFIC), Sla(max_drop=drop), departure, nic)


GROUP_VALUES = (
    ("spread", "g"), ("apart", "g"), ("together", "g"), ("most_per_nic", "2 g"), ("most_per_domain", "2 g"),
    ("exclusive", "g"),
)  # fmt: skip
TRACE_COUNT = 8
TOY_PREDICTOR = "toy"

TOY_FLEETS = {
    "NICs without limit": catalogue(),
    "two NICs": catalogue((2, 1.0)),
    "one NIC that costs less, others without limit": catalogue((1, 0.5), (None, 1.0)),
    "two kinds, two NICs of each": catalogue((2, 2.0), (2, 1.0)),
}


def check_strategy(strategy: type[Strategy], *, seed: int = 0) -> None:
    """Hold a strategy to its constraints on random traces and fleets of a toy world. Every arrival is decided once;
    cores, NIC counts, groups and pools are kept; NFs go only to NICs that run them; what already runs stays where it
    is; the same trace gives the same plan; a strategy that placed one trace places the next as if it were new. Raises
    `AssertionError` with the first fact that does not hold, the fleet and the number of the trace."""
    assert isinstance(getattr(strategy, "name", None), str) and strategy.name, f"{strategy.__name__} has no name"
    for fleet, nics in TOY_FLEETS.items():
        used = strategy(nics, TOY_PREDICTOR)
        for number, trace in enumerate(_traces(seed)):
            place = f"{strategy.name}, fleet of {fleet}, trace {number}"
            plan = strategy(nics, TOY_PREDICTOR).place(trace)
            _check_constraints(plan, trace, nics, place)
            assert _decisions(strategy(nics, TOY_PREDICTOR).place(trace)) == _decisions(plan), f"{place}: plans differ"
            assert _decisions(used.place(trace)) == _decisions(plan), f"{place}: an earlier trace changes the plan"
    _check_hosting(strategy)
    _check_running(strategy)
    _check_groups(strategy)
    assert not strategy(catalogue(), TOY_PREDICTOR).place([]).placements, (
        f"{strategy.name}: an empty trace has placements"
    )


def _check_constraints(plan: Plan, trace: Sequence[Arrival], nics: ToyCatalogue, place: str) -> None:
    try:
        check_plan(plan, trace, nics.kinds)
    except InvalidPlan as invalid:
        raise AssertionError(f"{place}: {invalid}") from invalid


def _check_hosting(strategy: type[Strategy]) -> None:
    """The cheaper kind does not run NF d, so d goes to the other."""
    nics = catalogue((None, 0.5), (None, 1.0))
    without_d = replace(nics.kinds[0], cores_of={nf: cores for nf, cores in CORES_BY_NF.items() if nf != "d"})
    nics = replace(nics, kinds=(without_d, nics.kinds[1]))
    for placement in strategy(nics, TOY_PREDICTOR).place([arrival("1", 0, "a"), arrival("2", 1, "d")]).placements:
        kind = placement.kind
        assert kind is None or kind.hosts(placement.arrival.workload), (
            f"{strategy.name} places {placement.arrival.workload.nf} on a NIC that does not run it"
        )


def _check_running(strategy: type[Strategy]) -> None:
    """Three instances already run on one of two NICs, which has two cores left."""
    nics = catalogue((2, 1.0))
    trace = [arrival(str(number), number, "b", 0.5, nic="n" if number % 2 else None) for number in range(6)]
    _check_constraints(strategy(nics, TOY_PREDICTOR).place(trace), trace, nics, f"{strategy.name}, instances that run")


def _check_groups(strategy: type[Strategy]) -> None:
    """Instances of groups arrive on a fleet of one pool beside NICs of none, in two domains."""
    nics = catalogue((2, 1.0), (None, 2.0), (None, 1.0))
    places = (("p", "r1"), ("", "r1"), ("", "r2"))
    kinds = (replace(kind, pool=pool, domain=at) for kind, (pool, at) in zip(nics.kinds, places, strict=True))
    nics = replace(nics, kinds=tuple(kinds))
    for pool in ("", "p"):
        for column, value in GROUP_VALUES:
            given = Constraints(tuple(sorted([(column, value), *([("pool", pool)] if pool else [])])))
            trace = [
                replace(arrival(str(number), number, "a", 0.5), constraints=UNCONSTRAINED if number % 3 else given)
                for number in range(9)
            ]
            plan = strategy(nics, TOY_PREDICTOR).place(trace)
            _check_constraints(plan, trace, nics, f"{strategy.name}, groups of {column}, pool '{pool}'")


def _decisions(plan: Plan) -> list[tuple[str, str | None]]:
    return [(placement.arrival.id, placement.nic) for placement in plan.placements]


def _traces(seed: int) -> Iterator[list[Arrival]]:
    """Random traces, some of whose instances leave, often at the moment when another arrives."""
    draw = random.Random(seed)
    for _ in range(TRACE_COUNT):
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
