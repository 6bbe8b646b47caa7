"""What was learnt changes decisions only where it changed predictions, and there as if all were asked anew."""

from __future__ import annotations

from random import Random

import pytest

from placer.feedback.learning import corrected
from placer.model.feasibility import feasible
from placer.model.fleet import Fleet, Nic, Tenant
from placer.model.oracle import PredictorOracle
from placer.model.sla import Sla
from placer.online.engine import Engine
from placer.online.events import Arrive, Depart, FleetEvent, Measure, MeasuredInstance
from placer.policy.class_index import ClassIndex
from placer.testing.toy import TRAFFIC, catalogue
from profiles import Workload
from tests.placer.feedback.toy_predictor import ToyPredictor

KINDS = catalogue((None, 1.0)).kinds
SOLO = {"a": 100.0, "b": 200.0, "c": 400.0}


def engine_of() -> Engine:
    """An engine that learns."""
    feedback, oracles = corrected(KINDS, [PredictorOracle(ToyPredictor(), 0.2)])
    expected = [Tenant(nf, Workload(nf, TRAFFIC), Sla(max_drop=0.3)) for nf in SOLO]
    return Engine(Fleet(KINDS), oracles, feedback=feedback, expected=expected)


def measured(nic: Nic, draw: Random) -> Measure:
    """Readings around what the NFs reach alone."""
    kpps = {one.id: SOLO[one.workload.nf] * draw.uniform(0.6, 1.05) for one in nic.tenants}
    return Measure(nic.id, 1.0, tuple(MeasuredInstance(one, value, 1e4) for one, value in kpps.items()))


def next_event(engine: Engine, number: int, draw: Random) -> FleetEvent:
    """Something that happens."""
    nics = list(engine.fleet.nics.values())
    kind = draw.random()
    if nics and kind < 0.3:
        return measured(draw.choice(nics), draw)
    if nics and kind < 0.5:
        return Depart(draw.choice(draw.choice(nics).tenants).id)
    nf = draw.choice("abc")
    drop = round(draw.uniform(0.05, 0.3), 2)
    sla = Sla(max_drop=drop) if draw.random() < 0.7 else Sla(min_kpps=SOLO[nf] * (1.0 - drop))
    return Arrive(Tenant(str(number), Workload(nf, TRAFFIC), sla))


@pytest.mark.parametrize("seed", range(8))
def test_decisions_are_those_of_asking_for_everything_anew(seed: int) -> None:
    """Whatever was measured; and every NIC that takes an arrival keeps all SLAs by what was learnt."""
    quick, slow, draw = engine_of(), engine_of(), Random(seed)
    for number in range(150):
        event = next_event(quick, number, draw)
        for index in slow.selector.indexes:
            assert isinstance(index, ClassIndex)
            index._lowered.all = True  # every answer is doubted
        decision = quick.handle(event)
        assert decision.moves == slow.handle(event).moves
        if isinstance(event, Arrive) and decision.nic in quick.fleet.nics:
            nic = quick.fleet.nics[decision.nic]
            assert len(nic.tenants_by_id) == 1 or feasible(nic.kind, quick.oracles[0], [list(nic.tenants)])[0]
