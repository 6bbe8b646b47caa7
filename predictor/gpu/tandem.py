"""Batches of co-located NFs on their way through workers, bus, SMs and the bus back, sampled.

Each resource is a queue: a worker serves the batches of its NF before and after the GPU, the bus to the GPU serves
whole batches by their order and never interrupts one (non-preemptive fixed priorities), kernels of an NF run one after
the other, the bus back serves batches as they come. A worker takes a batch only while fewer than a window of them are
on their way. What a batch takes at each is drawn around what was learnt of it; how long it waits follows. The draws are
the same each time."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from predictor.gpu.batching import Bursts
from predictor.gpu.sharing import KernelShare, as_arrays
from predictor.regression.compiled import compile_kernel
from profiles.arrays import Floats

SLOWEST_NF_BATCHES = 1500  # batches of the slowest NF that are drawn
MOST_BATCHES = 60_000  # of all NFs together; then fewer of each
FEWEST_BATCHES = 200
WARM_UP = 0.05  # share of the batches that fill the queues first and are not counted
PACKETS_PER_BATCH, FEWEST_PACKETS, MOST_PACKETS = 12, 3, 24_000
"""Packets that are drawn of each batch: at most, at least, and about at most in all."""
TAIL_Z = 2.3263478740408408  # the 99th percentile of the normal distribution
PRE_SHARE = 0.5  # the share of pre- and post-processing that is before the GPU


@dataclass(frozen=True)
class BatchDemand:
    """What the batches of one NF take, us."""

    batch: int
    rate_kpps: float
    bursts: Bursts  # how its batches come: packets, offered rate, bursts of packets
    order: float  # its turn on the bus; smaller first
    pre_post: float
    transfer: float
    returned: float  # mean time of each
    kernel: KernelShare  # its minibatches
    tails: tuple[float, float, float, float] = (1.0, 1.0, 1.0, 1.0)
    """p99 over mean of pre/post, transfer, kernel and return."""
    receive: float = 0.0  # what the worker does besides for each batch, such as taking packets from the NIC

    @property
    def period_us(self) -> float:
        """Mean time from batch to batch."""
        return 1000.0 * self.batch / self.rate_kpps


@dataclass(frozen=True)
class SampledLatency:
    """Latency of the packets of one NF, us: mean, median and p99, and means of each of `STAGES`."""

    mean: float
    p50: float
    p99: float
    stages: tuple[float, ...]


def sample(demands: Sequence[BatchDemand], *, window: int, batches: int = SLOWEST_NF_BATCHES) -> list[SampledLatency]:
    """The latency of each NF of a co-location; no resource may be overloaded. `window`: the most batches of an NF on
    their way. `batches`: that are drawn of the slowest NF."""
    counts = _counts(demands, batches)
    rng = [np.random.default_rng([17, at]) for at in range(len(demands))]
    gaps = [
        one.bursts.batches(one.batch, one.rate_kpps, count, draw)
        for one, count, draw in zip(demands, counts, rng, strict=True)
    ]
    ends = [np.cumsum(gap.periods_us) for gap in gaps]
    taken = [_times(one, count, draw) for one, count, draw in zip(demands, counts, rng, strict=True)]
    first = np.cumsum([0, *counts])
    at = np.zeros((8, first[-1]))
    orders, rest = (
        np.array([getattr(demand, name) for demand in demands], dtype=np.float64) for name in ("order", "receive")
    )
    serve(
        first,
        orders,
        window,
        np.concatenate(ends),
        np.concatenate(taken, axis=1),
        rest,
        *as_arrays([demand.kernel for demand in demands]),
        at,
    )
    result = []
    for nf in range(len(demands)):
        skip = int(WARM_UP * counts[nf])
        mine = at[:, first[nf] + skip : first[nf + 1]]
        end = ends[nf][skip:]
        packets_each = max(FEWEST_PACKETS, min(PACKETS_PER_BATCH, MOST_PACKETS // counts[nf]))
        waits = gaps[nf].waits_us(skip, packets_each, rng[nf])
        stages = (
            float(waits.mean() + (mine[BATCH_TAKEN] - end).mean()),
            float((mine[ON_WORKER] - mine[BATCH_TAKEN] + mine[BATCH_DONE] - mine[BATCH_RETURNED]).mean()),
            float((mine[ON_BUS] - mine[ON_WORKER]).mean()),
            float((mine[ON_CARD] - mine[ON_BUS]).mean()),
            float((mine[KERNEL_BEGIN] - mine[ON_CARD]).mean()),
            float((mine[KERNEL_END] - mine[KERNEL_BEGIN]).mean()),
            float((mine[BATCH_RETURNED] - mine[KERNEL_END]).mean()),
        )
        packets = waits + (mine[BATCH_DONE] - end)[:, None]
        p50, p99 = np.quantile(packets, [0.5, 0.99]).tolist()
        result.append(SampledLatency(float(packets.mean()), p50, p99, stages))
    return result


def _counts(demands: Sequence[BatchDemand], batches: int) -> list[int]:
    """Batches of each NF in the same time."""
    periods = np.array([demand.period_us for demand in demands])
    horizon = batches * periods.max()
    horizon *= min(1.0, MOST_BATCHES / (horizon / periods).sum())
    return [max(FEWEST_BATCHES, int(count)) for count in horizon / periods]


def _times(demand: BatchDemand, count: int, rng: Generator) -> Floats:
    """What each batch takes, shape (5, count): log-normal, of the learnt mean and p99."""
    means = (demand.pre_post, demand.transfer, 1.0, demand.returned)
    drawn = []
    for mean, tail in zip(means, demand.tails, strict=True):
        # p99 / mean of a log-normal is exp(z s - s^2 / 2)
        spread = TAIL_Z - np.sqrt(max(TAIL_Z**2 - 2 * np.log(max(tail, 1.0)), 0.0))
        drawn.append(mean * np.exp(spread * rng.standard_normal(count) - spread**2 / 2))
    whole, transfer, kernel, returned = drawn
    return np.array([PRE_SHARE * whole, transfer, kernel, returned, (1 - PRE_SHARE) * whole])


# The queues of a GPU server as machine code: workers, the bus each way, and kernels that slow each other.
#
# The batches of all NFs stand one NF after the other in flat arrays; those of NF i are `first[i]` to `first[i + 1]`, in
# the order in which they come. The batches of an NF never overtake each other.


BATCH_TAKEN, ON_WORKER, ON_BUS, ON_CARD, KERNEL_BEGIN, KERNEL_END, BATCH_RETURNED, BATCH_DONE = range(8)
"""Rows of the result: when the worker takes a batch, is done before the GPU, when the batch gets the bus, is on the
card, when its kernel begins and ends, when the batch is back, and when the worker is done with it."""
WORKER_IDLE, WORKER_PRE, WORKER_REST, WORKER_POST = range(4)  # what a worker does
ENDED_SHARE = 1e-6  # a kernel of which a smaller share is left has ended: times are rounded


@compile_kernel
def time_beside(nf, part_of, alone, slowdowns, running):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """The time of the kernel of one NF, its longest minibatch, while these NFs' kernels run."""
    longest = 0.0
    for part in range(part_of[nf], part_of[nf + 1]):
        slower = 1.0
        for other in range(len(running)):
            if running[other]:
                slower += slowdowns[part, other]
        longest = max(longest, alone[part] * slower)
    return longest


