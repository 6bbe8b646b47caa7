"""The answering side of the testbed protocol, and a program that is spoken to in lines."""

import io
import json
import queue
import signal
import sys
import time
from threading import Thread, active_count
from types import FrameType

import pytest

from profiler.protocol.program import LONGEST_LINE, Program
from profiler.serve import answer, serve
from profiler.simulated import SimulatedServer, SimulatedTestbed
from profiler.testbeds.exec import ExecTestbed
from profiles import BenchLoad, ChainLoad, ConfiguredWorkload, NfStage, TrafficProfile, Workload
from tests.profiler.toy_testbed import ToyTestbed

NF = '{"kind": "nf", "name": "counter", "traffic": {"flows": 10, "packet_size": 64}}'
BENCH = '{"kind": "bench", "name": "mem-bench", "parameters": {"wss_mb": 1, "access_mops": 50}}'
CHAIN = (
    '{"kind": "chain", "stages": [{"name": "ACL", "parameters": {}}, {"name": "NAT"}], "cores": [[0], [1]], '
    '"traffic": {"flows": 10, "packet_size": 64}}'
)
RUN_WITH_FLOWS = (
    '{"id": 7, "op": "run", "workloads": '
    '[{"kind": "nf", "name": "counter", "traffic": {"flows": FLOWS, "packet_size": 64}}]}'
)


@pytest.mark.long
def test_a_served_testbed_answers_as_in_the_same_process() -> None:
    """The simulated card behind the protocol gives the same truth, the same noise and obeys the same seeds."""
    loads = [
        Workload("FlowMonitor", TrafficProfile(16000, 1500, 600)),
        BenchLoad.of("mem-bench", {"wss_mb": 10, "access_mops": 120}),
    ]
    here = SimulatedTestbed()
    with ExecTestbed(f"{sys.executable} -m profiler.serve simulated") as there:
        assert there.describe() == here.describe()
        assert there.run(loads, noise=False).measurements == here.run(loads, noise=False).measurements
        assert there.run(loads, seed=5).measurements == here.run(loads, seed=5).measurements
        assert there.run(loads, seed=5) != there.run(loads, seed=6)


@pytest.mark.long
def test_a_served_chain_is_measured_as_in_the_same_process() -> None:
    """With its stages and latency, open and closed; NFs with parameters arrive with them."""
    traffic = TrafficProfile(1000, 500, 0)
    loads = [
        ChainLoad.of([NfStage.of("ACL", {"rules": 9}), "NAT"], [[0], [1]], traffic, shares=[0.5, 1]),
        ChainLoad.of(["NAT"], [[0]], traffic, rate_kpps=100),
        ConfiguredWorkload.of(Workload("ACL", traffic), {"rules": 9}),
    ]
    with ExecTestbed(f"{sys.executable} -m profiler.serve simulated:server") as there:
        assert there.describe() == SimulatedServer().describe()
        assert there.run(loads, seed=5).measurements == SimulatedServer().run(loads, seed=5).measurements


