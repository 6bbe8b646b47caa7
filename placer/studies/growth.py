"""Growth of a trace: more arrivals, more load, tighter SLAs, heavier traffic, drawn from the trace itself."""

import csv
import io
import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from placer.model.arrival import Arrival
from placer.model.constraints import CONSTRAINTS, GroupConstraint
from placer.model.groups import Constraints
from placer.model.sla import LATENCY_SLAS, LatencySla, Sla
from profiles import ATTRIBUTES, TrafficProfile, Workload

GROWING_TRAFFIC = ("flows", "packet_size")
LARGEST_DROP = 0.999

SPLIT_HEADROOM = 1.1
"""An instance becomes several where it could not carry so many times its load: a prediction is no promise."""
MOST_PARTS = 1_000


@dataclass(frozen=True)
class Growth:
    """Factors of today's trace.

    `arrivals`: number of arrivals in the same time. `load`: offered rates, and with them the SLAs in kpps of these
    instances. `sla`: allowed drop; below 1 is tighter; it changes no SLAs in kpps. `flows`, `packet_size`: traffic of
    every arrival, limited to the profiled range."""

    arrivals: float = 1.0
    load: float = 1.0
    sla: float = 1.0
    flows: float = 1.0
    packet_size: float = 1.0


def grow(
    arrivals: Sequence[Arrival],
    growth: Growth,
    attributes: Mapping[str, tuple[float, float]],
    rng: random.Random,
    carries: Callable[[Workload], bool] = lambda workload: True,
) -> list[Arrival]:
    """Arrivals drawn from the trace with replacement, each with the time and the stay of its original.

    Instances that already run are all there once, on their NICs, and what is drawn besides is to be placed. With equal
    `rng`, the draws of a smaller growth are among those of a larger one, so that curves over growth show the same
    future.

    An instance whose grown load an NF alone would not carry, by `carries`, becomes the fewest equal ones that do; the
    first of them stays on its NIC."""
    running = [(index, arrival.nic) for index, arrival in enumerate(arrivals) if arrival.nic is not None]
    more = max(round(growth.arrivals * len(arrivals)) - len(running), 0)
    drawn = [*running, *((rng.randrange(len(arrivals)), None) for _ in range(more))]
    drawn.sort(key=lambda one: one[0])
    grown, draws = [], Counter[int]()
    for number, (index, nic) in enumerate(drawn, start=1):
        arrival = _in_group_of_draw(arrivals[index], draws[index])
        draws[index] += 1
        grown += _split(_grow_arrival(arrival, number, nic, growth, attributes), arrivals[index], carries)
    return grown


def _in_group_of_draw(arrival: Arrival, draw: int) -> Arrival:
    """An arrival that is drawn again is in other groups, since its own were never that large. The first
    draws of its members stay a group, and so do the second ones."""
    if not draw or not arrival.constraints.values:
        return arrival
    values = (
        (name, f"{value}~{draw}" if issubclass(CONSTRAINTS[name], GroupConstraint) else value)
        for name, value in arrival.constraints.values
    )
    return replace(arrival, constraints=Constraints(tuple(values)))


