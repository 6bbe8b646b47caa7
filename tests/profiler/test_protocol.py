"""GPU workloads in requests and answers of the protocol, and which of them are refused."""

import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from profiler.protocol.protocol import RUN_MESSAGE, parse_run, run_answer, run_request
from profiler.protocol.request_checks import refusals
from profiler.serve import answer
from profiler.simulated import SimulatedServer
from profiler.testbed import (
    GpuStages,
    Measurement,
    PacketLatency,
    Run,
    RunRefused,
    Testbed,
    TestbedError,
    refuse_invalid,
)
from profiler.testbeds.exec import ExecTestbed
from profiles import (
    ChainLoad,
    ConfiguredWorkload,
    Counters,
    GpuWorkload,
    Load,
    NfStage,
    TestbedDescription,
    TrafficProfile,
    Workload,
)
from tests.profiler.gpu_loads import TRAFFIC, gpu_description, paced, scheduled
from tests.profiler.toy_testbed import ToyTestbed, description

REPO = Path(__file__).resolve().parents[2]
STAGES = GpuStages(1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0)
MEASURED = Measurement(99.5, Counters(), (), PacketLatency(28.0, 28.0, 29.0, 30.0, 28.5), STAGES, STAGES)


class GpuToy(Testbed):
    """Answers every load with `MEASURED`."""

    def describe(self) -> TestbedDescription:
        return gpu_description()

    def run(self, loads: Sequence[Load], *, noise: bool = True, seed: int | None = None) -> Run:
        return Run((MEASURED,) * len(loads))


@pytest.mark.parametrize(
    "load", [paced({0: 3, 1: 4}), paced({0: 3}, order=None), scheduled(9), scheduled(9, "temporal")]
)
def test_a_gpu_workload_is_received_as_it_was_sent(load: GpuWorkload) -> None:
    """With batch, order, minibatches, time-out and scheduler."""
    loads = [load, replace(load.workload, rate_kpps=7.0)]
    assert RUN_MESSAGE.validate_json(run_request(0, loads, True, None)).loads() == loads


def test_an_answer_of_a_gpu_is_received_as_it_was_sent() -> None:
    """Latency and stages, means and 99th percentiles."""
    line = run_answer(0, Run((MEASURED,)))
    assert json.loads(line)["workloads"][0]["stages_us"] == {
        "batching": 1, "pre_post": 2, "transfer_wait": 3, "transfer": 4, "kernel_wait": 5, "kernel": 6, "return": 7,
    }  # fmt: skip
    assert parse_run(json.loads(line), [paced({0: 1})]).measurements == (MEASURED,)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"gpu": {"batch": 0}}, "workloads.0.nf.gpu.batch"),
        ({"gpu": {"batch": 1, "order": -1}}, "workloads.0.nf.gpu.order"),
        ({"gpu": {"batch": 1, "minibatches": [{"sm": 0}]}}, "minibatches.0.packets: is missing"),
        ({"gpu": {"batch": 1, "flush_us": 0}}, "workloads.0.nf.gpu.flush_us"),
        ({"gpu": {"batch": 1, "scheduler": "fair"}}, "workloads.0.nf.gpu.scheduler"),
        ({"rate_kpps": -1}, "workloads.0.nf.rate_kpps"),
        ({"rate_kpps": 0}, "counter with gpu needs a rate_kpps above 0"),
        ({"parameters": {"rules": 1}}, "counter has both rate_kpps and parameters"),
        ({"gpu": {"batch": 3, "order": 0, "minibatches": [{"sm": 9, "packets": 3}]}}, "minibatch on SM 9"),
    ],
)
def test_a_wrong_gpu_request_is_refused_with_its_fault(changes: dict[str, object], message: str) -> None:
    """The answer names the key or the value."""
    workload = paced({0: 3}).as_request() | changes
    answered = json.loads(answer(GpuToy(), json.dumps({"id": 3, "op": "run", "workloads": [workload]})))
    assert answered["ok"] is False and answered["error"]["code"] == "bad-request"
    assert message in answered["error"]["message"]


def test_an_nf_at_rate_0_runs_in_a_closed_loop() -> None:
    """As without the key, which testbeds without rates know."""
    line = json.dumps({"id": 3, "op": "run", "workloads": [(paced({0: 3}).workload.as_request() | {"rate_kpps": 0})]})
    assert json.loads(answer(ToyTestbed(), line))["ok"] is True


def test_stages_that_are_no_times_are_no_measurement() -> None:
    """No model learns from them."""
    wrong = Measurement(1.0, Counters(), stages_us=GpuStages(1.0, 2.0, float("nan"), 4.0, 5.0, 6.0, 7.0))
    with pytest.raises(TestbedError, match="GpuStages"):
        refuse_invalid(Run((wrong,)))


