"""What an explanation says of a class of NICs is what an independent checker finds of every NIC in it."""

from __future__ import annotations

from hypothesis import given, settings

from placer.explain.candidates import explain
from placer.model.arrival import Arrival
from placer.model.catalogue import Catalogue
from placer.model.fleet import Tenant
from placer.policy.rules import LOOK_AHEAD
from tests.placer.online.audit import Auditor
from tests.properties.test_plans import FLEETS, traces
from placer.testing.toy import ToyOracle


@settings(deadline=None)
@given(traces(), FLEETS)
def test_verdicts_agree_with_the_checker(trace: list[Arrival], nics: Catalogue) -> None:
    """Fits, breaks, cores and choice, of every NIC in use at every arrival, and every NIC is in one class."""
    checker = Auditor(nics.kinds, [ToyOracle() for _ in nics.kinds])
    homes: dict[str, tuple[str, Arrival]] = {}
    for told in explain(trace, nics.kinds, [ToyOracle() for _ in nics.kinds], LOOK_AHEAD, None):
        arriving = told.arrival
        here: dict[str, list[Tenant]] = {}
        for home, arrival in homes.values():
            if arrival.departure is None or arrival.departure > arriving.time:
                here.setdefault(home, []).append(arrival.tenant)
        assert sorted(nic for verdict in told.verdicts for nic in verdict.nics) == sorted(here)
        for verdict in told.verdicts:
            for nic in verdict.nics:
                everybody = [*here[nic], arriving.tenant]
                assert checker.fits(verdict.kind.index, everybody) is verdict.fits
                cores = verdict.kind.cores_taken(tenant.workload for tenant in everybody)
                assert (verdict.cause == "cores") is (cores > verdict.kind.cores)
                if verdict.breaks is not None:
                    below = checker.violating(verdict.kind.index, everybody)
                    assert verdict.breaks in {one.workload for one in everybody if one.id in below}
            if not verdict.nics and verdict.cause != "none left":
                assert checker.fits(verdict.kind.index, [arriving.tenant]) is verdict.fits
        chosen = [verdict for verdict in told.verdicts if verdict.chosen]
        assert len(chosen) == (told.nic is not None)
        assert all(verdict.fits and (told.nic in verdict.nics or not verdict.nics) for verdict in chosen)
        if told.nic is not None:
            homes[arriving.id] = told.nic, arriving
