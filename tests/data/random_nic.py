"""A NIC drawn at random: its hardware, its NFs, and the rates at which workloads share it (see random_testbed.py).
Rates are packets (or operations) per microsecond, which is 1,000 kpps; times are microseconds unless named
otherwise."""

import math
import random

from random_program import neat, spread

LINE_KB = 64e-3
MOST_STEPS = 80
STEP = 0.5
TOLERANCE = 1e-6
UNLIMITED = 1e9

PLACES = ("edge", "core", "access", "border", "campus", "tenant", "metro", "branch")
ROLES = (
    "firewall", "balancer", "sampler", "proxy", "gateway", "router", "meter", "cache", "scrubber", "tunnel", "shaper",
    "inspector", "translator", "mirror", "classifier",
)  # fmt: skip
ENGINES = ("crypto", "regex", "compression", "checksum", "dedup", "lookup")
MATCHING = ("regex", "pattern")
EXTRA_PARAMETERS = {"crypto": ("key_rounds", 10, 14), "compression": ("level", 1, 9)}
SHARES = {
    "by-cores": (0.25, 0.25, 0.5),
    "by-references": (1, 0, 0),
    "by-working-set": (0, 1, 0),
    "by-both": (0.5, 0.5, 0),
}
"""Exponents of references, working set and cores in the weight by which the cache is shared."""
CORE_COUNTS = (1, 2, 4)
WAITS = ("linear", "convex", "knee")
DISCIPLINES = ("round-robin", "changeover", "equal-time")


class Engine:
    """An accelerator: its discipline, and its time per request, byte and match."""

    def __init__(self, draw, name, typical_us, traffic):
        self.name, self.discipline = name, draw.choice(DISCIPLINES)
        self.changeover_us = neat(typical_us * draw.uniform(0.1, 0.3)) if self.discipline == "changeover" else 0.0
        parts = [draw.uniform(0.2, 1), draw.uniform(0.2, 1), draw.uniform(0.5, 1.5) if name in MATCHING else 0.0]
        units = [1.0, traffic["packet_size"], traffic["packet_size"] * traffic.get("mtbr", 0) * 1e-6]
        self.costs = [neat(typical_us * p / sum(parts) / u) if p else 0.0 for p, u in zip(parts, units, strict=True)]
        self.extra = EXTRA_PARAMETERS.get(name)

    def service_us(self, values):
        """Time of one request of this packet size, with these matches per MB."""
        request, byte, match = self.costs
        time_us = request + values["packet_size"] * (byte + match * values.get("mtbr", 0) * 1e-6)
        if self.extra and self.extra[0] in values:
            name, low, high = self.extra
            time_us *= 1 + 0.5 * (values[name] - low) / (high - low)
        return time_us

    def limit(self, job, jobs):
        """The rate at which this engine would serve `job` if requests of it were always waiting."""
        others = [other for other in jobs if other is not job and self.name in other.service_us]
        busy = min(1.0, sum(other.offered * other.service_us[self.name] for other in others))
        own_us = job.service_us[self.name] + self.changeover_us * busy
        demands = []
        for other in others:
            time_us = other.service_us[self.name] + self.changeover_us
            if self.discipline == "equal-time":
                demands.append((other.offered * time_us / other.queues, other.queues))
            else:
                demands.append((other.offered / other.queues, other.queues * time_us))
        if self.discipline == "equal-time":
            return job.queues * level(1.0, job.queues, demands) / own_us
        return job.queues * level(1.0, job.queues * own_us, demands)


def level(capacity, cost, demands):
    """The level up to which each demand can be met: each (demand, cost) takes the lesser of the two, times its cost."""
    total = cost + sum(each for _, each in demands)
    for demand, each in sorted(demands):
        if demand * total >= capacity:
            break
        capacity -= demand * each
        total -= each
    return capacity / total


