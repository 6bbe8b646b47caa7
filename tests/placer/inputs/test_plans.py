"""Plan files: which NIC each instance of a trace gets, and what is refused."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from placer.inputs.plans import read_plan
from placer.model.arrival import Arrival
from placer.model.fleet import Fleet
from placer.model.nic_kind import NicKind
from placer.model.plan import Plan
from placer.testing.strategies import CORES_BY_NF, TOY_TRAFFIC, arrival, catalogue
from profiles import InputError, Workload
from tests.placer.fleet.loaded_oracle import loaded_kind
from tests.placer.toy_gpu import mixed

TRACE = [arrival("1", 0, "d"), arrival("2", 5, "d"), arrival("3", 9, "c")]
HEADER = "strategy,predictor,id,nic,nic_model,time,predicted_kpps\n"
PLANNED = "planned,toy,1,nic-4,toy-0,0,800\nplanned,toy,2,nic-4,toy-0,5,800\nplanned,toy,3,,,9,\n"
GREEDY = "greedy,,1,nic-2,toy-0,0,\ngreedy,,2,nic-3,toy-0,5,\ngreedy,,3,nic-3,toy-0,9,\n"


def read(
    folder: Path,
    rows: str,
    strategy: str | None = None,
    *,
    predictor: str = "toy",
    fleet: Fleet | None = None,
    trace: Sequence[Arrival] = TRACE,
    header: str = HEADER,
) -> Plan:
    """The plan in these rows; by default for NICs without limit."""
    path = folder / "plan.csv"
    path.write_text(header + rows, encoding="utf-8")
    return read_plan(str(path), strategy, predictor, "trace.csv", trace, fleet or Fleet(catalogue().kinds))


def refusal(folder: Path, rows: str, **options: object) -> list[str]:
    """The faults of these rows, without the folder and without hints."""
    with pytest.raises(InputError) as refused:
        read(folder, rows, **options)  # type: ignore[arg-type]
    lines = str(refused.value).replace(f"{folder}/", "").splitlines()
    return [line for line in lines if not line.startswith("hint: ")]


def nics(plan: Plan) -> list[str | None]:
    """The NIC of each instance, in the order of the trace."""
    return [placement.nic for placement in plan.placements]


def test_spare_nics_have_rows_of_their_own(tmp_path: Path) -> None:
    """They count as NICs of the fleet, and no instance is on one."""
    header, spare = HEADER.replace("\n", ",reason\n"), "planned,toy,,nic-9,toy-0,,,spare\n"
    rows = PLANNED.replace("\n", ",\n")
    assert nics(read(tmp_path, rows + spare, header=header)) == ["nic-4", "nic-4", None]
    one = Fleet([NicKind(0, "toy-0", 8, CORES_BY_NF, 1)])
    assert refusal(tmp_path, rows + spare, header=header, fleet=one) == [
        "plan.csv:5: nic: no toy-0 is left for 'nic-9': the fleet has 1"
    ]
    taken = spare.replace("nic-9", "nic-4")
    assert refusal(tmp_path, rows + taken, header=header) == ["plan.csv:5: nic: 'nic-4' is spare, and on line 2, too"]
    assert refusal(tmp_path, taken + rows, header=header) == [
        "plan.csv:3: nic: 'nic-4' is a spare NIC on line 2", "plan.csv:4: nic: 'nic-4' is a spare NIC on line 2",
    ]  # fmt: skip
    assert refusal(tmp_path, rows + "planned,toy,,,toy-0,,,spare\n", header=header) == ["plan.csv:5: nic: is empty"]


def named_fleet() -> Fleet:
    """Two toy-0 with 7 cores; toy-1 without limit; and slot-1, a toy-1 that has the number 1."""
    fleet = Fleet([NicKind(0, "toy-0", 7, CORES_BY_NF, 2), NicKind(1, "toy-1", 8, CORES_BY_NF)])
    fleet.join(fleet.kinds[1], "slot-1")
    return fleet


@pytest.mark.parametrize(
    ("rows", "strategy", "predictor", "expected"),
    [
        (GREEDY, None, "toy", ["nic-2", "nic-3", "nic-3"]),  # the only one
        (GREEDY + PLANNED, None, "toy", ["nic-4", "nic-4", None]),  # planned, which rejects 3
        (GREEDY + PLANNED, "greedy", "toy", ["nic-2", "nic-3", "nic-3"]),  # named
        (PLANNED + PLANNED.replace("toy,", "x,").replace("nic-4", "nic-7"), None, "x", ["nic-7", "nic-7", None]),
        (PLANNED, None, "x", ["nic-4", "nic-4", None]),  # one predictor: there is no choice
    ],
)
def test_the_plan_that_is_wanted_is_read(
    tmp_path: Path, rows: str, strategy: str | None, predictor: str, expected: list[str | None]
) -> None:
    """By strategy and, where it has several plans, by predictor; instances are in the order of the trace."""
    plan = read(tmp_path, rows, strategy, predictor=predictor)
    assert nics(plan) == expected and [placement.arrival for placement in plan.placements] == TRACE


@pytest.mark.parametrize(
    ("rows", "strategy", "message"),
    [
        (GREEDY + PLANNED.replace("planned", "b"), None,
            r"plan.csv: has the plans of several strategies: greedy, b\nhint: name one: --plan-strategy NAME"),
        (GREEDY, "b", r"--plan-strategy: .*plan.csv has no plan of 'b'\nhint: it has those of greedy"),
        (PLANNED.replace("toy,", "x,") + PLANNED.replace("toy,", "y,"), None,
            r"plan.csv: has plans of 'planned' by x, y, and none by toy\nhint: name one of them: --predictor NAME"),
    ],
)  # fmt: skip
def test_a_choice_that_is_left_open_is_refused_with_the_names(
    tmp_path: Path, rows: str, strategy: str | None, message: str
) -> None:
    """Of strategies and of predictors."""
    with pytest.raises(InputError, match=message):
        read(tmp_path, rows, strategy)


@pytest.mark.parametrize(
    ("old", "new", "faults"),
    [
        ("greedy,,3,", "greedy,,,", ["plan.csv:4: id: is empty", "plan.csv: id: '3' of trace.csv is missing"]),
        ("greedy,,3,", "greedy,,2,", ["plan.csv:4: id: '2' is already on line 3",
            "plan.csv: id: '3' of trace.csv is missing"]),
        ("greedy,,3,", "greedy,,9,", ["plan.csv:4: id: '9' is not in trace.csv",
            "plan.csv: id: '3' of trace.csv is missing"]),
        ("nic-2,toy-0", "nic-2,", ["plan.csv:2: nic_model: is empty"]),
        ("nic-2,toy-0", ",toy-0", ["plan.csv:2: nic: is empty"]),
        ("nic-2,toy-0", "nic-2,x", ["plan.csv:2: nic_model: 'x' is not a NIC model of the fleet"]),
        ("nic-3,toy-0,9", "nic-3,toy-1,9", ["plan.csv:4: nic_model: 'nic-3' is a toy-0 on line 3"]),
        ("nic-2", "rack-1", ["plan.csv:2: nic: 'rack-1' is not a NIC of the fleet"]),
        ("nic-2", "nic-02", ["plan.csv:2: nic: 'nic-02' is not a NIC of the fleet"]),  # would be nic-2 after a restart
        ("nic-2", "nic-0", ["plan.csv:2: nic: 'nic-0' is not a NIC of the fleet"]),  # they begin with 1
        ("nic-2", "nic-1", ["plan.csv:2: nic: 'nic-1' is called 'slot-1' in the fleet"]),  # by its number
        ("nic-2", "slot-1", ["plan.csv:2: nic_model: 'slot-1' is a toy-1 in the fleet"]),
        ("nic-3", "nic-2", ["plan.csv:2: nic: the instances of 'nic-2' take 8 cores, and a toy-0 has 7"]),
        ("nic-3,toy-0,9", "nic-4,toy-0,9", ["plan.csv:4: nic: no toy-0 is left for 'nic-4': the fleet has 2"]),
        ("greedy,,1,nic-2,toy-0,0,\ngreedy,,2,nic-3", "greedy,,1,nic-2,toy-0,0\ngreedy,,2,x",
            ["plan.csv:2: has 6 values, the header has 7", "plan.csv:3: nic: 'x' is not a NIC of the fleet",
            "plan.csv: id: '1' of trace.csv is missing"]),
    ],
)  # fmt: skip
def test_a_plan_that_does_not_fit_trace_and_fleet_is_refused_with_every_fault(
    tmp_path: Path, old: str, new: str, faults: list[str]
) -> None:
    """The plan of three instances on two NICs is taken; each change makes it wrong."""
    assert nics(read(tmp_path, GREEDY, fleet=named_fleet())) == ["nic-2", "nic-3", "nic-3"] and old in GREEDY
    assert refusal(tmp_path, GREEDY.replace(old, new), fleet=named_fleet()) == faults


def test_a_file_without_the_columns_of_a_plan_is_refused(tmp_path: Path) -> None:
    """As a trace is."""
    (tmp_path / "plan.csv").write_text("id,nic,nic_model,time\n1,nic-1,toy-0,0\n")
    with pytest.raises(InputError) as refused:
        read_plan(str(tmp_path / "plan.csv"), None, "toy", "trace.csv", TRACE, named_fleet())
    assert [fault.column for fault in refused.value.faults] == ["strategy", "predictor"]


def test_an_nf_that_a_model_does_not_run_is_refused(tmp_path: Path) -> None:
    """This toy-0 knows no `c`."""
    fleet = Fleet([NicKind(0, "toy-0", 8, {"d": 3})])
    assert refusal(tmp_path, GREEDY, fleet=fleet) == ["plan.csv:3: nic: 'nic-3': c does not run on a toy-0"]


def test_a_name_of_the_fleet_is_a_nic_of_the_plan(tmp_path: Path) -> None:
    """slot-1 is a toy-1, and counts as none of the two toy-0."""
    plan = read(tmp_path, GREEDY.replace("nic-3,toy-0", "slot-1,toy-1"), fleet=named_fleet())
    assert [(placement.nic, placement.kind and placement.kind.index) for placement in plan.placements] == [
        ("nic-2", 0),
        ("slot-1", 1),
        ("slot-1", 1),
    ]


def test_nics_of_a_model_with_several_kinds_are_of_the_cheapest_that_has_the_cores(tmp_path: Path) -> None:
    """nic-9 needs 6 cores and gets the only large NIC, though nic-2 is first and the large one is the cheapest."""
    kinds = [NicKind(0, "toy-0", 4, CORES_BY_NF, None, 2.0), NicKind(1, "toy-0", 8, CORES_BY_NF, 1, 1.0)]
    rows = "".join(f"p,,{row},toy-0,,\n" for row in ("1,nic-2", "2,nic-9", "3,nic-3", "4,nic-9"))
    plan = read(tmp_path, rows, fleet=Fleet(kinds), trace=[*TRACE, arrival("4", 9, "d")])
    assert [placement.kind and placement.kind.index for placement in plan.placements] == [0, 1, 0, 1]


def test_a_trace_that_no_fleet_can_begin_with_is_refused(tmp_path: Path) -> None:
    """Instances that are gone at some time."""
    trace = [*TRACE[:2], arrival("3", 9, "c", departure=20.0)]
    faults = ["trace.csv: departure: 1 of 3 instances depart, the first of them is '3'"]
    assert refusal(tmp_path, GREEDY, trace=trace) == faults


CORES_HEADER = HEADER.replace("time,predicted_kpps", "cores")


def sized(model: str, cores: str) -> str:
    """The plan of an instance with the id 1, which is given these cores on a NIC of this model."""
    return f"p,,1,nic-1,{model},{cores}\n"


def offered(cores: int = 0) -> list[Arrival]:
    """An instance at a rate, whose NF may have 1, 2 or 4 cores."""
    return [replace(arrival("1", 0, "a"), workload=Workload("a", TOY_TRAFFIC, 10.0, cores=cores))]


@pytest.mark.parametrize(
    ("cores", "given", "expected"), [("4", 0, 4), ("1", 0, 1), ("", 0, 0), ("2", 2, 2), ("", 2, 2)]
)
def test_an_instance_with_a_rate_has_the_cores_of_the_plan(
    tmp_path: Path, cores: str, given: int, expected: int
) -> None:
    """Those of the trace, where it gives them; of a plan without cores they are chosen later."""
    fleet = Fleet([loaded_kind()])
    (found,) = read(
        tmp_path, sized("loaded-0", cores), fleet=fleet, trace=offered(given), header=CORES_HEADER
    ).placements
    assert found.arrival.workload.cores == expected


def test_a_worker_of_a_gpu_is_no_number_of_cores(tmp_path: Path) -> None:
    """What the instance has on a NIC, should it move there, is chosen then."""
    fleet = Fleet(mixed().kinds)
    (found,) = read(tmp_path, sized("toy-gpu", "1"), fleet=fleet, trace=offered(), header=CORES_HEADER).placements
    assert (found.kind, found.arrival.workload.cores) == (fleet.kinds[1], 0)


@pytest.mark.parametrize(
    ("model", "cores", "given", "fault"),
    [
        ("loaded-0", "3", 0, "'1' of trace.csv may have 1 or 2 or 4, not 3"),
        ("loaded-0", "4", 2, "'1' of trace.csv may have 2, not 4"),
        ("loaded-0", "x", 0, "'x' is not a number of cores"),
        ("toy-gpu", "2", 0, "'1' of trace.csv may have 1, not 2"),
    ],
)
def test_cores_that_an_instance_cannot_have_are_refused(
    tmp_path: Path, model: str, cores: str, given: int, fault: str
) -> None:
    """With the numbers that it can have there."""
    fleet = Fleet([loaded_kind(), replace(mixed().kinds[1], index=1)])
    rows = sized(model, cores)
    assert refusal(tmp_path, rows, fleet=fleet, trace=offered(given), header=CORES_HEADER) == [
        f"plan.csv:2: cores: {fault}"
    ]
