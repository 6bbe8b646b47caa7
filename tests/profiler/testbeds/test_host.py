"""`--testbed host` without DPDK: which program is started, and the error when there is none."""

import stat
import sys
from pathlib import Path

import pytest

from profiler.testbeds import host, open_testbed
from profiles import InputError

TESTBED = """#!{python}
import json, sys
print("testbed: cores are threads of one", file=sys.stderr, flush=True)
for line in sys.stdin:
    usual = {{"flows": 1, "packet_size": 64}}
    described = {{"name": " ".join(sys.argv[1:]), "nic": {{"model": "m", "cores": 2}}, "attributes": {{}},
            "default_traffic": usual, "nfs": []}}
    print(json.dumps({{"id": json.loads(line)["id"], "ok": True, "testbed": described}}), flush=True)
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """A testbed that reports its options as its name, in a folder whose name has a space."""
    path = tmp_path / "a folder" / host.HOST_PROGRAM
    path.parent.mkdir()
    path.write_text(TESTBED.format(python=sys.executable))
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


@pytest.fixture(autouse=True)
def nothing_installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Neither a built program nor one on the path."""
    monkeypatch.delenv(host.PROGRAM_VARIABLE, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(host, "BUILT_PROGRAM", tmp_path / "not built")


def test_a_missing_program_is_reported_with_the_command_that_builds_it() -> None:
    """The hint is the command."""
    with pytest.raises(InputError, match="not built") as refused:
        open_testbed("host")
    assert refused.value.faults[0].hint == "make deps nfs"


def test_the_built_program_is_started(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It gets the timeout, and what follows the colon as further options."""
    monkeypatch.setattr(host, "BUILT_PROGRAM", program)
    with open_testbed("host:--cores 0,1 --windows 5,10") as testbed:
        assert testbed.describe().name == "--timeout 60 --cores 0,1 --windows 5,10"


def test_its_stderr_is_passed_on(
    program: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """So users see its warnings about a machine that cannot measure well."""
    monkeypatch.setattr(host, "BUILT_PROGRAM", program)
    with open_testbed("host") as testbed:
        testbed.describe()
    assert "testbed: cores are threads of one" in capfd.readouterr().err


def test_an_installed_program_is_found(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a built program, the one on the path is started."""
    monkeypatch.setenv("PATH", str(program.parent))
    with open_testbed("host") as testbed:
        assert testbed.describe().name == "--timeout 60"


def test_the_environment_variable_comes_first(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """NF_TESTBED names the program; when it names none, no other is started instead."""
    monkeypatch.setenv(host.PROGRAM_VARIABLE, str(program))
    assert host.find_program() == program
    monkeypatch.setenv(host.PROGRAM_VARIABLE, str(program.parent))
    monkeypatch.setattr(host, "BUILT_PROGRAM", program)
    with pytest.raises(InputError, match="is not a program"):
        open_testbed("host")