class Nf:
    """A network function: its cores, and what a packet costs."""

    def __init__(self, draw, name, cores, engines, llc_mb, traffic):
        self.name, self.cores = name, cores
        self.cycles = neat(cores * spread(draw, 500, 2500))
        self.cycles_per_byte = draw.choice((0.0, 0.0, spread(draw, 0.05, 0.6)))
        self.references = round(spread(draw, 8, 50))
        self.overlap = neat(draw.uniform(1.5, 4))
        self.fixed_mb = neat(draw.uniform(0.1, 0.4))
        self.bytes_per_flow = neat(llc_mb * spread(draw, 0.1, 0.9) * 1e6 / traffic["flows"])
        self.skew = neat(draw.uniform(0.4, 1))
        self.write_share = neat(draw.uniform(0.1, 0.5))
        self.engines, self.pipeline = engines, draw.random() < 0.6
        self.queues = draw.choice((1, 1, 1, 2)) if engines else 1


class Job:
    """A workload while it runs: what an operation needs, and its present rates."""

    def __init__(self, cores, compute_us, references, wss_mb, overlap, skew, write_share):
        self.cores, self.compute_us, self.references, self.wss_mb = cores, compute_us, references, wss_mb
        self.overlap, self.skew, self.write_share = overlap, skew, write_share
        self.packet_kb, self.service_us, self.queues, self.pipeline, self.limit = 0.0, {}, 1, True, UNLIMITED
        self.missed, self.paced = 0.0, False
        self.rate = self.core_rate = self.offered = 1.0


