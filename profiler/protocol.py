"""The testbed protocol, version 1 (docs/formats.md): requests and answers, and what is wrong with invalid ones.

`profiler.testbeds.exec` sends the requests, `profiler.serve` answers them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, TypeAdapter, ValidationError

from profiler.best_effort import BestEffort
from profiler.testbed import Measurement, Run
from profiles import BenchLoad, Counters, Load, TrafficProfile, Workload
from profiles.validation import worded

PROTOCOL = 1
BAD_REQUEST = "bad-request"
"""The error code of a request that would be refused again."""
LARGEST = 1e18
"""Of a counter or throughput; what is larger is no measurement, and sums of it might not be finite."""
SHOWN_FAULTS = 20


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


_Reading = Annotated[FiniteFloat, Field(ge=0, le=LARGEST)]


class _Counters(_Message):
    ipc: _Reading
    irt: _Reading
    l2crd: _Reading
    l2cwr: _Reading
    memrd: _Reading
    memwr: _Reading
    wss: _Reading


class _Measurement(_Message):
    throughput_kpps: FiniteFloat = Field(gt=0, le=LARGEST)
    counters: _Counters
    standard_error_pct: _Reading | None = None


class _Run(_Message):
    elapsed_s: _Reading = 0.0
    workloads: list[_Measurement]
    best_effort: bool = False
    disturbed_pct: FiniteFloat | None = Field(default=None, ge=0, le=100)

    def effort(self) -> BestEffort | None:
        """What a best-effort answer says of itself."""
        errors = tuple(one.standard_error_pct for one in self.workloads)
        return BestEffort(errors, self.disturbed_pct) if self.best_effort else None


def parse_run(answer: object, loads: int) -> Run:
    """The run in an answer.

    Raises
    ------
    ValueError
        When a throughput is not finite and positive, a counter missing, negative or not finite, or the number of
        workloads is not `loads`.
    """
    try:
        run = _Run.model_validate(answer)
    except ValidationError as error:
        raise ValueError("; ".join(faults_of(error))) from None
    if len(run.workloads) != loads:
        raise ValueError(f"{len(run.workloads)} workloads answered, {loads} requested")
    return Run(
        tuple(
            Measurement(one.throughput_kpps, Counters.from_mapping(one.counters.model_dump())) for one in run.workloads
        ),
        run.elapsed_s,
        run.effort(),
    )


class _NfMessage(_Message):
    kind: Literal["nf"]
    name: str
    traffic: dict[str, FiniteFloat]


class _BenchMessage(_Message):
    kind: Literal["bench"]
    name: str
    parameters: dict[str, FiniteFloat] = {}


class RunMessage(_Message):
    """A `run` request as it was received."""

    workloads: list[Annotated[_NfMessage | _BenchMessage, Field(discriminator="kind")]] = Field(min_length=1)
    noise: bool = True
    seed: int | None = None

    def loads(self) -> list[Load]:
        """The NF workloads and benches to run.

        Raises
        ------
        ValueError
            When a traffic profile lacks its flows or packet size.
        """
        return [_load(workload) for workload in self.workloads]


RUN_MESSAGE: TypeAdapter[RunMessage] = TypeAdapter(RunMessage)


def _load(message: _NfMessage | _BenchMessage) -> Load:
    if isinstance(message, _BenchMessage):
        return BenchLoad.of(message.name, message.parameters)
    if missing := [name for name in ("flows", "packet_size") if name not in message.traffic]:
        raise ValueError(f"traffic of {message.name} lacks {', '.join(missing)}")
    return Workload(message.name, TrafficProfile.from_mapping(message.traffic))


def run_answer(number: object, run: Run) -> str:
    """The line with the measurements of a run."""
    workloads = [
        {"throughput_kpps": one.throughput_kpps, "counters": one.counters.as_dict()} for one in run.measurements
    ]
    answer = {"id": number, "ok": True, "elapsed_s": run.elapsed_s, "workloads": workloads}
    return json.dumps(answer | _effort_fields(run, workloads))


def _effort_fields(run: Run, workloads: Sequence[dict[str, object]]) -> dict[str, object]:
    """The keys of a best-effort answer; errors are added to `workloads`."""
    if run.best_effort is None:
        return {}
    for one, error in zip(workloads, run.best_effort.standard_error_pct, strict=True):
        one["standard_error_pct"] = error
    return {"best_effort": True, "disturbed_pct": run.best_effort.disturbed_pct}


def error_answer(number: object, code: str, message: str) -> str:
    """The line that refuses a request, or reports that it failed."""
    return json.dumps({"id": number, "ok": False, "error": {"code": code, "message": message}})


def faults_of(error: ValidationError) -> list[str]:
    """What is wrong with a message, `key.key: what` per fault; of very many, the first and how many more."""
    faults = error.errors(include_url=False)
    shown = [f"{_place(fault['loc'])}: {worded(fault)}" for fault in faults[:SHOWN_FAULTS]]
    return shown if len(faults) <= SHOWN_FAULTS else [*shown, f"... and {len(faults) - SHOWN_FAULTS} more"]


def _place(parts: Iterable[object]) -> str:
    return ".".join(str(part) for part in parts) or "message"
