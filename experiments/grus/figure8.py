"""Figure 8: how long kernels take with more executors, and beside others on their SM (section V-A)."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from random import Random
from typing import NamedTuple

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from experiments.grus import NOT_PRINTED, PAPER, SIMULATED_GPU
from experiments.grus.methodology.printed_laws import line, penalties_us
from experiments.grus.methodology.simulated_server import SERVER_NFS, measure, stages_of, train_models
from experiments.registry import Result, Setting, experiment
from predictor.gpu.models import GpuModels
from predictor.gpu.nf_model import rows
from predictor.gpu.prediction import Overload
from profiles import GpuSettings, GpuWorkload, Workload

BUSY_SHARES = (0.6, 0.45, 0.3, 0.2, 0.1)
"""Shares of the time for which each kernel would run alone: the first that the server carries, by prediction."""
MOST_KPPS = 4000.0  # of one NF, so that its worker keeps up


def executors_of(models: GpuModels) -> int:
    """Of one SM."""
    found = models.testbed.nic.executors_per_sm
    assert found
    return found


def busy_load(models: GpuModels, nf: str, executors: int, busy: float = BUSY_SHARES[0], order: int = 0) -> GpuWorkload:
    """The NF with full executors of SM 0, at the rate at which its kernel alone would be as busy."""
    packets, traffic = executors * models.per_executor, models.default_traffic
    alone_us = float(models.models[nf].kernel.mean(rows(traffic, [packets]))[0])
    rate = min(1000.0 * busy * packets / alone_us, MOST_KPPS)
    return GpuWorkload(Workload(nf, traffic, rate), GpuSettings.of([(0, packets)], order=order))


def busy_group(models: GpuModels, nfs: Sequence[str], executors: Sequence[int]) -> list[GpuWorkload] | None:
    """NFs on SM 0, as busy as the server carries them; None where it carries none of `BUSY_SHARES`."""
    for busy in BUSY_SHARES:
        each = enumerate(zip(nfs, executors, strict=True))
        loads = [busy_load(models, nf, used, busy, order) for order, (nf, used) in each]
        try:
            models.predict(loads)
        except Overload:
            continue
        return loads
    return None


def random_shares(rng: Random, parts: int, executors: int) -> list[int]:
    """Random numbers of executors that fill an SM together."""
    cuts = [0, *sorted(rng.sample(range(1, executors), parts - 1)), executors]
    return [high - low for low, high in pairwise(cuts)]


ALONE_GROUP = "alone"
GROUP_NAMES = {1: "beside one", 2: "beside two", 3: "beside three"}
GROUPS_PER_SIZE = 20  # groups of each size for each NF
LINEAR_WITHIN_PCT = 5.0  # a mean error of the line up to which times are called linear, as in the paper


class KernelRun(NamedTuple):
    """The kernel of one NF."""

    nf: str
    sharing: str  # `alone`, or beside how many others
    executors: int
    alone_us: float  # with the SM for itself
    measured_us: float  # beside the others
    predicted_us: float  # by our models
    printed_us: float  # by the straight line and the penalties of the paper


@experiment(PAPER, "grus-figure8", "Times of kernels with more executors, and beside others on their SM")
def run(setting: Setting) -> Result:
    """Every NF alone on 1 to 15 executors, and beside one to three others at random."""
    models, rng = train_models(setting.say), Random(f"figure8 {setting.seed}")
    runs = pd.DataFrame(run for nf in SERVER_NFS for run in _runs(setting, models, nf, rng))
    for name in ("predicted", "printed"):
        runs[f"{name}_error_pct"] = 100 * (runs[f"{name}_us"] / runs["measured_us"] - 1).abs()
    keys = ["nf", "sharing"]
    table = pd.DataFrame([row(str(key[0]), str(key[1]), of) for key, of in runs.groupby(keys, sort=False)])
    return Result(table, (SIMULATED_GPU,), lambda figure: _draw(figure, runs), FIGURE_NOTES, {"runs": runs})


def _runs(setting: Setting, models: GpuModels, nf: str, rng: Random) -> Iterator[KernelRun]:
    most, draws = executors_of(models), setting.count(GROUPS_PER_SIZE, least=2)
    setting.say(f"{nf}: alone on 1 to {most} executors, then {draws} groups of each size")
    loads = {used: busy_load(models, nf, used) for used in range(1, most + 1)}
    alone = {used: stages_of(measure([load])[0]).kernel for used, load in loads.items()}
    law, penalties = line(list(alone), list(alone.values())), penalties_us(models, nf)
    for used, load in loads.items():
        ours = models.predict([load])[0].stages_us["kernel"]
        yield KernelRun(nf, ALONE_GROUP, used, alone[used], alone[used], ours, float(np.polyval(law, used)))
    for others, sharing in GROUP_NAMES.items():
        for _ in range(draws):
            used, *rest = random_shares(rng, others + 1, most)
            group = busy_group(models, [nf, *rng.choices(SERVER_NFS, k=others)], [used, *rest])
            if group is None:
                continue
            truth = stages_of(measure(group)[0]).kernel
            ours = models.predict(group)[0].stages_us["kernel"]
            # the largest penalty of those that share the SM (section V-B, t3)
            printed = float(np.polyval(law, used)) + max(penalties[other.nf] for other in group[1:])
            yield KernelRun(nf, sharing, used, alone[used], truth, ours, printed)


def row(nf: str, sharing: str, of: pd.DataFrame) -> dict[str, object]:
    """What the table says of these runs."""
    printed = float(of["printed_error_pct"].mean())
    return {
        "nf": nf,
        "sharing": sharing,
        "runs": len(of),
        "least_us": round(float(of["measured_us"].min()), 2),
        "most_us": round(float(of["measured_us"].max()), 2),
        "longer_pct": round(100 * float((of["measured_us"] / of["alone_us"] - 1).mean()), 1),
        "error_pct": round(float(of["predicted_error_pct"].mean()), 2),
        "most_pct": round(float(of["predicted_error_pct"].max()), 2),
        "printed_law_error_pct": round(printed, 2),
        "published": "linear" if sharing == ALONE_GROUP else NOT_PRINTED,
        "verdict": "differs" if sharing == ALONE_GROUP and printed > LINEAR_WITHIN_PCT else "",
    }


FIGURE_NOTES = (
    "Mean times of kernels in long runs at default traffic, in full executors of 128 packets. longer_pct is by how "
    "much the kernel takes longer than alone; error_pct is the mean absolute error of what our models predict, "
    "most_pct the largest; no model was trained on these runs.",
    "printed_law_error_pct is that of the paper's law: a straight line over executors, here through all the times "
    "alone that it is compared with, and the largest penalty of those on the same SM. Penalties are means over the "
    "pairs of the recorded profile, whose kernels run nearly always: where sharers run less, they are too large, as a "
    "bound for admission may be.",
    "Groups fill the SM, with random executors each; their kernels run for up to 60 % of the time, less where the "
    "server would be overloaded by prediction.",
    "Published: times of kernels are about linear in executors, and increases can be profiled; both are drawn, for "
    "NFs and with errors that are not printed. The verdict is `differs` where a line misses by more than "
    f"{LINEAR_WITHIN_PCT:g} % on average.",
)


def _draw(figure: Figure, runs: pd.DataFrame) -> None:
    left, right = figure.subplots(1, 2)
    for nf, of in runs[runs["sharing"] == ALONE_GROUP].groupby("nf", sort=False):
        (drawn,) = left.plot(of["executors"], of["measured_us"], ".", label=str(nf))
        left.plot(of["executors"], of["predicted_us"], color=drawn.get_color(), linewidth=0.8)
    left.set(xlabel="executors, alone", ylabel="time of the kernel (us)")
    left.legend(frameon=False)
    for nf, of in runs[runs["sharing"] != ALONE_GROUP].groupby("nf", sort=False):
        right.plot(of["measured_us"], of["predicted_us"], ".", label=str(nf))
    right.axline((0, 0), slope=1, color="gray", linewidth=0.8)
    right.set(xlabel="measured beside others (us)", ylabel="predicted (us)")
