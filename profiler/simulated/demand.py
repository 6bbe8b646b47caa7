"""What a load needs of the card per packet, or per operation of a bench: all that the solver knows of it."""

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import inf

import numpy as np

from profiler.simulated.card import HEADER_BYTES, LINE_BYTES, Card, NfSpec
from profiles import Workload
from profiles.arrays import Floats

LOADS_PER_INSTRUCTION = 0.29
STORES_PER_INSTRUCTION = 0.108  # of a polling core, from the slowest mem-bench runs measured on a BlueField-2
PROGRAM_BYTES = 0.14e6  # working set in addition to the data structures, from the same runs


@dataclass(frozen=True, slots=True)
class Access:
    """One structure as the shared cache sees it, per packet."""

    lines: float  # its size; 0 when every access hits the private cache
    l2: float  # accesses that miss the L1 cache
    l3: float  # accesses that miss the L2 cache
    writes: float  # share that writes
    overlap: float  # accesses outstanding at the same time


@dataclass(frozen=True, slots=True)
class LoadDemand:
    """What one load needs of a card, or one core of a chain of NFs."""

    cores: float  # cores that work for it; of a core of which a chain has only a share, that share
    instructions: float
    compute_ns: float  # core time per packet while every access hits the L1 cache, ns
    accesses: tuple[Access, ...]
    offered: float
    """Packets/us that arrive: line rate for NFs, the requested rate for a bench. It is a stage, before the cores."""
    dma_bytes: float  # bytes per packet that the port moves through memory
    queues: tuple[int, ...]  # request queues per accelerator of the card, 0: not used
    service_us: tuple[float, ...]  # time of a request per accelerator
    serial: bool  # run-to-completion: a packet waits for each resource in turn
    wss_mb: float
    paced: float = inf  # packets/us of a chosen rate, all of which are carried where the stages can go faster
    follows: bool = False
    """It is a further core of the chain whose earlier cores are before it: all of them pass the same packets."""


@dataclass(frozen=True, slots=True)
class Touched:
    """A structure of known size (bytes) and accesses per packet, before any cache."""

    size: float
    accesses: float
    writes: float
    overlap: float


def filter_accesses(touched: Sequence[Touched], cores: int, card: Card) -> tuple[Access, ...]:
    """The accesses that miss the private cache of `cores` cores."""
    lines = [part.size / LINE_BYTES for part in touched]
    found = private_hits(lines, [part.accesses for part in touched], cores * card.l2_bytes_per_core / LINE_BYTES)
    return tuple(
        Access(n if h < 1 else 0.0, part.accesses, part.accesses * (1 - h), part.writes, part.overlap)
        for part, n, h in zip(touched, lines, found, strict=True)
    )


def nf_demand(spec: NfSpec, load: Workload, card: Card) -> LoadDemand:
    """What the NF needs per packet, on the cores and at the rate of its load. Each core takes its share of the packets,
    and brings its private cache. The request queues of an accelerator are of the NF, however many cores fill them: more
    cores do not get it more turns."""
    traffic, cores = load.traffic, load.cores or spec.cores
    payload = max(traffic.packet_size - HEADER_BYTES, 1.0)
    fragments = max(payload / spec.fragment_bytes, 1.0) if spec.fragment_bytes else 0.0
    instructions = spec.instructions + payload * spec.instructions_per_byte + fragments * spec.instructions_per_fragment
    touched = [
        Touched(
            part.fixed_bytes + part.bytes_per_flow * traffic.flows,
            part.accesses + part.accesses_per_byte * payload,
            part.writes,
            part.overlap,
        )
        for part in spec.structures
    ]
    queues = dict(spec.queues)
    return LoadDemand(
        cores=cores,
        instructions=instructions,
        compute_ns=instructions / spec.ipc / card.clock_ghz,
        accesses=filter_accesses(touched, cores, card),
        offered=card.line_mpps(traffic.packet_size),
        dma_bytes=2 * card.dma_leak * traffic.packet_size,
        queues=tuple(queues.get(name, 0) for name in card.engines),
        service_us=tuple(
            engine.service_us(traffic.packet_size, traffic.mtbr) if name in queues else 0.0
            for name, engine in card.engines.items()
        ),
        serial=spec.pattern == "run-to-completion",
        wss_mb=(sum(part.size for part in touched) + PROGRAM_BYTES) / 1e6,
        paced=load.rate_kpps / 1e3,
    )


# Caches with random replacement, shared by access pressure.
#
# A line that is touched at rate q stays for a mean time T after it was brought in, so it is found with probability qT /
# (1 + qT). T is the same for all lines and such that the lines present fill the cache (the characteristic time
# approximation of Che, Tung and Wang, here for random replacement). A structure that is touched more often therefore
# holds more lines.


NEWTON_STEPS_ALONE = 30
LEAST_DEMAND = 1e-300


