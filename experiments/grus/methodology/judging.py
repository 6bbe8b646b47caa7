"""What methods admit, judged by the verifier, which shares no code with them."""

from collections.abc import Sequence
from time import perf_counter
from typing import NamedTuple

from placer.gpu.device import GpuDevice
from placer.gpu.plan import LatencySlo
from placer.gpu.registry import METHODS, MethodSetting
from placer.inputs.gpu.slos import write_device, write_slo
from placer.report.text.admission import answer
from placer.verify.admission import admission_case, admission_faults, late

METHOD_NAMES = ("exact", "grus", "grus-printed", "grus-ns", "g-net", "baymax", "fixed-batch")
PUBLISHED_RATIOS = {"baymax": 4.5, "g-net": 2.0}
"""How many times as many SLOs Grus satisfies at a tolerance of 30 % (section VII-C); of G-NET, more than that."""
TIME_LIMIT_S = 1.0


class JudgedAdmission(NamedTuple):
    """How an answer turned out."""

    admitted: int
    satisfied: int  # admitted SLOs that keep their latency
    goodput_kpps: float  # the rates of these
    sound: bool  # whether the set breaks no constraint
    bound: int
    seconds: float  # of the call


def judge_admission(method: str, gpu: GpuDevice, slos: Sequence[LatencySlo], seed: int = 0) -> JudgedAdmission:
    """Run a method and judge its answer."""
    setting = MethodSetting(seed=seed, time_limit_s=TIME_LIMIT_S)
    begin = perf_counter()
    admission = METHODS[method](gpu, slos, setting)
    seconds = perf_counter() - begin
    case = admission_case(write_device(gpu), [write_slo(slo) for slo in slos], answer(admission))
    violating = late(case)
    satisfied = [
        admitted_slo.slo.rate_kpps for admitted_slo in admission.admitted if admitted_slo.slo.id not in violating
    ]
    sound = not any(admission_faults(case))
    return JudgedAdmission(len(admission.admitted), len(satisfied), sum(satisfied), sound, admission.bound, seconds)
