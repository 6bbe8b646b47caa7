"""A trace grown: more arrivals, tighter SLAs, heavier traffic, drawn from the trace itself."""

from __future__ import annotations

import csv
import io
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from placer.model.arrival import Arrival
from placer.model.sla import Sla
from profiles import ATTRIBUTES, TrafficProfile

TRAFFIC = ("flows", "packet_size")
"""Attributes of traffic that grow."""

LARGEST_DROP = 0.999


@dataclass(frozen=True)
class Growth:
    """How many times today's.

    Parameters
    ----------
    arrivals
        Arrivals in the same time.
    sla
        The drop that is allowed; below 1 is tighter. SLAs told in kpps stay as they are.
    flows, packet_size
        Of every arrival's traffic, inside the profiled range.
    """

    arrivals: float = 1.0
    sla: float = 1.0
    flows: float = 1.0
    packet_size: float = 1.0


def grown(
    arrivals: Sequence[Arrival],
    growth: Growth,
    attributes: Mapping[str, tuple[float, float]],
    draw: random.Random,
) -> list[Arrival]:
    """Arrivals drawn from the trace with replacement, each when its original came and for as long.

    A larger growth begins with the draws of a smaller one: curves over growth are of the same years.
    """
    picked = sorted(draw.randrange(len(arrivals)) for _ in range(round(growth.arrivals * len(arrivals))))
    return [
        replace(
            arrivals[index],
            id=f"{arrivals[index].id}~{number}",
            workload=replace(
                arrivals[index].workload, traffic=_heavier(arrivals[index].workload.traffic, growth, attributes)
            ),
            sla=_tighter(arrivals[index].sla, growth.sla),
        )
        for number, index in enumerate(picked, start=1)
    ]


def as_csv(arrivals: Sequence[Arrival]) -> str:
    """The arrivals as a file has them (docs/formats.md)."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["id", "time", "nf", *ATTRIBUTES, "sla_drop", "sla_min_kpps", "departure"])
    for one in arrivals:
        cells = (one.sla.max_drop, one.sla.min_kpps, one.departure)
        traffic = [repr(value) for value in one.workload.traffic.as_dict().values()]
        writer.writerow(
            [one.id, repr(one.time), one.workload.nf, *traffic, *("" if cell is None else repr(cell) for cell in cells)]
        )
    return text.getvalue()


def _tighter(sla: Sla, times: float) -> Sla:
    return sla if sla.max_drop is None else Sla(max_drop=min(sla.max_drop * times, LARGEST_DROP))


def _heavier(traffic: TrafficProfile, growth: Growth, attributes: Mapping[str, tuple[float, float]]) -> TrafficProfile:
    told = traffic.as_dict()
    for name in TRAFFIC:
        low, high = attributes.get(name, (told[name], told[name]))
        told[name] = min(max(told[name] * getattr(growth, name), low), high)
    return TrafficProfile.from_mapping(told)
