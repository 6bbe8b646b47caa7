"""The checkers find what is wrong with plans, with spare NICs and with plans on GPUs, made wrong by hand."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from placer.evaluate.checks import InvalidPlan, check_plan, peak_nics, slas_kept
from placer.evaluate.evaluation import evaluate
from placer.evaluate.spare_checks import Failures, Spare, Takeover, check_spare, spare_faults
from placer.inputs.gpu.admission import DeviceTest
from placer.inputs.gpu.slos import read_device
from placer.model.gpu_oracle import GpuOracle, GpuSchedule
from placer.model.groups import Constraints
from placer.model.nic_kind import NicKind
from placer.model.plan import Placement, Plan
from placer.run import check_gpus, gpu_faults
from placer.strategies import find_strategy
from placer.testing.strategies import CORES_BY_NF, ToyOracle, arrival, catalogue
from profiles import Workload
from profiles.gpu import GpuSettings
from tests.placer.toy_gpu import MixedCatalogue, mixed, promised

NICS = catalogue((2, 1.0), (None, 2.0))
OWN, NEW = NICS.kinds


def plan_of(*placements: Placement) -> Plan:
    """A plan with these placements."""
    return Plan("by hand", None, placements, 0.0)


A, B = arrival("1", 0, "d"), arrival("2", 1, "d", departure=4)


@pytest.mark.parametrize(
    ("plan", "fault"),
    [
        (plan_of(Placement(A, "n", OWN)), "2, in the trace: decided 0 times"),
        (plan_of(Placement(A, "n", OWN), Placement(A, "m", OWN), Placement(B)), "1, in the trace: decided 2 times"),
        (plan_of(Placement(A), Placement(B), Placement(arrival("9", 2, "a"))), "9, not in the trace: decided 1 times"),
        (plan_of(Placement(A, "n", OWN), Placement(B, "n", NEW)), "n: is both toy-0 and toy-1"),
        (plan_of(Placement(A, "n", None), Placement(B)), "arrival 1: a NIC without a kind"),
    ],
)
def test_every_fault_of_a_plan_is_named(plan: Plan, fault: str) -> None:
    """Each constraint's checker names its fault."""
    with pytest.raises(InvalidPlan, match=fault):
        check_plan(plan, [A, B], NICS.kinds)


def test_cores_are_counted_over_time() -> None:
    """Three d need 9 of 8 cores together, but not when the second leaves before the third comes."""
    together = [A, B, arrival("3", 3, "d")]
    with pytest.raises(InvalidPlan, match="n: 9 of 8 cores taken at 3 s"):
        check_plan(plan_of(*(Placement(a, "n", NEW) for a in together)), together, NICS.kinds)
    in_turn = [A, B, arrival("3", 4, "d")]
    check_plan(plan_of(*(Placement(a, "n", NEW) for a in in_turn)), in_turn, NICS.kinds)


def test_any_cores_may_be_chosen_for_an_instance_on_a_gpu() -> None:
    """It would have them on a NIC."""
    asked = promised("1", "a", 100.0, 90.0)
    given = replace(asked, workload=replace(asked.workload, cores=4))
    gpu = mixed().kinds[1]
    check_plan(plan_of(Placement(given, "nic-1", gpu)), [asked], [gpu])


def test_rates_are_added_up_over_time() -> None:
    """Packets of 1,520 bytes on the wire: 500 kpps twice are 12.16 Gb/s."""
    kind = replace(NEW, line_rate_gbps=12.0)
    trace = [replace(one, workload=replace(one.workload, rate_kpps=500.0)) for one in (A, B)]
    with pytest.raises(InvalidPlan, match=r"n: 12.16 of 12 Gb/s offered at 1 s"):
        check_plan(plan_of(*(Placement(one, "n", kind) for one in trace)), trace, [kind])
    check_plan(plan_of(*(Placement(one, one.id, kind) for one in trace)), trace, [kind])


