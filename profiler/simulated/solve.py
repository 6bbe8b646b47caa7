"""The steady state: the throughputs of co-located loads at which each slows the others consistently (a fixed point).

The loads share the cache, the memory channel and the accelerators. From the present throughputs follow the misses of
each structure, the waiting for the memory and the turns of each request queue; from those the throughputs. Half steps
are taken until a co-location no longer changes; then its answer is kept, so that it does not depend on the rest of the
batch.

Arrays are indexed [load, ..., co-location]. Sums over loads are added one by one in that order, so that the zeros of an
empty place change nothing, to the last bit."""

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from profiler.simulated.card import LINE_BYTES, Card
from profiler.simulated.demand import LoadDemand, hits, pressure_step
from profiles.arrays import Floats

SOLVER_ITERATIONS = 80
NEWTON_STEPS = 2
SETTLED_CHANGE = 1e-9
UNBOUNDED_RATE = 1e6  # packets/us of a stage without a limit


@dataclass(frozen=True)
class Batch:
    """Demands as arrays. Indexed [load, co-location]; structures [load, structure, co-location]; engines [engine, load,
    co-location]."""

    active: Floats
    cores: Floats
    instructions: Floats
    compute_ns: Floats
    offered: Floats
    dma_bytes: Floats
    serial: Floats
    wss_mb: Floats
    follows: Floats
    paced: Floats
    lines: Floats
    l2: Floats
    l3: Floats
    writes: Floats
    overlap: Floats
    queues: Floats
    service_us: Floats


@dataclass(frozen=True)
class SteadyState:
    """What each load reaches, and the contention at that point; shapes as in `Batch`."""

    throughput: Floats  # packets/us
    capacity: Floats  # packets/us that a paced load could carry beside the others; of all others, the throughput
    core_rate: Floats  # packets/us that the cores alone would reach in this co-location
    turns: Floats
    """Requests/us at which the engine would serve each queue if it were never empty, [engine, load, co-location]."""
    stall_ns: Floats
    """Core time per packet waiting for the L2 cache, the L3 cache and the memory, [3, load, co-location]."""


def batch_of(co_locations: Sequence[Sequence[LoadDemand]], card: Card) -> Batch:
    """The co-locations side by side, short ones padded with loads that need nothing."""
    loads = max(map(len, co_locations))
    structures = max(len(demand.accesses) for co_location in co_locations for demand in co_location)
    distinct: dict[int, int] = {}
    rows = [_row(NO_LOAD, structures, len(card.engines))]
    index = np.zeros((loads, len(co_locations)), dtype=np.intp)
    for c, co_location in enumerate(co_locations):
        for i, demand in enumerate(co_location):
            if id(demand) not in distinct:
                distinct[id(demand)] = len(rows)
                rows.append(_row(demand, structures, len(card.engines)))
            index[i, c] = distinct[id(demand)]
    table = np.ascontiguousarray(np.array(rows).T[:, index])
    scalars, rest = table[:SCALAR_COUNT], table[SCALAR_COUNT:]
    parts = rest[: 5 * structures].reshape(5, structures, loads, len(co_locations)).swapaxes(1, 2)
    engines = rest[5 * structures :].reshape(2, len(card.engines), loads, len(co_locations))
    return Batch(*scalars, *np.ascontiguousarray(parts), *engines)


SCALAR_COUNT = 10
NO_LOAD = LoadDemand(0, 0.0, 1.0, (), 1.0, 0.0, (), (), False, 0.0)


def _row(demand: LoadDemand, structures: int, engines: int) -> list[float]:
    empty = structures - len(demand.accesses)
    row = [
        float(demand is not NO_LOAD), float(demand.cores) or 1.0, demand.instructions, demand.compute_ns,
        demand.offered, demand.dma_bytes, float(demand.serial), demand.wss_mb, float(demand.follows), demand.paced,
    ]  # fmt: skip
    for name, filler in (("lines", 0.0), ("l2", 0.0), ("l3", 0.0), ("writes", 0.0), ("overlap", 1.0)):
        row += [getattr(access, name) for access in demand.accesses] + [filler] * empty
    row += [float(n) for n in demand.queues] or [0.0] * engines
    row += list(demand.service_us) or [0.0] * engines
    return row


