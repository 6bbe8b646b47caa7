"""Table 4: cycles per packet of NFs, here on the simulated server, and on a host where they were measured."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from experiments.lemur import PAPER
from experiments.methodology.findings import Finding
from experiments.registry import Result, Setting, experiment
from profiler.cycles import measure_cycles
from profiler.runs.outliers import ConfirmedTestbed
from profiler.simulated import SimulatedServer
from profiles.cycles import CYCLES_FILE, CyclesOfRules

ACL_RULES = 1024
PUBLISHED_CYCLES = {
    "Encrypt": ("128-bit AES-CBC", 8950, 8755, 9123),
    "Dedup": ("network redundancy elimination", 31188, 29969, 33185),
    "ACL": ("1,024 rules", 4020, 3943, 4091),
    "NAT": ("12,000 entries", 496, 491, 507),
}
"""Mean, least and most, with NF and NIC on different sockets: the worst case, from which the paper plans."""


@experiment(PAPER, "lemur-table4", "Cycles per packet of NFs")
def run(setting: Setting) -> Result:
    """Four NFs at the traffic at which they take most, as the placement uses them."""
    server = SimulatedServer()
    nfs = [nf for nf in server.describe().nfs if nf.name in PUBLISHED_CYCLES]
    setting.say(f"cycles of {len(nfs)} NFs on the simulated server")
    measured = measure_cycles(ConfirmedTestbed(server, server), nfs, seed=setting.seed)
    assert measured is not None
    host = _host(setting.chains)
    table = pd.DataFrame(
        [
            _row(name, measured.nfs[name].cycles, measured.nfs[name].of_rules, _of_host(host, name))
            for name in PUBLISHED_CYCLES
        ]
    )
    return Result(
        table,
        (
            "Simulated server: 12 runs of each NF at its worst traffic, the source's cycles taken away.",
            f"Host: {host['testbed']}, {host['clock_mhz']:,.0f} MHz." if host else "Host: not measured; --chains DIR "
            f"takes a profile with {CYCLES_FILE}, which `placer profile --testbed host` writes.",
        ),
        lambda figure: _draw(figure, table),
        (
            "The simulated server is calibrated to the published worst cases, so that it agrees by construction; it "
            "shows what measuring adds. A host has other NFs, another processor and other libraries: its cycles need "
            "not agree, and have no verdict.",
            f"ACL is extrapolated to {ACL_RULES:,} rules by its cycles per rule.",
        ),
    )  # fmt: skip


def _row(name: str, cycles: float, rules: CyclesOfRules | None, host: float) -> dict[str, object]:
    what, mean, low, high = PUBLISHED_CYCLES[name]
    ours = cycles + (ACL_RULES - rules.rules) * rules.cycles_per_rule if name == "ACL" and rules else cycles
    return {
        "nf": name,
        "spec": what,
        "simulated_cycles": round(ours),
        "host_cycles": host,
        "published_mean": mean,
        "published_min": low,
        "published_max": high,
        "verdict": Finding(name, ours, float(high), "cycles").verdict,
    }


def _host(folder: Path | None) -> dict[str, Any] | None:
    """The cycles in a profile folder; None without."""
    path = folder / CYCLES_FILE if folder else None
    if path is None or not path.is_file():
        return None
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def _of_host(host: Mapping[str, Any] | None, name: str) -> float:
    """Cycles of an NF; NaN where it was not measured."""
    nfs = host["nfs"] if host else {}
    found = next((of["server"] for nf, of in nfs.items() if nf == name and "server" in of), None)
    if found is None:
        return float("nan")
    more = (ACL_RULES - found["rules"]) * found["cycles_per_rule"] if name == "ACL" and "rules" in found else 0.0
    return float(found["cycles"] + more)


def _draw(figure: Figure, table: pd.DataFrame) -> None:
    axes = figure.subplots()
    at = np.arange(len(table))
    mean = table["published_mean"]
    error = [mean - table["published_min"], table["published_max"] - mean]
    axes.errorbar(at - 0.1, mean, error, fmt="o", capsize=3, label="published: mean, least, most")
    axes.plot(at + 0.1, table["simulated_cycles"], "s", label="simulated server")
    if table["host_cycles"].notna().any():
        axes.plot(at + 0.2, table["host_cycles"], "^", label="host")
    axes.set_xticks(at, list(table["nf"]))
    axes.set(yscale="log", ylabel="cycles per packet")
    axes.legend(frameon=False)
