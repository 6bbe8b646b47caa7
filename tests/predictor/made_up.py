"""Network functions made up for these tests, and the profile that a testbed would measure of them. Accelerators are
simulated request by request and cores by time per packet, so that nothing here shares a formula with `predictor`."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pandas as pd

from profiles import COUNTERS, NfDescription, NicModel, TestbedDescription, TrafficProfile
from profiles.profile import NfProfile, Profile, rate_column, service_column

PACKETS = 1500
DEFAULT = TrafficProfile(16000, 1500, 600)


@dataclass(frozen=True)
class Engine:
    """How one NF uses one accelerator: queues, ms per packet and per match, and whether turns are of equal time."""

    queues: int
    packet_ms: float
    match_ms: float = 0.0
    equal_time: bool = False

    def service_ms(self, traffic: TrafficProfile) -> float:
        return self.packet_ms + self.match_ms * traffic.mtbr * traffic.packet_size / 1e6


@dataclass(frozen=True)
class MadeUpNf:
    """Cores that slow down with the cache others take, and accelerators behind them."""

    name: str
    pipeline: bool
    core_ms: float
    engines: dict[str, Engine] = field(default_factory=dict)
    bytes_per_flow: float = 100.0

    def wss(self, traffic: TrafficProfile) -> float:
        return 1.0 + traffic.flows * self.bytes_per_flow / 1e6

    def core_time(self, traffic: TrafficProfile, accesses: float, wss: float) -> float:
        crowding = (self.wss(traffic) + wss * accesses / (accesses + 3e7)) / 6.0
        return float(self.core_ms * (1 + 0.4 * crowding**2 / (1 + crowding**2)))


def counters(accesses: float, wss: float) -> dict[str, float]:
    """Seven readings of something with that many cache accesses per second and that working set (MB)."""
    values = (0.9, 2e9 + 3 * accesses, 0.7 * accesses, 0.3 * accesses, 4e8 + accesses, 2e8, wss)
    return dict(zip(COUNTERS, values, strict=True))


def play(nf: MadeUpNf, core_ms: float, traffic: TrafficProfile, rivals: dict[str, tuple[float, float]]) -> float:
    """Throughput (kpps) next to one bench per accelerator, of that service time (ms) and offered rate (kpps, inf)."""
    engines = [(engine, rivals.get(name, (0.0, 0.0))) for name, engine in nf.engines.items()]
    if nf.pipeline:
        return min([1 / core_ms] + [_filled(engine, engine.service_ms(traffic), rival) for engine, rival in engines])
    workers = max((engine.queues for engine, _ in engines), default=1)
    return _one_by_one(core_ms * workers, workers, [(engine.service_ms(traffic), *rival) for engine, rival in engines])


def _filled(engine: Engine, service: float, rival: tuple[float, float]) -> float:
    """Requests per ms of queues that never run dry, served in turn with the rival's queue, or by who had least time."""
    now, done, taken = 0.0, 0, 0
    while done < PACKETS:
        if (
            engine.equal_time
            and rival[0]
            and taken < rival[1] * now
            and taken * rival[0] < done / engine.queues * service
        ):
            now, taken = now + rival[0], taken + 1
            continue
        now += engine.queues * service
        done += engine.queues
        if not engine.equal_time and rival[0] and taken + 1 <= rival[1] * now:
            now, taken = now + rival[0], taken + 1
    return done / now


def _one_by_one(core_ms: float, workers: int, stages: Sequence[tuple[float, float, float]]) -> float:
    """Packets per ms of workers that take a packet from the core to the last accelerator before the next. Between two
    visits of a worker, an accelerator serves every other worker, and once the rival's queue."""
    period = core_ms + sum(service for service, _, _ in stages)
    now = [period * worker / workers for worker in range(workers)]
    taken = [0.0] * len(stages)
    done = 0
    while done < PACKETS:
        worker = now.index(min(now))
        now[worker] += core_ms
        for at, (service, other, rate) in enumerate(stages):
            waiting = min(max(rate * now[worker] - taken[at], 0.0), 1.0) if other else 0.0
            taken[at] += waiting / workers
            now[worker] += waiting * other + workers * service
        done += 1
    return done / max(now)


