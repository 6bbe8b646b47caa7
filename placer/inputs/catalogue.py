"""Opens the catalogue: fleet file, models and testbeds together, refused where they are of different cards."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from placer.inputs.fleet import NicTable, read_fleet
from placer.inputs.gpu_admission import load_admission
from placer.inputs.gpu_kinds import GpuSource, gpu_source
from placer.inputs.latency_curves import read_latency_curves
from placer.inputs.models import RECORDED, RECORDED_OF, Say, open_models
from placer.model.catalogue import DEFAULT_BUDGET_PCT, Catalogue
from placer.model.fleet import NicKind
from placer.model.gpu_oracle import GpuOracle
from placer.model.latency_curve import TrainedLatency
from placer.model.latency_oracle import LatencyCurve
from predictor import Models
from profiler.testbed import Testbed
from profiler.testbeds import open_testbed
from profiles import InputError, TestbedDescription

NONE = "none"


@dataclass(frozen=True)
class Cards:
    """Which NICs there are, what predicts their throughput, and what measures it.

    Parameters
    ----------
    models
        A MODELS folder; None means the models of the recorded simulated card: the testbed's, or else the BlueField-2.
    fleet
        A fleet file; None means unlimited NICs of the model that the models were trained on.
    testbed
        The SPEC of the ground truth; None means the simulated card for its own models, and no truth for others.
    risk
        The share of instances that may be expected to violate their SLA; None uses the median prediction.
    timeout
        Seconds that a testbed may take for one answer.
    budget_pct
        Instances that may be expected to violate their SLA, per 100; None means the default where no risk is given.
    """

    models: Path | None = None
    fleet: Path | None = None
    testbed: str | None = None
    risk: float | None = None
    timeout: float = 60.0
    budget_pct: float | None = None


def open_catalogue(cards: Cards, stack: ExitStack, say: Say) -> Catalogue:
    """The kinds of NIC with their models and testbeds; testbeds are closed with `stack`.

    Raises
    ------
    InputError
        When a file is refused, or when models, fleet and testbed are of different cards.
    """
    tables = read_fleet(cards.fleet) if cards.fleet else [None]
    opening = _Opening(cards, stack, say)
    for index, table in enumerate(tables):
        source = gpu_source(table, cards.models)
        if source is None:
            opening.add_nic(index, table)
        else:
            opening.add_gpu(index, table, source)
    return opening.catalogue()


class _Opening:
    """Opens one kind after the other; models and testbeds that several of them name are opened once."""

    def __init__(self, cards: Cards, stack: ExitStack, say: Say) -> None:
        self.cards, self.stack, self.say = cards, stack, say
        self.opened: dict[Path | str, Models] = {}
        self.by_spec: dict[str, Testbed] = {}
        self.kinds: list[NicKind] = []
        self.models: list[Models] = []
        self.testbeds: list[Testbed | None] = []
        self.specs: list[str] = []
        self.curves: dict[int, Mapping[str, LatencyCurve]] = {}
        self.gpus: dict[int, GpuOracle] = {}
        self.tests: dict[Path, GpuOracle] = {}

    def add_nic(self, index: int, table: NicTable | None) -> None:
        """A kind of SmartNIC or server."""
        folder = Path(table.models) if table and table.models else self.cards.models
        named = (table.testbed if table else None) or self.cards.testbed
        recorded = RECORDED_OF.get(named or "", RECORDED)
        source = folder or recorded
        if source not in self.opened:
            self.opened[source] = open_models(folder, self.say, recorded)
        models = self.opened[source]
        spec = named or _own_testbed(models)
        testbed = self._testbed(spec)
        if testbed is not None:
            _same_card(models, table, testbed.describe(), spec)
        kind = _kind(index, table, models, self.cards.fleet)
        if curves := _latency_curves(models, folder):
            self.curves[index] = curves
            kind = replace(kind, latency_of=frozenset(curves))
        self._add(kind, models, testbed, spec)

    def add_gpu(self, index: int, table: NicTable | None, source: GpuSource) -> None:
        """A kind of GPU."""
        spec = (table.testbed if table else None) or NONE
        testbed = self._testbed(spec)
        kind = source.kind(index, table, self.cards.fleet)
        if testbed is not None:
            source.refuse_other(testbed.describe(), kind.model, spec)
        load_admission()
        if source.path not in self.tests:
            self.tests[source.path] = GpuOracle(source.test)
        self.gpus[index] = self.tests[source.path]
        self._add(kind, source.no_models(), testbed, spec)

    def _add(self, kind: NicKind, models: Models, testbed: Testbed | None, spec: str) -> None:
        self.kinds.append(kind)
        self.models.append(models)
        self.testbeds.append(testbed)
        self.specs.append(spec)

    def _testbed(self, spec: str) -> Testbed | None:
        if spec != NONE and spec not in self.by_spec:
            self.by_spec[spec] = self.stack.enter_context(open_testbed(spec, timeout=self.cards.timeout))
        return self.by_spec.get(spec)

    def catalogue(self) -> Catalogue:
        """All kinds."""
        if any(testbed is None for testbed in self.testbeds) and any(self.testbeds):
            self.say(
                "not every NIC of the fleet has a testbed: there is no ground truth, so the optimum is a predicted one"
            )
        asked = DEFAULT_BUDGET_PCT if self.cards.budget_pct is None else self.cards.budget_pct
        return Catalogue(
            tuple(self.kinds),
            tuple(self.models),
            tuple(self.testbeds),
            self.cards.risk,
            tuple(self.specs),
            asked if self.cards.risk is None else None,
            self.curves,
            self.gpus,
        )


def _latency_curves(models: Models, folder: Path | None) -> dict[str, LatencyCurve]:
    """By NF, the latency that was trained, or else a fitted curve of the user in the folder."""
    fitted = read_latency_curves(folder, models.nfs) if folder is not None else {}
    return fitted | {nf: TrainedLatency(model) for nf, model in models.latencies.items()}


def _own_testbed(models: Models) -> str:
    """The simulated card for models that were trained on it; no other models are evaluated on it."""
    if models.testbed is None or not models.testbed.simulated:
        return NONE
    for spec in RECORDED_OF:
        with open_testbed(spec) as simulated:
            if simulated.describe() == models.testbed:
                return spec
    return NONE


def _same_card(models: Models, table: NicTable | None, described: TestbedDescription, spec: str) -> None:
    """Refuses to evaluate models or NICs of one card on another."""
    if table is not None and table.model != described.nic.model:
        message = f"is a {described.nic.model}, the fleet has a {table.model}"
        raise InputError.of(
            f"--testbed {spec}", message, hint="name that NIC's testbed with `testbed` in the fleet file"
        )
    trained = models.testbed
    if trained is None:
        return
    if trained.nic.model != described.nic.model:
        message = f"is a {described.nic.model}, the models were trained on a {trained.nic.model}"
        hint = "give the testbed that was profiled, or `--testbed none`"
        raise InputError.of(f"--testbed {spec}", message, hint=hint)
    hosted = {nf.name for nf in described.nfs}
    if missing := [name for name in models.nfs if name not in hosted]:
        raise InputError.of(f"--testbed {spec}", f"does not host {', '.join(missing)}, which the models know")


def _kind(index: int, table: NicTable | None, models: Models, file: Path | None) -> NicKind:
    trained = models.testbed.nic if models.testbed else None
    if table is None:
        if trained is None:
            raise InputError.of(
                "--models",
                "came from a profile without testbed.json: the cores of a NIC are unknown",
                hint="give a fleet file with model and cores: --fleet FILE",
            )
        return NicKind(index, trained.model, trained.cores, _cores_of(models))
    if trained is not None and table.model != trained.model:
        raise InputError.of(
            str(file),
            f"is {table.model}, its models were trained on {trained.model}",
            column="model",
            hint="name that NIC's MODELS folder with `models`",
        )
    cores = table.cores or (trained.cores if trained else None)
    if cores is None:
        raise InputError.of(
            str(file), f"is missing for {table.model}, whose profile has no testbed.json", column="cores"
        )
    if trained is not None and cores > trained.cores:
        message = f"{cores} are more than the {trained.cores} of a {trained.model}, on which the models were trained"
        raise InputError.of(str(file), message, column="cores")
    return NicKind(index, table.model, cores, _cores_of(models), table.count, table.cost)


def _cores_of(models: Models) -> dict[str, int]:
    return {nf: models.cores(nf) for nf in models.nfs}
