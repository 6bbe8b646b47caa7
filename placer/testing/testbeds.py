"""What every testbed must do, whatever is behind it."""

import math
from collections.abc import Sequence
from dataclasses import replace

from profiler.testbed import Run, RunRefused, Testbed
from profiler.testbeds import open_testbed
from profiles import (
    COUNTERS,
    BenchLoad,
    ChainLoad,
    GpuSettings,
    GpuWorkload,
    Load,
    TestbedDescription,
    TrafficProfile,
    Workload,
)

TESTBED_SEED = 7
GPU_KPPS, GPU_BATCH = 100.0, 32  # what is offered to each NF of a GPU, and its batch
LEAST_CARRIED, MOST_CARRIED = 0.98, 1.01
"""The share of a third of its capacity that an NF carries, with measurement errors."""


def check_testbed(testbed: str | Testbed, *, timeout: float = 60.0) -> None:
    """Hold a testbed to the protocol: what it describes runs, and every workload is measured in order.

    Every NF and bench of its description runs; a run has one measurement per workload, with a positive throughput and
    seven counters; what it does not know is refused and does not end it; chains of NFs have a measurement per stage, or
    are refused where it does not describe them; NFs of a GPU run at a rate only and have a latency, those of others
    refuse settings of a GPU; an NF carries the load that it is offered where that is a third of its capacity; it runs
    on every number of cores that is described for it, and any other is refused; a simulated testbed repeats its
    noise-free answers, and its noise with the seed. `testbed`: a SPEC (`exec:./my-agent`), or an open testbed.
    `timeout`: seconds for one answer. Raises `AssertionError` with the first fact that does not hold. Raises
    `TestbedError` when the testbed fails."""
    if isinstance(testbed, str):
        with open_testbed(testbed, timeout=timeout) as opened:
            check_testbed(opened)
        return
    described = testbed.describe()
    assert described.nfs, "the description names no NF: nothing can be placed"
    traffic = TrafficProfile.from_mapping(described.default_traffic)
    nfs = [_nf(described, nf.name, traffic, at) for at, nf in enumerate(described.nfs)]
    benches: list[Load] = [
        BenchLoad.of(bench.name, {name: high for name, (_, high) in bench.parameters.items()})
        for bench in described.benches
    ]
    for load in (*nfs, *benches):
        _check_run(testbed.run([load]), [load])
    if (pair := _pair(described, nfs)) is not None:
        _check_run(testbed.run(pair), pair)
    _check_refusal(testbed, _nf(described, "NoSuchNf", traffic, 0), nfs[0], "a run of an NF that is not described")
    _check_gpu(testbed, described, nfs)
    _check_cores(testbed, described, nfs)
    _check_chains(testbed, described, nfs)
    if described.simulated:
        _check_repeatable(testbed, nfs[0])


def _nf(described: TestbedDescription, name: str, traffic: TrafficProfile, at: int) -> Workload | GpuWorkload:
    """The NF at this traffic; on a GPU at a rate, on one SM, with an order of its own."""
    workload = Workload(name, traffic)
    if described.nic.kind != "gpu":
        return workload
    assert described.nic.sms is not None
    return GpuWorkload(
        replace(workload, rate_kpps=GPU_KPPS), GpuSettings.of([(at % described.nic.sms, GPU_BATCH)], order=at)
    )


def _check_run(run: Run, loads: list[Load]) -> None:
    names = [load.label for load in loads]
    assert len(run.measurements) == len(loads), f"{len(run.measurements)} measurements of {', '.join(names)}"
    for name, one in zip(names, run.measurements, strict=True):
        assert one.throughput_kpps > 0 and math.isfinite(one.throughput_kpps), f"{name}: {one.throughput_kpps} kpps"
        readings = one.counters.as_dict()
        assert set(readings) == set(COUNTERS), f"{name}: counters {', '.join(readings)}"
        assert all(0 <= value < math.inf for value in readings.values()), f"{name}: counters {readings}"


