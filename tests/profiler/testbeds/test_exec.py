"""`exec:` testbeds, against a program that shares no code with ours, and against programs that misbehave."""

import json
import os
import re
import sys
import time
from pathlib import Path

import pytest

from profiler.testbed import RunRefused, TestbedError
from profiler.testbeds import open_testbed
from profiler.testbeds.exec import ExecTestbed
from profiles import BenchLoad, ChainLoad, InputError, TrafficProfile
from tests.profiler.foreign import FIREWALL, FOREIGN
from tests.profiler.toy_testbed import description


def test_a_foreign_nic_is_described_as_it_describes_itself() -> None:
    """Cores, NFs, accelerators and ranges unlike those of a BlueField-2 arrive unchanged."""
    with open_testbed(f"exec:{FOREIGN}") as testbed:
        described = testbed.describe()
    assert described.nic.cores == 12 and described.nf("load-balancer").cores == 3
    assert described.nf("tls-proxy").accelerators == ("crypto",) and "mtbr" not in described.attributes
    bench = described.bench("mem-bench")
    assert bench is not None and bench.parameters["write_share"] == (0, 1)


def test_a_run_has_a_measurement_per_load_in_the_order_of_the_request() -> None:
    """Beside two memory benches, an NF is slower than alone."""
    bench = BenchLoad.of("mem-bench", {"wss_mb": 8, "access_mops": 80, "write_share": 0.5})
    with ExecTestbed(FOREIGN) as testbed:
        alone = testbed.run([FIREWALL], noise=False).measurements
        together = testbed.run([FIREWALL, bench, bench], noise=False).measurements
    assert len(together) == 3 and together[0].throughput_kpps < alone[0].throughput_kpps
    assert together[1].counters.wss == pytest.approx(8)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (
            "--die-after 1",
            r"ended before it answered request 1 \(exit status 3\).*\n  fan failure",
        ),  # dies in the middle
        ("--die-after 0", r"ended before it answered request 0"),  # dies at the first run
        ("--hang-after 1", r"no answer to request 1 within 0.5 s.*\n  waiting for the card"),  # hangs
        ("--garbage-after 1", r"not JSON: Segmentation fault"),  # garbage
        ("--wrong-id-after 1", r"answered request 1 with id 2"),  # out of order
        ("--nan-after 1", r"workloads.0.throughput_kpps: .*finite"),  # not a measurement
        ("--zero-after 1", r"workloads.0.throughput_kpps: .* is not above 0"),  # no throughput at all
        ("--short-after 1", r"0 workloads answered, 1 requested"),  # one workload lost
        ("--no-counter-after 1", r"workloads.0.counters.wss: is missing"),  # six counters
    ],
)
def test_a_faulty_testbed_is_reported_with_its_last_lines(flags: str, message: str) -> None:
    """Every fault is a TestbedError with what was received, and the testbed gets no further request."""
    with ExecTestbed(f"{FOREIGN} {flags}", timeout=0.5 if "hang" in flags else 20) as testbed:
        with pytest.raises(TestbedError, match=f"(?s){message}"):
            for _ in range(2):
                testbed.run([FIREWALL])
        with pytest.raises(TestbedError):
            testbed.run([FIREWALL])


def test_a_wrong_description_is_refused_with_every_field() -> None:
    """A describe answer that does not validate is refused with each field that is wrong."""
    with ExecTestbed(f"{FOREIGN} --wrong-describe") as testbed, pytest.raises(TestbedError) as raised:
        testbed.describe()
    for field in ("name", "nic.model", "nic.cores", "attributes", "nfs"):
        assert f"\n  {field}: " in str(raised.value)


