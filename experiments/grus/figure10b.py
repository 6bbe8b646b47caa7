"""Figure 10(b): errors of the predicted time of transfers over the bus, both ways (section VII-B)."""

from collections.abc import Iterator, Mapping
from itertools import product

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from experiments.grus import NOT_PRINTED, PAPER, SIMULATED_GPU
from experiments.grus.methodology.printed_laws import line
from experiments.grus.methodology.simulated_server import (
    NAMED_TRAFFICS,
    TRAFFIC_NOTE,
    measure,
    on_sms,
    stages_of,
    train_models,
)
from experiments.methodology.accuracy import is_worse
from experiments.registry import Result, Setting, experiment
from predictor.gpu.models import GpuModels
from profiler.testbed import GpuStages
from profiles.arrays import Floats

BATCH_SIZES = (32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024)
NF_CLASSES = {"ACL": "header", "NIDS": "payload", "IPSec": "both"}  # one NF for each class of what is moved
PRINTED_FOR = "Traffic-A"
PUBLISHED_PCT = {"ACL": 2.2, "NIDS": 3.5, "IPSec": 4.1}


@experiment(PAPER, "grus-figure10b", "Errors of the predicted time of transfers")
def run(setting: Setting) -> Result:
    """One NF of each class, every traffic, eleven batches."""
    models = train_models(setting.say)
    laws = {(name, nf): _law(setting, name, nf) for name, nf in product(NAMED_TRAFFICS, NF_CLASSES)}
    runs = pd.DataFrame(run for name, nf in laws for run in _runs(setting, models, name, nf, laws))
    keys = ["traffic", "nf"]
    table = pd.DataFrame([_row(str(key[0]), str(key[1]), of) for key, of in runs.groupby(keys, sort=False)])
    return Result(table, (SIMULATED_GPU,), lambda figure: _draw(figure, runs), FIGURE_NOTES, {"runs": runs})


def _law(setting: Setting, traffic: str, nf: str) -> Floats:
    """The straight line through short runs."""
    loads = [on_sms(nf, NAMED_TRAFFICS[traffic], [(0, batch)]) for batch in BATCH_SIZES]
    return line(BATCH_SIZES, [_both_ways(stages_of(measure([load], seed=setting.seed)[0])) for load in loads])


def _runs(
    setting: Setting, models: GpuModels, traffic: str, nf: str, laws: Mapping[tuple[str, str], Floats]
) -> Iterator[dict[str, object]]:
    setting.say(f"{traffic}, {nf}: {len(BATCH_SIZES)} batches")
    for batch in BATCH_SIZES:
        load = on_sms(nf, NAMED_TRAFFICS[traffic], [(0, batch)])
        truth = _both_ways(stages_of(measure([load])[0]))
        stages = models.predict([load])[0].stages_us
        predicted = {
            "error_pct": stages["transfer"] + stages["return"],
            "line_error_pct": float(np.polyval(laws[traffic, nf], batch)),
            "line_of_a_error_pct": float(np.polyval(laws[PRINTED_FOR, nf], batch)),
        }
        errors = {name: 100 * abs(one / truth - 1) for name, one in predicted.items()}
        yield {"traffic": traffic, "nf": nf, "batch": batch, "measured_us": truth, **errors}


def _both_ways(stages: GpuStages) -> float:
    return stages.transfer + stages.returned


def _row(traffic: str, nf: str, of: pd.DataFrame) -> dict[str, object]:
    error = float(of["error_pct"].mean())
    published = PUBLISHED_PCT[nf] if traffic == PRINTED_FOR else None
    return {
        "traffic": traffic,
        "nf": nf,
        "moves": NF_CLASSES[nf],
        "runs": len(of),
        "error_pct": round(error, 2),
        "most_pct": round(float(of["error_pct"].max()), 2),
        "line_error_pct": round(float(of["line_error_pct"].mean()), 2),
        "line_of_a_error_pct": round(float(of["line_of_a_error_pct"].mean()), 2),
        "published_error_pct": NOT_PRINTED if published is None else published,
        "verdict": "worse" if published is not None and is_worse(error, published) else "",
    }


FIGURE_NOTES = (
    f"Errors of the predicted time on the bus to the GPU and back, without waiting, over batches of {min(BATCH_SIZES)} "
    f"to {max(BATCH_SIZES):,} packets at 2 Gb/s, against long runs whose packets no model was trained on; neither seed "
    "nor scale changes these runs. Published are means over batches for three NFs on Traffic-A.",
    "line_error_pct is that of the straight line over the batch that the paper fits for each class, here to short runs "
    "of the same NF, traffic and batches (by seed); line_of_a_error_pct is that of the line of Traffic-A, whose "
    "packets are larger. The models of `placer train` know the size of packets.",
    "The time of a transfer on the simulated bus hardly varies, so that errors are smaller than on a real bus: they "
    "say how well the models follow this bus, not how well they would follow another.",
    TRAFFIC_NOTE + ".",
)


def _draw(figure: Figure, runs: pd.DataFrame) -> None:
    axes = figure.subplots()
    for nf, of in runs[runs["traffic"] == PRINTED_FOR].groupby("nf", sort=False):
        axes.plot(of["batch"], of["error_pct"], marker=".", label=f"{nf}, {PRINTED_FOR}")
    axes.set_xscale("log", base=2)
    axes.set(xlabel="batch (packets)", ylabel="error (%)")
    axes.legend(frameon=False)