def solve(batch: Batch, card: Card) -> SteadyState:
    """Throughput of every load of every co-location."""
    co_locations = batch.active.shape[1]
    fastest = np.minimum(np.minimum(batch.offered, batch.paced), batch.cores * 1e3 / batch.compute_ns)
    throughput = _together(batch, fastest, card) * batch.active
    pressure, waiting = np.zeros(co_locations), np.zeros(co_locations)
    turns = np.full(batch.queues.shape, UNBOUNDED_RATE)
    core_rate = np.full(throughput.shape, UNBOUNDED_RATE)
    stall_ns = np.zeros((3, *throughput.shape))
    moving = np.ones(co_locations, dtype=np.bool_)
    for _ in range(SOLVER_ITERATIONS):
        before = throughput, core_rate
        new_pressure, missed = _misses(batch, throughput, pressure, card)
        pressure = np.where(moving, new_pressure, pressure)
        stall_ns = np.where(moving, _stalls(batch, missed, waiting, card), stall_ns)
        core_rate = batch.cores * 1e3 / (batch.compute_ns + _add_up(stall_ns))
        turns = np.where(moving, _turns(batch, throughput, core_rate, turns, card), turns)
        possible = reach_throughput(batch, core_rate, turns, card)
        new_waiting = _waiting(batch, possible, core_rate, turns, missed, waiting, card)
        waiting = np.where(moving, new_waiting, waiting)
        throughput = np.where(moving, np.sqrt(throughput) * np.sqrt(possible), throughput)
        # The co-locations in which the throughput or core rate of a load still changes.
        after = (throughput, core_rate)
        changes = [np.abs(new - old) > SETTLED_CHANGE * new for old, new in zip(before, after, strict=True)]
        moved: NDArray[np.bool_] = np.any(changes, axis=(0, 1))
        moving &= moved
        if not moving.any():
            break
    capacity = np.where(batch.paced < math.inf, _carry(batch, core_rate, turns, card), throughput)
    return SteadyState(throughput, capacity, core_rate, turns, stall_ns)


def reach_throughput(batch: Batch, core_rate: Floats, turns: Floats, card: Card) -> Floats:
    """Throughput (packets/us) of loads whose cores and accelerators can go at these rates."""
    return np.minimum(_carry(batch, core_rate, turns, card), batch.paced)


def _carry(batch: Batch, core_rate: Floats, turns: Floats, card: Card) -> Floats:
    """The most packets/us that loads can carry, whatever their rate."""
    rates = _narrowest([batch.offered, *_stages(batch, core_rate, turns)], card.window)
    return _together(batch, rates, card) * batch.active


def _together(batch: Batch, rates: Floats, card: Card) -> Floats:
    """The rates of loads; the cores of a chain go at the rate of its narrowest one, which rings hold the others to."""
    if not batch.follows.any():
        return rates
    at = (np.cumsum(1 - batch.follows, axis=0) - 1).astype(np.intp), np.arange(rates.shape[1])
    least, crowd = np.full_like(rates, np.inf), np.zeros_like(rates)
    np.minimum.at(least, at, rates)
    np.add.at(crowd, at, np.exp(_exponent(card.window) * np.log(least[at] / rates)))
    together: Floats = least[at] * np.exp(np.log(crowd[at]) / -_exponent(card.window))
    return together


def _misses(batch: Batch, throughput: Floats, pressure: Floats, card: Card) -> tuple[Floats, Floats]:
    """The pressure on the shared cache, and the accesses per packet that miss it, as `batch.l3`."""
    loads, structures, co_locations = batch.lines.shape
    rates = np.where(batch.l3 > 0, throughput[:, np.newaxis] * batch.l3, 1.0)
    lines = np.where(batch.l3 > 0, batch.lines, 0.0)
    flat = (loads * structures, co_locations)
    for _ in range(NEWTON_STEPS):
        pressure = pressure_step(pressure, lines.reshape(flat), rates.reshape(flat), card.shared_lines)
    return pressure, batch.l3 * (1 - hits(pressure, lines, rates))


def _stalls(batch: Batch, missed: Floats, waiting: Floats, card: Card) -> Floats:
    """Core time per packet lost in L2, L3 and memory, ns."""
    return np.stack(
        [
            _add_up(batch.l2 / batch.overlap, axis=1) * card.l2_ns,
            _add_up(batch.l3 / batch.overlap, axis=1) * card.l3_ns,
            _add_up(missed / batch.overlap, axis=1) * (card.dram_ns + waiting),
        ]
    )


def _waiting(
    batch: Batch, possible: Floats, core_rate: Floats, turns: Floats, missed: Floats, waiting: Floats, card: Card
) -> Floats:
    """Waiting for the memory channel, one step closer to where it carries the loads' traffic, ns."""
    moved = (_add_up(missed * (1 + batch.writes), axis=1) * LINE_BYTES + batch.dma_bytes) * possible * 1e-3
    in_turn = _stages(batch, core_rate, turns)[0]
    core_bound = (possible / in_turn) ** _exponent(card.window) * in_turn / core_rate
    slowing = core_bound * core_rate * _add_up(missed / batch.overlap, axis=1) / (batch.cores * 1e3)
    return waiting_step(card, waiting, _add_up(moved), -_add_up(moved * slowing))


