"""From the loads of a co-location to what their batches take of each resource."""

from collections.abc import Mapping, Sequence

from predictor.gpu.nf_model import GpuNfModel, rows
from predictor.gpu.sharing import KernelShare, Sharer
from predictor.gpu.tandem import BatchDemand
from profiles import GpuWorkload

FULL_UTILISATION = 1.0  # the share of its time from which a resource is overloaded
TAIL_STAGES = ("pre_post", "transfer", "kernel", "returned")


def demands(
    nfs: Mapping[str, GpuNfModel], per_executor: int, loads: Sequence[GpuWorkload], receive_us: float = 0.0
) -> list[BatchDemand]:
    """What the batches of each load take; every NF is modelled, and a worker takes `receive_us` more per packet."""
    return [_demand(nfs[load.nf], per_executor, loads, at, receive_us) for at, load in enumerate(loads)]


def overload(loads: Sequence[GpuWorkload], taken: Sequence[BatchDemand]) -> list[str]:
    """Which resources are needed for more than all of the time, in words; empty where none is."""
    found = []
    for name, stage in (("bus to the GPU", "transfer"), ("bus back", "returned")):
        share = sum(getattr(value, stage) / value.period_us for value in taken)
        if share >= FULL_UTILISATION:
            found.append(f"the {name} is needed for {share:.2f} of the time")
    for load, one in zip(loads, taken, strict=True):
        always = one.kernel.time([True] * len(loads))
        for name, time in (("worker", one.pre_post + one.receive), ("kernel", one.kernel.longest_us)):
            if time >= FULL_UTILISATION * one.period_us:
                found.append(
                    f"the {name} of {load.label} takes {time:.4g} us, batches come every {one.period_us:.4g} us"
                )
        if one.kernel.longest_us < FULL_UTILISATION * one.period_us <= always:
            found.append(
                f"the kernel of {load.label} takes {always:.4g} us beside its sharers, batches come every "
                f"{one.period_us:.4g} us"
            )
    return found


def _demand(nf: GpuNfModel, per_executor: int, loads: Sequence[GpuWorkload], at: int, receive_us: float) -> BatchDemand:
    load = loads[at]
    gpu = load.gpu
    assert gpu is not None
    whole = rows(load.traffic, [gpu.batch])
    parts = rows(load.traffic, [minibatch.packets for minibatch in gpu.minibatches])
    means = {name: float(nf.stage(name).mean(whole)[0]) for name in ("pre_post", "transfer", "returned")}
    tails = {name: float(nf.stage(name).tail_ratio(parts if name == "kernel" else whole).max()) for name in TAIL_STAGES}
    return BatchDemand(
        batch=gpu.batch,
        rate_kpps=load.rate_kpps,
        bursts=nf.batching.bursts(load.traffic),
        order=float(gpu.order) if gpu.order is not None else 0.0,
        pre_post=means["pre_post"],
        transfer=means["transfer"],
        returned=means["returned"],
        kernel=KernelShare(tuple(nf.kernel.mean(parts).tolist()), _slowdowns(nf, per_executor, loads, at)),
        tails=(tails["pre_post"], tails["transfer"], tails["kernel"], tails["returned"]),
        receive=receive_us * gpu.batch,
    )


def _slowdowns(
    nf: GpuNfModel, per_executor: int, loads: Sequence[GpuWorkload], at: int
) -> tuple[dict[int, float], ...]:
    """For each minibatch, by index of another load on its SM: by which share it takes longer."""
    gpu = loads[at].gpu
    assert gpu is not None
    found = []
    for mine in gpu.minibatches:
        group = {
            other: Sharer(load.nf, _executors(minibatch.packets, per_executor))
            for other, load in enumerate(loads)
            if other != at and load.gpu
            for minibatch in load.gpu.minibatches
            if minibatch.sm == mine.sm
        }
        own = _executors(mine.packets, per_executor)
        parts = nf.sharing.parts(own, list(group.values())) if nf.sharing and group else [0.0] * len(group)
        found.append(dict(zip(group, parts, strict=True)))
    return tuple(found) if any(found) else ()


def _executors(packets: int, per_executor: int) -> int:
    return -(-packets // per_executor)
