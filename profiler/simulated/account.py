"""Where each load spends its time: what a hotspot analysis would show on a real card (Tomur, section 7.5.2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from profiler.simulated.cache import Array
from profiler.simulated.card import Card
from profiler.simulated.demand import LoadDemand
from profiler.simulated.solve import Batch, SteadyState, batch_of, reached, solve

SLOWED = 0.99
"""Cores that memory contention slows to less than this share of their solo speed are bound by memory."""


@dataclass(frozen=True, slots=True)
class Account:
    """The time of one load in its co-location.

    Parameters
    ----------
    throughput_kpps, solo_kpps
        In this co-location, and alone.
    core_ns
        Core time per packet: `compute`, and stalled on `l2`, `l3` and `dram`.
    accelerator_us
        Per accelerator used: time (us) between its turns, waiting included, while its queues are never empty.
    lost_kpps
        Per resource (`memory` and each accelerator used): throughput gained if it were as free as alone.
    bottleneck
        The slowest stage, or for run-to-completion the longest step: an accelerator, or the cores, which are bound by
        `memory` when contention slows them and else by `cpu`.
    """

    throughput_kpps: float
    solo_kpps: float
    core_ns: Mapping[str, float]
    accelerator_us: Mapping[str, float]
    lost_kpps: Mapping[str, float]
    bottleneck: str


def accounts(co_locations: Sequence[Sequence[LoadDemand]], card: Card) -> list[list[Account]]:
    """The account of every load of every co-location."""
    batch = batch_of(co_locations, card)
    here = solve(batch, card)
    alone = _alone(co_locations, batch, card)
    freed = {"memory": reached(batch, alone.core_rate, here.turns, card)}
    for k, name in enumerate(card.engines):
        turns = here.turns.copy()
        turns[k] = alone.turns[k]
        freed[name] = reached(batch, here.core_rate, turns, card)
    return [
        [_account(batch, here, alone, freed, card, (i, c)) for i in range(len(co_location))]
        for c, co_location in enumerate(co_locations)
    ]


def _alone(co_locations: Sequence[Sequence[LoadDemand]], batch: Batch, card: Card) -> SteadyState:
    """The steady state of every load on a card of its own, at its place in `batch`."""
    places = [(i, c) for c, co_location in enumerate(co_locations) for i in range(len(co_location))]
    flat = solve(batch_of([[co_locations[c][i]] for i, c in places], card), card)
    loads, columns = (np.array(axis) for axis in zip(*places, strict=True))

    def placed(values: Array) -> Array:
        spread = np.ones((*values.shape[:-2], *batch.active.shape))
        spread[..., loads, columns] = values[..., 0, :]
        return spread

    return replace(
        flat,
        throughput=placed(flat.throughput),
        core_rate=placed(flat.core_rate),
        turns=placed(flat.turns),
        stall_ns=placed(flat.stall_ns),
    )


def _account(
    batch: Batch, here: SteadyState, alone: SteadyState, freed: Mapping[str, Array], card: Card, at: tuple[int, int]
) -> Account:
    used = [k for k in range(len(card.engines)) if batch.queues[k][at] > 0]
    names = list(card.engines)
    between = {names[k]: float(1 / (batch.queues[k][at] * here.turns[k][at])) for k in used}
    memory = "memory" if here.core_rate[at] < SLOWED * alone.core_rate[at] else "cpu"
    times = {memory: float(1 / here.core_rate[at])} | between
    stalls = dict(zip(("l2", "l3", "dram"), (float(stall[at]) for stall in here.stall_ns), strict=True))
    return Account(
        throughput_kpps=float(here.throughput[at]) * 1e3,
        solo_kpps=float(alone.throughput[at]) * 1e3,
        core_ns={"compute": float(batch.compute_ns[at])} | stalls,
        accelerator_us=between,
        lost_kpps={
            name: float(freed[name][at] - here.throughput[at]) * 1e3 for name in ("memory", *(names[k] for k in used))
        },
        bottleneck=max(times, key=lambda name: times[name]),
    )