def _check_gpu(testbed: Testbed, described: TestbedDescription, nfs: Sequence[Workload | GpuWorkload]) -> None:
    """NFs run on a GPU with settings of it and have a latency; elsewhere, such settings are refused, and no NF carries
    more than it is offered."""
    first = nfs[0]
    if isinstance(first, GpuWorkload):
        one = testbed.run([first]).measurements[0]
        assert one.latency_us is not None, f"{first.nf}: no latency_us"
        assert 0 < one.latency_us.p50 <= one.latency_us.p99 <= one.latency_us.max, f"{first.nf}: {one.latency_us}"
        _check_refusal(testbed, first.workload, first, "an NF of a GPU without a rate")
        return
    if described.paced:
        capacity = testbed.run([first]).measurements[0].throughput_kpps
        third = replace(first, rate_kpps=capacity / 3)
        run = testbed.run([third])
        _check_run(run, [third])
        reached = run.measurements[0].throughput_kpps
        carried = f"{first.nf}: {reached} kpps of an offered {third.rate_kpps}"
        assert LEAST_CARRIED * third.rate_kpps <= reached <= MOST_CARRIED * third.rate_kpps, carried
    settings = GpuSettings.of([(0, GPU_BATCH)], order=0)
    _check_refusal(
        testbed, GpuWorkload(replace(first, rate_kpps=GPU_KPPS), settings), first, "an NF with settings of a GPU"
    )


def _check_cores(testbed: Testbed, described: TestbedDescription, nfs: Sequence[Workload | GpuWorkload]) -> None:
    """NFs run on the numbers of cores that are described, and on no other; without any, none is asked for."""
    for workload in nfs:
        if isinstance(workload, GpuWorkload):
            return
        nf = described.nf(workload.nf)
        if not nf.core_counts:
            continue
        for cores in nf.core_counts:
            load: list[Load] = [replace(workload, cores=cores)]
            if cores <= described.nic.cores:
                _check_run(testbed.run(load), load)
        unknown = replace(workload, cores=1 + max(nf.counts))
        _check_refusal(testbed, unknown, workload, f"{nf.name} on {unknown.cores} cores, which is not described,")


def _pair(described: TestbedDescription, nfs: Sequence[Workload | GpuWorkload]) -> list[Load] | None:
    """Two NFs that fit the NIC together, if there are any."""
    cores = {nf.name: nf.cores for nf in described.nfs}
    # whether two workloads can run together: two of one order cannot
    pairs = (
        (nf, other)
        for nf in nfs
        for other in nfs
        if (nf is not other or isinstance(nf, Workload)) and cores[nf.nf] + cores[other.nf] <= described.nic.cores
    )
    pair = next(pairs, None)
    return None if pair is None else [*pair]


def _check_refusal(testbed: Testbed, refused: Load, known: Workload | GpuWorkload, what: str) -> None:
    try:
        testbed.run([refused])
    except RunRefused:
        _check_run(testbed.run([known]), [known])
        return
    raise AssertionError(f"{what} is not refused")


def _check_chains(testbed: Testbed, described: TestbedDescription, nfs: Sequence[Workload | GpuWorkload]) -> None:
    """Two NFs one after the other, on one core and on two."""
    first, second = nfs[0], nfs[-1]
    one_core = ChainLoad.of([first.nf, second.nf], [[0, 1]], first.traffic)
    if not described.chains:
        _check_refusal(testbed, one_core, first, "a chain of NFs, which is not described,")
        return
    for chain in (one_core, ChainLoad.of([first.nf, second.nf], [[0], [1]], first.traffic)):
        if len(chain.cores) <= described.nic.cores:
            run = testbed.run([chain])
            _check_run(run, [chain])
            stages = len(run.measurements[0].stages)
            assert stages == len(chain.stages), f"{chain.label}: {stages} stages measured"
    missing = ChainLoad.of([first.nf, second.nf], [[0]], first.traffic)
    _check_refusal(testbed, missing, first, "a chain with a stage on no core")


def _check_repeatable(testbed: Testbed, nf: Workload | GpuWorkload) -> None:
    exact = [testbed.run([nf], noise=False).measurements for _ in range(2)]
    assert exact[0] == exact[1], "noise-free answers differ"
    seeded = [testbed.run([nf], seed=TESTBED_SEED).measurements for _ in range(2)]
    assert seeded[0] == seeded[1], "answers of one seed differ"
