"""The verdict on a class of NICs is what an independent checker finds for every NIC of the class."""

from __future__ import annotations

from hypothesis import given, settings

from placer.explain.candidates import explain
from placer.model.arrival import Arrival
from placer.model.catalogue import Catalogue
from placer.model.fleet import Tenant
from placer.policy.rejection import Cause
from placer.policy.rules import LOOK_AHEAD
from placer.testing.strategies import ToyOracle
from tests.placer.fleet.audit import Auditor
from tests.properties.test_plans import FLEETS, traces


@settings(deadline=None)
@given(traces(), FLEETS)
def test_verdicts_agree_with_the_checker(trace: list[Arrival], nics: Catalogue) -> None:
    """For every NIC in use at every arrival; and every NIC is in exactly one class."""
    checker = Auditor(nics.kinds, [ToyOracle() for _ in nics.kinds])
    homes: dict[str, tuple[str, Arrival]] = {}
    for explanation in explain(trace, nics.kinds, [ToyOracle() for _ in nics.kinds], LOOK_AHEAD, None):
        arriving = explanation.arrival
        here: dict[str, list[Tenant]] = {}
        for home, arrival in homes.values():
            if arrival.departure is None or arrival.departure > arriving.time:
                here.setdefault(home, []).append(arrival.tenant)
        assert sorted(nic for verdict in explanation.verdicts for nic in verdict.nics) == sorted(here)
        for verdict in explanation.verdicts:
            for nic in verdict.nics:
                together = [*here[nic], arriving.tenant]
                assert checker.fits(verdict.kind.index, together) is verdict.fits
                cores = verdict.kind.cores_taken(tenant.workload for tenant in together)
                assert (verdict.cause == Cause.CORES) is (cores > verdict.kind.cores)
                if verdict.violated is not None:
                    below = checker.violating(verdict.kind.index, together)
                    assert verdict.violated in {one.workload for one in together if one.id in below}
            if not verdict.nics and verdict.cause != Cause.NONE_LEFT:
                assert checker.fits(verdict.kind.index, [arriving.tenant]) is verdict.fits
        chosen = [verdict for verdict in explanation.verdicts if verdict.chosen]
        assert len(chosen) == (explanation.nic is not None)
        assert all(verdict.fits and (explanation.nic in verdict.nics or not verdict.nics) for verdict in chosen)
        if explanation.nic is not None:
            homes[arriving.id] = explanation.nic, arriving
