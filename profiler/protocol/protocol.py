"""The testbed protocol, version 1 (docs/formats/testbed-protocol.md): requests, answers, and what is invalid in them.
`profiler.testbeds.exec` sends the requests, `profiler.serve` answers them."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from math import inf
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, TypeAdapter, ValidationError

from profiler.testbed import BestEffort, GpuStages, Measurement, PacketLatency, Run, StageMeasurement
from profiles import (
    BenchLoad,
    ChainLoad,
    ConfiguredWorkload,
    Counters,
    GpuSettings,
    GpuWorkload,
    Load,
    Minibatch,
    NfStage,
    TrafficProfile,
    Workload,
)
from profiles.description import MOST_CORES, MOST_PACKETS, MOST_SMS
from profiles.validation import word_fault

PROTOCOL_VERSION = 1
BAD_REQUEST = "bad-request"  # the error code of a request that would be refused again
LARGEST_NUMBER = 1e18
"""Of a counter or throughput; what is larger is no measurement, and sums of it might not be finite."""
SHOWN_FAULTS = 20
MOST_STAGES = 100
MOST_ORDER = 1_000_000


def describe_request(number: int) -> str:
    """The line that requests the description of a testbed."""
    return json.dumps({"id": number, "op": "describe"})


def run_request(number: int, loads: Sequence[Load], noise: bool, seed: int | None) -> str:
    """The line that requests one run; `noise` and `seed` are only sent when they are not the default."""
    request: dict[str, object] = {"id": number, "op": "run", "workloads": [load.as_request() for load in loads]}
    if not noise:
        request["noise"] = False
    if seed is not None:
        request["seed"] = seed
    return json.dumps(request)


class _Message(BaseModel):
    model_config = ConfigDict(extra="ignore", strict=True)


_Reading = Annotated[FiniteFloat, Field(ge=0, le=LARGEST_NUMBER)]


class _Counters(_Message):
    ipc: _Reading
    irt: _Reading
    l2crd: _Reading
    l2cwr: _Reading
    memrd: _Reading
    memwr: _Reading
    wss: _Reading


class _Stage(_Message):
    throughput_kpps: _Reading
    dropped_pct: FiniteFloat = Field(ge=0, le=100)
    cpu_pct: _Reading | None = None


class _Latency(_Message):
    mean: _Reading
    p50: _Reading
    p99: _Reading
    max: _Reading
    p95: _Reading | None = None


class _GpuStages(_Message):
    batching: _Reading
    pre_post: _Reading
    transfer_wait: _Reading
    transfer: _Reading
    kernel_wait: _Reading
    kernel: _Reading
    returned: _Reading = Field(alias="return")

    def stages(self) -> GpuStages:
        return GpuStages(**self.model_dump())


class _Measurement(_Message):
    throughput_kpps: FiniteFloat = Field(gt=0, le=LARGEST_NUMBER)
    counters: _Counters
    standard_error_pct: _Reading | None = None
    stages: list[_Stage] | None = None
    latency_us: _Latency | None = None
    stages_us: _GpuStages | None = None
    stages_p99_us: _GpuStages | None = None


class _Run(_Message):
    elapsed_s: _Reading = 0.0
    workloads: list[_Measurement]
    best_effort: bool = False
    disturbed_pct: FiniteFloat | None = Field(default=None, ge=0, le=100)

    def effort(self) -> BestEffort | None:
        """What a best-effort answer says of itself."""
        errors = tuple(workload.standard_error_pct for workload in self.workloads)
        return BestEffort(errors, self.disturbed_pct) if self.best_effort else None


def parse_run(answer: object, loads: Sequence[Load]) -> Run:
    """The run of `loads` in an answer. Raises `ValueError` when a throughput is not finite and positive, a counter
    missing, negative or not finite, or not every workload of `loads`, or every stage of a chain, has its measurement.
    """
    try:
        run = _Run.model_validate(answer)
    except ValidationError as error:
        raise ValueError("; ".join(faults_of(error))) from None
    if len(run.workloads) != len(loads):
        raise ValueError(f"{len(run.workloads)} workloads answered, {len(loads)} requested")
    for at, (load, one) in enumerate(zip(loads, run.workloads, strict=True)):
        stages = len(load.stages) if isinstance(load, ChainLoad) else 0
        if stages and len(one.stages or ()) != stages:
            raise ValueError(f"workloads.{at}.stages: {len(one.stages or ())} stages answered, {stages} requested")
    return Run(tuple(map(_measurement, loads, run.workloads)), run.elapsed_s, run.effort())


def _measurement(load: Load, one: _Measurement) -> Measurement:
    return Measurement(
        one.throughput_kpps,
        Counters.from_mapping(one.counters.model_dump()),
        tuple(StageMeasurement(**stage.model_dump()) for stage in one.stages or ())
        if isinstance(load, ChainLoad)
        else (),
        PacketLatency(**one.latency_us.model_dump()) if one.latency_us else None,
        one.stages_us.stages() if one.stages_us else None,
        one.stages_p99_us.stages() if one.stages_p99_us else None,
    )


class _MinibatchMessage(_Message):
    sm: int = Field(ge=0, lt=MOST_SMS)
    packets: int = Field(gt=0, le=MOST_PACKETS)


class _GpuMessage(_Message):
    batch: int = Field(gt=0, le=MOST_PACKETS)
    order: int | None = Field(default=None, ge=0, le=MOST_ORDER)
    minibatches: list[_MinibatchMessage] = Field(default=[], max_length=MOST_SMS)
    flush_us: FiniteFloat | None = Field(default=None, gt=0, le=LARGEST_NUMBER)
    scheduler: Literal["temporal", "spatial"] | None = None

    def settings(self) -> GpuSettings:
        minibatches = tuple(Minibatch(minibatch.sm, minibatch.packets) for minibatch in self.minibatches)
        return GpuSettings(self.batch, self.order, minibatches, self.flush_us, self.scheduler)


class _NfMessage(_Message):
    kind: Literal["nf"]
    name: str
    traffic: dict[str, FiniteFloat]
    parameters: dict[str, FiniteFloat] = {}
    rate_kpps: FiniteFloat = Field(default=0.0, ge=0, le=LARGEST_NUMBER)
    cores: int | None = Field(default=None, gt=0, le=MOST_CORES)
    gpu: _GpuMessage | None = None


class _BenchMessage(_Message):
    kind: Literal["bench"]
    name: str
    parameters: dict[str, FiniteFloat] = {}


class _StageMessage(_Message):
    name: str
    parameters: dict[str, FiniteFloat] = {}


class _ChainMessage(_Message):
    kind: Literal["chain"]
    stages: list[_StageMessage] = Field(min_length=1, max_length=MOST_STAGES)
    cores: list[list[int]] = Field(max_length=MOST_CORES)
    traffic: dict[str, FiniteFloat]
    rate_kpps: FiniteFloat = Field(default=0.0, ge=0, le=LARGEST_NUMBER)
    shares: list[FiniteFloat] | None = Field(default=None, min_length=1, max_length=MOST_CORES)


class RunMessage(_Message):
    """A `run` request as it was received."""

    workloads: list[Annotated[_NfMessage | _BenchMessage | _ChainMessage, Field(discriminator="kind")]] = Field(
        min_length=1
    )
    noise: bool = True
    seed: int | None = None

    def loads(self) -> list[Load]:
        """The NF workloads, benches and chains to run. Raises `ValueError` when a traffic profile lacks its flows or
        packet size, or an NF on a GPU its rate."""
        faults = [fault for workload in self.workloads for fault in _lacking(workload)]
        if faults:
            raise ValueError("; ".join(faults))
        return [_load(workload) for workload in self.workloads]


RUN_MESSAGE: TypeAdapter[RunMessage] = TypeAdapter(RunMessage)


def _lacking(message: _NfMessage | _BenchMessage | _ChainMessage) -> list[str]:
    """What a workload lacks, and what does not go together."""
    if isinstance(message, _BenchMessage):
        return []
    missing = [name for name in ("flows", "packet_size") if name not in message.traffic]
    name = message.name if isinstance(message, _NfMessage) else "the chain"
    faults = [f"traffic of {name} lacks {', '.join(missing)}"] if missing else []
    if isinstance(message, _NfMessage):
        if message.gpu and not message.rate_kpps:
            faults.append(f"{name} with gpu needs a rate_kpps above 0")
        if message.rate_kpps and message.parameters:
            faults.append(f"{name} has both rate_kpps and parameters")
    return faults


def _load(message: _NfMessage | _BenchMessage | _ChainMessage) -> Load:
    if isinstance(message, _BenchMessage):
        return BenchLoad.of(message.name, message.parameters)
    traffic = TrafficProfile.from_mapping(message.traffic)
    if isinstance(message, _ChainMessage):
        stages = [NfStage.of(stage.name, stage.parameters) for stage in message.stages]
        shares = message.shares or ()
        return ChainLoad.of(stages, message.cores, traffic, rate_kpps=message.rate_kpps, shares=shares)
    workload = Workload(message.name, traffic, message.rate_kpps or inf, cores=message.cores or 0)
    if message.gpu:
        return GpuWorkload(workload, message.gpu.settings())
    return ConfiguredWorkload.of(workload, message.parameters) if message.parameters else workload


def run_answer(number: object, run: Run) -> str:
    """The line with the measurements of a run."""
    workloads = [write_measurement(measurement) for measurement in run.measurements]
    answer = {"id": number, "ok": True, "elapsed_s": run.elapsed_s, "workloads": workloads}
    return json.dumps(answer | _effort_fields(run, workloads))


def _effort_fields(run: Run, workloads: Sequence[dict[str, object]]) -> dict[str, object]:
    """The keys of a best-effort answer; errors are added to `workloads`."""
    if run.best_effort is None:
        return {}
    for one, error in zip(workloads, run.best_effort.standard_error_pct, strict=True):
        one["standard_error_pct"] = error
    return {"best_effort": True, "disturbed_pct": run.best_effort.disturbed_pct}


def _write_readings(readings: StageMeasurement | PacketLatency) -> dict[str, float]:
    return {name: value for name, value in asdict(readings).items() if value is not None}


def write_measurement(one: Measurement) -> dict[str, object]:
    """A measurement as answers write it; stages and latencies only where there are any."""
    answer: dict[str, object] = {"throughput_kpps": one.throughput_kpps, "counters": one.counters.as_dict()}
    if one.stages:
        answer["stages"] = [_write_readings(stage) for stage in one.stages]
    if one.latency_us:
        answer["latency_us"] = _write_readings(one.latency_us)
    if one.stages_us:
        answer["stages_us"] = one.stages_us.as_dict()
    if one.stages_p99_us:
        answer["stages_p99_us"] = one.stages_p99_us.as_dict()
    return answer


def error_answer(number: object, code: str, message: str) -> str:
    """The line that refuses a request, or reports that it failed."""
    return json.dumps({"id": number, "ok": False, "error": {"code": code, "message": message}})


def faults_of(error: ValidationError) -> list[str]:
    """What is wrong with a message, `key.key: what` per fault; of very many, the first and how many more."""
    faults = error.errors(include_url=False)
    shown = [f"{_place(fault['loc'])}: {word_fault(fault)}" for fault in faults[:SHOWN_FAULTS]]
    return shown if len(faults) <= SHOWN_FAULTS else [*shown, f"... and {len(faults) - SHOWN_FAULTS} more"]


def _place(parts: Iterable[object]) -> str:
    return ".".join(str(part) for part in parts) or "message"
