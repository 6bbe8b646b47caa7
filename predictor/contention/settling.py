"""The equilibrium of co-locations in compiled code, one co-location after the other."""

from __future__ import annotations

import numpy as np

from predictor.contention.accelerators import write_limits
from predictor.contention.composition import ADDED_WAITS, SLOWEST_STAGE, composed, drop_on_accelerator
from predictor.contention.subsets import write_lowest_shares
from predictor.regression.compiled import compiled, copy_into, scale

SETTLED = 1e-6
MOST_ROUNDS = 20
BY_PATTERN = -1
"""The number of no composition: each NF's own."""


@compiled
def settle(table, models, composition, member, sizes, throughput, solo, drops, bound):  # type: ignore[no-untyped-def]  # pragma: no cover
    """Write what `Equilibrium` describes into arrays of its shapes, which hold what it describes of absent members.

    `table` holds the columns of a `WorkloadTable`, `member` and `sizes` are those of a `CoLocationBatch`, and
    `composition` is the number of one for all NFs, or `BY_PATTERN`.
    """
    shares = np.empty(member.shape[1])
    for at in range(len(sizes)):
        size = sizes[at]
        rows, rates, limits, lost = member[at, :size], throughput[at, :size], bound[at, :size], drops[at, :size]
        write_lowest_shares(table, models, rows, shares[:size])
        for place in range(size):
            row = rows[place]
            # what the cores reach under the others' memory contention, before any queueing
            cores = 1.0 / (1.0 / (table.base[row] * shares[place]) + table.match_ms[row])
            limits[place, 0] = cores
            alone = solo[at, place] = rates[place] = table.modelled_solo[row]
            if size > 1:
                lost[place, 0] = max(alone - cores, 0.0)
                rates[place] = composed(_composition_of(table, composition, row), alone, lost[place])
        if size > 1:
            _share_accelerators(table, composition, rows, solo[at], rates, lost, limits)
        for place in range(size):
            if place > 0 and rows[place - 1] == rows[place]:
                # to the last bit: sums round by position
                rates[place] = rates[place - 1]
                copy_into(lost[place], lost[place - 1])
                copy_into(limits[place], limits[place - 1])
        for place in range(size):
            factor = table.factor[rows[place]]
            rates[place] = min(rates[place], solo[at, place]) * factor
            solo[at, place] *= factor
            scale(lost[place], factor)
            scale(limits[place], factor)


@compiled
def _share_accelerators(table, composition, rows, solo, rates, lost, limits):  # type: ignore[no-untyped-def]  # pragma: no cover
    """Settle the throughput of every member, its drop on each accelerator, and what each allows.

    An NF's demand for an accelerator depends on what its other resources leave it; a few rounds settle that.
    """
    size, accelerators = len(rows), table.queues.shape[1]
    queues, service, used = np.empty((accelerators, size)), np.empty((accelerators, size)), False
    for at in range(accelerators):
        for place in range(size):
            queues[at, place] = table.queues[rows[place], at]
            service[at, place] = table.service[rows[place], at] if queues[at, place] > 0 else 0.0
            used = used or queues[at, place] > 0
    if not used:
        return
    demand, allowed = np.empty((accelerators, size)), np.empty((accelerators, size))
    for turn in range(MOST_ROUNDS):
        for at in range(accelerators):
            _write_demand(table, rows, limits, rates, at, demand[at])
            write_limits(service[at], queues[at], demand[at], allowed[at])
        changed, fastest = 0.0, 0.0
        for place in range(size):
            staged = table.pipeline[rows[place]]
            for at in range(accelerators):
                limits[place, 1 + at] = allowed[at, place]
                lost[place, 1 + at] = drop_on_accelerator(staged, solo[place], service[at, place], allowed[at, place])
            before = rates[place]
            after = composed(_composition_of(table, composition, rows[place]), solo[place], lost[place])
            changed, fastest = max(changed, abs(after - before)), max(fastest, after)
            # half steps: of two NFs that wait for each other, neither jumps ahead
            rates[place] = after if turn == 0 else (after + before) / 2.0
        if changed <= SETTLED * fastest:
            return


@compiled
def _write_demand(table, rows, limits, rates, at, demand):  # type: ignore[no-untyped-def]  # pragma: no cover
    """Write the demand of each member for accelerator `at` (kpps).

    A pipeline sends what its other stages carry; run to completion sends a packet when the last has come back.
    """
    for place in range(len(rows)):
        demand[place] = rates[place]
        if table.pipeline[rows[place]]:
            demand[place] = np.inf
            for stage in range(limits.shape[1]):
                if stage != 1 + at:
                    demand[place] = min(demand[place], limits[place, stage])


@compiled
def _composition_of(table, composition, row):  # type: ignore[no-untyped-def]  # pragma: no cover - runs compiled
    if composition != BY_PATTERN:
        return composition
    return SLOWEST_STAGE if table.pipeline[row] else ADDED_WAITS
