"""Scenarios of `placer predict` for a GPU server: co-locations of NFs with rates and GPU settings, as JSON Lines."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from pydantic import BaseModel, ConfigDict, Field

from placer.inputs.scenarios import LARGEST_VALUE, Value, parse_lines, refuse_scenarios, unknown_attributes
from profiler.protocol.request_checks import gpu_refusals
from profiles import ATTRIBUTES, Fault, GpuSettings, GpuWorkload, Minibatch, TrafficProfile, Workload

if TYPE_CHECKING:
    from predictor.gpu.models import GpuModels

MOST_WHOLE = 1_000_000
EXTRAPOLATE_OPTION = "--extrapolate predicts beyond what was measured, and marks it"

_Above = Annotated[float, Field(strict=True, allow_inf_nan=False, gt=0, le=LARGEST_VALUE)]
_Count = Annotated[int, Field(strict=True, gt=0, le=MOST_WHOLE)]
_Index = Annotated[int, Field(strict=True, ge=0, le=MOST_WHOLE)]


class _Line(BaseModel):
    model_config = ConfigDict(extra="ignore")


class _MinibatchLine(_Line):
    sm: _Index
    packets: _Count


class _GpuLine(_Line):
    batch: _Count
    order: _Index | None = None
    minibatches: Annotated[list[_MinibatchLine], Field(min_length=1)]
    flush_us: _Above | None = None


class _NfLine(_Line):
    name: str
    kind: Annotated[str, Field(pattern="^nf$")] = "nf"
    traffic: dict[str, Value] = Field(default_factory=dict)
    rate_kpps: _Above
    gpu: _GpuLine


class _GpuScenarioLine(_Line):
    workloads: Annotated[list[_NfLine], Field(min_length=1)]


def read_gpu_scenarios(models: GpuModels, path: Path, *, extrapolate: bool = False) -> list[tuple[GpuWorkload, ...]]:
    """The scenarios in `path`, JSON Lines: co-locations of NFs on the GPU server of `models`. `extrapolate`: accept
    values outside what was measured. Raises `InputError` with every fault of the file: a line that is no scenario, an
    unknown NF, settings that the server refuses or that are outside what was measured."""
    found, faults = [], list[Fault]()
    for number, scenario in parse_lines(path, _GpuScenarioLine, faults):
        loads = tuple(_load(workload, models) for workload in scenario.workloads)
        faults += [Fault(str(path), number, *wrong) for wrong in _wrong(models, scenario, loads, extrapolate)]
        found.append(loads)
    refuse_scenarios(path, found, faults)
    return found


def _wrong(
    models: GpuModels, scenario: _GpuScenarioLine, loads: tuple[GpuWorkload, ...], extrapolate: bool
) -> list[tuple[str, str, str | None]]:
    """Column, message and hint of each fault of a scenario."""
    wrong: list[tuple[str, str, str | None]] = [*unknown_attributes(item.traffic for item in scenario.workloads)]
    for load in dict.fromkeys(loads):
        empty = [name for name in ("flows", "packet_size") if load.traffic.as_dict()[name] <= 0]
        wrong += [(f"traffic.{name}", "is not above 0", None) for name in empty]
        if not empty:
            checked = models.check(load, extrapolate=extrapolate)
            wrong += [
                (column, message, EXTRAPOLATE_OPTION if "measured" in message else None) for column, message in checked
            ]
    return wrong + [("gpu", fault, None) for fault in gpu_refusals(models.testbed, loads)]


def _load(item: _NfLine, models: GpuModels) -> GpuWorkload:
    known = {name: value for name, value in item.traffic.items() if name in ATTRIBUTES}
    traffic = TrafficProfile.from_mapping({**models.default_traffic.as_dict(), **known})
    parts = tuple(Minibatch(minibatch.sm, minibatch.packets) for minibatch in item.gpu.minibatches)
    settings = GpuSettings(item.gpu.batch, item.gpu.order, parts, item.gpu.flush_us)
    return GpuWorkload(Workload(item.name, traffic, item.rate_kpps), settings)