def testbed(nfs: Sequence[MadeUpNf], cores: int = 6) -> TestbedDescription:
    """A NIC with the accelerators that the NFs use, each of which takes one core."""
    accelerators = tuple(dict.fromkeys(name for nf in nfs for name in nf.engines))
    return TestbedDescription(
        name="made-up",
        nic=NicModel(model="made-up", cores=cores, accelerators=accelerators),
        attributes={"flows": (1, 200000), "packet_size": (64, 1500), "mtbr": (0, 1000)},
        default_traffic=DEFAULT.as_dict(),
        nfs=tuple(NfDescription(name=nf.name, cores=1, accelerators=tuple(nf.engines)) for nf in nfs),
    )


def measure(nf: MadeUpNf, seed: int = 0, noise: float = 0.005) -> NfProfile:
    """The profile of one NF: solo, next to mem-bench, next to each accelerator's bench, next to all."""
    rng = np.random.default_rng(seed)
    free: dict[str, tuple[float, float]] = {}

    def run(traffic: TrafficProfile, accesses: float, wss: float, rivals: dict[str, tuple[float, float]]) -> float:
        rate = play(nf, nf.core_time(traffic, accesses, wss), traffic, rivals)
        return float(rate * (1 + noise * rng.standard_normal()))

    def traffic(mtbr: float | None = None) -> TrafficProfile:
        flows = float(round(np.exp(rng.uniform(0, np.log(200000)))))
        return TrafficProfile(flows, float(rng.integers(64, 1501)), rng.uniform(0, 1000) if mtbr is None else mtbr)

    solo = [
        {**one.as_dict(), **counters(1e7, nf.wss(one)), "throughput_kpps": run(one, 0, 0, free)}
        for one in [DEFAULT, *(traffic() for _ in range(50))]
    ]
    memory = []
    for _ in range(120):
        one, accesses, wss = traffic(0.0 if nf.engines else None), 10 ** rng.uniform(6, 8.3), 10 ** rng.uniform(-1, 1.8)
        reached = run(one, accesses, wss, free)
        memory.append({**one.as_dict(), **counters(accesses, wss), "throughput_kpps": reached})
    tables, mixed = {}, []
    for name, engine in nf.engines.items():
        typical = engine.service_ms(DEFAULT)
        rows = []
        for mtbr, factor, share in [(600, 1, 0), (600, 4, 0), (1000, 2, 0), (0, 4, 0), (300, 3, 0), (600, 1, 0.3)]:
            one, service = replace(DEFAULT, mtbr=float(mtbr)), factor * typical
            rate = share / service if share else np.inf
            rows.append(
                {
                    **one.as_dict(),
                    "competitor_service_ms": service,
                    "competitor_kpps": rate if share else np.nan,
                    "throughput_kpps": run(one, 0, 0, {name: (service, rate)}),
                }
            )
        tables[name] = pd.DataFrame(rows)
    for factor in (0.5, 1, 2, 3) if nf.engines else ():
        for accesses, wss in ((2e7, 4.0), (1.5e8, 20.0)):
            rivals = {name: (factor * engine.service_ms(DEFAULT), np.inf) for name, engine in nf.engines.items()}
            row = {**DEFAULT.as_dict(), **counters(accesses, wss)}
            row |= {service_column(name): service for name, (service, _) in rivals.items()}
            row |= {rate_column(name): np.nan for name in rivals}
            mixed.append({**row, "throughput_kpps": run(DEFAULT, accesses, wss, rivals)})
    description = NfDescription(name=nf.name, cores=1, accelerators=tuple(nf.engines))
    return NfProfile(nf.name, description, pd.DataFrame(solo), pd.DataFrame(memory), tables, pd.DataFrame(mixed))


def profile(nfs: Sequence[MadeUpNf], seed: int = 0) -> Profile:
    """The profile of these NFs; the benches' own runs are left out, as in a profile written by hand."""
    measured = {nf.name: measure(nf, seed) for nf in sorted(nfs, key=lambda nf: nf.name)}
    return Profile(Path("made-up"), testbed(nfs), pd.DataFrame(), measured)


PLAIN = MadeUpNf("plain", True, 5e-4)
CRYPTO = MadeUpNf("crypto-pipeline", True, 5e-4, {"crypto": Engine(1, 4e-4, 6e-4)})
LOOKUP = MadeUpNf("lookup-serial", False, 8e-4, {"crypto": Engine(2, 3e-4, 5e-4)})