def test_a_chain_is_answered_with_its_stages() -> None:
    """The keys of the answer: what leaves each stage, what it drops, and the latency in an open loop."""
    line = f'{{"id": 7, "op": "run", "noise": false, "workloads": [{CHAIN[:-1]}, "rate_kpps": 10}}]}}'
    (measured,) = json.loads(answer(SimulatedServer(), line))["workloads"]
    assert measured["throughput_kpps"] == 10
    assert measured["stages"] == [{"throughput_kpps": 9, "dropped_pct": 10}, {"throughput_kpps": 9, "dropped_pct": 0}]
    assert list(measured["latency_us"]) == ["mean", "p50", "p99", "max"]
    line = f'{{"id": 7, "op": "run", "workloads": [{CHAIN}, {NF.replace("counter", "NAT")}]}}'
    closed, nf = json.loads(answer(SimulatedServer(), line))["workloads"]
    assert "latency_us" not in closed and "stages" not in nf


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("flows", "not JSON"),  # not JSON
        ("[]", "not a JSON object"),  # not a request
        ('{"id": 7}', "unknown op null"),  # no operation
        ('{"id": 7, "op": "reboot"}', 'unknown op "reboot"'),  # an unknown operation
        ('{"id": 7, "op": "run"}', "workloads: is missing"),  # no workloads
        ('{"id": 7, "op": "run", "workloads": []}', "workloads: is too short: there must be at least 1"),
        ('{"id": 7, "op": "run", "workloads": [{"kind": "vm"}]}', "workloads.0"),  # neither NF nor bench
        ('{"id": 7, "op": "run", "workloads": [{"kind": "nf", "name": "x", "traffic": {"flows": 1}}]}', "packet_size"),
        (f'{{"id": 7, "op": "run", "workloads": [{NF.replace("counter", "NAT")}]}}', "NF NAT is not known"),
        (f'{{"id": 7, "op": "run", "workloads": [{BENCH.replace("mem", "gpu")}]}}', "bench gpu-bench is not known"),
        (f'{{"id": 7, "op": "run", "workloads": [{BENCH.replace("wss_mb", "mb")}]}}', "needs parameter wss_mb"),
        (f'{{"id": 7, "op": "run", "workloads": [{BENCH.replace("50", "500")}]}}', "access_mops 500 is outside"),
        (f'{{"id": 7, "op": "run", "workloads": [{NF.replace("64", "NaN")}]}}', "finite"),  # not a number
        (f'{{"id": 7, "op": "run", "workloads": [{NF}, {NF}, {NF}, {NF}]}}', "needs 8 cores, the NIC has 6"),
        (f'{{"id": 7, "op": "run", "seed": "x", "workloads": [{NF}]}}', "seed"),  # a seed is a number
        (RUN_WITH_FLOWS.replace("FLOWS", '"10"'), "traffic.flows: '10' is not a number"),  # text is no number
        (RUN_WITH_FLOWS.replace("FLOWS", "true"), "traffic.flows: True is not a number"),  # nor is true
        (f'{{"id": 7, "op": "run", "workloads": [{CHAIN}]}}', "chains of NFs are not known to toy"),
        (f'{{"id": 7, "op": "run", "workloads": [{CHAIN[:-1]}, "shares": []}}]}}', "shares: is too short"),
        (f'{{"id": 7, "op": "run", "workloads": [{CHAIN.replace("[1]", "[1.5]")}]}}', "1.5 is not a whole number"),
        (f'{{"id": 7, "op": "run", "workloads": [{CHAIN[:-1]}, "rate_kpps": -1}}]}}', "rate_kpps: -1 is below 0"),
        (f'{{"id": 7, "op": "run", "workloads": [{CHAIN.replace("flows", "flow")}]}}',
            "traffic of the chain lacks flows"),
        (f'{{"id": 7, "op": "run", "workloads": [{NF[:-1]}, "parameters": {{"a": 1}}}}]}}',
            "counter has no parameter a"),
        ("[" * 100_000, "JSON that is nested too deeply"),
        ("1" * (LONGEST_LINE + 1), "a line of more than 4,194,304 characters"),
    ],
    ids=lambda value: value[:60],
)  # fmt: skip
def test_a_bad_request_is_answered_with_its_faults(line: str, message: str) -> None:
    """The answer to a bad request has its id and what is wrong with it."""
    answered = json.loads(answer(ToyTestbed(), line))
    assert answered["ok"] is False and answered["id"] == (7 if '"id": 7' in line else None)
    assert answered["error"]["code"] == "bad-request" and message in answered["error"]["message"]


def test_a_line_that_is_too_long_is_answered_once() -> None:
    """The rest of the line is no second request."""
    out = io.StringIO()
    serve(ToyTestbed(), io.StringIO("x" * (3 * LONGEST_LINE) + '\n{"id": 1, "op": "describe"}\n'), out)
    assert [json.loads(line)["ok"] for line in out.getvalue().splitlines()] == [False, True]


