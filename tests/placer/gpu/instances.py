"""Small devices and SLOs, worked by hand."""

from collections.abc import Callable, Sequence
from math import ceil
from random import Random
from typing import Any, NamedTuple

from placer.gpu.device import Arbitration, GpuDevice, GpuNf
from placer.gpu.latency import violations
from placer.gpu.plan import Admission, LatencySlo
from placer.gpu.registry import METHODS, MethodSetting
from placer.inputs.gpu.slos import device_of
from placer.report.text.admission import answer
from placer.verify.admission import admission_case, admission_faults


def small_device(
    *,
    sms: int = 2,
    executors: int = 2,
    workers: int = 10,
    arbitration: Arbitration = Arbitration.ONE_SHOT,
    transfer_us: tuple[float, float] = (0.0, 10.0),
    kernel_us: tuple[float, float] = (0.0, 20.0),
    pre_post_us: float = 5.0,
    beta_us: float = 0.0,
) -> GpuDevice:
    """A GPU with one NF, `ids`, ten packets per executor, and equal penalties."""
    return GpuDevice(
        sms, executors, 10, workers, arbitration, {"payload": transfer_us},
        {"ids": GpuNf("payload", pre_post_us, kernel_us)}, {"ids": {"ids": beta_us}},
    )  # fmt: skip


def slos_of(*latencies_us: float, rate_kpps: float = 10.0, batch: int | None = None) -> list[LatencySlo]:
    """An SLO of `ids` for each latency: a, b, c, ..."""
    return [LatencySlo("abcdefghij"[k], "ids", rate_kpps, time, batch) for k, time in enumerate(latencies_us)]


NFS = {"acl": GpuNf("header", 5.0, (2.0, 8.0)), "ids": GpuNf("payload", 10.0, (6.0, 24.0))}


def small_gpu(
    arbitration: Arbitration = Arbitration.ONE_SHOT, *, sms: int = 2, executors: int = 4, workers: int = 10
) -> GpuDevice:
    """Two SMs of four executors for 10 packets each; an ids beside another takes 3 us longer."""
    transfer = {"header": (0.0, 4.0), "payload": (0.5, 4.0)}
    return GpuDevice(sms, executors, 10, workers, arbitration, transfer, NFS, {"ids": {"ids": 3.0, "acl": 1.0}})


def broken_rules(device: GpuDevice, slos: Sequence[LatencySlo], admission: Admission) -> list[str]:
    """What an admission violates of the model (CONTRACTS 10)."""
    admitted = admission.admitted
    found = [f"{one.id}: {one.cause}" for one in violations(device, admitted)]
    answered = [one.slo.id for one in (*admitted, *admission.rejected)]
    if sorted(answered) != sorted(slo.id for slo in slos):
        found.append("each SLO has one answer")
    if admission.bound < len(admitted) or admission.proven != (admission.bound == len(admitted)):
        found.append("bound")
    return found


Json = dict[str, Any]
Instance = tuple[Json, list[Json]]
Generator = Callable[[Random, str, int], Instance]
"""Given randomness, the arbitration and the number of SLOs: DEVICE and SLOs."""

ARBITRATIONS = ("one-shot", "sporadic")
CLASSES = ("header", "payload", "both")


def contended(rng: Random, arbitration: str, slos: int) -> Instance:
    """SLOs at a tolerance above the latency of the NF alone, as the paper generates them, on a small GPU."""
    device: Json = {
        "sms": rng.choice((1, 1, 2, 2, 3)),
        "executors_per_sm": rng.choice((2, 3, 4)),
        "packets_per_executor": rng.choice((1, 2, 2, 3)),
        "workers": slos if rng.random() < 0.9 else rng.randint(0, slos),
        "arbitration": arbitration,
        "transfer_us": {name: [_time(rng, 0.05, 1.5), _time(rng, 0, 6)] for name in CLASSES},
        "nfs": {
            name: {
                "class": rng.choice(CLASSES),
                "pre_post_us": _time(rng, 0, 8),
                "kernel_us": [_time(rng, 0, 6), _time(rng, 1, 15)],
            }
            for name in ("acl", "nids", "ipsec", "router")[: rng.randint(1, 4)]
        },
        "sharing_us": {},
    }
    for nf in device["nfs"]:
        betas = {other: _time(rng, 0, 8) for other in device["nfs"] if rng.random() < 0.6}
        if betas:
            device["sharing_us"][nf] = betas
    tolerance = rng.choice((0.05, 0.3, 1.0))
    spare = rng.uniform(1.0, 4.0)
    return device, _shuffled(rng, [_tolerant(rng, device, number, tolerance, spare) for number in range(slos)])


