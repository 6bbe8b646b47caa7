"""The testbed protocol as its client sees it, against a testbed written by somebody else."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

import pytest

from profiler.exec import ExecTestbed
from profiler.testbed import TestbedError
from profiler.testbeds import open_testbed
from profiles import BenchLoad, InputError, TrafficProfile, Workload
from tests.profiler.toy_testbed import description

FOREIGN = f"{sys.executable} {Path(__file__).parents[1] / 'data' / 'foreign_testbed.py'}"
PROXY = Workload("tls-proxy", TrafficProfile(4000, 1024))
FIREWALL = Workload("edge-firewall", TrafficProfile(4000, 1024))


def test_describes_a_nic_unlike_ours() -> None:
    """A foreign testbed's cores, NFs, accelerators and ranges come through as it tells them."""
    with open_testbed(f"exec:{FOREIGN}") as testbed:
        told = testbed.describe()
    assert told.nic.cores == 12
    assert told.nf("load-balancer").cores == 3
    assert told.nf("tls-proxy").accelerators == ("crypto",)
    assert "mtbr" not in told.attributes
    bench = told.bench("mem-bench")
    assert bench is not None and bench.parameters["write_share"] == (0, 1)


def test_runs_side_by_side() -> None:
    """A run answers one measurement per load, in the order asked."""
    bench = BenchLoad.of("mem-bench", {"wss_mb": 8, "access_mops": 80, "write_share": 0.5})
    with ExecTestbed(FOREIGN) as testbed:
        alone = testbed.run([FIREWALL], noise=False).measurements
        beside = testbed.run([FIREWALL, bench, bench], noise=False).measurements
    assert len(beside) == 3
    assert beside[0].throughput_kpps < alone[0].throughput_kpps
    assert beside[1].counters.wss == pytest.approx(8)


def test_the_seed_decides_the_noise() -> None:
    """The same seed gives the same noise, whatever was asked before."""
    with ExecTestbed(FOREIGN) as testbed:
        first = testbed.run([FIREWALL], seed=1)
        testbed.run([PROXY], seed=1)
        assert testbed.run([FIREWALL], seed=1) == first
        assert testbed.run([FIREWALL], seed=2) != first


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ("--die-after 1", r"ended while request 1 was open \(exit status 3\).*\n  fan failure"),  # dies in the middle
        ("--die-after 0", r"ended while request 0 was open"),  # dies at the first run
        ("--hang-after 1", r"no answer to request 1 within 0.5 s.*\n  waiting for the card"),  # hangs
        ("--garbage-after 1", r"not JSON: Segmentation fault"),  # garbage
        ("--wrong-id-after 1", r"answered request 1 with id 2"),  # out of order
        ("--nan-after 1", r"workloads.0.throughput_kpps: .*finite"),  # not a measurement
        ("--zero-after 1", r"workloads.0.throughput_kpps: .*greater than 0"),  # nor is this
        ("--short-after 1", r"0 workloads answered, 1 asked"),  # one workload lost
        ("--no-counter-after 1", r"workloads.0.counters.wss: Field required"),  # six counters
    ],
)
def test_a_faulty_testbed_is_reported_with_its_last_words(flags: str, said: str) -> None:
    """Whatever goes wrong is a TestbedError that says what was got, and the testbed is not asked again."""
    with ExecTestbed(f"{FOREIGN} {flags}", timeout=0.5 if "hang" in flags else 20) as testbed:
        with pytest.raises(TestbedError, match=f"(?s){said}"):
            for _ in range(2):
                testbed.run([FIREWALL])
        with pytest.raises(TestbedError):
            testbed.run([FIREWALL])


def test_a_wrong_description_names_every_field() -> None:
    """A describe answer that does not validate is refused with each field that is wrong."""
    with ExecTestbed(f"{FOREIGN} --wrong-describe") as testbed, pytest.raises(TestbedError) as raised:
        testbed.describe()
    for field in ("name", "nic.model", "nic.cores", "attributes", "nfs"):
        assert f"\n  {field}: " in str(raised.value)


def test_default_traffic_outside_the_ranges_is_refused(tmp_path: Path) -> None:
    """A testbed whose default traffic it does not take itself is not believed."""
    told = description().model_dump(mode="json") | {"default_traffic": {"flows": 0, "packet_size": 512}}
    line = json.dumps({"id": 0, "ok": True, "testbed": told})
    with (
        ExecTestbed(_answering(tmp_path, line)) as testbed,
        pytest.raises(TestbedError, match=r"default_traffic flows 0 is not inside its range \[1, 100000\]"),
    ):
        testbed.describe()