def test_bytes_that_are_not_utf_8_are_a_bad_request() -> None:
    """They do not end the service."""
    lines = io.TextIOWrapper(io.BytesIO(b'\xff\n{"id": 1, "op": "describe"}\n'), encoding="utf-8")
    out = io.StringIO()
    serve(ToyTestbed(), lines, out)
    assert [json.loads(line)["ok"] for line in out.getvalue().splitlines()] == [False, True]


def test_the_service_continues_after_bad_requests_and_failed_runs() -> None:
    """Each line has its answer, in order."""
    good = f'{{"id": "a", "op": "run", "workloads": [{NF}], "unknown": "key"}}'
    failing = good.replace('"a"', '"b"')
    out = io.StringIO()
    serve(ToyTestbed(fails_after=1), io.StringIO(f"nonsense\n{good}\n\n{failing}\n{{}}\n"), out)
    answers = [json.loads(line) for line in out.getvalue().splitlines()]
    assert [one["ok"] for one in answers] == [False, True, False, False]
    assert [one["id"] for one in answers] == [None, "a", "b", None]
    assert answers[2]["error"] == {"code": "failed", "message": "toy is broken"}


class _Interrupted:
    """Raises KeyboardInterrupt in this thread at the `at`-th step beneath the function that is called next."""

    def __init__(self, at: int) -> None:
        self.at = at

    def __call__(self, frame: FrameType, event: str, argument: object) -> "_Interrupted":
        if frame.f_globals.get("__name__") in ("queue", "threading", "profiler.protocol.program"):
            self.at -= 1
            if self.at < 0:
                sys.settrace(None)
                raise KeyboardInterrupt
        return self


def test_a_program_ends_wherever_an_interrupt_comes() -> None:
    """A signal is handled between any two steps of `receive`; a lock that stayed locked then made `end` wait."""
    at, interrupted = 0, True
    while interrupted:
        program, interrupted = Program("cat"), False
        program.send("a")
        sys.settrace(_Interrupted(at))
        try:
            program.receive(10.0)
        except KeyboardInterrupt:
            interrupted = True
        finally:
            sys.settrace(None)
        ending = Thread(target=program.end, kwargs={"polite": False}, daemon=True)
        ending.start()
        ending.join(20.0)
        assert not ending.is_alive(), f"interrupted at step {at}"
        at += 1
    assert at > 1


def test_nothing_reads_on_after_the_end() -> None:
    """A program that wrote more lines than are read ahead leaves no thread behind."""
    before = active_count()
    program = Program(f"{sys.executable} -c \"print('line\\n' * 100, flush=True); import time; time.sleep(60)\"")
    assert program.receive(20.0) == "line\n"
    program.end(polite=False)
    for _ in range(100):
        if active_count() <= before:
            break
        time.sleep(0.05)
    assert active_count() <= before


def test_an_interrupt_waits_until_the_threads_of_a_program_are_started(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the middle of a start, an exception would release a lock of Python's own twice, and hide the interrupt."""
    started = []

    class Interrupted(Thread):
        def start(self) -> None:
            signal.raise_signal(signal.SIGINT)  # in this thread, before it returns
            super().start()
            started.append(self)

    monkeypatch.setattr("profiler.protocol.program.Thread", Interrupted)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # in the background, a shell has it ignored
    with pytest.raises(KeyboardInterrupt):
        Program("sleep 600")
    assert len(started) == 3 and signal.signal(signal.SIGINT, before) is signal.default_int_handler


def test_a_signal_that_comes_just_before_a_wait_is_seen_within_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python then sees it after the wait only: an answer is waited for in short waits, of as much time in all."""
    program = Program("sleep 600")
    waits: list[float] = []

    class Silent:
        def get(self, timeout: float) -> str:
            waits.append(timeout)
            now[0] += timeout
            raise queue.Empty

    now = [0.0]
    monkeypatch.setattr("profiler.protocol.program.time.monotonic", lambda: now[0])
    monkeypatch.setattr(program, "_answers", Silent())
    with pytest.raises(TimeoutError):
        program.receive(3.2)
    monkeypatch.undo()
    program.end(polite=False)
    assert max(waits) < 1 and sum(waits) == pytest.approx(3.2)
