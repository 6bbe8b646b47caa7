"""The simulated server with a GPU: the NFs and traffic of Grus's measurements, and latency models of it. Printed: flows
of 2 Gb/s in figures 1 and 9, batches of 256 packets, four NFs, and which of them moves what. Assumed: the firewalls of
figures 1 and 9 have packets of 850 B and 30 flows, as in `profiler.simulated_gpu.card`. The traces of section VII-B
(Traffic-A, -B, -C) are not printed; traffic with many, few and some flows stands for them."""

from collections.abc import Callable, Sequence
from functools import cache
from importlib.resources import as_file, files

from predictor.gpu.models import GpuModels
from predictor.training.gpu import train_gpu
from profiler.simulated_gpu import SimulatedGpu
from profiler.testbed import GpuStages, Measurement, PacketLatency
from profiles import GpuSettings, GpuWorkload, TrafficProfile, Workload
from profiles.gpu_tables import GpuProfile, read_gpu_profile

RECORDED_PROFILE = "gpu-simulated"  # the recorded profile of the server, in `traces/`
FIREWALL_NF = "ACL"
SERVER_NFS = ("ACL", "IPRouter", "NIDS", "IPSec")
FIREWALL_TRAFFIC = TrafficProfile(30, 850)
FLOW_GBPS = 2.0  # of each flow (section II-A)
DEFAULT_BATCH = 256
NAMED_TRAFFICS = {
    "Traffic-A": TrafficProfile(100_000, 900, 100),
    "Traffic-B": TrafficProfile(300, 600, 100),
    "Traffic-C": TrafficProfile(5_000, 750, 100),
}
"""In place of a backbone link, a Hadoop cluster and the gateway of an enterprise; all values are assumed."""
TRAFFIC_NOTE = "Traces are not available; in place of them: " + "; ".join(
    f"{name}, {traffic.flows:,.0f} flows, packets of {traffic.packet_size:g} B, {traffic.mtbr:g} matches/MB"
    for name, traffic in NAMED_TRAFFICS.items()
)


@cache
def read_recorded_profile() -> GpuProfile:
    """What `placer profile` measured on the simulated server."""
    with as_file(files("traces") / RECORDED_PROFILE) as path:
        return read_gpu_profile(path)


def train_models(say: Callable[[str], None]) -> GpuModels:
    """The models that `placer train` makes of the recorded profile, once per process."""
    say(f"training latency models of the recorded profile {RECORDED_PROFILE} (once)")
    return _train_once()


@cache
def _train_once() -> GpuModels:
    return train_gpu(read_recorded_profile())


def rate_kpps(gbps: float, traffic: TrafficProfile) -> float:
    """Packets of this traffic at a rate."""
    return gbps * 1e6 / 8 / traffic.packet_size


def on_sms(
    nf: str, traffic: TrafficProfile, minibatches: Sequence[tuple[int, int]], *, gbps: float = FLOW_GBPS, order: int = 0
) -> GpuWorkload:
    """The NF with these (SM, packets); its batch is their sum."""
    return GpuWorkload(Workload(nf, traffic, rate_kpps(gbps, traffic)), GpuSettings.of(minibatches, order=order))


def by_scheduler(nf: str, traffic: TrafficProfile, scheduler: str) -> GpuWorkload:
    """The NF with a batch of 256 at 2 Gb/s, placed by the scheduler of the GPU (`temporal` or `spatial`)."""
    settings = GpuSettings(DEFAULT_BATCH, None, scheduler=scheduler)
    return GpuWorkload(Workload(nf, traffic, rate_kpps(FLOW_GBPS, traffic)), settings)


def measure(loads: Sequence[GpuWorkload], *, seed: int | None = None) -> tuple[Measurement, ...]:
    """A run on the simulated server: a long one whose packets are always the same, or a short one drawn by `seed`."""
    return SimulatedGpu().run(loads, noise=seed is not None, seed=seed).measurements


def latency_of(one: Measurement) -> PacketLatency:
    """Of a run on the simulated server, which always measures it."""
    assert one.latency_us is not None
    return one.latency_us


def stages_of(one: Measurement) -> GpuStages:
    """Of a run on the simulated server, which always measures them."""
    assert one.stages_us is not None
    return one.stages_us
