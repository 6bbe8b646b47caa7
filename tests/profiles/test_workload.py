"""Workloads as keys, here and in other processes."""

from __future__ import annotations

import pickle
import subprocess
import sys
from dataclasses import FrozenInstanceError, asdict, replace

import pytest

from profiles import TrafficProfile, Workload

NAT = Workload("NAT", TrafficProfile(1000, 64, 0))


def test_equal_workloads_are_one_key() -> None:
    """Whichever way they were made; another NF or traffic is another key."""
    for same in (Workload("NAT", TrafficProfile(1000.0, 64.0)), pickle.loads(pickle.dumps(NAT)), replace(NAT)):
        assert {NAT: 1}[same] == 1
    assert replace(NAT, nf="ACL") not in {NAT: 1}
    assert replace(NAT, traffic=TrafficProfile(1001, 64, 0)) not in {NAT: 1}


def test_a_workload_of_another_process_is_the_same_key() -> None:
    """Python hashes text differently in every process."""
    code = (
        "import pickle, sys; from profiles import TrafficProfile, Workload;"
        "sys.stdout.buffer.write(pickle.dumps(Workload('NAT', TrafficProfile(1000, 64, 0))))"
    )
    for seed in ("1", "2"):
        made = subprocess.run(
            [sys.executable, "-c", code], env={"PYTHONHASHSEED": seed}, capture_output=True, check=True
        )
        assert {NAT: 1}[pickle.loads(made.stdout)] == 1


def test_a_workload_has_two_fields_and_is_frozen() -> None:
    """The hash is none of them."""
    assert asdict(NAT) == {"nf": "NAT", "traffic": {"flows": 1000, "packet_size": 64, "mtbr": 0}}
    with pytest.raises(FrozenInstanceError):
        NAT.nf = "ACL"  # type: ignore[misc]
    assert not hasattr(NAT, "__dict__")