def private_hits(lines: Sequence[float], accesses: Sequence[float], capacity: float) -> list[float]:
    """Share of the accesses to each structure that hit a cache of `capacity` lines; only ratios of accesses count."""
    if sum(lines) <= capacity:
        return [1.0] * len(lines)
    pressure = 0.0
    for _ in range(NEWTON_STEPS_ALONE):
        held = slope = 0.0
        for n, a in zip(lines, accesses, strict=True):
            if n > 0 and a > 0:
                share = a / (n * pressure + a)
                held += n * share
                slope += n * n * share * share / a
        if held <= capacity:
            break
        pressure += (held / capacity - 1) * held / slope
    return [a / (n * pressure + a) if a > 0 else 0.0 for n, a in zip(lines, accesses, strict=True)]


def pressure_step(pressure: Floats, lines: Floats, rates: Floats, capacity: float) -> Floats:
    """One Newton step towards the replacement pressure 1/T (1/us) at which the lines held fill the cache. The
    reciprocal of the number of lines held is concave in the pressure, and a straight line for one structure, so the
    step never passes the solution from below, and from above it ends below. `pressure`: shape (batch,). `lines` and
    `rates`: size in lines and accesses/us of each structure, shape (structures, batch)."""
    present = lines * hits(pressure, lines, rates)
    held = functools.reduce(np.add, present)
    slope = functools.reduce(np.add, present**2 / rates)
    step: Floats = np.maximum(pressure + (held / capacity - 1) * held / np.maximum(slope, LEAST_DEMAND), 0.0)
    return step


def hits(pressure: Floats, lines: Floats, rates: Floats) -> Floats:
    """Share of the accesses that hit the cache; shapes as in `pressure_step`."""
    share: Floats = rates / (lines * pressure + rates)
    return share


# The contention benches: one core each, one resource each (Tomur, section 6).


CLOSED_LOOP_MPPS = 100.0  # packets/us on offer when a bench runs as fast as it goes


@dataclass(frozen=True, slots=True)
class BenchSpec:
    """A bench with the range of each parameter and the accelerator it loads, None for the memory."""

    name: str
    parameters: Mapping[str, tuple[float, float]]
    demand: Callable[[Mapping[str, float], Card], LoadDemand]
    engine: str | None = None


def mem_bench(parameters: Mapping[str, float], card: Card) -> LoadDemand:
    """Adds one to a word of one line after another in a scattered order: a read and, every other time, a write. The
    order is known in advance, so many accesses are outstanding at once: 16 reproduce the 175 million reads/s that the
    bench reached on a BlueField-2 with an array larger than the cache."""
    size = parameters["wss_mb"] * 1e6
    instructions = 6.0
    return LoadDemand(
        cores=1,
        instructions=instructions,
        compute_ns=instructions / 2.2 / card.clock_ghz,
        accesses=filter_accesses([Touched(size, 1.5, 1 / 3, 24.0)], 1, card),
        offered=parameters["access_mops"],
        dma_bytes=0.0,
        queues=(0,) * len(card.engines),
        service_us=(0.0,) * len(card.engines),
        serial=False,
        wss_mb=(size + PROGRAM_BYTES) / 1e6,
    )


def _engine_bench(engine: str) -> Callable[[Mapping[str, float], Card], LoadDemand]:
    def demand(parameters: Mapping[str, float], card: Card) -> LoadDemand:
        """Submits payloads that lie in the L2 cache to one queue of the engine."""
        instructions = 700.0
        rate = parameters["rate_kpps"] / 1e3
        service = card.engines[engine].service_us(parameters["packet_size"], parameters.get("mtbr", 0.0))
        return LoadDemand(
            cores=1,
            instructions=instructions,
            compute_ns=instructions / 1.4 / card.clock_ghz,
            accesses=filter_accesses([Touched(0.3e6, 4.0, 0.3, 2.0)], 1, card),
            offered=rate if rate > 0 else CLOSED_LOOP_MPPS,
            dma_bytes=0.0,
            queues=tuple(int(name == engine) for name in card.engines),
            service_us=tuple(service if name == engine else 0.0 for name in card.engines),
            serial=False,
            wss_mb=(0.3e6 + PROGRAM_BYTES) / 1e6,
        )

    return demand


CARD_BENCHES: tuple[BenchSpec, ...] = (
    BenchSpec("mem-bench", {"wss_mb": (0.1, 24), "access_mops": (1, 180)}, mem_bench),
    BenchSpec(
        "regex-bench",
        {"mtbr": (0, 1100), "rate_kpps": (0, 4000), "packet_size": (64, 1500)},
        _engine_bench("regex"),
        "regex",
    ),
    BenchSpec(
        "compression-bench",
        {"rate_kpps": (0, 1500), "packet_size": (64, 1500)},
        _engine_bench("compression"),
        "compression",
    ),
    BenchSpec("dma-bench", {"rate_kpps": (0, 4000), "packet_size": (64, 1500)}, _engine_bench("dma"), "dma"),
)
