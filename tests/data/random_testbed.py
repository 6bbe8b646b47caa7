"""A testbed drawn at random: a program of the standard library that speaks the testbed protocol.

`random_testbed.py --seed N` simulates NIC number N. It shares no code with this project and is never used for tuning.
The seed draws the hardware (cores, clock, cache, memory bandwidth, accelerators), the NFs with their costs per packet,
the ranges of traffic and benches, the noise, and how resources are shared:

- cache: mostly by cores (as ways are assigned), by references, by working sets, or by both;
- memory: access time grows linearly with the bandwidth used, convexly, or only above a knee;
- accelerators: one request per queue in turn, the same with a cost of changing tenants, or equal time.

The NFs' references are then scaled such that four random NFs lose 12 to 20 % on average at default traffic, so that
placement matters. How the resources are shared is in random_nic.py.
"""

import itertools
import json
import random

from random_nic import Nic
from random_program import Refused, answer_requests


class Testbed:
    """The requests of the protocol, answered by a NIC."""

    def __init__(self, nic):
        self.nic, self.runs = nic, 0

    def describe(self):
        """The `describe` answer."""
        return {
            "name": f"random-{self.nic.seed}",
            "simulated": True,
            "protocol": 1,
            "nic": {
                "model": f"drawn-{self.nic.seed}",
                "cores": self.nic.cores,
                "llc_bytes": round(self.nic.llc_mb * 1e6),
                "accelerators": list(self.nic.engines),
            },
            "counters": ["ipc", "irt", "l2crd", "l2cwr", "memrd", "memwr", "wss"],
            "attributes": self.nic.ranges,
            "default_traffic": self.nic.traffic,
            "nfs": [
                {
                    "name": nf.name,
                    "cores": nf.cores,
                    "core_counts": self.nic.core_counts(nf),
                    "accelerators": nf.engines,
                }
                for nf in self.nic.nfs.values()
            ],
            "paced": True,
            "benches": [{"name": name, "cores": 1, "parameters": ranges} for name, ranges in self.nic.benches.items()],
        }

    def job(self, workload):
        """The workload of a request; Refused when it is not known or out of range."""
        kind, name = workload.get("kind"), workload.get("name")
        if kind == "nf" and name in self.nic.nfs:
            if workload.get("parameters"):
                raise Refused(f"{name} has no parameters here")
            cores, counts = workload.get("cores"), self.nic.core_counts(self.nic.nfs[name])
            if cores is not None and cores not in counts:
                raise Refused(f"{name} runs on {counts} cores, not on {cores}")
            traffic = checked(self.nic.ranges, self.nic.traffic | workload.get("traffic", {}))
            return self.nic.nf_job(name, traffic, cores, workload.get("rate_kpps", 0))
        if kind == "bench" and name in self.nic.benches:
            return self.nic.bench_job(name, checked(self.nic.benches[name], workload.get("parameters", {})))
        raise Refused(f"no workload {kind} {name} here")

    def run(self, request):
        """The answer to a `run` request."""
        self.runs += 1
        workloads = request.get("workloads")
        if not isinstance(workloads, list) or not workloads:
            raise Refused("no workloads")
        jobs = [self.job(workload) for workload in workloads]
        if sum(job.cores for job in jobs) > self.nic.cores:
            raise Refused(f"more than {self.nic.cores} cores")
        noise = self.nic.noise if request.get("noise", True) else 0.0
        seed = request.get("seed")
        rng = random.Random(json.dumps([self.runs if seed is None else seed, workloads], sort_keys=True))
        settled = self.nic.settle(jobs)
        return {"elapsed_s": 0.0, "workloads": [self.measured(job, settled, rng, noise) for job in settled]}

    def measured(self, job, jobs, rng, noise):
        """Throughput and counters of a settled workload; of one with a rate, noise is of what it could carry."""
        references = job.rate * 1e6 * job.references
        instructions = job.rate * 1e6 * (job.compute_us * self.nic.ghz * 800 + 4 * job.references)
        counters = {
            "ipc": instructions / (job.cores * self.nic.ghz * 1e9),
            "irt": instructions,
            "l2crd": references * (1 - job.write_share),
            "l2cwr": references * job.write_share,
            "memrd": references * job.missed * (1 - job.write_share),
            "memwr": references * job.missed * job.write_share,
            "wss": job.wss_mb,
        }
        shaken = (1 + noise * rng.gauss(0, 1) for _ in itertools.count())
        throughput = job.rate * 1e3 * next(shaken)
        if job.paced:
            throughput = 1e3 * min(job.limit, self.nic.capacity(job, jobs) * throughput / (job.rate * 1e3))
        readings = {name: value * factor for (name, value), factor in zip(counters.items(), shaken, strict=False)}
        return {"throughput_kpps": throughput, "counters": readings}


def checked(ranges, values):
    """The values; Refused when one is missing or outside its range."""
    for name, (low, high) in ranges.items():
        if not isinstance(values.get(name), (int, float)):
            raise Refused(f"{name} is missing")
        if not low <= values[name] <= high:
            raise Refused(f"{name} {values[name]} is outside [{low}, {high}]")
    return values


if __name__ == "__main__":
    answer_requests(lambda seed: Testbed(Nic(seed)), __doc__)