def test_a_program_that_knows_neither_rates_nor_cores_is_not_asked_for_them(tmp_path: Path) -> None:
    """It would ignore the keys and measure a closed loop on its default cores."""
    program = tmp_path / "toy.py"
    program.write_text(
        f"import sys\nsys.path.insert(0, {str(REPO)!r})\n"
        "from profiler.serve import serve\nfrom tests.profiler.toy_testbed import ToyTestbed\n"
        "serve(ToyTestbed(), sys.stdin, sys.stdout)\n"
    )
    with ExecTestbed(f"{sys.executable} {program}") as testbed:
        with pytest.raises(RunRefused, match="rate_kpps of NFs is not known to toy; counter: toy has no gpu"):
            testbed.run([paced({0: 1})])
        with pytest.raises(RunRefused, match="counter cannot be given 4 cores, possible: 2"):
            testbed.run([replace(NF, cores=4)])
        assert testbed.run([paced({0: 1}).workload.saturated, replace(NF, cores=2)]).measurements


NF = Workload("counter", TRAFFIC)


def test_an_nf_is_received_with_the_cores_that_it_was_sent_with() -> None:
    """With a rate and with parameters, too."""
    four = replace(NF, cores=4)
    loads = [NF, four, replace(four, rate_kpps=7.0), ConfiguredWorkload.of(four, {"rules": 1})]
    assert RUN_MESSAGE.validate_json(run_request(0, loads, True, None)).loads() == loads
    fault = answer(ToyTestbed(), json.dumps({"id": 0, "op": "run", "workloads": [NF.as_request() | {"cores": 0}]}))
    assert "workloads.0.nf.cores" in fault


def test_all_faults_of_a_gpu_request_are_named_at_once() -> None:
    """So that one answer is enough to correct a request."""
    wrong = [paced({5: 200}, batch=300, rate_kpps=0), paced({0: 200}), paced({1: 9})]
    assert len(refusals(gpu_description(), wrong)) == 8


SERVER = SimulatedServer().describe()
SERVER_TRAFFIC = SERVER.traffic


def chain(stages: Sequence[str | NfStage], cores: Sequence[Sequence[int]], **other: object) -> ChainLoad:
    return ChainLoad.of(stages, cores, SERVER_TRAFFIC, **other)  # type: ignore[arg-type]


def on_cores(*counts: int) -> list[Load]:
    return [replace(NF, cores=count) for count in counts]


GPU, PLAIN, PACED = gpu_description(), description(), description(paced=True)
SEVERAL = description(nfs=[{"name": "counter", "cores": 2, "core_counts": [1, 2, 4]}])