WRONG_DESCRIPTIONS: list[tuple[dict[str, object], str]] = [
    ({"nfs": [{"name": f"{i}", "cores": 1} for i in range(20_000)]}, "nfs: is too long: there may be at most 1000"),
    ({"nic": {"model": "m", "cores": 10**9}}, "nic.cores: 1000000000 is above 1024"),
    ({"nic": {"model": "m", "cores": "8"}}, "nic.cores: '8' is not a number"),
    ({"nic": {"model": "m", "cores": True}}, "nic.cores: True is not a number"),
    ({"attributes": {"flows": ["1", 9]}}, "attributes.flows.0: '1' is not a number"),
    ({"attributes": {"flows": [1, 1e300]}}, "attributes.flows.1: 1e+300 is above"),
    ({"default_traffic": {"flows": "4000", "packet_size": 64}}, "default_traffic.flows: '4000'"),
    (
        {"default_traffic": {"flows": 0, "packet_size": 512}},
        "default_traffic flows 0 is not inside its range [1, 100000]",
    ),
    ({"nfs": [{"name": "a\x1b[2J", "cores": 1}]}, "nfs.0.name: 'a\\x1b[2J' is not of the form"),
    ({"nfs": [{"name": "n" * 300, "cores": 1}]}, "nfs.0.name: more than 200 bytes"),
]
"""More NFs or cores than any NIC has, values that are not numbers, and traffic outside of the ranges beside it."""


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("[1, 2]", "not a JSON object"),  # JSON, but no answer
        ('{"id": 0}', "without `ok`"),  # neither good nor bad
        ('{"ok": true, "testbed": {}}', "with id null"),  # no id
        ('{"id": false, "ok": true}', "with id false"),  # false equals 0, but is no id
        ('{"id": 0.0, "ok": true}', "with id 0.0"),  # nor is 0.0
        ('{"id": "0", "ok": true}', 'with id "0"'),  # nor text
        ("", "not JSON"),  # an empty line
        ("[" * 100_000, "JSON that is nested too deeply"),  # more levels than Python's parser takes
        ('{"id": 0, "ok": true, "testbed": {"protocol": true}}', "speaks protocol True; 1 is understood"),
        ('{"id": 0, "ok": true, "testbed": {"protocol": 2}}', "speaks protocol 2; 1 is understood"),
        ('{"id": 0, "ok": false, "error": {"message": "\\u001b[2J"}}', "no code: \N{REPLACEMENT CHARACTER}"),
        *(
            (json.dumps({"id": 0, "ok": True, "testbed": description().model_dump(mode="json") | changes}), message)
            for changes, message in WRONG_DESCRIPTIONS
        ),
    ],
    ids=lambda value: value[:60],
)
def test_an_invalid_answer_is_refused(tmp_path: Path, line: str, message: str) -> None:
    """A line that is not an answer to the request is shown as it came, without control characters."""
    with ExecTestbed(_answering(tmp_path, line)) as testbed, pytest.raises(TestbedError, match=re.escape(message)):
        testbed.describe()


COUNTED = '"counters": {"ipc": 1, "irt": 1, "l2crd": 1, "l2cwr": 1, "memrd": 1, "memwr": 1, "wss": 1}'
STAGE = '{"throughput_kpps": 5, "dropped_pct": 0}'


@pytest.mark.parametrize(
    ("stages", "message"),
    [
        ("", "workloads.0.stages: 0 stages answered, 2 requested"),  # the chain as one NF
        (f', "stages": [{STAGE}]', "workloads.0.stages: 1 stages answered, 2 requested"),  # a stage is missing
        (f', "stages": [{STAGE}, {STAGE.replace("0}", "101}")}]', "stages.1.dropped_pct: 101 is above 100"),
        (f', "stages": [{STAGE}, {STAGE}], "latency_us": {{"mean": 1}}', "latency_us.p50: is missing"),
        (f', "stages": [{STAGE}, {STAGE.replace("5", "-5")}]', "stages.1.throughput_kpps: -5 is below 0"),
    ],
)
def test_a_chain_is_answered_with_every_stage(tmp_path: Path, stages: str, message: str) -> None:
    """An answer without them, or with values that are no measurements, is invalid."""
    line = f'{{"id": 0, "ok": true, "workloads": [{{"throughput_kpps": 5, {COUNTED}{stages}}}]}}'
    chain = ChainLoad.of(["a", "b"], [[0, 1]], TrafficProfile(1, 64))
    with ExecTestbed(_answering(tmp_path, line)) as testbed, pytest.raises(TestbedError, match=re.escape(message)):
        testbed.run([chain])


def test_a_testbed_that_knows_no_chains_refuses_them_plainly() -> None:
    """The message has what the testbed answered, and the testbed goes on."""
    chain = ChainLoad.of(["edge-firewall", "load-balancer"], [[0, 1]], TrafficProfile(1000, 512))
    with ExecTestbed(FOREIGN) as testbed:
        with pytest.raises(RunRefused, match="refused request 0: bad-request: "):
            testbed.run([chain])
        testbed.run([FIREWALL])