def test_another_protocol_is_refused(tmp_path: Path) -> None:
    """A testbed that speaks version 2 is not misunderstood."""
    line = '{"id": 0, "ok": true, "testbed": {"protocol": 2}}'
    with (
        ExecTestbed(_answering(tmp_path, line)) as testbed,
        pytest.raises(TestbedError, match="protocol 2; 1 is understood"),
    ):
        testbed.describe()


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("[1, 2]", "not a JSON object"),  # JSON, but no answer
        ('{"id": 0}', "without `ok`"),  # neither good nor bad
        ('{"ok": true, "testbed": {}}', "with id null"),  # whose answer?
        ('{"id": true, "ok": true}', "with id true"),  # true is not 1
        ("", "not JSON"),  # an empty line
    ],
)
def test_answers_that_are_none_are_refused(tmp_path: Path, line: str, said: str) -> None:
    """A line that is not an answer to the request is told as it came."""
    with ExecTestbed(_answering(tmp_path, line)) as testbed, pytest.raises(TestbedError, match=said):
        testbed.describe()


def test_a_refused_request_leaves_the_testbed_usable() -> None:
    """A testbed that refuses one run with an error goes on answering others."""
    with ExecTestbed(FOREIGN) as testbed:
        with pytest.raises(TestbedError, match="refused request 0: bad-request: no workload nf NoSuchNf here"):
            testbed.run([Workload("NoSuchNf", TrafficProfile(1, 64))])
        assert testbed.run([FIREWALL]).measurements[0].throughput_kpps > 0


def test_much_talk_on_stderr_does_not_block(tmp_path: Path) -> None:
    """Diagnostics are drained while answers are awaited, and only the last lines are kept."""
    loud = tmp_path / "loud.py"
    loud.write_text("import sys\nfor i in range(50000): print('line', i, file=sys.stderr)\nsys.exit(4)\n")
    with ExecTestbed(f"{sys.executable} {loud}", timeout=20) as testbed, pytest.raises(TestbedError) as raised:
        testbed.describe()
    assert "exit status 4" in str(raised.value)
    assert "line 49999" in str(raised.value)
    assert "line 100\n" not in str(raised.value)


def test_closing_ends_everything_the_command_started(tmp_path: Path) -> None:
    """A testbed that does not leave by itself is ended, and so are its children."""
    stubborn = tmp_path / "stubborn.py"
    child = tmp_path / "child"
    stubborn.write_text(
        "import subprocess, time\n"
        f"p = subprocess.Popen(['sleep', '600']); open({str(child)!r}, 'w').write(str(p.pid)); time.sleep(600)\n"
    )
    testbed = ExecTestbed(f"{sys.executable} {stubborn}", timeout=0.1)
    while not child.exists() or not child.read_text():
        time.sleep(0.02)
    with pytest.raises(TestbedError, match=r"within 0\.1 s"):
        testbed.describe()
    testbed.close()
    assert _gone(int(child.read_text()))


def test_what_cannot_be_started_is_said() -> None:
    """A command that is not there, is empty or badly quoted is reported at once."""
    with pytest.raises(TestbedError, match=r"no-such-program-here.*cannot be started: No such file"):
        open_testbed("exec:no-such-program-here")
    with pytest.raises(InputError, match="names no command"):
        open_testbed("exec:")
    with pytest.raises(InputError, match="No closing quotation"):
        open_testbed("exec:ssh 'bf2")


@pytest.mark.parametrize("spec", ["simulator", "none", "", "replay:", "simulated:fast"])
def test_unknown_testbeds_are_refused(spec: str) -> None:
    """A SPEC that opens nothing is an input error, with the known ones or what to do."""
    with pytest.raises(InputError) as raised:
        open_testbed(spec)
    assert "--testbed" in str(raised.value)
    if spec in ("simulator", "none", ""):
        assert "hint: testbeds are simulated, exec:COMMAND, replay:PROFILE, host" in str(raised.value)


def _answering(tmp_path: Path, line: str) -> str:
    program = tmp_path / "answering.py"
    program.write_text(f"import sys\nfor _ in sys.stdin: print({line!r}, flush=True)\n")
    return f"{sys.executable} {program}"


def _gone(process: int) -> bool:
    for _ in range(100):
        try:
            os.kill(process, 0)
        except ProcessLookupError:
            return True
        if Path(f"/proc/{process}/stat").exists() and Path(f"/proc/{process}/stat").read_text().split()[2] == "Z":
            return True
        time.sleep(0.02)
    return False