@pytest.mark.parametrize(
    ("asked", "changes", "fault"),
    [
        ({"rate_kpps": 500.0}, {"cores": 4}, None),
        ({"rate_kpps": 500.0}, {"cores": 3}, "1: d cannot have 3 cores on a toy-1"),
        ({"rate_kpps": 500.0, "cores": 2}, {"cores": 4}, "1: has 4 cores in the plan, and they were not to be chosen"),
        ({}, {"cores": 4}, "1: has 4 cores in the plan, and they were not to be chosen"),
        ({"rate_kpps": 500.0}, {"rate_kpps": 400.0}, "1: is another arrival in the plan than in the trace"),
    ],
)
def test_only_cores_may_be_chosen(asked: dict[str, float], changes: dict[str, float], fault: str | None) -> None:
    """Those that the NF may have, of an instance with a rate and without a number of cores."""
    kind = replace(NEW, core_counts={"d": (2, 4)})
    arriving = replace(A, workload=replace(A.workload, **asked))  # type: ignore[arg-type]
    given = replace(arriving, workload=replace(arriving.workload, **changes))  # type: ignore[arg-type]
    plan = plan_of(Placement(given, "n", kind))
    if fault is None:
        check_plan(plan, [arriving], [kind])
        return
    with pytest.raises(InvalidPlan, match=fault):
        check_plan(plan, [arriving], [kind])


def test_counts_are_counted_at_the_peak() -> None:
    """Three NICs of a kind of two are too many at once, and not too many one after another."""
    at_once = [arrival(str(i), i, "a") for i in range(3)]
    with pytest.raises(InvalidPlan, match="toy-0: 3 NICs in use, there are 2"):
        check_plan(plan_of(*(Placement(a, f"n{a.id}", OWN) for a in at_once)), at_once, NICS.kinds)
    in_turn = [arrival(str(i), i, "a", departure=i + 1) for i in range(3)]
    plan = plan_of(*(Placement(a, f"n{a.id}", OWN) for a in in_turn))
    check_plan(plan, in_turn, NICS.kinds)
    assert peak_nics(plan) == 1


def test_a_nic_that_emptied_and_filled_again_counts_when_in_use() -> None:
    """A NIC idle from 1 to 5 s is not in use at 2 s, when another one is."""
    first, again = arrival("1", 0, "a", departure=1), arrival("2", 5, "a")
    other = arrival("3", 2, "a", departure=3)
    plan = plan_of(Placement(first, "n", NEW), Placement(other, "m", NEW), Placement(again, "n", NEW))
    assert peak_nics(plan) == 1


def test_slas_are_checked_in_every_co_location() -> None:
    """c next to one b is within 10 %; the second b, which arrives and leaves, violates it."""
    c = arrival("c", 0, "c", 0.1)
    first, second = arrival("b1", 1, "b", 0.5), arrival("b2", 2, "b", 0.5, departure=3)
    kept = plan_of(*(Placement(a, "n", OWN) for a in (c, first)))
    broken = plan_of(*(Placement(a, "n", OWN) for a in (c, first, second)))
    oracles = (ToyOracle(), ToyOracle())
    assert list(slas_kept(kept, oracles)) == []
    assert list(slas_kept(broken, oracles)) == ["c on n: 320 of 400 kpps at 2 s"]


def test_what_already_runs_must_stay() -> None:
    """Neither moved nor rejected; a named NIC is of the kind with that name."""
    one = arrival("1", 5, "a", nic="n")
    check_plan(plan_of(Placement(one, "n", NEW)), [one], NICS.kinds)
    for placement, where in ((Placement(one, "m", NEW), "m"), (Placement(one), "no NIC")):
        with pytest.raises(InvalidPlan, match=f"1 already runs on n, and is on {where} in the plan"):
            check_plan(plan_of(placement), [one], NICS.kinds)
    named = replace(OWN, names=("n",))
    with pytest.raises(InvalidPlan, match="n: is a toy-0 in the fleet, and another kind of NIC"):
        check_plan(plan_of(Placement(one, "n", NEW)), [one], (named, NEW))


def test_what_already_runs_is_there_from_the_beginning() -> None:
    """Whatever its time: three d take 9 of 8 cores before the first arrival; two NICs are in use at once until 2 s."""
    running = [arrival(str(i), i, "d", nic="n") for i in range(3)]
    with pytest.raises(InvalidPlan, match="n: 9 of 8 cores taken before the first arrival"):
        check_plan(plan_of(*(Placement(a, "n", NEW) for a in running)), running, NICS.kinds)
    late = arrival("late", 7, "a", departure=9, nic="m")
    assert peak_nics(plan_of(Placement(arrival("1", 0, "a", departure=2), "n", NEW), Placement(late, "m", NEW))) == 2


