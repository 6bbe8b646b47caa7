"""What the build of the network functions takes from a machine."""

import os
from pathlib import Path

import pytest

from tests.nfs.builds import ROOT, require, run


@pytest.mark.parametrize(("version", "used"), [("2.2.0080", True), ("2.5.0108", False)])
def test_only_a_doca_flow_that_it_is_written_for_is_built_against(tmp_path: Path, version: str, used: bool) -> None:
    """DOCA 2.5 has other monitors and names of errors; a host with it builds without DOCA Flow, and says so."""
    require("cc")
    (tmp_path / "doca-flow.pc").write_text(f"Name: doca-flow\nDescription: a made-up SDK\nVersion: {version}\n")
    paths = os.pathsep.join(filter(None, [str(tmp_path), os.environ.get("PKG_CONFIG_PATH")]))
    command: list[object] = ["meson", "setup", tmp_path / "build", ROOT / "nfs", "-Dtests=disabled"]
    assert ("no DOCA Flow" in run(command, env=os.environ | {"PKG_CONFIG_PATH": paths})) != used
