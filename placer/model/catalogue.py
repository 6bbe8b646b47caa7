"""The catalogue: the kinds of NIC that are available, and the models and testbed of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from placer.model.fleet import NicKind
from placer.model.oracle import Oracle, PredictorOracle, TestbedOracle
from predictor import Models
from profiler.testbed import Testbed
from profiles import TrafficProfile, Workload

BYTES_PER_MB = 1e6
DEFAULT_PREDICTOR = "tomur"
DEFAULT_BUDGET_PCT = 2.0
"""SLA violations that are accepted where nothing else is asked, per 100 instances."""
PREDICTED = "predicted"
"""The name of the ground truth where there is none."""


@dataclass(frozen=True, eq=False)
class Catalogue:
    """What strategies and their evaluation use to know the NICs.

    Parameters
    ----------
    kinds
        The kinds of NIC.
    models
        Per kind, the trained models.
    testbeds
        Per kind, the testbed of the ground truth; None where there is none.
    risk
        The share of instances that may be expected to violate their SLA; None uses the median prediction.
    specs
        Per kind, the SPEC of its testbed; `none` where there is none.
    budget_pct
        Instances that may be expected to violate their SLA, per 100; strategies choose the risk to stay inside. None
        where the risk is given.
    """

    kinds: tuple[NicKind, ...]
    models: tuple[Models, ...]
    testbeds: tuple[Testbed | None, ...]
    risk: float | None = None
    specs: tuple[str, ...] = ()
    budget_pct: float | None = None

    @property
    def default_traffic(self) -> TrafficProfile:
        """The traffic of arrivals without traffic columns: the default of the first kind."""
        return self.models[0].default_traffic

    def predictors(self) -> list[str]:
        """Names of the predictors that every kind has, the default one first."""
        shared = set.intersection(*(set(models.predictors) for models in self.models))
        return sorted(shared, key=lambda name: (name != DEFAULT_PREDICTOR, name))

    def supports_risk(self, predictor: str) -> bool:
        """Whether the risk changes what the predictor of that name predicts."""
        return any(models.predictors[predictor].supports_risk for models in self.models)

    def risk_warnings(self, predictor: str) -> list[str]:
        """Sentences for users where the risk is smaller than the predictor's measured errors support."""
        if self.risk is None:
            return []
        warnings = [models.predictors[predictor].risk_warning(self.risk) for models in self.models]
        return list(dict.fromkeys(f"{predictor}: {warning}" for warning in warnings if warning))

    def oracles(self, predictor: str) -> tuple[Oracle, ...]:
        """Per kind, what the predictor of that name expects, at the catalogue's risk; same models, same oracle."""
        oracles = {id(models): PredictorOracle(models.predictors[predictor], self.risk) for models in self.models}
        return tuple(oracles[id(models)] for models in self.models)

    def truth(self) -> tuple[Oracle, ...] | None:
        """Per kind, what its testbed measures, one oracle for the same testbed; None unless every kind has one."""
        testbeds = [testbed for testbed in self.testbeds if testbed is not None]
        oracles = {id(testbed): TestbedOracle(testbed) for testbed in testbeds}
        return tuple(oracles[id(testbed)] for testbed in testbeds) if len(testbeds) == len(self.kinds) else None

    def truth_name(self) -> str:
        """The ground truth: `simulated` for a simulated card, names of testbeds, or `predicted` where there is none."""
        testbeds = [testbed.describe() for testbed in self.testbeds if testbed is not None]
        if len(testbeds) < len(self.kinds):
            return PREDICTED
        names = ["simulated" if testbed.simulated else testbed.name for testbed in testbeds]
        return ", ".join(dict.fromkeys(names))

    def shares(self, kind: NicKind, workload: Workload) -> dict[str, float]:
        """The share of each of a NIC's resources that the workload takes when alone.

        Resources are `cores`, `cache` (its working set relative to the last-level cache, where the testbed reports the
        size of that) and each accelerator (of its time). A share above 1 is a demand for more than there is.
        """
        models = self.models[kind.index]
        demand = models.demand([workload])[0]
        shares = {"cores": demand.cores / kind.cores, **demand.accelerators}
        if models.testbed and models.testbed.nic.llc_bytes:
            shares["cache"] = demand.wss_mb * BYTES_PER_MB / models.testbed.nic.llc_bytes
        return shares

    def check(self, workload: Workload) -> Sequence[tuple[str, str]]:
        """Why the workload is refused, as (column, message): an unprofiled NF, traffic outside the profiled range."""
        knowing = [models for models in self.models if workload.nf in models.nfs]
        faults = [fault for models in knowing or self.models[:1] for fault in models.check(workload)]
        if not faults and not any(kind.hosts(workload) for kind in self.kinds):
            cores = min(kind.cores_of[workload.nf] for kind in self.kinds if workload.nf in kind.cores_of)
            faults = [("nf", f"'{workload.nf}' needs {cores} cores, more than any NIC of the fleet has")]
        return list(dict.fromkeys(faults))
