"""The models of the GPU's tables and of the transfer gate: right as they are, and wrong without any of their parts."""

import re
from pathlib import Path

import pytest

from tests.nfs.gpu.spin import MODELS, check_model, require_spin

TABLES, GATE = "tables.pml", "gate.pml"
SHORT, LONG = ("TASKS=1",), ("TASKS=2", "WORKERS=1")

NEEDED = {
    "DROP_ACQUIRE_OF_BELL": "invalid end state",  # the bell is heard, and the task that it rang for is not seen
    "DROP_ACQUIRE_OF_STOP": "invalid end state",  # a task that was posted before the stop is left
    "DROP_CHECK_OF_IDLE": "",  # an entry in use is overwritten
    "DROP_COPY_OF_TASK": "fields[",  # a task is read after its last part was handed out: it may be the next one
    "DROP_LEADERSHIP": "",  # two dispatchers hand out the same part
    "DROP_RELEASE_OF_ASSIGNED": "",  # an executor reads an old entry
    "DROP_RELEASE_OF_COUNT": "out[",  # a worker reads before the output of another executor is there
    "DROP_RELEASE_OF_POST": "fields[",  # the dispatcher reads an old task
    "DROP_RING_AFTER_POST": "invalid end state",  # the same
    "DROP_SECOND_LOOK": "invalid end state",  # an executor leaves with a part in its entry
    "DROP_SEQUENCE_NUMBERS": "served",  # a task is handed out again while it is served
    "DROP_UNFINISHED": "invalid end state",  # the rest of a task for which no executor was idle is forgotten
    "DROP_WAIT_FOR_DONE": "",  # a worker overwrites a task that is not served yet
}
NEEDED_LATER = ("DROP_COPY_OF_TASK",)  # errors that show when a worker has a second task
NEEDED_BY_GATE = ("DROP_BUSY", "DROP_GRANT_AT_RELEASE", "DROP_GRANT_AT_REQUEST", "DROP_LOCK")
LIVENESS_ONLY = "DROP_HANDOVER"


@pytest.fixture(autouse=True)
def _require() -> None:
    require_spin()


def test_every_posted_task_is_served_once_and_shutdown_drains(tmp_path: Path) -> None:
    """Two workers and two executors: each part is served once, no entry in use is written, and everything ends."""
    verdict = check_model(TABLES, tmp_path, *SHORT)
    assert verdict.error == ""
    assert verdict.states > 500_000


def test_no_wakeup_is_lost(tmp_path: Path) -> None:
    """In every fair run a worker's second task is served, too."""
    verdict = check_model(TABLES, tmp_path, "WORKERS=1", liveness=True)
    assert verdict.error == ""
    assert verdict.states > 50_000


@pytest.mark.parametrize(("left_out", "error"), NEEDED.items())
def test_without_any_part_of_the_protocol_tasks_go_wrong(left_out: str, error: str, tmp_path: Path) -> None:
    """Spin finds an error in the tables without this check, order or wait."""
    verdict = check_model(TABLES, tmp_path, *(LONG if left_out in NEEDED_LATER else SHORT), left_out)
    assert verdict.error and error in verdict.error


def test_a_leader_that_keeps_its_role_when_it_has_work_stops_everything(tmp_path: Path) -> None:
    """Without the handover there is a fair run in which a task is never served."""
    assert "cycle" in check_model(TABLES, tmp_path, "WORKERS=1", LIVENESS_ONLY, liveness=True).error


def test_transfers_are_one_at_a_time_and_in_order(tmp_path: Path) -> None:
    """Three workers: one transfer at a time, the smallest order that waits is next, also after orders were swapped."""
    assert check_model(GATE, tmp_path).error == ""


def test_every_transfer_is_granted(tmp_path: Path) -> None:
    """In every fair run each request is granted in the end."""
    assert check_model(GATE, tmp_path, liveness=True).error == ""


@pytest.mark.parametrize("left_out", NEEDED_BY_GATE)
def test_without_any_part_of_the_gate_transfers_go_wrong(left_out: str, tmp_path: Path) -> None:
    """Spin finds an error in the gate without this lock, check or grant."""
    assert check_model(GATE, tmp_path, left_out).error


def test_every_mutant_of_the_models_is_tried() -> None:
    """Each name that leaves something out of a model stands in a test."""
    found = {name for model in (TABLES, GATE) for name in re.findall(r"\bDROP_[A-Z_]+\b", (MODELS / model).read_text())}
    assert found - {"DROP_"} == {*NEEDED, *NEEDED_BY_GATE, LIVENESS_ONLY}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("defined", "liveness"),
    [
        (("TASKS=2",), False),
        (("TASKS=3", "PARTS=1"), False),
        (("WORKERS=1", "EXECUTORS=3", "PARTS=3"), False),
        (("TASKS=1",), True),
        (("TASKS=3", "WORKERS=1", "PARTS=2"), True),
    ],
)
def test_larger_tables_are_right(defined: tuple[str, ...], liveness: bool, tmp_path: Path) -> None:
    """More tasks, executors or parts change nothing."""
    verdict = check_model(TABLES, tmp_path, *defined, liveness=liveness, optimized=True)
    print(f"{' '.join(defined)}: {verdict.states} states")
    assert verdict.error == ""
