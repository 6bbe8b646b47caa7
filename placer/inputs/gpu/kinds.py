"""Kinds of GPU in a fleet: a DEVICE file, or models of a GPU server."""

from dataclasses import dataclass
from pathlib import Path

from placer.inputs.fleet import NicTable
from placer.inputs.gpu.admission import DeviceTest, ModelsTest
from placer.inputs.gpu.slos import read_device
from placer.model.gpu_oracle import AdmissionTest
from placer.model.nic_kind import NicKind
from predictor import Models
from predictor.gpu.models import load_gpu_models
from predictor.gpu.store import holds_gpu_models
from profiles import InputError, TestbedDescription, TrafficProfile
from profiles.workload import P99

DEFAULT_TRAFFIC = TrafficProfile(16_000, 1_500, 600)
"""Of arrivals without traffic columns, where all of the fleet are GPUs that are described by files."""


@dataclass(frozen=True)
class GpuSource:
    """What describes a kind of GPU. `path`: the file or folder. `model`: as its models name it; None for a file. `nfs`:
    that it runs. `workers`: CPU cores that serve it. `test`: decides which NFs it serves at once. `default_traffic`: of
    arrivals without traffic columns."""

    path: Path
    model: str | None
    nfs: tuple[str, ...]
    workers: int
    test: AdmissionTest
    default_traffic: TrafficProfile

    def kind(self, index: int, table: NicTable | None, fleet: Path | None) -> NicKind:
        """The kind; a GPU has as many cores as workers, and each NF takes one. Raises `InputError` when the table has
        more cores than the GPU has workers, or names another model."""
        model, cores = (table.model, table.cores) if table is not None else (None, None)
        if self.model is not None and model not in (None, self.model):
            message = f"is {model}, its models were trained on {self.model}"
            raise InputError.of(str(fleet), message, column="model", hint="name that GPU's MODELS folder with `models`")
        if (cores or 0) > self.workers:
            message = f"{cores} are more than the {self.workers} workers of {self.path.name}"
            raise InputError.of(str(fleet), message, column="cores")
        count, cost = (table.count, table.cost) if table is not None else (None, 1.0)
        names, owned = (table.all_names, table.owned) if table is not None else ((), None)
        ones = dict.fromkeys(sorted(self.nfs), 1)
        name = model or self.model or self.path.stem
        known = {P99: frozenset(ones)}
        pool, domain = (table.pool or "", table.domain or "") if table is not None else ("", "")
        return NicKind(
            index, name, cores or self.workers, ones, count, cost, known, paced=True, names=names, owned=owned,
            pool=pool, domain=domain,
        )  # fmt: skip

    def no_models(self) -> Models:
        """Models without predictors of throughput."""
        return Models({}, None, self.default_traffic, {})

    def refuse_other(self, described: TestbedDescription, model: str, spec: str) -> None:
        """InputError where the testbed is not such a GPU."""
        if described.nic.kind != "gpu":
            raise InputError.of(f"--testbed {spec}", f"is a {described.nic.model}, which is no GPU")
        if described.nic.model != model:
            raise InputError.of(f"--testbed {spec}", f"is a {described.nic.model}, the fleet has a {model}")
        hosted = {nf.name for nf in described.nfs}
        if missing := [name for name in self.nfs if name not in hosted]:
            raise InputError.of(f"--testbed {spec}", f"does not host {', '.join(missing)}, which {self.path.name} has")


def gpu_source(table: NicTable | None, models: Path | None) -> GpuSource | None:
    """What describes the kind of GPU of a table, or of no fleet; None where it is of another kind. Raises `InputError`
    when a file is refused."""
    if table is not None and table.device is not None:
        path = Path(table.device)
        device = read_device(path)
        return GpuSource(path, None, tuple(device.nfs), device.workers, DeviceTest(device), DEFAULT_TRAFFIC)
    folder = Path(table.models) if table is not None and table.models else models
    if folder is None or not holds_gpu_models(folder):
        return None
    trained = load_gpu_models(folder)
    nic, workers = trained.testbed.nic, trained.testbed.workers or trained.testbed.nic.cores
    return GpuSource(folder, nic.model, trained.nfs, workers, ModelsTest(trained), trained.default_traffic)
