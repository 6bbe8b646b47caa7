"""The checker of spare NICs finds each way in which a place for what fails could be none."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from placer.evaluate.checks import InvalidPlan
from placer.evaluate.spare_checks import Failures, Spare, Takeover, check_spare, spare_faults
from placer.model.fleet import NicKind
from placer.model.groups import Constraints
from placer.model.plan import Placement, Plan
from placer.testing.strategies import CORES_BY_NF, ToyOracle, arrival

KINDS = [
    NicKind(0, "small", 8, CORES_BY_NF, domain="r1"),
    NicKind(1, "large", 16, CORES_BY_NF, domain="r2"),
]
SMALL, LARGE = KINDS
ARRIVALS = {
    "a": (arrival("a", 0.0, "d", 0.5), "x"),
    "b": (arrival("b", 1.0, "d", 0.5), "x"),
    "c": (arrival("c", 2.0, "c", 0.02), "y"),
    "d": (arrival("d", 3.0, "c", 0.5, 9.0), "z"),
    "e": (arrival("e", 10.0, "a", 0.5), "y"),
}
KIND_OF = {"x": SMALL, "y": SMALL, "z": LARGE}
MOVES = {"a": ("z", LARGE), "b": ("z", LARGE)}
"""Where the tenants of x go at 3 s, when it fails."""


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