@compile_kernel
def next_on_bus(now, first, orders, head, asked, times):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """The NF whose batch gets a free bus: the smallest order, then who asked first; -1 where none waits."""
    best = -1
    for nf in range(len(orders)):
        if head[nf] < asked[nf] and (
            best < 0
            or orders[nf] < orders[best]
            or (orders[nf] == orders[best] and times[head[nf]] < times[head[best]])
        ):
            best = nf
    return best


@compile_kernel
def serve(first, orders, window, ready, taken, rest, part_of, alone, slowdowns, at):  # type: ignore[no-untyped-def]  # noqa: C901  # pragma: no cover - compiled
    """Serve every batch, from event to event.

    `first`: shape (NFs + 1,). `orders`: of the bus to the GPU, shape (NFs,). `window`: the most batches of an NF that a
    worker has sent and not yet seen back. `ready`: when each batch is complete, shape (batches,). `taken`: what each
    batch takes of the worker before, of the bus, of its kernel (as a factor), of the bus back, and of the worker after,
    shape (5, batches). `rest`: what else the worker does per batch before it takes the next, us, shape (NFs,).
    `part_of`: the minibatches of NF i are `part_of[i]` to `part_of[i + 1]`, shape (NFs + 1,). `alone`: time of each
    minibatch with its SM for itself, shape (parts,). `slowdowns`: by which share each minibatch takes longer while the
    kernel of each NF runs, shape (parts, NFs). `at`: the result, shape (8, batches)."""
    count = len(orders)
    started = first[:-1].copy()  # of each NF: the next batch for the worker, the buses, the card and the worker again
    sent, asked, arrived, run, done = started.copy(), started.copy(), started.copy(), started.copy(), started.copy()
    back, seen, finished = started.copy(), started.copy(), started.copy()
    free, doing = np.full(count, np.inf), np.zeros(count, dtype=np.int64)
    running, left, rate = np.zeros(count, dtype=np.bool_), np.zeros(count), np.ones(count)
    on_bus, on_way_back, bus_free, back_free = -1, -1, np.inf, np.inf
    same = np.zeros(count)
    now = 0.0
    while True:
        # 1. begin all that can begin now
        for nf in range(count):
            if doing[nf] == WORKER_IDLE:
                if finished[nf] < seen[nf]:
                    doing[nf] = WORKER_POST
                    free[nf] = now + taken[4, finished[nf]]
                elif started[nf] < first[nf + 1] and ready[started[nf]] <= now and started[nf] - finished[nf] < window:
                    doing[nf] = WORKER_PRE
                    at[BATCH_TAKEN, started[nf]] = now
                    free[nf] = now + taken[0, started[nf]]
            if not running[nf] and run[nf] < arrived[nf]:
                running[nf], left[nf] = True, 1.0
                at[KERNEL_BEGIN, run[nf]] = now
        if on_bus < 0:
            on_bus = next_on_bus(now, first, orders, sent, asked, at[ON_WORKER])
            if on_bus >= 0:
                at[ON_BUS, sent[on_bus]] = now
                bus_free = now + taken[1, sent[on_bus]]
        if on_way_back < 0:
            on_way_back = next_on_bus(now, first, same, back, done, at[KERNEL_END])
            if on_way_back >= 0:
                back_free = now + taken[3, back[on_way_back]]
        # 2. the next event
        for nf in range(count):
            if running[nf]:
                rate[nf] = 1.0 / (time_beside(nf, part_of, alone, slowdowns, running) * taken[2, run[nf]])
        time = min(bus_free, back_free)
        for nf in range(count):
            if doing[nf] != WORKER_IDLE:
                time = min(time, free[nf])
            elif started[nf] < first[nf + 1] and started[nf] - finished[nf] < window:
                time = min(time, ready[started[nf]])
            if running[nf]:
                time = min(time, now + left[nf] / rate[nf])
        if time == np.inf:
            break
        for nf in range(count):
            if running[nf]:
                left[nf] -= (time - now) * rate[nf]
        now = max(now, time)
        # 3. end what ends then
        for nf in range(count):
            if doing[nf] != WORKER_IDLE and free[nf] <= now:
                if doing[nf] == WORKER_PRE:
                    at[ON_WORKER, started[nf]] = now
                    started[nf] += 1
                    asked[nf] += 1
                    doing[nf], free[nf] = WORKER_REST, now + rest[nf]
                elif doing[nf] == WORKER_POST:
                    at[BATCH_DONE, finished[nf]] = now
                    finished[nf] += 1
                    doing[nf] = WORKER_IDLE
                if doing[nf] == WORKER_REST and free[nf] <= now:
                    doing[nf] = WORKER_IDLE
            if running[nf] and left[nf] <= ENDED_SHARE:
                running[nf] = False
                at[KERNEL_END, run[nf]] = now
                run[nf] += 1
                done[nf] += 1
        if bus_free <= now:
            at[ON_CARD, sent[on_bus]] = now
            sent[on_bus] += 1
            arrived[on_bus] += 1
            on_bus, bus_free = -1, np.inf
        if back_free <= now:
            at[BATCH_RETURNED, back[on_way_back]] = now
            back[on_way_back] += 1
            seen[on_way_back] += 1
            on_way_back, back_free = -1, np.inf