def test_an_answer_of_unbounded_length_is_refused(tmp_path: Path) -> None:
    """A testbed that writes without end of line is stopped at a limit that the message names."""
    endless = tmp_path / "endless.py"
    endless.write_text("import sys\nsys.stdin.readline()\nwhile True: sys.stdout.write('x' * 100000)\n")
    with (
        ExecTestbed(f"{sys.executable} {endless}", timeout=20) as testbed,
        pytest.raises(TestbedError, match=r"with a line of more than 4,194,304 characters"),
    ):
        testbed.describe()


@pytest.mark.long
def test_much_output_on_stderr_does_not_block(tmp_path: Path) -> None:
    """Diagnostics are drained while answers are awaited, and only the last lines are kept."""
    loud = tmp_path / "loud.py"
    loud.write_text("import sys\nfor i in range(50000): print('line', i, file=sys.stderr)\nsys.exit(4)\n")
    with ExecTestbed(f"{sys.executable} {loud}", timeout=20) as testbed, pytest.raises(TestbedError) as raised:
        testbed.describe()
    assert "exit status 4" in str(raised.value) and "line 49999" in str(raised.value)
    assert "line 100\n" not in str(raised.value)


@pytest.mark.parametrize("new_session", [False, True])
def test_closing_ends_every_process_that_the_command_started(tmp_path: Path, new_session: bool) -> None:
    """A testbed that does not end by itself is killed with its children, also those with a session of their own."""
    stubborn, child = tmp_path / "stubborn.py", tmp_path / "child"
    stubborn.write_text(
        "import subprocess, time\n"
        f"p = subprocess.Popen(['sleep', '600'], start_new_session={new_session})\n"
        f"open({str(child)!r}, 'w').write(str(p.pid))\n"
        "time.sleep(600)\n"
    )
    testbed = ExecTestbed(f"{sys.executable} {stubborn}", timeout=0.1)
    process = _written_process(child)
    with pytest.raises(TestbedError, match=r"within 0\.1 s"):
        testbed.describe()
    testbed.close()
    assert _ended(process)


def test_closing_ends_a_daemon_that_lost_its_parent(tmp_path: Path) -> None:
    """A child that forks twice and calls setsid is ended, although the testbed itself ended politely."""
    daemon, child = tmp_path / "daemon.py", tmp_path / "child"
    daemon.write_text(
        "import os, sys, time\n"
        "if os.fork() == 0:\n"
        "    os.setsid()\n"
        "    if os.fork() == 0:\n"
        f"        open({str(child)!r}, 'w').write(str(os.getpid()))\n"
        "        time.sleep(600)\n"
        "    os._exit(0)\n"
        "sys.stdin.read()\n"
    )
    testbed = ExecTestbed(f"{sys.executable} {daemon}")
    process = _written_process(child)
    testbed.close()
    assert _ended(process)


def test_a_testbed_that_reads_nothing_is_stopped_by_the_timeout(tmp_path: Path) -> None:
    """A request larger than the pipe does not block for ever."""
    deaf = tmp_path / "deaf.py"
    deaf.write_text("import time\ntime.sleep(600)\n")
    with (
        ExecTestbed(f"{sys.executable} {deaf}", timeout=0.2) as testbed,
        pytest.raises(TestbedError, match="gave no answer"),
    ):
        testbed.run([FIREWALL] * 5000)


def test_a_command_that_cannot_be_started_is_reported() -> None:
    """A command that does not exist, is empty, is badly quoted or holds a NUL is reported at once."""
    with pytest.raises(TestbedError, match=r"no-such-program-here.*cannot be started: No such file"):
        open_testbed("exec:no-such-program-here")
    with pytest.raises(InputError, match="names no command"):
        open_testbed("exec:")
    with pytest.raises(InputError, match="No closing quotation"):
        open_testbed("exec:ssh 'bf2")
    with pytest.raises(InputError, match="holds a NUL character"):
        open_testbed("exec:ssh bf2\0agent")


def _answering(tmp_path: Path, line: str) -> str:
    program = tmp_path / "answering.py"
    program.write_text(f"import sys\nfor _ in sys.stdin: print({line!r}, flush=True)\n")
    return f"{sys.executable} {program}"


def _written_process(file: Path) -> int:
    while not file.exists() or not file.read_text():
        time.sleep(0.02)
    return int(file.read_text())


def _ended(process: int) -> bool:
    for _ in range(100):
        try:
            os.kill(process, 0)
        except ProcessLookupError:
            return True
        if Path(f"/proc/{process}/stat").exists() and Path(f"/proc/{process}/stat").read_text().split()[2] == "Z":
            return True
        time.sleep(0.02)
    return False
