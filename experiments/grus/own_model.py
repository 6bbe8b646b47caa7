"""How often the algorithm that the paper prints admits a set that breaks the paper's model (Algorithm 1)."""

from collections.abc import Iterator
from itertools import product
from random import Random

import pandas as pd
from matplotlib.figure import Figure

from experiments.grus import BUS_SCHEDULES, MODELLED_GPU, NOT_PRINTED, PAPER
from experiments.grus.methodology.judging import judge_admission
from experiments.grus.methodology.paper_gpu import BEST_BATCH, device, random_slos
from experiments.registry import Result, Setting, experiment

SET_SIZES = (5, 10, 20, 50, 100)
SETS_PER_SIZE = 100
SMALLEST_BATCH_OF = {"as printed": False, "smallest": True}
"""Of `grus-printed`: rate times latency, as in line 2 of Algorithm 1; or fixed at the smallest that keeps up."""
LOAD_GBPS = (0.1, 2.0)
TOLERANCE_RANGE = (0.05, 0.3)


@experiment(PAPER, "grus-own-model", "Sets admitted by the printed algorithm that break its own model")
def run(setting: Setting) -> Result:
    """Random sets, with batches as printed and as they should be."""
    runs = pd.DataFrame(_runs(setting))
    keys = ["bus", "slos", "batches"]
    table = pd.DataFrame(
        [_row(str(key[0]), int(str(key[1])), str(key[2]), of) for key, of in runs.groupby(keys, sort=False)]
    )
    return Result(table, (MODELLED_GPU,), lambda figure: _draw(figure, table), TABLE_NOTES)


def _runs(setting: Setting) -> Iterator[dict[str, object]]:
    for bus, size in product(BUS_SCHEDULES, SET_SIZES):
        setting.say(f"{bus} bus: {setting.count(SETS_PER_SIZE)} sets of {size} SLOs")
        gpu = device(bus, max(SET_SIZES))
        for batches, pinned in SMALLEST_BATCH_OF.items():
            rng = Random(f"own model {setting.seed} {size}")
            for _ in range(setting.count(SETS_PER_SIZE)):
                slos = random_slos(
                    gpu, size, rng, baseline=BEST_BATCH, tolerances=TOLERANCE_RANGE, gbps=LOAD_GBPS, pinned=pinned
                )
                found = judge_admission("grus-printed", gpu, slos, setting.seed)
                repaired = judge_admission("grus", gpu, slos, setting.seed)
                yield {
                    "bus": bus,
                    "slos": size,
                    "batches": batches,
                    "repaired_sound": repaired.sound,
                    "repaired_satisfied": repaired.satisfied,
                    **found._asdict(),
                }


def _row(bus: str, size: int, batches: str, of: pd.DataFrame) -> dict[str, object]:
    admitting = of[of["admitted"] > 0]
    late = of["admitted"].sum() - of["satisfied"].sum()
    return {
        "bus": bus,
        "slos": size,
        "batches": batches,
        "sets": len(of),
        "sets_with_admitted": len(admitting),
        "broken_sets_pct": round(100 * float((~admitting["sound"]).mean()), 1) if len(admitting) else 0.0,
        "late_slos_pct": round(100 * float(late / max(of["admitted"].sum(), 1)), 1),
        "admitted": round(float(of["admitted"].mean()), 2),
        "satisfied": round(float(of["satisfied"].mean()), 2),
        "repaired_satisfied": round(float(of["repaired_satisfied"].mean()), 2),
        "repaired_broken_sets_pct": round(100 * float((~of["repaired_sound"]).mean()), 1),
        "published": NOT_PRINTED,
        "verdict": "",
    }


TABLE_NOTES = (
    "broken_sets_pct is the share of the sets with an admitted SLO in which a constraint of the model is broken, "
    "late_slos_pct that of admitted SLOs whose latency is above the SLO; admitted and satisfied are means.",
    "As printed, a batch is the rate times the latency (line 2 of Algorithm 1): collecting it takes the whole latency, "
    "and nothing is admitted. Where batches are fixed at the smallest that keeps up, lines 16 to 21 are left: an "
    "accepted NF's own transfer and wait are never taken from its headroom, orders are shifted by one, and `accepted` "
    "is not reset. The columns repaired_ are those of grus on the same SLOs.",
    "The paper prints no such shares.",
    "Rates are 0.1 to 2 Gbps, latencies the shortest of an NF alone plus 5 to 30 %; there is a worker for each SLO.",
)


def _draw(figure: Figure, table: pd.DataFrame) -> None:
    axes = figure.subplots()
    for key, of in table[table["batches"] == "smallest"].groupby("bus", sort=False):
        axes.plot(of["slos"], of["broken_sets_pct"], marker=".", label=f"{key}, broken sets")
        axes.plot(of["slos"], of["late_slos_pct"], marker=".", linestyle="--", label=f"{key}, late SLOs")
    axes.set(xlabel="SLOs", ylabel="share (%)")
    axes.legend(frameon=False)
