"""What a profiling refuses before it begins."""

from __future__ import annotations

from pathlib import Path

import pytest

from profiler.profiling import profile
from profiles import InputError, Workload
from profiles.profile import read_profile
from tests.profiler.toy_testbed import ToyTestbed, description


def test_an_nf_that_needs_more_cores_than_the_nic_has_is_left_out(tmp_path: Path) -> None:
    """With a message; requested by name it is refused. No run has it as a neighbour."""
    toy = ToyTestbed(description(nfs=[{"name": "huge", "cores": 7}, {"name": "counter", "cores": 2}]))
    messages: list[str] = []
    written = read_profile(profile(toy, tmp_path / "p", quota=60, notify=messages.append))
    assert list(written.nfs) == ["counter"]
    assert messages == ["huge needs 7 cores, the NIC has 6: left out"]
    assert not any(isinstance(load, Workload) and load.nf == "huge" for loads in toy.requests for load in loads)
    with pytest.raises(InputError, match="--nf: huge needs 7 cores, the NIC has 6"):
        profile(toy, tmp_path / "q", nfs=["huge"], quota=60)


@pytest.mark.parametrize(
    ("nfs", "message"),
    [
        ([], "--testbed: toy has no NFs, so there is nothing to profile"),
        ([{"name": "huge", "cores": 7}], "--testbed: huge needs 7 cores, the NIC has 6"),
    ],
)
def test_a_testbed_without_an_nf_that_fits_is_refused(
    tmp_path: Path, nfs: list[dict[str, object]], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        profile(ToyTestbed(description(nfs=nfs)), tmp_path / "p", quota=60)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"nfs": ["NAT"]}, "--nf: the testbed has no NAT\nhint: one of counter"),  # an NF it does not host
        ({"method": "guess"}, "'guess' is not a profiling method\nhint: one of active, adaptive, full, random"),
        ({"seed": -1}, "--seed: -1 is negative"),  # random generators take none
        ({"quota": 10**9}, "--quota: 1,000,000,000 runs are more than 1,000,000"),  # would take years
        ({"quota": 5}, "--quota: 5 runs are too few for counter\nhint: it needs at least"),  # nothing left to choose
    ],
)
def test_wrong_arguments_are_refused(tmp_path: Path, arguments: dict[str, object], message: str) -> None:
    """Before anything is written."""
    with pytest.raises(InputError) as raised:
        profile(ToyTestbed(), tmp_path / "p", **arguments)  # type: ignore[arg-type]
    assert message in str(raised.value)
    assert not (tmp_path / "p").exists()