@pytest.mark.parametrize(
    ("described", "loads", "faults"),
    [
        # numbers of cores that are described count in the place of the default
        (SEVERAL, on_cores(4, 2), []),
        (SEVERAL, on_cores(4, 1, 2), ["needs 7 cores, the NIC has 6"]),
        (SEVERAL, on_cores(3), ["counter cannot be given 3 cores, possible: 1, 2, 4"]),
        (PLAIN, on_cores(2, 0), []),
        (PLAIN, on_cores(4), ["counter cannot be given 4 cores, possible: 2"]),
        # it would otherwise measure another question than was posed
        (PLAIN, [paced({0: 1})], ["counter: rate_kpps of NFs is not known to toy", "counter: toy has no gpu"]),
        (PLAIN, [chain(["ACL"], [[0]])], ["chains of NFs are not known to toy"]),
        # a server that offers packets at a rate knows no GPU settings
        (PACED, [replace(NF, rate_kpps=5.0)], []),
        (PACED, [paced({0: 1})], ["counter: toy has no gpu"]),
        (GPU, [paced({0: 128})], []),  # an SM full
        (GPU, [paced({0: 33, 1: 97})], []),  # 2 and 4 executors
        (GPU, [paced({0: 64}, order=5), paced({0: 64}, order=2)], []),  # two NFs share an SM; orders may be sparse
        (GPU, [paced({0: 1}, order=None), paced({1: 1}, order=None)], []),  # the bus serves batches as they come
        (GPU, [scheduled(200), scheduled(3)], []),
        (GPU, [scheduled(200, "temporal"), scheduled(3, "temporal")], []),
        (GPU, [NF], ["counter: toy runs NFs with rate_kpps and gpu only"]),
        (GPU, [replace(NF, rate_kpps=5.0)], ["counter: toy runs NFs with rate_kpps and gpu only"]),
        (GPU, [paced({0: 1}, rate_kpps=0)], ["counter: rate_kpps 0 is not above 0"]),
        (GPU, [paced({2: 1})], ["counter: minibatch on SM 2: there are 2, numbered from 0"]),
        (GPU, [paced({0: 5}, batch=6)], ["counter: minibatches of 5 packets for a batch of 6"]),
        (GPU, [paced({0: 129})], ["SM 0 needs 5 executors, it has 4"]),
        (GPU, [paced({0: 97}), paced({0: 1}, order=1)], ["SM 0 needs 5 executors, it has 4"]),
        (GPU, [paced({0: 1}), paced({1: 1})], ["order 0 is given twice"]),
        (GPU, [paced({0: 1}), paced({1: 1}, order=None)], ["order is given for some NFs only"]),
        (GPU, [scheduled(257)], ["counter: a batch of 257 packets, the GPU takes 256"]),
        (GPU, [scheduled(1), scheduled(1, "temporal")],
         ["scheduler spatial and scheduler temporal exclude each other"]),
        (GPU, [paced({0: 1}, order=None), scheduled(1)], ["minibatches and scheduler spatial exclude each other"]),
        (GPU, [paced({0: 1}, order=at) for at in range(3)], ["needs 3 workers, there are 2"]),
        (SERVER, [chain(["ACL", "NAT"], [[0, 1]])], []),  # run to completion
        (SERVER, [chain(["ACL", "NAT"], [[1], [0]])], []),  # a pipeline
        (SERVER, [chain(["ACL", "NAT", "LB"], [[0, 2], [1]], shares=[0.5, 1])], []),  # stages of one core apart
        (SERVER, [chain([NfStage.of("ACL", {"rules": 1024}), "ACL"], [[0, 1]])], []),
        (SERVER, [ConfiguredWorkload.of(Workload("ACL", SERVER_TRAFFIC), {"rules": 1024})], []),
        *((SERVER, [load], [f"chain {fault}"]) for load, fault in (
            (chain(["ACL", "Firewall"], [[0, 1]]), "ACL,Firewall: stage 1: NF Firewall is not known"),
            (chain(["ACL", "NAT"], [[0]]), "ACL,NAT: stage 1 (NAT) is on no core"),
            (chain(["ACL", "NAT"], [[0, 1], [1]]), "ACL,NAT: stage 1 (NAT) is placed 2 times"),
            (chain(["ACL"], [[0, 0]]), "ACL: stage 0 (ACL) is placed 2 times"),
            (chain(["ACL"], []), "ACL: has no cores"),
            (chain(["ACL"], [[0], []]), "ACL: core 1 has no stage"),
            (chain(["ACL"], [[0, 1]]), "ACL: stage 1 does not exist: there are 1, numbered from 0"),
            (chain(["ACL"], [[0, -1]]), "ACL: stage -1 does not exist: there are 1, numbered from 0"),
            (chain(["ACL"], [[0]], shares=[0]), "ACL: share 0 is not above 0 and at most 1"),
            (chain(["ACL"], [[0]], shares=[1.5]), "ACL: share 1.5 is not above 0 and at most 1"),
            (chain(["ACL"], [[0]], shares=[1, 1]), "ACL: has 2 shares for 1 cores"),
            (chain([NfStage.of("NAT", {"rules": 9})], [[0]]), "NAT: stage 0: NAT has no parameter rules"),
            (chain([NfStage.of("ACL", {"rules": 0})], [[0]]), "ACL: stage 0: rules 0 is outside [1, 4096]"),
            (ChainLoad.of(["ACL"], [[0]], TrafficProfile(0, 1500)), "ACL: flows 0 is outside [1, 100000]"),
          )),
        (SERVER, [chain(["ACL"] * 17, [[at] for at in range(17)])], ["needs 17 cores, the NIC has 16"]),
        (SERVER, [ConfiguredWorkload.of(Workload("NAT", SERVER_TRAFFIC), {"rules": 9})],
         ["NAT has no parameter rules"]),
    ],
)  # fmt: skip
def test_each_fault_of_a_request_is_named_and_what_fits_is_accepted(
    described: TestbedDescription, loads: list[Load], faults: list[str]
) -> None:
    """With the NF, chain, stage, core, SM or value that is wrong."""
    assert refusals(described, loads) == faults


def test_all_faults_of_a_request_are_named_at_once() -> None:
    """So that one answer is enough to correct a request."""
    wrong = chain([NfStage.of("NAT", {"rules": 9}), "Firewall"], [[0], []], shares=[2, 1])
    assert len(refusals(SERVER, [wrong, wrong])) == 2 * 5
