"""A server with a GPU drawn at random: a program of the standard library that speaks the testbed protocol.

`random_gpu.py --seed N` simulates server number N. It shares no code with this project and is never used for tuning.
The seed draws the GPU (SMs, executors, packets of one), the buses, the workers, the NFs with their costs, how packets
come, and how parts of batches that are on one SM slow each other down:

- slots: an SM has so many issue slots, which parts share in proportion to what they need;
- friction: each further part on the SM slows all of them, by what the other one is;
- cache: each NF waits longer for its tables the more those of others take of the cache.

How batches pass through the server is in random_gpu_server.py.
"""

import json
import random

from random_gpu_server import Nf, run
from random_program import Refused, answer_requests, neat, spread

PLACES = ("edge", "core", "access", "border", "campus", "tenant", "metro", "branch")
ROLES = ("router", "filter", "inspector", "tunnel", "scrubber", "gateway", "meter", "classifier")
DISCIPLINES = ("slots", "friction", "cache")
BATCHES, EXACT_BATCHES = 150, 600
COUNTERS = ["ipc", "irt", "l2crd", "l2cwr", "memrd", "memwr", "wss"]
STAGES = ("batching", "pre_post", "transfer_wait", "transfer", "kernel_wait", "kernel", "return")


class Gpu:
    """A server drawn from a seed."""

    def __init__(self, seed):
        draw = random.Random(f"gpu {seed}")
        self.seed, self.sms, self.executors = seed, draw.randint(6, 40), draw.choice((4, 6, 8, 12, 16))
        self.packets, self.workers = draw.choice((32, 64, 128)), draw.randint(8, 24)
        self.buses = [[spread(draw, 3, 14), spread(draw, 0.004, 0.03), spread(draw, 3e3, 14e3)] for _ in range(2)]
        self.discipline, self.dispatch_us = draw.choice(DISCIPLINES), spread(draw, 1, 6)
        self.slots, self.cache_kb = neat(draw.uniform(0.2, 0.6) * self.executors), spread(draw, 16, 128)
        self.burst, self.on_off = spread(draw, 1, 12), draw.random() < 0.4
        self.traffic = {"flows": 100 * draw.randint(10, 500), "packet_size": draw.choice((256, 512, 850, 1024))}
        self.ranges = {"flows": [1, self.traffic["flows"] * 10], "packet_size": [64, draw.choice((1500, 9000))]}
        names = [f"{draw.choice(PLACES)}-{role}" for role in draw.sample(ROLES, draw.randint(4, 6))]
        self.nfs = {name: Nf(draw, name) for name in names}
        self.runs = 0

    def describe(self):
        """The `describe` answer."""
        return {
            "name": f"random-gpu-{self.seed}",
            "simulated": True,
            "protocol": 1,
            "nic": {
                "model": f"drawn-gpu-{self.seed}",
                "cores": self.workers,
                "kind": "gpu",
                "sms": self.sms,
                "executors_per_sm": self.executors,
                "packets_per_executor": self.packets,
            },
            "counters": COUNTERS,
            "attributes": self.ranges,
            "default_traffic": self.traffic,
            "nfs": [{"name": nf.name, "cores": 1, "moves": nf.moves} for nf in self.nfs.values()],
            "workers": self.workers,
            "arbitration": "sporadic",
        }

    def run(self, request):
        """The answer to a `run`."""
        loads = [self.load(workload) for workload in request["workloads"]]
        self.check(loads)
        noise = request.get("noise", True)
        self.runs += 1
        origin = ("run", request.get("seed", -self.runs)) if noise else ("truth", 0)
        seen = {}
        for load in sorted(loads, key=lambda one: (json.dumps(one["text"]), one["order"])):
            text = json.dumps(load["text"])
            seen[text] = seen.get(text, 0) + 1
            load["draw"] = random.Random(f"{origin} {text} {seen[text]}")
        until = (BATCHES if noise else EXACT_BATCHES) * max(1e3 * one["batch"] / one["rate_kpps"] for one in loads)
        if until * sum(one["rate_kpps"] for one in loads) / 1e3 > 5e6:
            raise Refused("rates are too far apart to be simulated")
        return {"elapsed_s": until / 1e6, "workloads": [self.measured(one, until) for one in run(self, loads, until)]}

    def load(self, workload):
        """What a workload asks for."""
        if workload.get("kind") != "nf" or workload.get("name") not in self.nfs:
            raise Refused(f"{workload.get('name', workload.get('kind'))} is not known")
        gpu, traffic = workload.get("gpu") or {}, workload["traffic"]
        if not workload.get("rate_kpps") or not gpu.get("minibatches") or "order" not in gpu:
            raise Refused("NFs need rate_kpps and gpu with order and minibatches")
        for name, (low, high) in self.ranges.items():
            if not low <= traffic.get(name, -1) <= high:
                raise Refused(f"{name} {traffic.get(name)} is outside [{low}, {high}]")
        parts = [(one["sm"], one["packets"]) for one in gpu["minibatches"]]
        return {
            "nf": self.nfs[workload["name"]],
            "size": traffic["packet_size"],
            "rate_kpps": workload["rate_kpps"],
            "batch": gpu["batch"],
            "order": gpu["order"],
            "flush_us": gpu.get("flush_us", float("inf")),
            "parts": parts,
            "text": [
                workload["name"],
                {name: float(v) for name, v in sorted(traffic.items())},
                float(workload["rate_kpps"]),
            ],
        }

    def check(self, loads):
        """Refuse what does not fit."""
        executors = {}
        for load in loads:
            if sum(packets for _, packets in load["parts"]) != load["batch"]:
                raise Refused("minibatches do not add up to the batch")
            for sm, packets in load["parts"]:
                executors[sm] = executors.get(sm, 0) - (-packets // self.packets)
        if any(sm >= self.sms or number > self.executors for sm, number in executors.items()):
            raise Refused("an SM has not so many executors, or there is no such SM")
        if len({load["order"] for load in loads}) < len(loads) or len(loads) > self.workers:
            raise Refused("orders are given twice, or there are too few workers")

    def measured(self, packets, until):
        """A measurement, from (came, left, stages) of the packets that left."""
        settled = [one for one in packets if 0.1 * until <= one[2][-1] <= 0.97 * until]
        if not settled:
            raise Refused("no batch came back")
        latency = sorted(left - came for came, left, _ in settled)
        columns = [[one[2][at] for one in settled] for at in range(len(STAGES))]
        low, high = min(one[1] for one in settled), max(one[1] for one in settled)
        return {
            "throughput_kpps": neat(1e3 * (len(settled) - 1) / max(high - low, 1e-9), 6),
            "counters": dict.fromkeys(COUNTERS, 0.0),
            "latency_us": {
                "mean": neat(sum(latency) / len(latency), 6),
                "p50": neat(latency[len(latency) // 2], 6),
                "p99": neat(latency[int(0.99 * len(latency))], 6),
                "max": neat(latency[-1], 6),
            },
            "stages_us": {name: neat(sum(one) / len(one), 6) for name, one in zip(STAGES, columns, strict=True)},
            "stages_p99_us": {
                name: neat(sorted(one)[int(0.99 * len(one))], 6) for name, one in zip(STAGES, columns, strict=True)
            },
        }


if __name__ == "__main__":
    answer_requests(Gpu, __doc__)