def test_slas_that_were_broken_before_bar_only_arrivals() -> None:
    """c and two b that already run violate the SLA of c, which is no fault of the plan; with one more a it is."""
    trace = [
        arrival("c", 0, "c", 0.1, nic="n"),
        arrival("b1", 0, "b", 0.5, nic="n"),
        arrival("b2", 0, "b", 0.5, nic="n"),
    ]
    oracles = (ToyOracle(), ToyOracle())
    running = [Placement(a, "n", OWN) for a in trace]
    assert list(slas_kept(plan_of(*running), oracles)) == []
    assert evaluate(plan_of(*running), NICS.kinds, oracles).violated == 1
    joined = plan_of(*running, Placement(arrival("a", 3, "a", 0.5), "n", OWN))
    assert list(slas_kept(joined, oracles)) == ["c on n: 304 of 400 kpps at 3 s"]


KINDS = [NicKind(0, "small", 8, CORES_BY_NF, domain="r1"), NicKind(1, "large", 16, CORES_BY_NF, domain="r2")]
SMALL, LARGE = KINDS
ARRIVALS = {
    "a": (arrival("a", 0.0, "d", 0.5), "x"),
    "b": (arrival("b", 1.0, "d", 0.5), "x"),
    "c": (arrival("c", 2.0, "c", 0.02), "y"),
    "d": (arrival("d", 3.0, "c", 0.5, 9.0), "z"),
    "e": (arrival("e", 10.0, "a", 0.5), "y"),
}
KIND_OF = {"x": SMALL, "y": SMALL, "z": LARGE}
MOVES = {"a": ("z", LARGE), "b": ("z", LARGE)}  # where the tenants of x go at 3 s, when it fails


def plan(**values: Mapping[str, str]) -> Plan:
    """Two small NICs and, until 9 s, a large one; `values` are constraints of instances."""
    placements = [
        Placement(replace(one, constraints=Constraints(tuple(values.get(name, {}).items()))), nic, KIND_OF[nic])
        for name, (one, nic) in ARRIVALS.items()
    ]
    return Plan("by hand", None, tuple(placements), 0.0)


def faults(nic_of: Mapping[str, tuple[str, NicKind]], made: Plan | None = None, **more: object) -> list[str]:
    """What is wrong when x fails at 3 s, while one large and one small NIC are spare."""
    spare = Spare(Failures(1), (SMALL, LARGE))
    takeover = replace(Takeover(3.0, ("x",), nic_of), **more)
    return list(spare_faults(made or plan(), KINDS, spare, [takeover], [ToyOracle(), ToyOracle()]))


def test_a_replayed_failure_has_no_fault() -> None:
    assert faults(MOVES) == []
    assert faults({"a": ("new", SMALL), "b": ("new", SMALL)}) == []


@pytest.mark.parametrize(
    ("nic_of", "fault"),
    [
        ({"a": ("z", LARGE)}, "b: has no NIC when x fail at 3 s"),
        ({**MOVES, "c": ("z", LARGE)}, "c: moves when x fail at 3 s"),
        ({**MOVES, "b": ("x", SMALL)}, "b: goes to x, which failed, when x fail at 3 s"),
        ({**MOVES, "b": ("y", LARGE)}, "y: is both small and large when x fail at 3 s"),
        ({"a": ("y", SMALL), "b": ("y", SMALL)}, "c on y: 352 of 400 kpps at 0 s when x fail at 3 s"),
        (
            {"a": ("new", SMALL), "b": ("another", SMALL)},
            "4 NICs of kind 0 are in use or failed, there are 3, when x fail at 3 s",
        ),
    ],
)
def test_each_wrong_place_is_found(nic_of: Mapping[str, tuple[str, NicKind]], fault: str) -> None:
    assert fault in faults(nic_of)


def test_more_cores_than_a_nic_has_are_found() -> None:
    """Two d take six of the eight cores, and c and e three."""
    late = Takeover(10.0, ("x",), {"a": ("y", SMALL), "b": ("y", SMALL)})
    found = list(spare_faults(plan(), KINDS, Spare(Failures(1), (SMALL, LARGE)), [late]))
    assert found == ["y: 9 of 8 cores taken at 0 s when x fail at 10 s"]


def test_groups_hold_after_a_failure() -> None:
    """Those that were apart do not meet; those that are together on an empty NIC are as they were."""
    spread = plan(a={"spread": "g"}, d={"spread": "g"})
    assert faults(MOVES, spread) == ["d and a of group 'g' (spread) are both on z when x fail at 3 s"]
    together = plan(a={"together": "g"}, b={"together": "g"})
    assert any("(together)" in fault for fault in faults({**MOVES, "b": ("new", LARGE)}, together))
    assert faults({"a": ("new", SMALL), "b": ("new", SMALL)}, together) == []


