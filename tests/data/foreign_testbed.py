"""A testbed that shares no code with this project: a program of the standard library that speaks the testbed protocol.

Its NIC differs from a BlueField-2 in cores, accelerator, NF names and sizes, ranges and bench parameters, and has no
mtbr. Flags make it misbehave after N runs, for tests of its clients.
"""

import argparse
import json
import random
import sys
import time
from pathlib import Path

CORES, GHZ, LLC_MB, BANDWIDTH_GB_S = 12, 1.2, 4.0, 9.0
CACHED_NS, UNCACHED_NS = 8.0, 95.0
TRAFFIC = {"flows": [10, 100000], "packet_size": [128, 9000]}
MEM_BENCH = {"wss_mb": [0.5, 12], "access_mops": [5, 80], "write_share": [0, 1]}
CRYPTO_BENCH = {"key_rounds": [10, 14], "rate_kpps": [0, 2000], "packet_size": [128, 9000]}

# cores, cycles per packet, cycles per byte, memory references per packet, bytes per flow, crypto queue, pipeline
NFS = {
    "edge-firewall": (1, 900, 0.00, 6, 24, False, True),
    "load-balancer": (3, 1400, 0.00, 14, 160, False, True),
    "packet-sampler": (1, 500, 0.35, 4, 8, False, True),
    "tls-proxy": (2, 1600, 0.10, 10, 96, True, True),
    "vpn-gateway": (2, 1100, 0.05, 8, 48, True, False),
}


def describe():
    return {
        "name": "somewhere-else",
        "simulated": False,
        "protocol": 1,
        "weather": "unknown keys are ignored",
        "nic": {"model": "nfp-7000", "cores": CORES, "llc_bytes": int(LLC_MB * 1e6), "accelerators": ["crypto"]},
        "counters": ["ipc", "irt", "l2crd", "l2cwr", "memrd", "memwr", "wss"],
        "attributes": TRAFFIC,
        "default_traffic": {"flows": 4000, "packet_size": 1024},
        "nfs": [
            {"name": name, "cores": nf[0], "accelerators": ["crypto"] if nf[5] else []} for name, nf in NFS.items()
        ],
        "benches": [
            {"name": "mem-bench", "cores": 1, "parameters": MEM_BENCH},
            {"name": "crypto-bench", "cores": 1, "parameters": CRYPTO_BENCH},
        ],
    }


class Refused(Exception):
    pass


class Job:
    """One workload while it runs: what it needs per operation, and its rate (operations per microsecond)."""

    def __init__(self, cores, compute_us, references, wss_mb, crypto_us, pipeline, limit, write_share):
        self.cores, self.compute_us, self.references, self.wss_mb = cores, compute_us, references, wss_mb
        self.crypto_us, self.pipeline, self.limit, self.write_share = crypto_us, pipeline, limit, write_share
        self.rate, self.memory_rate, self.missed = 0.1, 0.1, 0.0


def within(ranges, values):
    for name, (low, high) in ranges.items():
        if not isinstance(values.get(name), (int, float)):
            raise Refused(f"{name} is missing")
        if not low <= values[name] <= high:
            raise Refused(f"{name} {values[name]} is outside [{low}, {high}]")


def job(workload):
    kind, name = workload.get("kind"), workload.get("name")
    if kind == "nf" and name in NFS:
        cores, cycles, per_byte, references, per_flow, crypto, pipeline = NFS[name]
        traffic = workload.get("traffic", {})
        within(TRAFFIC, traffic)
        compute_us = (cycles + per_byte * traffic["packet_size"]) / (GHZ * 1e3)
        wss_mb = 0.3 + traffic["flows"] * per_flow / 1e6
        crypto_us = 0.4 + 0.0011 * traffic["packet_size"] if crypto else 0.0
        return Job(cores, compute_us, references, wss_mb, crypto_us, pipeline, 1e9, 0.3)
    if kind != "bench" or name not in ("mem-bench", "crypto-bench"):
        raise Refused(f"no workload {kind} {name} here")
    parameters = workload.get("parameters", {})
    if name == "mem-bench":
        within(MEM_BENCH, parameters)
        limit = parameters["access_mops"]
        return Job(1, 0.002, 1, parameters["wss_mb"], 0.0, True, limit, parameters["write_share"])
    within(CRYPTO_BENCH, parameters)
    crypto_us = 0.3 + 0.02 * parameters["key_rounds"] + 0.0011 * parameters["packet_size"]
    limit = parameters["rate_kpps"] / 1e3 or 1e9
    return Job(1, 0.02, 1, 0.2, crypto_us, True, limit, 0.3)


def settle(jobs):
    """Iterate to the rates at which cache, memory bandwidth and crypto queues are in balance."""
    for _ in range(60):
        used_gb_s = sum(j.rate * j.references * j.missed * 64e-3 for j in jobs)
        slowdown = 1 + 2.5 * min(1.5, used_gb_s / BANDWIDTH_GB_S) ** 2
        hunger = sum(j.rate * j.references for j in jobs)
        wanted = sum(j.wss_mb for j in jobs)
        for j in jobs:
            fair = LLC_MB * (0.5 * j.rate * j.references / hunger + 0.5 * j.wss_mb / wanted)
            share = LLC_MB if wanted <= LLC_MB else fair
            j.missed += 0.3 * (max(0.02, 1 - share / j.wss_mb) - j.missed)
            access_ns = CACHED_NS + j.missed * UNCACHED_NS * slowdown
            j.memory_rate = j.cores / (j.compute_us + j.references * access_ns / 1e3 * (0.06 if j.cores == 1 else 0.1))
        for j in jobs:
            speed = min(j.limit, j.memory_rate)
            if j.crypto_us:
                crypto_us = j.crypto_us + sum(o.crypto_us * min(1, o.rate / j.rate) for o in jobs if o is not j)
                speed = min(speed, 1 / crypto_us if j.pipeline else 1 / (1 / j.memory_rate + crypto_us))
            j.rate += 0.3 * (speed - j.rate)