def arrivals_csv(arrivals: Sequence[Arrival]) -> str:
    """Arrivals as the text of a CSV file (docs/formats/arrivals.md).

    Rates, latencies, cores, loads, NICs, constraints and priorities are there only if one has them; loads by the names
    of `loads_by_name`."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    offered = any(not arrival.workload.is_saturated for arrival in arrivals)
    sized = any(arrival.workload.cores for arrival in arrivals)
    given = {LATENCY_SLAS[0].statistic} | {arrival.workload.latency_statistic for arrival in arrivals}
    promises = [kind for kind in LATENCY_SLAS if kind.statistic in given]
    latencies = (kind.column for kind in promises)
    further = (*(("rate_kpps", *latencies) if offered else ()), *(("cores",) if sized else ()))
    named = {day: name for name, day in loads_by_name(arrivals).items()}
    running = any(arrival.nic is not None for arrival in arrivals)
    constrained = [name for name in CONSTRAINTS if any(arrival.constraints.of(name) for arrival in arrivals)]
    ranked = ["priority"] if any(arrival.priority for arrival in arrivals) else []
    columns = ["id", "time", "nf", *ATTRIBUTES, "sla_drop", "sla_min_kpps", "departure", *further]
    writer.writerow([*columns, *(["load"] if named else []), *(["nic"] if running else []), *constrained, *ranked])
    for arrival in arrivals:
        cells = (
            arrival.sla.max_drop,
            arrival.sla.min_kpps,
            arrival.departure,
            *(_find_offer(arrival.workload, promises) if offered else ()),
            *((arrival.workload.cores or None,) if sized else ()),
        )
        traffic = [repr(value) for value in arrival.workload.traffic.as_dict().values()]
        numbers = ("" if cell is None else repr(cell) for cell in cells)
        load = [named.get(arrival.day, "")] if named else []
        nic = [arrival.nic or ""] if running else []
        writer.writerow(
            [
                arrival.id, repr(arrival.time), arrival.workload.nf, *traffic, *numbers, *load, *nic,
                *map(arrival.constraints.of, constrained), *(repr(arrival.priority) for _ in ranked),
            ]
        )  # fmt: skip
    return text.getvalue()


def loads_by_name(arrivals: Sequence[Arrival]) -> dict[str, tuple[float, ...]]:
    """A name for each load over the day that arrivals have: `1`, `2` and so on in their order."""
    days = dict.fromkeys(arrival.day for arrival in arrivals if arrival.day)
    return {str(number): day for number, day in enumerate(days, 1)}


def _find_offer(workload: Workload, promises: Sequence[LatencySla]) -> list[float | None]:
    """The rate, and the latency that is promised by each kind of latency SLA; None for none."""
    promised = workload.latency_statistic if workload.promises_latency else None
    return [
        None if workload.is_saturated else workload.rate_kpps,
        *(workload.latency_us if kind.statistic == promised else None for kind in promises),
    ]


def _grow_arrival(
    arrival: Arrival, number: int, nic: str | None, growth: Growth, attributes: Mapping[str, tuple[float, float]]
) -> Arrival:
    values = arrival.workload.traffic.as_dict()
    for name in GROWING_TRAFFIC:
        low, high = attributes.get(name, (values[name], values[name]))
        values[name] = min(max(values[name] * getattr(growth, name), low), high)
    traffic, rate = TrafficProfile.from_mapping(values), arrival.workload.rate_kpps * growth.load
    sla = _tighter(arrival.sla, growth.sla)
    return replace(
        arrival,
        id=f"{arrival.id}~{number}",
        workload=replace(arrival.workload, traffic=traffic, rate_kpps=rate),
        sla=sla if arrival.workload.is_saturated else sla.scale(growth.load),
        nic=nic,
    )


def _split(grown: Arrival, today: Arrival, carries: Callable[[Workload], bool]) -> list[Arrival]:
    """The instance, or the equal parts of its load."""
    workload = grown.workload
    if workload.is_saturated or workload == today.workload:
        return [grown]
    parts = 1
    while parts < MOST_PARTS and not carries(replace(workload, rate_kpps=workload.rate_kpps * SPLIT_HEADROOM / parts)):
        parts += 1
    if parts == 1:
        return [grown]
    part = replace(
        grown, workload=replace(workload, rate_kpps=workload.rate_kpps / parts), sla=grown.sla.scale(1 / parts)
    )
    return [
        replace(part, id=f"{grown.id}.{number}", nic=grown.nic if number == 1 else None)
        for number in range(1, parts + 1)
    ]


def _tighter(sla: Sla, factor: float) -> Sla:
    return sla if sla.max_drop is None else Sla(max_drop=min(sla.max_drop * factor, LARGEST_DROP))
