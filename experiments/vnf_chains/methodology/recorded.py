"""Where the experiments on chains get their measurements: a folder of measured ones, else the simulated server."""

import json
import tempfile
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

import pandas as pd

from experiments.registry import CannotRun, Setting
from experiments.vnf_chains.methodology.chain_rounds import ChainRounds
from experiments.vnf_chains.methodology.scaling import reached_by_running, recorded_scaling, scaling_table
from experiments.vnf_chains.methodology.shares import Topology, share_loads, topologies
from profiler.simulated import SimulatedServer
from profiles.chain_table import CHAINS_FILE, read_chains

SCALING_FILE = "scaling.csv"
SHARE_REPEATS = 5  # as in the paper


@dataclass(frozen=True)
class ShareRuns:
    """Functions and chains at shares of cores."""

    topologies: dict[str, Topology]  # by name, functions first
    allocated: pd.DataFrame | None  # allocations that were run, None where there is no table of them
    testbed: str  # which runs these are, as a sentence

    @cached_property
    def scaling(self) -> pd.DataFrame | None:
        """Allocations that were run, else those among the recorded settings; None where these are too few."""
        return recorded_scaling(self.topologies) if self.allocated is None else self.allocated

    @property
    def functions(self) -> dict[str, Topology]:
        """Those of one function."""
        return {name: one for name, one in self.topologies.items() if len(one.nfs) == 1}

    @property
    def chains(self) -> dict[str, Topology]:
        """Those of several, of which each function was measured alone."""
        known = self.functions
        return {
            name: one
            for name, one in self.topologies.items()
            if len(one.nfs) > 1 and all(nf in known for nf in one.nfs)
        }


def share_runs(setting: Setting) -> ShareRuns:
    """The runs in the folder that the setting names, else runs on the simulated server. Raises `CannotRun` when the
    folder has no chains at shares of cores. Raises `InputError` when its files are wrong."""
    if setting.chains is None:
        return _simulate(setting.count(SHARE_REPEATS, least=2), setting.seed)
    table = read_chains(setting.chains / CHAINS_FILE)
    name, simulated = read_testbed_name(setting.chains)
    found = topologies(table)
    how = "simulated" if simulated else "measured"
    runs = sum(len(chain.kpps) for chain in found.values())
    file = setting.chains / SCALING_FILE
    allocated = pd.read_csv(file) if file.exists() else None
    read = ShareRuns(found, allocated, f"{name}: {runs:,} runs in {setting.chains.name}, {how}.")
    if not read.chains:
        raise CannotRun(f"{setting.chains} has no chains at shares of cores; `python -m benches chains` measures them")
    return read


@cache
def _simulate(repeats: int, seed: int) -> ShareRuns:
    with (
        tempfile.TemporaryDirectory() as folder,
        SimulatedServer(seed=seed) as server,
        ChainRounds(server, Path(folder) / "runs", seed=seed) as rounds,
    ):
        rounds.measure(share_loads(server.describe()), repeats)
        found = topologies(rounds.write())
        scaling = scaling_table(found, reached_by_running(rounds), repeats)
        name = server.describe().name
    runs = sum(len(chain.kpps) for chain in found.values())
    return ShareRuns(found, scaling, f"{name}: {runs:,} runs, all simulated; nothing was measured on hardware.")


def read_testbed_name(folder: Path) -> tuple[str, bool]:
    """The testbed of a folder of measured chains: its name, and whether it is simulated."""
    described = json.loads((folder / "testbed.json").read_text(encoding="utf-8"))
    return str(described["name"]), bool(described["simulated"])
