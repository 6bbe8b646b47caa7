"""Latency models of a GPU server: trained from a profile, saved, loaded, and queried."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from predictor.gpu import store
from predictor.gpu.co_location import demands, overload
from predictor.gpu.device import Device, DeviceEntry, device_of
from predictor.gpu.nf_model import GpuNfModel, WorkerModel
from predictor.gpu.prediction import GpuPrediction, LatencyErrors, Overload
from predictor.gpu.tandem import sample
from profiles import GpuWorkload, InputError, TestbedDescription, TrafficProfile
from profiles.faults import suggestion
from profiles.gpu_tables import STAGE_NAMES

Fault = tuple[str, str]
INTERVAL_COVERAGE = 0.9
WAIT_STAGES = ("transfer_wait", "kernel_wait")


@dataclass(frozen=True)
class GpuModels:
    """Everything that was learnt of one GPU server."""

    testbed: TestbedDescription
    models: Mapping[str, GpuNfModel]  # of each NF, by name
    worker: WorkerModel = field(default_factory=WorkerModel)  # how workers serve their NFs
    errors: LatencyErrors = field(default_factory=LatencyErrors.none)  # of whole co-locations that trained no model
    seed: int = 0  # the seed of training

    @property
    def nfs(self) -> tuple[str, ...]:
        """The NFs, sorted."""
        return tuple(self.models)

    @property
    def default_traffic(self) -> TrafficProfile:
        """The traffic of a workload that does not state its own."""
        return self.testbed.traffic

    @property
    def per_executor(self) -> int:
        """Packets per executor."""
        assert self.testbed.nic.packets_per_executor
        return self.testbed.nic.packets_per_executor

    def check(self, load: GpuWorkload, *, extrapolate: bool = False) -> list[Fault]:
        """What is wrong with a load, as (column, message): an unknown NF, settings that no model knows. With
        `extrapolate`, values outside what was measured are accepted."""
        if load.nf not in self.models:
            return [("name", f"'{load.nf}' is not profiled ({suggestion(load.nf, self.nfs)})")]
        gpu = load.gpu
        if gpu is None:
            return [("gpu", "is missing: models of a GPU server predict NFs with gpu settings")]
        if gpu.flush_us is not None:
            return [("gpu.flush_us", "is not modelled: batches are complete when they are sent")]
        if not gpu.minibatches:
            return [("gpu.minibatches", "is missing: only minibatches on given SMs are modelled")]
        return [] if extrapolate else [("gpu", fault) for fault in self.models[load.nf].faults(load)]

    def predict(
        self, loads: Sequence[GpuWorkload], *, coverage: float = INTERVAL_COVERAGE, extrapolate: bool = False
    ) -> list[GpuPrediction]:
        """The latency of each load of a co-location. `loads`: NFs that share the server. `coverage`: the probability
        with which an interval holds the measured latency. `extrapolate`: also predict beyond what was measured; such
        predictions are marked. Raises `InputError` when an NF or a setting is not modelled. Raises `Overload` when a
        resource is needed for more than all of the time."""
        faults = [fault for load in loads for fault in self.check(load, extrapolate=extrapolate)]
        if faults:
            raise InputError.of("models", "; ".join(f"{column}: {message}" for column, message in faults))
        taken = demands(self.models, self.per_executor, loads, self.worker.receive_us)
        if causes := overload(loads, taken):
            raise Overload(causes)
        found = []
        for load, one in zip(loads, sample(taken, window=self.worker.window), strict=True):
            stages = dict(zip(STAGE_NAMES, one.stages, strict=True))
            share = sum(stages[name] for name in WAIT_STAGES) / one.mean
            found.append(
                GpuPrediction(
                    one.mean,
                    one.p50,
                    one.p99,
                    self.errors.interval("mean", one.mean, share, coverage),
                    self.errors.interval("p99", one.p99, share, coverage),
                    stages,
                    extrapolated=extrapolate and bool(self.models[load.nf].faults(load)),
                )
            )
        return found

    def device(self, traffic: Mapping[str, TrafficProfile] | None = None) -> Device:
        """The server as `placer admit --device` describes it, for the upper half of the rates that were measured; its
        latency is a conservative p99. `traffic`: of each NF; the default traffic where it is not given."""
        entries = {}
        for name, model in self.models.items():
            low, high = (float(bounds[1]) for bounds in (model.batching.low, model.batching.high))
            rates = ((low * high) ** 0.5, high)
            entries[name] = DeviceEntry(name, (traffic or {}).get(name, self.default_traffic), rates)
        return self.device_with(entries)

    def device_with(self, entries: Mapping[str, DeviceEntry]) -> Device:
        """As `device`, with an NF per entry, such as one per SLO: then each is right for its own rate and latency.
        Raises `InputError` when an NF is not modelled."""
        for name in sorted({entry.nf for entry in entries.values()} - set(self.models)):
            raise InputError.of("models", f"no model of {name}", hint=suggestion(name, self.nfs))
        return device_of(self.testbed, self.models, self.worker, self.errors, entries)

    def with_errors(self, errors: LatencyErrors) -> "GpuModels":
        """The same models with these errors."""
        return replace(self, errors=errors)

    def save(self, directory: Path) -> None:
        """Write to `directory`, in place of the models there; the same models are the same bytes. Other files stay."""
        store.save_gpu(directory, self.testbed, self.models, self.worker, self.errors, self.seed)


def load_gpu_models(directory: Path) -> GpuModels:
    """The models in `directory`. Raises `InputError` when it holds no models of a GPU server, or models that do not fit
    this version."""
    return GpuModels(*store.load_gpu(directory))
