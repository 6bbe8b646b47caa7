"""examples/extend/port_counter.c: one file copied into nfs/functions/ is a complete network function."""

import shutil
from pathlib import Path

from tests.nfs.builds import ROOT, require, run
from tests.nfs.testbed_program import DESCRIBE, responses_to, run_request

PORT_COUNTER = {"kind": "nf", "name": "PortCounter", "traffic": {"flows": 100, "packet_size": 64}}


def test_a_copied_file_is_built_described_and_run(tmp_path: Path) -> None:
    """The copy is built, appears in `describe`, and runs with its parameter, without an edit of any other file."""
    require("cc")
    source, build = tmp_path / "nfs", tmp_path / "build" / "nfs"
    shutil.copytree(ROOT / "nfs", source)
    built = (ROOT / "build" / "nfs" / "build.ninja").exists()
    if built:  # `make nfs` has built the other files
        shutil.copytree(ROOT / "build" / "nfs", build, ignore=shutil.ignore_patterns("test_*", "cycles*"))
    shutil.copy(ROOT / "examples" / "extend" / "port_counter.c", source / "functions")
    run(["meson", "setup", "--reconfigure" if built else "-Doptimization=0", build, source, "-Dtests=disabled"])
    run(["ninja", "-C", build, "testbed/nf-testbed"])
    options = ("--counters", "none", "--windows", "5,600", "--standard-error", "50")
    described, measured, rejected = responses_to(
        build / "testbed" / "nf-testbed",
        *options,
        lines=[
            DESCRIBE,
            run_request(PORT_COUNTER | {"parameters": {"port": 443}}),
            run_request(PORT_COUNTER | {"parameters": {"port": 70000}}),
        ],
    )
    assert "PortCounter" in [nf["name"] for nf in described["testbed"]["nfs"]]
    if not measured["ok"]:  # other load on this machine; the function was created and run all the same
        assert measured["error"]["code"] == "too-noisy", measured
    else:
        assert measured["workloads"][0]["throughput_kpps"] > 0
    assert "port 70000 is outside [0, 65535]" in rejected["error"]["message"]
