"""The case study: cycles per packet over the entries of an exact-match table, by a sweep of ours."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from experiments.data_planes import PAPER
from experiments.data_planes.methodology.printed import format_findings
from experiments.methodology.findings import Finding
from experiments.registry import Result, Setting, experiment
from predictor.fitting.fit import fit
from predictor.fitting.fitted_model import FittedModel
from predictor.fitting.points import MeasuredCurve
from profiler.simulated import SimulatedTestbed
from profiles import Fault, InputError, TrafficProfile, Workload
from profiles.table import read_table

PUBLISHED_SEGMENTS, ERROR_PCT = 4, 0.730  # published: segments, and the error of the fit
FIT_CRITERIA = ("bic", "tum")
CYCLES_METRIC, THROUGHPUT_METRIC, TIME_METRIC = "cycles_per_packet", "throughput_kpps", "ns_per_packet"
SWEPT_NF, SWEPT_PACKET_SIZE = "FlowStats", 64.0
"""What is swept on the simulated card: its hash table has an entry per flow, matched exactly."""
SWEEP_POINTS, SWEEP_REPEATS = 40, 3
RUN_COLUMNS = ("repeat", "run")


@dataclass(frozen=True)
class SweptCurve:
    """A curve, and where it comes from, in a sentence."""

    curve: MeasuredCurve
    testbed: str


@experiment(PAPER, "match-action-entries", "Cost of a packet over table entries: segments and error")
def run(setting: Setting) -> Result:
    """The curve of a sweep, and its model by each criterion."""
    swept = simulate_sweep(setting) if setting.sweep is None else read_recorded_sweep(setting.sweep)
    models = {}
    for name in FIT_CRITERIA:
        setting.say(f"{name}: fitting {len(swept.curve.x)} points")
        models[name] = fit(swept.curve, select=name)
    return Result(
        format_findings([finding for name, model in models.items() for finding in _findings(name, model)]),
        (swept.testbed,),
        lambda figure: _draw(figure, swept.curve, models),
        (
            "Published: a software switch (t4p4s on DPDK), cycles per packet over the entries of its exact-match "
            "table; three levels with a transition between two of them. Ours is another program on another machine: "
            "the number of segments need not be the same.",
            "Errors are sMAPE. The paper prints the error of its fit alone; ours stands beside the error at points "
            "that were left out of the fit, and the noise, below which no error at such points can be expected.",
        ),
        {"curve": _points(swept.curve), "segments": _segments(models)},
    )


def simulate_sweep(setting: Setting) -> SweptCurve:
    """Time per packet of one core over flows, on the simulated card, which has no clock to count cycles with."""
    card = SimulatedTestbed()
    description = card.describe()
    low, high = description.range_of("flows")
    flows = np.unique(np.geomspace(low, high, setting.count(SWEEP_POINTS, least=12)).round())
    setting.say(f"{description.name}: {SWEPT_NF}, {len(flows)} numbers of flows, {SWEEP_REPEATS} runs each")
    loads = [
        (Workload(SWEPT_NF, TrafficProfile(flows=flow_count, packet_size=SWEPT_PACKET_SIZE, mtbr=0.0)),)
        for flow_count in flows.tolist()
    ]
    kpps = [
        [run.measurements[0].throughput_kpps for run in card.run_many(loads, seed=setting.seed + repeat)]
        for repeat in range(SWEEP_REPEATS)
    ]
    curve = MeasuredCurve(
        "flows", TIME_METRIC, np.tile(flows, SWEEP_REPEATS), description.nf(SWEPT_NF).cores * 1e6 / np.concatenate(kpps)
    )
    runs = len(curve.x)
    return SweptCurve(
        curve,
        f"Simulated BlueField-2: {SWEPT_NF}, whose table has an entry per flow, {runs} runs; time per packet of a core "
        "in place of cycles. Not measured on hardware.",
    )


def read_recorded_sweep(folder: Path) -> SweptCurve:
    """The first metric of cost that a sweep has, over the key that it varies. Raises `InputError` when its files are
    not those of a sweep of one key."""
    path = folder / "measurements.csv"
    table, faults = read_table(path, RUN_COLUMNS)
    if faults:
        raise InputError(faults)
    keys = [str(name) for name in table.columns[: list(table.columns).index(RUN_COLUMNS[0])]]
    metric = next((name for name in (CYCLES_METRIC, THROUGHPUT_METRIC) if name in table), None)
    if len(keys) != 1:
        raise InputError([Fault(str(path), 1, None, f"varies {len(keys)} keys; the case study has one")])
    if metric is None:
        raise InputError([Fault(str(path), 1, None, f"has neither {CYCLES_METRIC} nor {THROUGHPUT_METRIC}")])
    table, faults = read_table(path, [*RUN_COLUMNS, *keys, metric])
    if not faults and table.empty:
        faults = [Fault(str(path), None, None, "has no runs")]
    if faults:
        raise InputError(faults)
    y = table[metric].to_numpy(dtype=float)
    curve = MeasuredCurve(keys[0], metric, table[keys[0]].to_numpy(dtype=float), y)
    return SweptCurve(curve, f"{_testbed_of(folder)}: {metric} over {keys[0]}, {len(table)} runs.")


def _testbed_of(folder: Path) -> str:
    """The testbed of a sweep, in words."""
    path = folder / "machine.json"
    try:
        name = str(json.loads(path.read_text(encoding="utf-8"))["testbed"])
    except (OSError, ValueError, KeyError, TypeError):
        return "A testbed that is not recorded"
    return f"Testbed {name}, not hardware" if name.startswith("simulated") else f"Testbed {name}, measured"


def _findings(name: str, model: FittedModel) -> Iterator[Finding]:
    yield Finding(f"{name}: segments", len(model.segments), PUBLISHED_SEGMENTS, "")
    yield Finding(f"{name}: error of the fit", model.smape_pct, ERROR_PCT, kind="error")
    if model.left_out_smape_pct is not None:
        yield Finding(f"{name}: error at points left out of the fit", model.left_out_smape_pct, kind="error")
    yield Finding(f"{name}: noise of the points", model.noise_pct)


def _points(curve: MeasuredCurve) -> pd.DataFrame:
    return pd.DataFrame({curve.x_name: curve.x, curve.y_name: curve.y}).sort_values(curve.x_name, kind="stable")


def _segments(models: Mapping[str, FittedModel]) -> pd.DataFrame:
    """A row per segment of each criterion's model."""
    return pd.DataFrame(
        [
            {
                "select": name,
                "from": segment.start,
                "to": segment.end,
                "family": segment.family,
                "formula": segment.formula(model.x),
                "smape_pct": round(segment.smape_pct, 4),
            }
            for name, model in models.items()
            for segment in model.segments
        ]
    )


def _draw(figure: Figure, curve: MeasuredCurve, models: Mapping[str, FittedModel]) -> None:
    axes = figure.subplots()
    axes.plot(curve.x, curve.y, "o", color="0.4", markersize=3, label="points")
    spaced = np.geomspace if curve.x.min() > 0 else np.linspace
    for number, (name, model) in enumerate(models.items()):
        for segment in model.segments:
            x = spaced(segment.start, segment.end, 100)
            label = f"{name}, {model.smape_pct:.2f} %" if segment is model.segments[0] else None
            axes.plot(x, segment.predict(x), "-" if number == 0 else "--", color=f"C{number}", label=label)
    if curve.x.min() > 0:
        axes.set_xscale("log")
    axes.set(xlabel=curve.x_name, ylabel=curve.y_name)
    axes.legend(frameon=False)
