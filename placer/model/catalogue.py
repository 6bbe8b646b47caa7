"""The catalogue: the kinds of NIC that are available, and the models and testbed of each."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from placer.model.gpu_oracle import GpuOracle
from placer.model.latency_oracle import LatencyCurve, LatencyOracle, PacedTruth, least_kpps
from placer.model.nic_kind import NicKind, choices_on
from placer.model.oracle import Oracle, PredictorOracle, TestbedOracle
from placer.model.sla import OFFERED_TOLERANCE, latency_sla_of
from predictor import Models, Predictor
from profiler.testbed import Testbed
from profiles import CoLocation, InputError, TrafficProfile, Workload
from profiles.faults import suggestion
from profiles.shown import Shown

BYTES_PER_MB = 1e6
DEFAULT_PREDICTOR = "tomur"
DEFAULT_BUDGET_PCT = 2.0  # SLA violations that are accepted where nothing else is asked, per 100 instances
PREDICTED_TRUTH = "predicted"  # the name of the ground truth where there is none
KEPT_LOADS = 10_000  # workloads of which it is kept what they carry alone
ADMISSION_PREDICTOR = "admission"  # the predictor of a fleet of GPUs only, whose admission tests decide


@dataclass(frozen=True, eq=False, repr=False)
class Catalogue(Shown):
    """What strategies and their evaluation use to know the NICs.

    `kinds`: the kinds of NIC. `models`: per kind, the trained models; of GPUs without predictors. `testbeds`: per kind,
    the testbed of the ground truth; None where there is none. `risk`: the share of instances that may be expected to
    violate their SLA; None uses the median prediction. `specs`: per kind, the SPEC of its testbed; `none` where there
    is none. `budget_pct`: instances that may be expected to violate their SLA, per 100; strategies choose the risk to
    stay inside. None where the risk is given. `curves`: by the index of a kind, the latency of NFs against utilisation;
    no other kinds of NIC can promise a latency. `gpus`: by the index of a kind of GPUs, what its admission test
    says."""

    kinds: tuple[NicKind, ...]
    models: tuple[Models, ...]
    testbeds: tuple[Testbed | None, ...]
    risk: float | None = None
    specs: tuple[str, ...] = ()
    budget_pct: float | None = None
    curves: Mapping[int, Mapping[str, LatencyCurve]] = field(default_factory=dict)
    gpus: Mapping[int, GpuOracle] = field(default_factory=dict)

    @property
    def default_traffic(self) -> TrafficProfile:
        """The traffic of arrivals without traffic columns: the default of the first kind that is no GPU, if any."""
        return self.main_models.default_traffic

    @property
    def main_models(self) -> Models:
        """The models of the first kind that is no GPU, if any."""
        return (self._trained or self.models)[0]

    @property
    def _trained(self) -> Sequence[Models]:
        """Per kind that is no GPU, the models."""
        return [models for index, models in enumerate(self.models) if index not in self.gpus]

    def predictors(self) -> list[str]:
        """Names of the predictors that every kind but GPUs has, the default one first."""
        if not self._trained:
            return [ADMISSION_PREDICTOR]
        shared = set.intersection(*(set(models.predictors) for models in self._trained))
        return sorted(shared, key=lambda name: (name != DEFAULT_PREDICTOR, name))

    def supports_risk(self, predictor: str) -> bool:
        """Whether the risk changes what the predictor of that name predicts."""
        return any(models.predictors[predictor].supports_risk for models in self._trained)

    def supports_loads(self, predictor: str) -> bool:
        """Whether the predictor of that name knows offered rates and numbers of cores."""
        return all(models.predictors[predictor].supports_loads for models in self._trained)

    def refuse_without_loads(self, predictor: str, workloads: Iterable[Workload]) -> None:
        """Raises `InputError` where a workload has a rate or a number of cores, and the predictor knows neither."""
        if not self.supports_loads(predictor) and not all(workload.is_plain for workload in workloads):
            able = [name for name in self.predictors() if self.supports_loads(name)]
            hint = f"--predictor {able[0]} knows them" if able else "leave out rates and cores"
            raise InputError.of("--predictor", f"{predictor} knows no offered rates and no cores", hint=hint)

    def risk_warnings(self, predictor: str) -> list[str]:
        """Sentences for users where the risk is smaller than the predictor's measured errors support."""
        if self.risk is None:
            return []
        warnings = [models.predictors[predictor].risk_warning(self.risk) for models in self._trained]
        return list(dict.fromkeys(f"{predictor}: {warning}" for warning in warnings if warning))

    def oracles(self, predictor: str) -> tuple[Oracle, ...]:
        """Per kind, what the predictor of that name expects, at the catalogue's risk; same models, same oracle.

        Of GPUs, what the admission test says.
        """
        oracles: dict[int, Oracle] = {}
        for index, models in enumerate(self.models):
            if index not in self.gpus and id(models) not in oracles:
                oracle = PredictorOracle(models.predictors[predictor], self.risk)
                curves = self.curves.get(index)
                oracles[id(models)] = LatencyOracle(oracle, curves, self.risk) if curves else oracle
        return tuple(self.gpus.get(index) or oracles[id(models)] for index, models in enumerate(self.models))

    def least_kpps(self, kind: int, workload: Workload, risk: float | None = None) -> float:
        """The throughput that the workload must be able to have on a kind for its promised latency; 0 for none.

        `risk` is the probability that the latency is exceeded then.
        """
        return least_kpps(workload, self.curves.get(kind, {}), risk)

    def serves_alone(self, kind: NicKind, workload: Workload) -> bool:
        """Whether an empty NIC that runs the NF keeps the latency that is promised; true where none is."""
        return workload.is_saturated or self._alone[kind.index].solo(workload) > 0

    def request(self, workload: Workload) -> Workload:
        """The workload on the fewest cores that carry its rate alone, by the median prediction; else on the most.

        That is what operators request for it who know what it needs, and not what its neighbours cost.
        """
        choices = choices_on(self.kinds, workload)
        if len(choices) == 1:
            return workload
        able = _predictor_of_loads(self.main_models)
        alone = able.solo(choices).tolist() if able else []
        enough = [choice for choice, kpps in zip(choices, alone, strict=False) if kpps >= workload.rate_kpps]
        return enough[0] if enough else choices[-1]

    def admits(self, kind: NicKind, co_location: CoLocation) -> bool:
        """Whether the admission test of a kind of GPU admits all of these; true for other kinds."""
        return kind.index not in self.gpus or min(self.gpus[kind.index].throughput([co_location])[0]) > 0

    @cached_property
    def _alone(self) -> tuple[Oracle, ...]:
        """Per kind, what is expected of workloads alone by the default predictor."""
        return self.oracles(self.predictors()[0])

    def truth(self) -> tuple[Oracle, ...] | None:
        """Per kind, what its testbed measures, one oracle for the same testbed; None unless every kind has one."""
        testbeds = [testbed for testbed in self.testbeds if testbed is not None]
        if len(testbeds) < len(self.kinds):
            return None
        oracles: dict[object, Oracle] = {}
        found = []
        for index, testbed in enumerate(testbeds):
            gpu, paced = self.gpus.get(index), index in self.gpus or bool(self.curves.get(index))
            key = id(testbed), id(gpu), paced
            if key not in oracles:
                oracles[key] = PacedTruth(testbed, gpu) if paced else TestbedOracle(testbed)
            found.append(oracles[key])
        return tuple(found)

    def judges(self, predictor: str, truth: Sequence[Oracle] | None) -> tuple[Oracle, ...]:
        """Per kind, by what the optimum is found: the ground truth, or else the predictor of that name.

        Of GPUs it is the admission test: they run nothing else than what it admits.
        """
        judges = truth or self.oracles(predictor)
        return tuple(self.gpus.get(index, judge) for index, judge in enumerate(judges))

    def truth_name(self) -> str:
        """The ground truth: `simulated` for a simulated card, names of testbeds, or `predicted` where there is none."""
        testbeds = [testbed.describe() for testbed in self.testbeds if testbed is not None]
        if len(testbeds) < len(self.kinds):
            return PREDICTED_TRUTH
        names = ["simulated" if testbed.simulated else testbed.name for testbed in testbeds]
        return ", ".join(dict.fromkeys(names))

    def shares(self, kind: NicKind, workload: Workload) -> dict[str, float]:
        """The share of each of a NIC's resources that the workload takes when alone.

        Of a GPU they are those of its admission test. Else they are `cores`, `cache` (its working set relative to the
        last-level cache, where the testbed reports the size of that) and each accelerator (of its time). A share above
        1 is a demand for more than there is.
        """
        if kind.index in self.gpus:
            return self.gpus[kind.index].shares(workload)
        models = self.models[kind.index]
        demand = models.demand([workload])[0]
        shares = {"cores": demand.cores / kind.cores, **demand.accelerators}
        if models.testbed and models.testbed.nic.llc_bytes:
            shares["cache"] = demand.wss_mb * BYTES_PER_MB / models.testbed.nic.llc_bytes
        return shares

    def check(self, workload: Workload) -> Sequence[tuple[str, str]]:
        """Why the workload is refused, as (column, message): an unprofiled NF, traffic outside the profiled range."""
        knowing = [models for models in self._trained if workload.nf in models.models]
        if not knowing and self._on_gpus:
            known = [oracle for index, oracle in self.gpus.items() if workload.nf in self.kinds[index].cores_of]
            faults = [fault for oracle in known for fault in oracle.test.check(workload)]
            if not known:
                hint = suggestion(workload.nf, self._on_gpus)
                faults = [("nf", f"'{workload.nf}' is not profiled, and no GPU runs it ({hint})")]
        else:
            faults = [fault for models in knowing or self._trained[:1] for fault in models.check(workload)]
        if not faults and not any(kind.hosts(workload) for kind in self.kinds):
            faults = [self._why_not_hosted(workload)]
        if not faults and not workload.is_saturated:
            faults = self._overload(workload)
        return list(dict.fromkeys(faults))

    def _overload(self, workload: Workload) -> list[tuple[str, str]]:
        """Why a rate is refused, as (column, message): no kind of NIC carries it alone, by the median prediction."""
        most, on_cores = 0.0, 0
        for kind in self.kinds:
            if not kind.hosts(workload):
                continue
            able = _predictor_of_loads(self.models[kind.index])
            if kind.index in self.gpus or able is None:
                return []
            key = kind.index, workload.nf, workload.traffic, workload.cores
            if key not in self._carried:
                if len(self._carried) >= KEPT_LOADS:
                    self._carried.clear()
                choices = kind.choices(workload)
                of_choices = zip(able.solo(choices).tolist(), map(kind.cores_for, choices), strict=True)
                self._carried[key] = max(of_choices, key=lambda pair: pair[0])
            if self._carried[key][0] > most:
                most, on_cores = self._carried[key]
        if workload.rate_kpps * (1.0 - OFFERED_TOLERANCE) <= most:
            return []
        carried = f"at most {most:,.0f} kpps of this traffic alone, on {on_cores} core{'s' * (on_cores != 1)}"
        return [("rate_kpps", f"{workload.rate_kpps:,.6g} kpps is more than '{workload.nf}' carries: {carried}")]

    @cached_property
    def _carried(self) -> dict[tuple[int, str, TrafficProfile, int], tuple[float, int]]:
        """The most that an NF carries alone (kpps), on how many cores, by kind, NF, traffic and cores that are given:
        it is the same whatever is offered."""
        return {}

    @cached_property
    def _on_gpus(self) -> tuple[str, ...]:
        """The NFs of all GPUs."""
        return tuple(dict.fromkeys(nf for index in self.gpus for nf in self.kinds[index].cores_of))

    def _why_not_hosted(self, workload: Workload) -> tuple[str, str]:
        """Why no kind hosts a known NF, as (column, message)."""
        nf = workload.nf
        knowing = [kind for kind in self.kinds if nf in kind.cores_of]
        widest = max(kind.line_rate_gbps for kind in knowing)
        if (gbps := knowing[0].gbps_of(workload)) > widest:
            return "rate_kpps", f"{gbps:,.4g} Gb/s on the wire are more than a port carries: {widest:g} Gb/s"
        if all(kind.cores_of[nf] > kind.cores for kind in knowing):
            cores = min(kind.cores_of[nf] for kind in knowing)
            return "nf", f"'{nf}' needs {cores} cores, more than any NIC of the fleet has"
        if not workload.is_saturated:
            where = "no GPU of the fleet runs it, and no models have its latency against utilisation"
            promised = latency_sla_of(workload)
            return promised.column, f"the {promised.name} of '{nf}' cannot be promised: {where} (latency/{nf}.json)"
        return "rate_kpps", f"is missing, and '{nf}' runs on GPUs only, which need it"


def _predictor_of_loads(models: Models) -> Predictor | None:
    """The first predictor that knows offered rates and numbers of cores; None where none does."""
    return next((predictor for predictor in models.predictors.values() if predictor.supports_loads), None)
