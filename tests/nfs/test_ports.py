"""Ports of a card that the host testbed's program is given."""

import subprocess
from pathlib import Path

import pytest

from tests.nfs.testbed_program import run_to_end


@pytest.mark.parametrize(
    ("given", "fault"),
    [
        (["03:00"], "03:00 is not a PCI address, such as 0000:03:00.0"),  # no function
        (["eth0"], "eth0 is not a PCI address"),  # a name of the kernel
        (["03:00.0,dv_flow_en"], "03:00.0,dv_flow_en: devargs are key=value"),  # devargs without a value
        (["03:00.0"], "03:00.0 is only the inside port, the outside port is missing"),
        (["03:00.0", "03:00.1", "03:00.2"], "03:00.2 is one too many"),
        (["03:00.1", "03:00.0"], "must have a lower address"),  # DPDK would exchange them
        (["03:00.0", "0000:03:00.0"], "must have a lower address"),  # the same port
        (["03:00.0,dv_flow_en=2", "03:00.1"], "built without DOCA Flow"),
    ],
)
def test_wrong_ports_are_refused(either: Path, given: list[str], fault: str) -> None:
    """With what is wrong and a hint; exit status 2."""
    if fault == "built without DOCA Flow" and with_doca_flow():
        pytest.skip("this machine has DOCA Flow: ports can be used")
    done = run_to_end(either, *(f"--port={port}" for port in given))
    assert (done.returncode, done.stdout) == (2, "")
    message, hint = done.stderr.splitlines()
    assert message.startswith("nf-testbed: --port: ") and fault in message
    assert hint.startswith("hint: ")


def with_doca_flow() -> bool:
    """Whether the build finds DOCA Flow."""
    return subprocess.run(["pkg-config", "--exists", "doca-flow"], check=False).returncode == 0