class Nic:
    """A NIC drawn from a seed."""

    def __init__(self, seed):
        draw = random.Random(f"testbed {seed}")
        self.seed, self.cores, self.ghz = seed, draw.randint(6, 16), neat(draw.uniform(0.8, 3))
        self.llc_mb = neat(draw.uniform(2, 16))
        self.hit_ns, self.memory_ns = neat(draw.uniform(8, 25)), neat(draw.uniform(70, 130))
        self.sharing, self.waiting = draw.choice(list(SHARES)), draw.choice(WAITS)
        self.steepness, self.power = neat(draw.uniform(1.5, 3)), neat(draw.uniform(1.6, 2.6))
        self.conflicts = neat(draw.uniform(2, 5))
        self.knee = neat(draw.uniform(0.2, 0.5))
        self.through_memory = neat(draw.uniform(0.3, 1.5))
        self.sharpness = neat(draw.uniform(8, 20))
        self.noise = neat(draw.uniform(0.005, 0.02))
        names = draw.sample(ENGINES, draw.choice((0, 1, 1, 2, 2)))
        self._draw_traffic(draw, any(name in MATCHING for name in names))
        self._draw_nfs(draw, names)
        self.bandwidth = UNLIMITED
        self.waiting_per_core = neat(random.Random(f"cores {seed}").uniform(0, 0.05))
        self._balance(draw)
        self._draw_benches(draw)

    def _draw_traffic(self, draw, matches):
        flows, size = 100 * round(spread(draw, 10, 500)), draw.choice((512, 800, 1024, 1500))
        self.traffic = {"flows": flows, "packet_size": size}
        self.ranges = {
            "flows": [draw.choice((1, 10, 100)), round(flows * spread(draw, 4, 20))],
            "packet_size": [draw.choice((64, 128, 256)), draw.choice((1500, 1500, 9000))],
        }
        if matches:
            self.traffic["mtbr"] = round(spread(draw, 100, 800))
            self.ranges["mtbr"] = [0, round(self.traffic["mtbr"] * draw.uniform(1.5, 3))]

    def _draw_nfs(self, draw, names):
        count = draw.randint(8, 12)
        weights = (6, 2, 0) if self.cores < 8 else (3, 5, 2) if self.cores < 12 else (1, 4, 5)
        cores = draw.choices((1, 2, 3), weights, k=count)
        cores[0] = min(3, self.cores // 4)
        roles = [f"{draw.choice(PLACES)}-{role}" for role in draw.sample(ROLES, count)]
        uses = [draw.sample(names, 1 if draw.random() < 0.8 else len(names)) if names else [] for _ in range(count)]
        uses = [used if draw.random() < 0.5 else [] for used in uses]
        uses[: len(names)] = [[name] for name in names]
        drawn = zip(roles, cores, uses, strict=True)
        self.nfs = {nf[0]: Nf(draw, *nf, self.llc_mb, self.traffic) for nf in drawn}
        typical_us = sorted(nf.cycles / nf.cores for nf in self.nfs.values())[count // 2] / self.ghz / 1e3
        self.engines = {name: Engine(draw, name, typical_us * draw.uniform(0.2, 0.5), self.traffic) for name in names}

    def _balance(self, draw):
        """Scale the references per packet such that four random NFs lose a drawn share of their throughput."""
        wanted, load, names = draw.uniform(0.12, 0.2), draw.uniform(0.4, 0.9), list(self.nfs)
        drawn = {name: nf.references for name, nf in self.nfs.items()}
        co_locations = []
        while len(co_locations) < 20:
            chosen = draw.choices(names, k=4)
            if sum(self.nfs[name].cores for name in chosen) <= self.cores:
                co_locations.append(chosen)
        low, high = 0.2, 5.0
        for _ in range(8):
            scale = math.sqrt(low * high)
            for name, nf in self.nfs.items():
                nf.references = max(1, round(drawn[name] * scale))
            solo = self._solo(load)
            drops = [
                1 - job.rate / solo[name]
                for chosen in co_locations
                for name, job in zip(chosen, self.settle([self.nf_job(n, self.traffic) for n in chosen]), strict=True)
            ]
            low, high = (low, scale) if sum(drops) / len(drops) > wanted else (scale, high)

    def _solo(self, load):
        """The rate of each NF alone, once the bandwidth is such that four NFs that miss half the time load it so."""
        self.bandwidth = UNLIMITED
        jobs = [self.settle([self.nf_job(name, self.traffic)])[0] for name in self.nfs]
        gb_s = sum(job.rate * (0.5 * job.references * LINE_KB + job.packet_kb) for job in jobs)
        self.bandwidth = neat(4 / len(jobs) * gb_s / load)
        return {name: self.settle([self.nf_job(name, self.traffic)])[0].rate for name in self.nfs}

    def _draw_benches(self, draw):
        most = neat(self.bandwidth / LINE_KB * draw.uniform(0.3, 0.7), 2)
        parameters = {
            "wss_mb": [neat(self.llc_mb * 0.02, 2), neat(self.llc_mb * draw.uniform(1.5, 4), 2)],
            "access_mops": [neat(most / draw.uniform(20, 60), 2), most],
        }
        if draw.random() < 0.5:
            parameters["write_share"] = [0, 1]
        self.benches = {"mem-bench": parameters}
        for engine in self.engines.values():
            fastest = engine.service_us({"packet_size": self.ranges["packet_size"][0]})
            parameters = {"rate_kpps": [0, neat(1e3 / fastest, 2)], "packet_size": self.ranges["packet_size"]}
            if engine.name in MATCHING:
                parameters["mtbr"] = self.ranges["mtbr"]
            if engine.extra:
                parameters[engine.extra[0]] = list(engine.extra[1:])
            self.benches[f"{engine.name}-bench"] = parameters

    def core_counts(self, nf):
        """How many cores an NF can be given."""
        return sorted({nf.cores, *(count for count in CORE_COUNTS if count <= self.cores)})

    def nf_job(self, name, traffic, cores=None, rate_kpps=0):
        """An NF under this traffic; each of its cores waits for the others' updates of its state."""
        nf, size = self.nfs[name], traffic["packet_size"]
        cores = cores or nf.cores
        compute_us = (nf.cycles + nf.cycles_per_byte * size) / self.ghz / 1e3
        if cores != nf.cores:
            compute_us *= (1 + self.waiting_per_core * cores) / (1 + self.waiting_per_core * nf.cores)
        wss_mb = nf.fixed_mb + traffic["flows"] * nf.bytes_per_flow / 1e6
        job = Job(cores, compute_us, nf.references, wss_mb, nf.overlap, nf.skew, nf.write_share)
        job.packet_kb = self.through_memory * size / 1e3
        job.service_us = {engine: self.engines[engine].service_us(traffic) for engine in nf.engines}
        job.queues, job.pipeline = nf.queues, nf.pipeline
        if rate_kpps:
            job.paced, job.limit = True, rate_kpps / 1e3
        return job

    def bench_job(self, name, parameters):
        """A bench with these parameters."""
        if name == "mem-bench":
            job = Job(1, 0.002, 1, parameters["wss_mb"], 14, 1, parameters.get("write_share", 0.5))
            job.limit = parameters["access_mops"]
            return job
        engine = self.engines[name.removesuffix("-bench")]
        job = Job(1, 0.02, 1, 0.2, 4, 1, 0.3)
        job.service_us = {engine.name: engine.service_us(parameters)}
        job.limit = parameters["rate_kpps"] / 1e3 or UNLIMITED
        return job

    def share_cache(self, jobs):
        """Each workload has its share by weight, or what the others leave; conflicts cost some of it."""
        by_references, by_working_set, by_cores = SHARES[self.sharing]
        weights = [
            (job.rate * job.references) ** by_references * job.wss_mb**by_working_set * job.cores**by_cores
            for job in jobs
        ]
        total_weight, total_mb = sum(weights), sum(job.wss_mb for job in jobs)
        for job, weight in zip(jobs, weights, strict=True):
            available_mb = max(self.llc_mb * weight / total_weight, self.llc_mb - total_mb + job.wss_mb)
            held = (1 + (job.wss_mb / available_mb) ** self.conflicts) ** (-1 / self.conflicts)
            job.missed = 0.02 + 0.98 * (1 - held**job.skew)

    def slowdown(self, used):
        """How much longer a memory access takes at this share of the bandwidth."""
        if self.waiting == "linear":
            return 1 + self.steepness * used
        if self.waiting == "convex":
            return 1 + self.steepness * used**self.power
        return 1 + self.steepness * (max(0.0, used - self.knee) / (1 - self.knee)) ** 1.5

    def settle(self, jobs):
        """Iterate to the rates at which cache, bandwidth and accelerators are in balance; returns the jobs."""
        for _ in range(MOST_STEPS):
            self.share_cache(jobs)
            gb_s = sum(job.rate * (job.references * job.missed * LINE_KB + job.packet_kb) for job in jobs)
            memory_ns = self.memory_ns * self.slowdown(gb_s / self.bandwidth)
            for job in jobs:
                stall_us = job.references * (self.hit_ns + job.missed * memory_ns) / job.overlap / 1e3
                job.core_rate = job.cores / (job.compute_us + stall_us)
                alone_us = 0.0 if job.pipeline else sum(job.service_us.values()) / job.queues
                job.offered = min(job.limit, 1 / (1 / job.core_rate + alone_us))
            change = 0.0
            for job in jobs:
                ratio = self.speed(job, jobs) / job.rate
                job.rate *= ratio**STEP
                change = max(change, abs(ratio - 1))
            if change < TOLERANCE:
                break
        return jobs

    def speed(self, job, jobs):
        """The rate of a workload: what it can carry, of what it is limited to."""
        return min(job.limit, self.capacity(job, jobs))

    def capacity(self, job, jobs):
        """The rate of its slowest stage, or of one stage after the other when it runs to completion."""
        limits = [self.engines[name].limit(job, jobs) for name in job.service_us]
        if not job.pipeline:
            return 1 / (1 / job.core_rate + sum(1 / limit for limit in limits))
        if not limits:
            return job.core_rate
        slowest = min(job.core_rate, *limits)
        crowded = sum((slowest / limit) ** self.sharpness for limit in (job.core_rate, *limits))
        return slowest * crowded ** (-1 / self.sharpness)
