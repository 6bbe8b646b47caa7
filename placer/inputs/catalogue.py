"""Opens the catalogue: fleet file, models and testbeds together, refused where they are of different cards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING

from placer.inputs import models as model_folders
from placer.model.catalogue import ADMISSION_PREDICTOR, DEFAULT_BUDGET_PCT, DEFAULT_PREDICTOR, Catalogue
from placer.model.gpu_oracle import GpuOracle
from placer.model.latency_oracle import LatencyCurve, TrainedLatency, known_latencies
from placer.model.nic_kind import NicKind
from predictor import Models
from profiler.testbed import Testbed, TestbedError
from profiler.testbeds import open_testbed
from profiles import Fault, InputError, TestbedDescription

if TYPE_CHECKING:
    from placer.inputs.fleet import FaultAt, NicTable
    from placer.inputs.gpu.kinds import GpuSource


NONE = "none"


@dataclass(frozen=True)
class Cards:
    """Which NICs there are, what predicts their throughput, and what measures it.

    `models`: a MODELS folder; None means the models of the recorded simulated card: the testbed's, or else the
    BlueField-2. `fleet`: a fleet file; None means unlimited NICs of the model that the models were trained on.
    `testbed`: the SPEC of the ground truth; None means the simulated card for its own models, and no truth for others.
    `risk`: the share of instances that may be expected to violate their SLA; None uses the median prediction.
    `timeout`: seconds that a testbed may take for one answer. `budget_pct`: instances that may be expected to violate
    their SLA, per 100; None means the default where no risk is given."""

    models: Path | None = None
    fleet: Path | None = None
    testbed: str | None = None
    risk: float | None = None
    timeout: float = 60.0
    budget_pct: float | None = None

    def __post_init__(self) -> None:
        """Paths may be text. Commands refuse a bad budget or risk under the names of their options before."""
        for name in ("models", "fleet"):
            path = getattr(self, name)
            object.__setattr__(self, name, path if path is None else Path(path))
        if self.budget_pct is not None and not 0 < self.budget_pct <= 100:
            hint = "as in 2, for 2 % of instances"
            raise InputError.of("budget_pct", f"{self.budget_pct:g} is not above 0 and at most 100", hint=hint)
        if self.risk is not None and not 0 < self.risk < 1:
            raise InputError.of("risk", f"{self.risk:g} is not between 0 and 1", hint="0.5 is the median prediction")
        if self.budget_pct is not None and self.risk is not None:
            hint = "the budget chooses the risk by itself: give one of the two"
            raise InputError.of("budget_pct", "is given together with risk", hint=hint)


def open_catalogue(cards: Cards, stack: ExitStack, say: model_folders.Say) -> Catalogue:
    """The kinds of NIC with their models and testbeds; testbeds are closed with `stack`. Raises `InputError` when a
    file is refused, or when models, fleet and testbed are of different cards. Raises `TestbedError` when a testbed
    fails."""
    opening = _Opening(cards, stack, say)
    tables: Sequence[NicTable | None] = [None]
    if cards.fleet:
        from placer.inputs.fleet import read_fleet

        tables = read_fleet(cards.fleet, opening.faults_of)
    if opening.failure is not None:
        raise opening.failure
    for index, table in enumerate(tables):
        source = _gpu_source(table, cards.models)
        if source is None:
            opening.add_nic(index, table)
        else:
            opening.add_gpu(index, table, source)
    return opening.catalogue()


def _gpu_source(table: NicTable | None, models: Path | None) -> GpuSource | None:
    """As `gpu_source`, whose code loads only where a kind can be a GPU: where a file or folder describes it."""
    if (models if table is None else table.device or table.models or models) is None:
        return None
    from placer.inputs.gpu.kinds import gpu_source

    return gpu_source(table, models)


class _Opening:
    """Opens one kind after the other; models and testbeds that several of them name are opened once. `failure`: the
    first failure of a testbed while the fleet file was checked; faults of the file are reported before it."""

    def __init__(self, cards: Cards, stack: ExitStack, say: model_folders.Say) -> None:
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
        self.failure: TestbedError | None = None

    def faults_of(self, table: NicTable, at: FaultAt) -> list[Fault]:
        """What is wrong with a table that only its models and its testbed show. No models are trained for it."""
        faults: list[Fault] = []
        for check in (self._check_models, self._check_testbed):
            if faults and (table.testbed or "").startswith("exec:"):
                break  # no program is started for a table that is refused anyway
            try:
                check(table)
            except InputError as refused:
                own = str(self.cards.fleet)
                faults += [
                    at(fault.column, fault.message, fault.hint) if fault.file == own and fault.column else fault
                    for fault in refused.faults
                ]
            except TestbedError as failure:
                self.failure = self.failure or failure
        return faults

    def _check_models(self, table: NicTable) -> None:
        """Refuses a table without models, with models of another NIC, or with more cores than that has."""
        gpu = _gpu_source(table, self.cards.models)
        if gpu is not None:
            gpu.kind(0, table, self.cards.fleet)
            return
        source = self._source(table)
        described = model_folders.describe_recorded(source) if isinstance(source, str) else self._open(source).testbed
        if described is None:
            if table.cores is None:
                raise self._refusal("cores", f"is missing for {table.model}, whose profile has no testbed.json")
        elif table.model != described.nic.model:
            hint = f'write model = "{described.nic.model}", or name the models of a {table.model}'
            message = f"is {table.model}, its models were trained on {described.nic.model}"
            raise self._refusal("model", message, hint)
        elif (table.cores or 0) > described.nic.cores:
            of = f"the {described.nic.cores} of a {table.model}, on which the models were trained"
            raise self._refusal("cores", f"{table.cores} are more than {of}")

    def _check_testbed(self, table: NicTable) -> None:
        """Refuses a testbed of another NIC."""
        gpu = _gpu_source(table, self.cards.models) is not None
        spec = table.testbed or (None if gpu else self.cards.testbed) or NONE
        try:
            testbed = self._testbed(spec)
        except InputError as refused:
            if table.testbed is None:
                raise
            raise self._refusal("testbed", refused.faults[0].message, refused.faults[0].hint) from None
        if testbed is None or (nic := testbed.describe().nic).model == table.model:
            return
        own = model_folders.specs_of_recorded().get(table.model)
        fitting = f'testbed = "{own}"' if own else f"the testbed of a {table.model}"
        if table.testbed is None:
            hint = f'write {fitting} into its table, or testbed = "none"'
            raise self._refusal("model", f"is {table.model}, --testbed {spec} is a {nic.model}", hint)
        expected = "which is no GPU" if gpu and nic.kind != "gpu" else f"not a {table.model}"
        hint = f'{spec} needs model = "{nic.model}"; for a {table.model}, write {fitting}'
        raise self._refusal("testbed", f"{spec} is a {nic.model}, {expected}", hint)

    def _source(self, table: NicTable | None) -> Path | str:
        """The MODELS folder of a table, or the recorded profile of its NIC model. `--models` are of one NIC model. A
        table of another one names its own, or the testbed of a recorded profile."""
        given = self.cards.models
        if table is None:
            return given or model_folders.RECORDED_OF.get(self.cards.testbed or "", model_folders.RECORDED_PROFILE)
        if table.models is not None:
            if wrong := model_folders.why_no_models(Path(table.models), table.testbed):
                raise self._refusal("models", *wrong)
            return Path(table.models)
        own = model_folders.specs_of_recorded().get(table.model)
        if given is not None:
            trained = self._open(given).testbed
            if trained is None or trained.nic.model == table.model:
                return given
            if own is None or table.testbed != own:
                message = f"is {table.model}, --models {given} were trained on {trained.nic.model}"
                hint = f'testbed = "{own}" in its table takes the models that come with placer'
                raise self._refusal("model", message, hint if own else model_folders.how_to_get_models(table.testbed))
        if own is None:
            message = f"there are no models of '{table.model}'"
            raise self._refusal("model", message, model_folders.how_to_get_models(table.testbed))
        return model_folders.RECORDED_OF[own]

    def _refusal(self, key: str, message: str, hint: str | None = None) -> InputError:
        return InputError.of(str(self.cards.fleet), message, column=key, hint=hint)

    def _open(self, source: Path | str) -> Models:
        if source not in self.opened:
            folder = source if isinstance(source, Path) else None
            self.opened[source] = model_folders.open_models(
                folder, self.say, model_folders.RECORDED_PROFILE if folder else str(source)
            )
        return self.opened[source]

    def add_nic(self, index: int, table: NicTable | None) -> None:
        """A kind of SmartNIC or server."""
        source = self._source(table)
        models = self._open(source)
        spec = (table.testbed if table else None) or self.cards.testbed or _own_testbed(models)
        testbed = self._testbed(spec)
        if testbed is not None:
            _same_card(models, testbed.describe(), spec)
        kind = _kind(index, table, models)
        if curves := _latency_curves(models, source if isinstance(source, Path) else None):
            self.curves[index] = curves
            kind = replace(kind, latency_of=known_latencies(curves))
        self._add(kind, models, testbed, spec)

    def add_gpu(self, index: int, table: NicTable | None, source: GpuSource) -> None:
        """A kind of GPU."""
        from placer.inputs.gpu.admission import load_admission

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
            tuple(self.kinds), tuple(self.models), tuple(self.testbeds), self.cards.risk, tuple(self.specs),
            asked if self.cards.risk is None else None, self.curves, self.gpus,
        )  # fmt: skip


def _latency_curves(models: Models, folder: Path | None) -> dict[str, LatencyCurve]:
    """By NF, the latency that was trained, or else a fitted curve of the user in the folder."""
    fitted: dict[str, LatencyCurve] = {}
    if folder is not None:
        from placer.inputs.solo_fits import read_latency_curves

        fitted = read_latency_curves(folder, models.nfs)
    return fitted | {nf: TrainedLatency(model) for nf, model in models.latencies.items()}


def _own_testbed(models: Models) -> str:
    """The simulated card for models that were trained on it; no other models are evaluated on it."""
    if models.testbed is None or not models.testbed.simulated:
        return NONE
    for spec in model_folders.RECORDED_OF:
        with open_testbed(spec) as simulated:
            if simulated.describe() == models.testbed:
                return spec
    return NONE


def _same_card(models: Models, described: TestbedDescription, spec: str) -> None:
    """Refuses to evaluate models of one card on another."""
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


def _kind(index: int, table: NicTable | None, models: Models) -> NicKind:
    trained = models.testbed.nic if models.testbed else None
    if table is None:
        if trained is None:
            raise InputError.of(
                "--models",
                "came from a profile without testbed.json: the cores of a NIC are unknown",
                hint="give a fleet file with model and cores: --fleet FILE",
            )
        return _with_loads(NicKind(index, trained.model, trained.cores, _cores_of(models)), models)
    cores = table.cores or (trained.cores if trained else None)
    assert cores is not None  # else the table was refused
    names, owned = table.all_names, table.owned
    kind = NicKind(
        index, table.model, cores, _cores_of(models), table.count, table.cost, names=names, owned=owned,
        pool=table.pool or "", domain=table.domain or "",
    )  # fmt: skip
    return _with_loads(kind, models)


def _cores_of(models: Models) -> dict[str, int]:
    return {nf: models.cores(nf) for nf in models.nfs}


def _with_loads(kind: NicKind, models: Models) -> NicKind:
    """The kind with what these models know of numbers of cores and of its port."""
    line_rate = models.testbed.nic.line_rate_gbps if models.testbed else None
    counts = {nf: models.models[nf].core_counts for nf in models.nfs}
    return replace(kind, core_counts=counts, line_rate_gbps=inf if line_rate is None else line_rate)


# Opens what online placement needs: the kinds of NIC, and a predictor for each.


def open_online(
    cards: Cards, stack: ExitStack, say: model_folders.Say, predictor: str = DEFAULT_PREDICTOR
) -> Catalogue:
    """The catalogue for placement by that predictor, without a ground truth. The cards' testbed only names the recorded
    models that are used where the cards have no others. Raises `InputError` when a file is refused, or the models have
    no such predictor."""
    model_folders.find_recorded(cards.testbed)
    named = cards.testbed if cards.models is None else None
    catalogue = open_catalogue(replace(cards, testbed=named or NONE), stack, say)
    known = catalogue.predictors()
    if predictor not in known and (known != [ADMISSION_PREDICTOR] or predictor != DEFAULT_PREDICTOR):
        raise InputError.of(
            "--predictor", f"not in the models: {predictor}", hint=f"these models have {', '.join(known)}"
        )
    for warning in catalogue.risk_warnings(predictor):
        say(warning)
    return catalogue
