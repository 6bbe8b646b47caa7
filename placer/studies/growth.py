"""Growth of a trace: more arrivals, tighter SLAs, heavier traffic, drawn from the trace itself."""

from __future__ import annotations

import csv
import io
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from placer.model.arrival import Arrival
from placer.model.sla import Sla
from profiles import ATTRIBUTES, TrafficProfile, Workload

GROWING_TRAFFIC = ("flows", "packet_size")
LARGEST_DROP = 0.999


@dataclass(frozen=True)
class Growth:
    """Factors of today's trace.

    `arrivals`: number of arrivals in the same time. `sla`: allowed drop; below 1 is tighter. SLAs in kpps do not
    change. `flows`, `packet_size`: traffic of every arrival, limited to the profiled range.
    """

    arrivals: float = 1.0
    sla: float = 1.0
    flows: float = 1.0
    packet_size: float = 1.0


def grow(
    arrivals: Sequence[Arrival], growth: Growth, attributes: Mapping[str, tuple[float, float]], rng: random.Random
) -> list[Arrival]:
    """Arrivals drawn from the trace with replacement, each with the time and the stay of its original.

    Instances that already run are all there once, on their NICs, and what is drawn besides is to be placed. With equal
    `rng`, the draws of a smaller growth are among those of a larger one, so that curves over growth show the same
    future.
    """
    running = [(index, arrival.nic) for index, arrival in enumerate(arrivals) if arrival.nic is not None]
    more = max(round(growth.arrivals * len(arrivals)) - len(running), 0)
    drawn = [*running, *((rng.randrange(len(arrivals)), None) for _ in range(more))]
    drawn.sort(key=lambda one: one[0])
    return [
        _grow_arrival(arrivals[index], number, nic, growth, attributes)
        for number, (index, nic) in enumerate(drawn, start=1)
    ]


def arrivals_csv(arrivals: Sequence[Arrival]) -> str:
    """Arrivals as the text of a CSV file (docs/formats/arrivals.md); rates, latencies and NICs only if one has them."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    offered = any(not arrival.workload.is_saturated for arrival in arrivals)
    further = ("rate_kpps", "sla_latency_us") if offered else ()
    running = any(arrival.nic is not None for arrival in arrivals)
    columns = ["id", "time", "nf", *ATTRIBUTES, "sla_drop", "sla_min_kpps", "departure", *further]
    writer.writerow([*columns, *(["nic"] if running else [])])
    for arrival in arrivals:
        cells = (
            arrival.sla.max_drop,
            arrival.sla.min_kpps,
            arrival.departure,
            *(_find_offer(arrival.workload) if offered else ()),
        )
        traffic = [repr(value) for value in arrival.workload.traffic.as_dict().values()]
        numbers = ("" if cell is None else repr(cell) for cell in cells)
        nic = [arrival.nic or ""] if running else []
        writer.writerow([arrival.id, repr(arrival.time), arrival.workload.nf, *traffic, *numbers, *nic])
    return text.getvalue()


def _find_offer(workload: Workload) -> tuple[float | None, float | None]:
    """The rate and the promised latency; None for none."""
    if workload.is_saturated:
        return None, None
    return workload.rate_kpps, workload.latency_us if workload.promises_latency else None


def _grow_arrival(
    arrival: Arrival, number: int, nic: str | None, growth: Growth, attributes: Mapping[str, tuple[float, float]]
) -> Arrival:
    values = arrival.workload.traffic.as_dict()
    for name in GROWING_TRAFFIC:
        low, high = attributes.get(name, (values[name], values[name]))
        values[name] = min(max(values[name] * getattr(growth, name), low), high)
    traffic = TrafficProfile.from_mapping(values)
    return replace(
        arrival,
        id=f"{arrival.id}~{number}",
        workload=replace(arrival.workload, traffic=traffic),
        sla=_tighter(arrival.sla, growth.sla),
        nic=nic,
    )


def _tighter(sla: Sla, factor: float) -> Sla:
    return sla if sla.max_drop is None else Sla(max_drop=min(sla.max_drop * factor, LARGEST_DROP))