def test_a_domain_fails_with_all_its_nics() -> None:
    """Nothing goes there, and what was in use there is among what failed."""
    both = {**MOVES, "c": ("new", LARGE)}
    domain = {"domains": ("r1",)}
    assert faults(both, failed=("x", "y"), **domain) == []
    assert faults(MOVES, **domain) == ["x, y: are in use in the domains that fail, when x fail at 3 s"]
    assert "c: goes to new, which failed, when x, y fail at 3 s" in faults(
        {**MOVES, "c": ("new", SMALL)}, failed=("x", "y"), **domain
    )


def test_empty_nics_that_fail_are_not_there() -> None:
    moves = {"a": ("new", SMALL), "b": ("new", SMALL)}
    assert faults(moves, empty={0: 1}) == ["4 NICs of kind 0 are in use or failed, there are 3, when x fail at 3 s"]


def test_every_nic_has_a_place_at_each_moment_with_most_tenants() -> None:
    """Without spare NICs, x and y need one before d leaves and at the end, z while it is there."""
    found = list(spare_faults(plan(), KINDS, Spare(Failures(1), ()), []))
    assert found == [
        f"{nic}: no place is known for its tenants when it fails at {time} s"
        for time, nics in ((3, "xyz"), (10, "xy"))
        for nic in nics
    ]
    only = [Takeover(3.0, ("x",), MOVES)]
    with pytest.raises(InvalidPlan, match="y: no place is known for its tenants when it fails at 3 s"):
        check_spare(plan(), KINDS, Spare(Failures(1), (LARGE,)), only)
    assert list(spare_faults(plan(), KINDS, Spare(Failures(1), (SMALL, LARGE)), [])) == []
    other = replace(only[0], time=2.0)
    assert "at 2 s no instances are about to leave" in list(
        spare_faults(plan(), KINDS, Spare(Failures(1), (SMALL, LARGE)), [other])
    )


DEVICE = read_device(Path(__file__).parents[3] / "examples" / "gpu.json")
TRACE = [promised("1", "ACL", 600.0, 300.0), promised("2", "NIDS", 300.0, 500.0), promised("3", "ACL", 900.0, 200.0)]


def gpus(test: DeviceTest) -> MixedCatalogue:
    """GPUs of the example that have this test, and toy NICs."""
    fleet = mixed()
    kind = NicKind(
        1, "titan-xp", 22, dict.fromkeys(DEVICE.nfs, 1), latency_of={"p99": frozenset(DEVICE.nfs)}, paced=True
    )
    return replace(fleet, kinds=(fleet.kinds[0], kind), gpus={1: GpuOracle(test)})


def test_plans_of_strategies_break_nothing() -> None:
    """Each state of the GPU is checked: alone, with the second NF, with the third."""
    catalogue = gpus(DeviceTest(DEVICE))
    plan = find_strategy("contention-aware").build(catalogue, "toy").place(TRACE)
    assert len({placement.nic for placement in plan.placements}) == 1
    assert list(gpu_faults(plan, catalogue)) == []


class LateTest(DeviceTest):
    """Admits everything, in batches that take too long to fill."""

    def schedule(self, workloads: Sequence[Workload]) -> GpuSchedule:
        found = super().schedule(workloads)
        late = [replace(one, settings=GpuSettings.of([(at, 1000)], order=at)) for at, one in enumerate(found.workloads)]
        return GpuSchedule(tuple(late))


def test_a_late_batch_is_found() -> None:
    """The fault names the NIC, and says what the latency is."""
    catalogue = gpus(LateTest(DEVICE))
    plan = Plan("mine", None, (Placement(TRACE[0], "nic-1", catalogue.kinds[1]),), 0.0)
    with pytest.raises(InvalidPlan, match=r"nic-1: admitted: 0: its latency is 1[0-9]{3}.* us"):
        check_gpus(plan, catalogue)


def test_what_the_admission_test_rejects_is_found() -> None:
    """600 kpps within 20 us are not served by any GPU."""
    catalogue = gpus(DeviceTest(DEVICE))
    plan = Plan("mine", None, (Placement(promised("x", "IPSec", 600.0, 20.0), "nic-1", catalogue.kinds[1]),), 0.0)
    assert list(gpu_faults(plan, catalogue)) == ["nic-1: IPSec is rejected: batching"]