def _turns(batch: Batch, throughput: Floats, core_rate: Floats, turns: Floats, card: Card) -> Floats:
    """Turns of each queue at each engine, given the rates at which the other stages pass requests on."""
    updated = turns.copy()
    for k in range(len(turns)):
        if not batch.queues[k].any():
            continue
        others = [stage for e, stage in enumerate(_stages(batch, core_rate, turns)) if e != k + 1]
        ahead = np.minimum(_narrowest([batch.offered, *others], card.window), batch.paced)
        offered = np.where(batch.serial > 0, throughput, ahead) / np.maximum(batch.queues[k], 1.0)
        for _ in range(NEWTON_STEPS):
            updated[k] = turns_step(updated[k], offered, batch.queues[k], batch.service_us[k])
    return updated


def _stages(batch: Batch, core_rate: Floats, turns: Floats) -> list[Floats]:
    """Rates of the stages that packets pass; for a run-to-completion load all of them are one stage."""
    rates = [
        np.where(queues > 0, queues * turn, UNBOUNDED_RATE) for queues, turn in zip(batch.queues, turns, strict=True)
    ]
    in_turn = 1 / core_rate
    for queues, rate in zip(batch.queues, rates, strict=True):
        in_turn = in_turn + np.where(queues > 0, 1 / rate, 0.0)
    serial = batch.serial > 0
    return [np.where(serial, 1 / in_turn, core_rate), *(np.where(serial, UNBOUNDED_RATE, rate) for rate in rates)]


def _narrowest(stages: Sequence[Floats], window: int) -> Floats:
    """Rate of stages with `window` requests in flight between them: the least, less 1 / (window + 1) where two tie."""
    exponent = _exponent(window)
    least = stages[0]
    for stage in stages[1:]:
        least = np.minimum(least, stage)
    crowd = np.zeros_like(least)
    for stage in stages:
        crowd = crowd + np.exp(exponent * np.log(least / stage))
    rate: Floats = least * np.exp(np.log(crowd) / -exponent)
    return rate


def _exponent(window: int) -> float:
    return math.log(2) / math.log1p(1 / window)


def _add_up(values: Floats, axis: int = 0) -> Floats:
    total: Floats = functools.reduce(np.add, values.swapaxes(0, axis))
    return total


# The memory channel: waiting grows with utilisation u as u / (1 - u), as in a queue with exponential service.


SLACK_NS = 20.0


def waiting_step(card: Card, waiting: Floats, gbps: Floats, slope: Floats) -> Floats:
    """One Newton step towards the waiting (ns) at which the channel carries the loads' traffic. `waiting`: the present
    estimate; the step goes no further than half or twice that. `gbps` and `slope`: the loads' memory traffic at this
    waiting, GB/s, and its derivative, which is not positive."""
    gap = waiting + card.dram_queue_ns
    carried = card.dram_gbps * waiting / gap
    steepness = card.dram_gbps * card.dram_queue_ns / gap**2
    step: Floats = np.clip(waiting + (gbps - carried) / (steepness - slope), waiting / 2, 2 * waiting + SLACK_NS)
    return step


# An accelerator that serves request queues round robin, one request a turn.
#
# A queue with requests waiting is served once a turn, so all such queues are served equally often, whatever a request
# costs; a queue that offers less is served at its rate. The remaining time goes to the others: progressive filling.


def turns_step(turns: Floats, offered: Floats, queues: Floats, service: Floats) -> Floats:
    """One Newton step towards the rate (1/us) at which each load's queues would be served if they were never empty.

    For load i it solves sum over j != i of queues_j service_j min(offered_j, turns_i) + queues_i service_i turns_i = 1,
    concave and piecewise linear: from anywhere the first step lands on the near side, then each kink takes one.
    `turns`: the present estimate, shape (loads, batch); kept for loads that do not use the engine. `offered`:
    requests/us that each queue would receive, shape (loads, batch). `queues` and `service`: number of queues and time
    of a request (us), shape (loads, batch); zero queues where the engine is not used."""
    work = queues * service
    taken = np.zeros_like(turns)
    slope = work.copy()
    for j in range(len(turns)):
        waiting = offered[j] > turns
        others_slope = np.where(waiting, work[j], 0.0)
        others_taken = np.where(waiting, 0.0, work[j] * offered[j])
        others_slope[j] = others_taken[j] = 0.0
        slope += others_slope
        taken += others_taken
    updated = turns.copy()
    np.divide(np.maximum(1 - taken, 0.0), slope, out=updated, where=queues > 0)
    return updated
