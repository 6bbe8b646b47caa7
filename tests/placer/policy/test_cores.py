"""How many cores an instance with a rate is tried on first: beside usual neighbours, not alone."""

from collections.abc import Sequence

from placer.evaluate.checks import check_plan, peak_nics, slas_kept
from placer.model.arrival import Arrival
from placer.model.catalogue import Catalogue
from placer.model.gpu_oracle import GpuOracle
from placer.model.nic_kind import NicKind
from placer.model.oracle import Oracle
from placer.model.sla import Sla
from placer.optimal.trace_optimum import find_optimum
from placer.policy.cores import UsualNeighbours, order_choices
from placer.strategies.contention_aware import ContentionAware
from placer.testing.strategies import TOY_TRAFFIC
from profiles import CoLocation, Workload
from tests.placer.optimal.instances import WithoutModels
from tests.placer.toy_gpu import ToyAdmission

COUNTS = {"tough": (1, 2, 4), "tender": (1, 2, 4)}
KIND = NicKind(0, "toy", 8, dict.fromkeys(COUNTS, 2), core_counts=COUNTS)


class OneIsTender(Oracle):
    """Each core carries 100 kpps; a tender NF loses 6 % of that by each neighbour, a tough one nothing."""

    def _query(self, co_locations: Sequence[CoLocation]) -> Sequence[Sequence[float]]:
        return [
            [
                100.0 * (workload.cores or 2) * (1.0 - 0.06 * (len(together) - 1) * (workload.nf == "tender"))
                for workload in together
            ]
            for together in co_locations
        ]


def _workload(nf: str, kpps: float, cores: int = 0) -> Workload:
    return Workload(nf, TOY_TRAFFIC, kpps, cores=cores)


def _cores_tried(nf: str, kpps: float, neighbours: UsualNeighbours | None) -> list[int]:
    choices = order_choices([KIND], [OneIsTender()], _workload(nf, kpps), 1.0, neighbours)
    return [choice.cores for choice in choices]


def test_what_loses_much_beside_others_gets_more_cores_first() -> None:
    """Alone 85 kpps take one core; among eight on a NIC a tender NF carries 58 there, and 64 and more on two cores."""
    usual = UsualNeighbours()
    for _ in range(20):
        usual.add(_workload("tough", 50.0, 1))
    for nf, first in (("tough", 1), ("tender", 2)):
        assert _cores_tried(nf, 85.0, None) == [1, 2, 4]
        assert _cores_tried(nf, 85.0, usual)[0] == first
    assert _cores_tried("tender", 150.0, usual) == [4, 2, 1]


def test_before_many_have_come_an_nf_must_carry_a_tenth_more() -> None:
    assert _cores_tried("tender", 85.0, UsualNeighbours()) == [1, 2, 4]
    assert _cores_tried("tender", 95.0, UsualNeighbours()) == [2, 4, 1]


def test_the_neighbours_are_those_that_came_last() -> None:
    """They are looked at anew when twice as many have come: first each fills half a NIC, then an eighth."""
    usual = UsualNeighbours()
    for _ in range(16):
        usual.add(_workload("tough", 350.0, 4))
    assert _cores_tried("tender", 85.0, usual)[0] == 1
    for _ in range(300):
        usual.add(_workload("tough", 50.0, 1))
    assert _cores_tried("tender", 85.0, usual)[0] == 2


def test_nics_get_full_where_tender_instances_have_cores_to_spare() -> None:
    """80 tender instances of 85 kpps, and 80 tough ones: on one core each, a NIC takes three beside a tender one."""
    arrivals = [
        Arrival(str(at), float(at), _workload(("tender", "tough")[at % 2], 85.0), Sla(max_drop=0.0))
        for at in range(160)
    ]
    oracle = OneIsTender()
    plan = ContentionAware(WithoutModels([KIND]), oracles=[oracle]).place(arrivals)
    check_plan(plan, arrivals, [KIND])
    assert not any(slas_kept(plan, [oracle]))
    assert peak_nics(plan) <= 33


def test_cores_are_chosen_in_the_optimum_of_a_fleet_that_has_gpus_too() -> None:
    """Four light instances share a NIC on a core each; on the default of four they would take two NICs."""
    gpus = GpuOracle(ToyAdmission())
    kinds = (
        NicKind(0, "toy", 8, {"tough": 4}, core_counts={"tough": (1, 2, 4)}),
        NicKind(1, "gpu", 4, {"a": 1}, cost=9.0, paced=True),
    )
    arrivals = [Arrival(str(at), float(at), _workload("tough", 50.0), Sla(max_drop=0.0)) for at in range(4)]
    found = find_optimum(arrivals, Catalogue(kinds, (), (), gpus={1: gpus}), [OneIsTender(), gpus], time_limit=20)
    check_plan(found.plan, arrivals, kinds)
    assert (found.nics, found.lower_bound, found.proven) == (1, 1, True)