def measured(j, rng, noise):
    def shake():
        return 1 + noise * rng.gauss(0, 1)

    references = j.rate * 1e6 * j.references
    instructions = j.rate * 1e6 * (j.compute_us * GHZ * 700 + 4 * j.references)
    return {
        "throughput_kpps": j.rate * 1e3 * shake(),
        "counters": {
            "ipc": instructions / (j.cores * GHZ * 1e9) * shake(),
            "irt": instructions * shake(),
            "l2crd": references * (1 - j.write_share) * shake(),
            "l2cwr": references * j.write_share * shake(),
            "memrd": references * j.missed * (1 - j.write_share) * shake(),
            "memwr": references * j.missed * j.write_share * shake(),
            "wss": j.wss_mb * shake(),
        },
    }


def run(request, count):
    workloads = request.get("workloads")
    if not isinstance(workloads, list) or not workloads:
        raise Refused("no workloads")
    jobs = [job(workload) for workload in workloads]
    if sum(j.cores for j in jobs) > CORES:
        raise Refused(f"more than {CORES} cores")
    settle(jobs)
    noise = 0.01 if request.get("noise", True) else 0.0
    seed = request.get("seed")
    rng = random.Random(json.dumps([count if seed is None else seed, workloads], sort_keys=True))
    return {"elapsed_s": 0.0, "workloads": [measured(j, rng, noise) for j in jobs]}


def wander(answer, flags, runs):
    """Change an answer: slower with every run, or far off now and then."""
    if flags.drift:
        answer["elapsed_s"] = 3.0
        for workload in answer["workloads"]:
            workload["throughput_kpps"] *= 1 - 0.1 * min(1, runs / flags.drift)
    if flags.best_effort and runs % flags.best_effort == 0:
        answer |= {"best_effort": True, "disturbed_pct": 97.5}
        for workload in answer["workloads"]:
            workload["standard_error_pct"] = 4.0
    chance = random.Random(f"{flags.outliers} {runs}")
    if flags.outliers and chance.random() < 1 / flags.outliers:
        answer["workloads"][0]["throughput_kpps"] *= chance.choice((0.7, 1.3))


def misbehave(flags, runs):
    """Misbehave as the flags require; returns the line to print instead of the answer, if any."""
    if flags.die_after is not None and runs > flags.die_after:
        print("fan failure, shutting down", file=sys.stderr, flush=True)
        sys.exit(3)
    if flags.hang_after is not None and runs > flags.hang_after:
        print("waiting for the card", file=sys.stderr, flush=True)
        time.sleep(3600)
    while flags.hold_after is not None and runs > flags.hold_after and not Path(flags.until).exists():
        time.sleep(0.01)
    if flags.late_after is not None and runs > flags.late_after:
        time.sleep(flags.late_s)
    if flags.garbage_after is not None and runs > flags.garbage_after:
        return "Segmentation fault (core dumped)"
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for fault in ("die", "hang", "garbage", "wrong-id", "nan", "zero", "short", "no-counter", "late", "hold"):
        parser.add_argument(f"--{fault}-after", type=int, metavar="RUNS")
    parser.add_argument("--late-s", type=float, default=1.0, metavar="SECONDS", help="how late")
    parser.add_argument("--until", metavar="FILE", help="hold until it is there")
    parser.add_argument("--outliers", type=int, metavar="RUNS", help="30 %% off once in so many")
    parser.add_argument("--drift", type=int, metavar="RUNS", help="10 %% slower after so many")
    parser.add_argument("--best-effort", type=int, metavar="RUNS", help="one run in so many is best effort")
    parser.add_argument("--log", metavar="FILE", help="append every requested run")
    parser.add_argument("--wrong-describe", action="store_true")
    flags = parser.parse_args()
    runs = 0
    for line in sys.stdin:
        request = json.loads(line)
        answer = {"id": request["id"], "ok": True}
        if request["op"] == "describe":
            answer["testbed"] = describe() if not flags.wrong_describe else {"name": 7, "nic": {"cores": "many"}}
        else:
            runs += 1
            if flags.log:
                with Path(flags.log).open("a") as log:
                    log.write(json.dumps([request.get("seed"), request["workloads"]]) + "\n")
            instead = misbehave(flags, runs)
            if instead is not None:
                print(instead, flush=True)
                continue
            try:
                answer.update(run(request, runs))
                if request.get("noise", True):
                    wander(answer, flags, runs)
            except Refused as refusal:
                answer = {"id": request["id"], "ok": False, "error": {"code": "bad-request", "message": str(refusal)}}
            spoil(answer, flags, runs)
        print(json.dumps(answer), flush=True)


def spoil(answer, flags, runs):
    def due(after):
        return after is not None and runs > after

    if due(flags.wrong_id_after):
        answer["id"] += 1
    if due(flags.nan_after):
        answer["workloads"][0]["throughput_kpps"] = float("nan")
    if due(flags.zero_after):
        answer["workloads"][0]["throughput_kpps"] = 0.0
    if due(flags.short_after):
        answer["workloads"] = answer["workloads"][:-1]
    if due(flags.no_counter_after):
        del answer["workloads"][0]["counters"]["wss"]


if __name__ == "__main__":
    main()
