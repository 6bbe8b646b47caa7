"""NICs for instances with a rate: their SLA is relative to it, and the port bounds the sum of the rates."""

from dataclasses import replace

import pytest

from placer.model.fleet import Fleet
from placer.model.nic import Nic, Tenant
from placer.model.sla import Sla
from placer.policy.selector import Selector
from placer.testing.strategies import TOY_TRAFFIC
from profiles import Workload
from tests.placer.fleet.loaded_oracle import LoadedOracle, loaded_kind

RATED = Workload("b", TOY_TRAFFIC, 60.0, cores=1)


def place(line_rate_gbps: float, count: int, *, stand_ins: bool) -> list[int]:
    """How many of so many equal instances are on each NIC."""
    fleet = Fleet([replace(loaded_kind(), line_rate_gbps=line_rate_gbps)])
    selector = Selector(fleet, [LoadedOracle()], stand_ins=stand_ins)
    for number in range(count):
        tenant = Tenant(f"{number}", RATED, Sla(max_drop=0.0))
        selector.observe(tenant)
        choice = selector.choose(tenant)
        assert choice is not None
        fleet.place(tenant, choice if isinstance(choice, Nic) else fleet.open(choice))
    return [len(nic.tenants) for nic in fleet.nics.values()]


@pytest.mark.parametrize("stand_ins", [False, True])
@pytest.mark.parametrize(("line_rate", "on_nics"), [(3.0, [4, 4]), (100.0, [8])])
def test_instances_share_a_nic_while_their_rates_are_carried(line_rate, on_nics, stand_ins) -> None:  # type: ignore[no-untyped-def]
    """Four rates of 60 kpps are 2.9 of 3 Gb/s; beside seven others a core carries 79 kpps, and 60 are needed."""
    assert place(line_rate, 8, stand_ins=stand_ins) == on_nics


def test_plain_instances_are_predicted_in_advance_again_once_no_other_is_there() -> None:
    """Until then NICs are sampled; a table holds no load of its own."""
    fleet = Fleet([loaded_kind()])
    selector = Selector(fleet, [LoadedOracle()], stand_ins=True)
    plain = Workload("b", TOY_TRAFFIC)
    nic = fleet.open(fleet.kinds[0])
    fleet.place(Tenant("rated", RATED, Sla(max_drop=0.0)), nic)
    sampled = type(selector.indexes[0])
    for number in range(600):
        tenant = Tenant(f"{number}", plain, Sla(max_drop=0.9))
        selector.observe(tenant)
        choice = selector.choose(tenant)
        assert choice is not None
        assert number >= 300 or type(selector.indexes[0]) is sampled
        fleet.place(tenant, choice if isinstance(choice, Nic) else fleet.open(choice))
        selector.advance()
        if number == 300:
            fleet.remove("rated")
    assert type(selector.indexes[0]) is not sampled
