"""The testbed protocol, version 1 (docs/formats.md): what requests and answers look like, and what is wrong with them.

`profiler.exec` asks in this language and `profiler.serve` answers in it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, TypeAdapter, ValidationError

from profiler.testbed import Measurement, Run
from profiles import BenchLoad, Counters, Load, TrafficProfile, Workload

PROTOCOL = 1
BAD_REQUEST = "bad-request"
"""The error code of a request that would be refused again, too."""


def describe_request(number: int) -> str:
    """The line that asks a testbed what it is."""
    return json.dumps({"id": number, "op": "describe"})


def run_request(number: int, loads: Sequence[Load], noise: bool, seed: int | None) -> str:
    """The line that asks for one run; `noise` and `seed` are only said when they are not the default."""
    request: dict[str, object] = {"id": number, "op": "run", "workloads": [load.as_request() for load in loads]}
    if not noise:
        request["noise"] = False
    if seed is not None:
        request["seed"] = seed
    return json.dumps(request)


class _Message(BaseModel):
    model_config = ConfigDict(extra="ignore", strict=True)


class _Counters(_Message):
    ipc: FiniteFloat = Field(ge=0)
    irt: FiniteFloat = Field(ge=0)
    l2crd: FiniteFloat = Field(ge=0)
    l2cwr: FiniteFloat = Field(ge=0)
    memrd: FiniteFloat = Field(ge=0)
    memwr: FiniteFloat = Field(ge=0)
    wss: FiniteFloat = Field(ge=0)


class _Measurement(_Message):
    throughput_kpps: FiniteFloat = Field(gt=0)
    counters: _Counters


class _Run(_Message):
    elapsed_s: FiniteFloat = Field(default=0.0, ge=0)
    workloads: list[_Measurement]


def parse_run(answer: object, loads: int) -> Run:
    """The run that an answer tells of.

    Raises
    ------
    ValueError
        When a throughput is not finite and positive, a counter missing, negative or not finite, or the number of
        workloads is not `loads`.
    """
    try:
        told = _Run.model_validate(answer)
    except ValidationError as error:
        raise ValueError("; ".join(faults_of(error))) from None
    if len(told.workloads) != loads:
        raise ValueError(f"{len(told.workloads)} workloads answered, {loads} asked")
    return Run(
        tuple(
            Measurement(one.throughput_kpps, Counters.from_mapping(one.counters.model_dump())) for one in told.workloads
        ),
        told.elapsed_s,
    )


class _NfRequest(_Message):
    kind: Literal["nf"]
    name: str
    traffic: dict[str, FiniteFloat]


class _BenchRequest(_Message):
    kind: Literal["bench"]
    name: str
    parameters: dict[str, FiniteFloat] = {}


class RunRequest(_Message):
    """A `run` request as it came in."""

    workloads: list[Annotated[_NfRequest | _BenchRequest, Field(discriminator="kind")]] = Field(min_length=1)
    noise: bool = True
    seed: int | None = None

    def loads(self) -> list[Load]:
        """The NF workloads and benches asked for.

        Raises
        ------
        ValueError
            When a traffic profile lacks its flows or packet size.
        """
        return [_load(workload) for workload in self.workloads]


RUN_REQUEST: TypeAdapter[RunRequest] = TypeAdapter(RunRequest)


def _load(asked: _NfRequest | _BenchRequest) -> Load:
    if isinstance(asked, _BenchRequest):
        return BenchLoad.of(asked.name, asked.parameters)
    if missing := [name for name in ("flows", "packet_size") if name not in asked.traffic]:
        raise ValueError(f"traffic of {asked.name} lacks {', '.join(missing)}")
    return Workload(asked.name, TrafficProfile.from_mapping(asked.traffic))


def run_answer(number: object, run: Run) -> str:
    """The line that tells what was measured."""
    workloads = [
        {"throughput_kpps": one.throughput_kpps, "counters": one.counters.as_dict()} for one in run.measurements
    ]
    return json.dumps({"id": number, "ok": True, "elapsed_s": run.elapsed_s, "workloads": workloads})


def error_answer(number: object, code: str, message: str) -> str:
    """The line that refuses a request, or tells that it failed."""
    return json.dumps({"id": number, "ok": False, "error": {"code": code, "message": message}})


def faults_of(error: ValidationError) -> list[str]:
    """What is wrong with a message, `key.key: what`, one per fault."""
    return [f"{_place(fault['loc'])}: {fault['msg']}" for fault in error.errors()]


def _place(parts: Iterable[object]) -> str:
    return ".".join(str(part) for part in parts) or "message"
