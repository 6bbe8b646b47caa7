"""Cycles of an ACL by its rules: what a rack file with a few measured points predicts, beside what is measured.

Each list of filters is measured alone on one core, as a generated chain of a server, in turns that repeat. Every other
number of rules becomes a point of `cycles_by_rules`; the others are predicted.
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import numpy as np
import pandas as pd
import typer

from benches.bench import register
from benches.metacompiler_rates import BENCH_PROGRAM, cycles_alone
from placer.rack.chain import Chain, ChainNf, Slo
from placer.rack.compiler.library.nf_kind import NF_KINDS
from placer.rack.files.rack_file import rack_of_toml
from profiles.arrays import Floats

RULE_COUNTS = (1, 3, 10, 30, 100, 300, 1000, 3000, 10_000)
SERVER = '[[server]]\nname = "s0"\ncores = 1\nclock_mhz = 1000\nnic_mbps = 1000\n'


@register("acl-rules")
def run(repeats: Annotated[int, typer.Option(min=2, help="Turns.")] = 5) -> pd.DataFrame:
    """Per number of rules, cycles per packet with labels: predicted, measured, their difference, and the noise.

    A processor that others share is now fast, now slow. So each turn predicts from its own points, and is compared with
    its own measurement: `difference_pct` is the median over turns, `noise_pct` half the distance of its quartiles.
    `later_pct` is by how much the next turn differs from the prediction, in the median of sizes: with the drift.
    The table is empty if nf-server-bench is not built. Raises `InputError` when a list cannot be measured."""
    if not BENCH_PROGRAM.exists():
        print("acl-rules: nf-server-bench is not built; `make deps nfs` builds it", file=sys.stderr)
        return pd.DataFrame()
    measured: dict[int, list[float]] = {rules: [] for rules in RULE_COUNTS}
    with TemporaryDirectory() as folder:
        lines = {rules: _function(rules, Path(folder)) for rules in RULE_COUNTS}
        for _ in range(repeats):
            for rules, line in lines.items():
                measured[rules].append(cycles_alone(line, Path(folder)))
    predicted: dict[int, list[float]] = {rules: [] for rules in RULE_COUNTS[1::2]}
    for turn in range(repeats):
        points = [[rules, round(measured[rules][turn], 1)] for rules in RULE_COUNTS[::2]]
        for rules, values in predicted.items():
            values.append(predict_cycles(rules, points))
    return pd.DataFrame(
        [_row(rules, np.array(values), np.array(measured[rules])) for rules, values in predicted.items()]
    )


def _row(rules: int, predicted: Floats, measured: Floats) -> dict[str, object]:
    difference = 100 * (predicted / measured - 1)
    return {
        "rules": rules,
        "predicted_cycles": round(float(np.median(predicted)), 1),
        "measured_cycles": round(float(np.median(measured)), 1),
        "difference_pct": round(float(np.median(difference)), 1),
        "noise_pct": round(float(np.subtract(*np.percentile(difference, [75, 25]))) / 2, 1),
        "later_pct": round(100 * float(np.median(np.abs(predicted[:-1] / measured[1:] - 1))), 1),
    }


def predict_cycles(rules: int, points: list[list[float]]) -> float:
    """What placing takes for an ACL on a rack with these points of `cycles_by_rules`."""
    at, cycles = points[0]
    cost = f"cycles = {cycles}, rules = {at}, cycles_by_rules = {points}"
    rack = rack_of_toml(f"{SERVER}[nf]\nACL = {{server = {{{cost}}}}}\n", "rack")
    slo = Slo(rack.crossing_us, rack.servers[0].nic_mbps)
    found = rack.cost_on(Chain("c", 1500, slo, (ChainNf("f", "ACL", {"rules": rules}),), ()), 0, rack.devices[0])
    assert found is not None
    return float(found.cycles)


def _function(rules: int, folder: Path) -> str:
    """The line of a chain file, whose filters are written beside it."""
    kind = NF_KINDS["ACL"]
    parameters = kind.completed({"rules": rules}, "ACL")
    text = kind.server_files(kind.data(parameters))["filters"]
    (folder / f"{rules}.filters").write_text(text, encoding="utf-8")
    settings = kind.server_settings(parameters, {"filters": f"{rules}.filters"})
    return " ".join(["acl: ACL", *(f"{key}={value}" for key, value in settings.items())])
