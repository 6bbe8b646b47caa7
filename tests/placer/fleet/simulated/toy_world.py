"""A production of toy NFs, whose figures can be checked by hand."""

from collections.abc import Sequence

from placer.fleet.engine import Engine
from placer.fleet.learning.learning import correct
from placer.fleet.simulated.fleet_life import FleetLife, Stage
from placer.fleet.simulated.monitor import DriftingTruth, Monitor, TrueDrift
from placer.fleet.simulated.outcome import BY_HAND, WITH_FEEDBACK, FleetOutcome
from placer.inputs.production import SLA_PROMISED, LiarTable, MonitorTable
from placer.model.arrival import Arrival
from placer.model.fleet import Fleet
from placer.model.nic import Nic, Tenant
from placer.model.oracle import PredictorOracle
from placer.policy.rules import BEST_FIT
from placer.testing.strategies import ToyOracle, arrival, catalogue
from tests.placer.fleet.learning.toy_predictor import ToyPredictor

KINDS = catalogue((None, 1.0)).kinds


def truth_of(*drifts: TrueDrift) -> DriftingTruth:
    """Toy NFs that drift."""
    return DriftingTruth([ToyOracle()], drifts)


def nic_of(*tenants: Tenant) -> Nic:
    nic = Nic("nic-1", KINDS[0])
    nic.tenants_by_id |= {tenant.id: tenant for tenant in tenants}
    return nic


def tenant(identity: str, nf: str, drop: float = 0.1) -> Tenant:
    return arrival(identity, 0.0, nf, drop).tenant


def life_of(
    name: str,
    arrivals: Sequence[Arrival],
    *drifts: TrueDrift,
    measure: MonitorTable | None = None,
    liars: Sequence[LiarTable] = (),
    sla: str = SLA_PROMISED,
) -> FleetLife:
    """A fleet of unlimited toy NICs, on which best-fit places without a margin."""
    truth = truth_of(*drifts)
    feedback, oracles = correct(KINDS, [PredictorOracle(ToyPredictor())])
    engine = Engine(Fleet(KINDS), oracles, BEST_FIT, feedback=feedback if name == WITH_FEEDBACK else None)
    monitor = Monitor(measure or MonitorTable(share=1.0), liars, truth, seed=1) if name == WITH_FEEDBACK else None
    return FleetLife(Stage(arrivals, truth, sla), engine, feedback, monitor, by_hand=name == BY_HAND)


def play(
    name: str, arrivals: Sequence[Arrival], *drifts: TrueDrift, measure: MonitorTable | None = None
) -> FleetOutcome:
    return life_of(name, arrivals, *drifts, measure=measure).play(name, lambda done, total: None)
