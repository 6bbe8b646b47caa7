"""What a testbed reports of itself."""

import pytest
from pydantic import ValidationError

from profiles import NfDescription, NicModel
from tests.profiler.gpu_loads import gpu_description
from tests.profiler.toy_testbed import description


def test_what_a_testbed_does_not_describe_is_not_written() -> None:
    """Journals and profiles of testbeds without chains, clocks and parameters stay as they were."""
    written = description().model_dump(mode="json")
    assert "chains" not in written and written["nfs"] == [{"name": "counter", "cores": 2, "accelerators": []}]
    assert set(written["nic"]) == {"model", "cores", "llc_bytes", "accelerators"}


def test_what_a_testbed_describes_is_read_again() -> None:
    """Kind and clock of a server, parameters and copies of an NF; false is not the same as not described."""
    nic = NicModel(model="m", cores=1, kind="server", clock_mhz=1700, line_rate_gbps=100)
    ranges = {"parameters": {"rules": (1, 9)}, "default_parameters": {"rules": 2}}
    nf = NfDescription.model_validate({"name": "a", "cores": 1, "core_counts": [1, 2], "replicable": False} | ranges)
    server = description(chains=True, nic=nic, nfs=[nf])
    assert type(server).model_validate(server.model_dump(mode="json")) == server
    assert nf.model_dump(mode="json")["replicable"] is False


def test_a_clock_that_is_measured_again_is_the_same() -> None:
    """A program that measures its clock at each start describes the same testbed, so that a profiling resumes."""
    one, other = (NicModel(model="m", cores=1, clock_mhz=mhz) for mhz in (2499.9979139501397, 2499.9981151617272))
    assert one == other and one.clock_mhz == 2500
    assert NicModel(model="m", cores=1, clock_mhz=2596.4).clock_mhz == 2596


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"cores": 2, "core_counts": [1, 4]}, "core_counts lacks 2, the default"),
        ({"core_counts": [1, 4, 4]}, "core_counts has a number twice"),
        ({"default_parameters": {"rules": 2}}, "rules has no range in parameters"),
        (
            {"parameters": {"rules": (1, 9)}, "default_parameters": {"rules": 10}},
            r"rules 10 is not inside its range \[1",
        ),
    ],
)
def test_defaults_are_among_what_an_nf_can_be_given(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        NfDescription.model_validate({"name": "a", "cores": 1} | changes)


def test_the_null_nf_is_not_one_of_those_to_profile() -> None:
    """It is only a reference: the source and the sink."""
    both = description(nfs=[{"name": "Null", "cores": 1}, {"name": "counter", "cores": 2}])
    assert [nf.name for nf in both.fitting_nfs] == ["counter"]


def test_a_gpu_is_described_with_its_executors() -> None:
    """What a model of it needs; all of it is read again, and none of it is written for a SmartNIC."""
    gpu = gpu_description(paced=True)
    written = gpu.model_dump(mode="json")
    assert written["nic"]["sms"] == 2 and written["workers"] == 2 and written["nfs"][0]["moves"] == "header"
    assert type(gpu).model_validate(written) == gpu
    assert not {"paced", "workers", "arbitration"} & set(description().model_dump(mode="json"))
    with pytest.raises(ValidationError, match="a gpu needs sms, packets_per_executor"):
        NicModel(model="m", cores=1, kind="gpu", executors_per_sm=4)
