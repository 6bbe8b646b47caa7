"""Co-locations of figure 10(c): sets of latency SLOs as the scheduler admits them, and others on few SMs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random

from experiments.grus.methodology.simulated_server import (
    DEFAULT_BATCH,
    FLOW_GBPS,
    NAMED_TRAFFICS,
    SERVER_NFS,
    latency_of,
    measure,
    on_sms,
)
from experiments.registry import CannotRun
from placer.gpu.device import GpuDevice
from placer.gpu.plan import Admitted, LatencySlo
from placer.gpu.registry import METHODS, MethodSetting
from placer.inputs.gpu.slos import device_of
from predictor.gpu.device import LONGEST_US, DeviceEntry
from predictor.gpu.models import GpuModels
from predictor.gpu.prediction import Overload
from profiles import GpuWorkload

SET_TRAFFIC = NAMED_TRAFFICS["Traffic-A"]
TOLERANCE_RANGE = (0.05, 0.15)
SLOS_PER_SET = 10
PACKED_SMS = 4
PACKED_BATCHES = (64, 128, 256, 512)
MOST_DRAWS = 50


@dataclass(frozen=True)
class SloCoLocation:
    """NFs that run side by side."""

    loads: tuple[GpuWorkload, ...]  # as they run
    slos_us: tuple[float, ...] = ()  # what each must keep at p99; empty without SLOs


def baselines_us() -> dict[str, float]:
    """The p99 of each NF alone with batches of 256 packets of Traffic-A."""
    return {nf: latency_of(measure([on_sms(nf, SET_TRAFFIC, [(0, DEFAULT_BATCH)])])[0]).p99 for nf in SERVER_NFS}


def draw_slos(
    baselines: Mapping[str, float],
    rng: Random,
    number: int = SLOS_PER_SET,
    tolerances: tuple[float, float] = TOLERANCE_RANGE,
) -> list[LatencySlo]:
    """SLOs of random NFs: each the latency of the NF alone, longer by a tolerance."""
    slos = []
    for place in range(number):
        nf = rng.choice(SERVER_NFS)
        rate = on_sms(nf, SET_TRAFFIC, [(0, DEFAULT_BATCH)]).rate_kpps
        slos.append(LatencySlo(str(place), nf, rate, baselines[nf] * (1 + rng.uniform(*tolerances))))
    return slos


def admit_set(models: GpuModels, slos: Sequence[LatencySlo], seed: int) -> SloCoLocation:
    """What the method `grus` admits."""
    # an NF per SLO: the conservative latency need be right for its rate and promise only
    device = _device(models, slos)
    admission = METHODS["grus"](device, [replace(slo, nf=slo.id) for slo in slos], MethodSetting(seed))
    loads = tuple(_load(slos[int(admitted_slo.slo.id)].nf, admitted_slo) for admitted_slo in admission.admitted)
    return SloCoLocation(loads, tuple(admitted_slo.slo.latency_us for admitted_slo in admission.admitted))


def _device(models: GpuModels, slos: Sequence[LatencySlo]) -> GpuDevice:
    entries = {
        slo.id: DeviceEntry(slo.nf, SET_TRAFFIC, (slo.rate_kpps, slo.rate_kpps), min(slo.latency_us, LONGEST_US))
        for slo in slos
    }
    return device_of(models.device_with(entries), "models")


def _load(nf: str, admitted: Admitted) -> GpuWorkload:
    return on_sms(nf, SET_TRAFFIC, [(part.sm, part.packets) for part in admitted.minibatches], order=admitted.order)


def pack_nfs(models: GpuModels, rng: Random) -> SloCoLocation:
    """Ten random NFs on four SMs, with random traffic, batches and orders, which the models say the server carries."""
    for _ in range(MOST_DRAWS):
        executors = models.testbed.nic.executors_per_sm
        assert executors
        free = dict.fromkeys(range(PACKED_SMS), executors)
        loads = []
        for order in rng.sample(range(SLOS_PER_SET), SLOS_PER_SET):
            batch, parts = rng.choice(PACKED_BATCHES), rng.choice((1, 2))
            used = -(-batch // parts // models.per_executor)
            # ten NFs use at most 40 of the 60 executors, so that there is room for each
            sms = rng.sample([sm for sm, left in free.items() if left >= used], parts)
            for sm in sms:
                free[sm] -= used
            traffic = NAMED_TRAFFICS[rng.choice(sorted(NAMED_TRAFFICS))]
            split = [(sm, batch // parts) for sm in sms]
            loads.append(on_sms(rng.choice(SERVER_NFS), traffic, split, gbps=FLOW_GBPS, order=order))
        try:
            models.predict(loads)
        except Overload:
            continue
        return SloCoLocation(tuple(loads))
    raise CannotRun(f"{MOST_DRAWS} co-locations on few SMs overload the server, by prediction")