def _tolerant(rng: Random, device: Json, number: int, tolerance: float, spare: float) -> Json:
    """An SLO that is met alone with some batch, at a rate for which kernel and bus have some to spare."""
    nf = rng.choice(list(device["nfs"]))
    times = device["nfs"][nf]
    slope, fixed = device["transfer_us"][times["class"]]
    all_executors = device["sms"] * device["executors_per_sm"]
    executors = rng.randint(1, max(1, min(all_executors, all_executors // 2 + 1)))
    batch = rng.randint(
        (executors - 1) * device["packets_per_executor"] + 1, executors * device["packets_per_executor"]
    )
    kernel = times["kernel_us"][0] * -(-executors // device["sms"]) + times["kernel_us"][1]
    transfer = slope * batch + fixed
    period = max(kernel, times["pre_post_us"], transfer) * rng.uniform(1.0, 1.0 + spare)
    rate = max(round(1000 * batch / period, 2), 0.01)
    alone = 1000 * (batch - 1) / rate + times["pre_post_us"] + transfer + kernel
    waiting = rng.uniform(0, 8) * (slope * batch + fixed) * rng.choice((0, 1, 1))
    slo = {
        "id": f"slo-{number}",
        "nf": nf,
        "rate_kpps": rate,
        "latency_us": max(round(alone * (1 + rng.uniform(0, tolerance)) + waiting, 2), 0.01),
    }
    if rng.random() < 0.15:
        slo["batch"] = batch
    if rng.random() < 0.04:
        slo["latency_us"] = rng.choice((0.01, 1e6))
    if rng.random() < 0.04:
        slo["rate_kpps"] = rng.choice((0.01, 1e5))
    return slo


def unseen(rng: Random, arbitration: str, slos: int) -> Instance:
    """Whole numbers with many ties: equal NFs, periods that divide each other, deadlines in steps of one transfer."""
    packets, step = rng.choice((1, 2, 4)), rng.choice((1, 2, 5))
    device: Json = {
        "sms": rng.randint(1, 3),
        "executors_per_sm": rng.randint(2, 3),
        "packets_per_executor": packets,
        "workers": max(slos + rng.choice((-1, 0, 0, 3)), 0),
        "arbitration": arbitration,
        "transfer_us": {"header": [0, step], "payload": [step, 0], "both": [step, rng.randint(0, 4)]},
        "nfs": {
            f"nf-{number}": {
                "class": rng.choice(CLASSES),
                "pre_post_us": rng.choice((0, 0, step)),
                "kernel_us": [rng.choice((0, step)), rng.choice((step, 3 * step, 8 * step))],
            }
            for number in range(rng.choice((1, 1, 2, 3)))
        },
    }
    if rng.random() < 0.8:
        device["sharing_us"] = {
            nf: {other: rng.choice((0, step, 4 * step)) for other in device["nfs"]} for nf in device["nfs"]
        }
    base = rng.choice((8, 16, 20)) * step
    return device, _shuffled(rng, [_stepped(rng, device, number, base, step) for number in range(slos)])


def _stepped(rng: Random, device: Json, number: int, base: int, step: int) -> Json:
    """A batch every `base` us, or every multiple by a power of two; its deadline is a whole number of steps."""
    nf = rng.choice(list(device["nfs"]))
    times = device["nfs"][nf]
    batch = rng.choice((1, 1, 2, device["packets_per_executor"], device["packets_per_executor"] + 1))
    period = base * 2 ** rng.randint(0, 2)
    slope, fixed = device["transfer_us"][times["class"]]
    alone = period * (batch - 1) / batch + times["pre_post_us"] + slope * batch + fixed + sum(times["kernel_us"])
    slo = {
        "id": f"{number}",
        "nf": nf,
        "rate_kpps": 1000 * batch / period,
        # rounded up by more than the slack of verifier and solvers, which the exhaustive search does not have
        "latency_us": ceil(1e6 * (alone + step * rng.choice((0, 1, 2, 3, 5, 8, 13)))) / 1e6,
    }
    if rng.random() < 0.3:
        slo["batch"] = batch
    if rng.random() < 0.3:
        slo |= {"rate_kpps": 1e-3 if rng.random() < 0.3 else slo["rate_kpps"], "latency_us": slo["latency_us"] * 2}
    return slo


def uneven(rng: Random, arbitration: str, slos: int) -> Instance:
    """Numbers with many digits; executors of up to 16 packets; some SLOs cannot be kept by anything."""
    names = ("acl", "ids", "vpn")[: rng.randint(1, 3)]
    device: Json = {
        "sms": rng.randint(1, 4),
        "executors_per_sm": rng.randint(1, 5),
        "packets_per_executor": rng.choice((1, 4, 16)),
        "workers": rng.randint(0, 40),
        "arbitration": arbitration,
        "transfer_us": {
            name: [rng.choice((0.0, rng.uniform(0, 0.6))), rng.choice((0.0, rng.uniform(0, 8)))] for name in CLASSES
        },
        "nfs": {
            name: {
                "class": rng.choice(CLASSES),
                "pre_post_us": rng.uniform(0, 12),
                "kernel_us": [rng.uniform(0, 6), rng.uniform(0, 30)],
            }
            for name in names
        },
        "sharing_us": {name: {other: rng.choice((0.0, rng.uniform(0, 6))) for other in names} for name in names},
    }
    longest = rng.choice((60.0, 200.0, 1000.0))
    requests: list[Json] = [
        {
            "id": f"{number}",
            "nf": rng.choice(names),
            "rate_kpps": rng.choice((0.01, 10.0, rng.uniform(1, 400), rng.uniform(100, 3000))),
            "latency_us": rng.uniform(5.0, longest),
        }
        | ({"batch": rng.randint(1, 40)} if rng.random() < 0.25 else {})
        for number in range(slos)
    ]
    return device, requests


def renamed(instance: Instance, rng: Random) -> Instance:
    """The same instance with other ids, other names of NFs, and the SLOs in another order."""
    device, slos = instance
    names = dict(zip(device["nfs"], rng.sample(range(1000), len(device["nfs"])), strict=True))

    def name(nf: str) -> str:
        return f"renamed-{names[nf]}"

    sharing = device.get("sharing_us", {})
    other = device | {
        "nfs": {name(nf): times for nf, times in reversed(device["nfs"].items())},
        "sharing_us": {name(nf): {name(one): beta for one, beta in betas.items()} for nf, betas in sharing.items()},
    }
    return other, _shuffled(rng, [slo | {"id": f"x{slo['id']}", "nf": name(slo["nf"])} for slo in slos])


def relaxed(instance: Instance, rng: Random) -> Instance:
    """The latency of one SLO is 1.5 times as long."""
    device, slos = instance
    chosen = rng.randrange(len(slos))
    return device, [
        slo | {"latency_us": slo["latency_us"] * 1.5} if number == chosen else slo for number, slo in enumerate(slos)
    ]


def with_another_sm(instance: Instance) -> Instance:
    """The GPU has one more SM."""
    device, slos = instance
    return device | {"sms": device["sms"] + 1}, slos


def _time(rng: Random, least: float, most: float) -> float:
    return round(rng.uniform(least, most), 2)


def _shuffled(rng: Random, slos: Sequence[Json]) -> list[Json]:
    return rng.sample(list(slos), len(slos))


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
