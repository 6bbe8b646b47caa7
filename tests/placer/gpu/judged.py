"""Methods of admission, run on JSON documents and judged by the verifier."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from placer.gpu.plan import LatencySlo
from placer.gpu.registry import METHODS, MethodSetting
from placer.inputs.gpu.slos import device_of
from placer.report.text.admission import answer
from placer.verify.admission import admission_case, admission_faults

Json = dict[str, Any]

BY_FORMULA = tuple(name for name in METHODS if name != "predicted")
"""Every method that admits by the formulas of a DEVICE; `predicted` asks models of a server instead."""


class Judged(NamedTuple):
    """An answer, and every constraint that it breaks."""

    answer: Json
    faults: list[str]

    @property
    def admitted(self) -> int:
        return len(self.answer["admitted"])


def judged(method: str, device: Json, slos: Sequence[Json], setting: MethodSetting | None = None) -> Judged:
    """What a method answers for a DEVICE and SLOs, and what is wrong with it."""
    requests = [LatencySlo(**slo) for slo in slos]
    answered = answer(
        METHODS[method](device_of(device, "DEVICE"), requests, setting or MethodSetting(time_limit_s=10.0))
    )
    return Judged(answered, list(admission_faults(admission_case(device, slos, answered))))
