"""Functions and chains over rising load, at shares of cores, and the halves of the load (the paper's section 7). The
paper's load is a number of concurrent requests, its measure their response time. Here it is a number of flows, each of
which waits for one packet before it sends the next: by Little's law, their mean response time is their number over the
throughput, which is measured at that many flows."""

import json
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd

from experiments.registry import CannotRun, Setting
from experiments.vnf_chains.methodology.chain_rounds import ChainRounds
from experiments.vnf_chains.methodology.recorded import SHARE_REPEATS, read_testbed_name
from experiments.vnf_chains.methodology.scaling import AT_SIZE
from experiments.vnf_chains.methodology.shares import most_flows, pairs_of
from profiler.simulated import SimulatedServer
from profiles import ChainLoad, NfStage, TestbedDescription, TrafficProfile, chain_table
from profiles.arrays import Bools, Floats
from profiles.chain import parse_chain
from profiles.chain_table import drop_column_of, read_chains

MOST_FLOWS, FLOW_STEP = 100_000.0, 500.0
"""Flows at the highest load, and by how many it rises from sample to sample: a two-hundredth, as in the paper."""
PAIR_PLACEMENTS = (((0, 1), (0.5, 1.0)), ((0, 1), (1.0, 1.0)), ((0, 0), (1.0,)))
"""Of pairs: the core of each function, and the share of each core's time. On one core functions slow one another down,
which their measurements alone do not show."""
SHARES_ALONE = (0.5, 1.0)
LOADS_FOLDER = "loads"  # of a folder of measured chains: those at rising load
ENTRIES_PARAMETER = "entries"  # the parameter of functions with a table of flows: here, their tables hold all flows


@dataclass(frozen=True)
class LoadedChain:
    """A function alone or a chain at shares of cores, measured at rising load."""

    nfs: tuple[str, ...]  # in the order of the packets
    cores: tuple[int, ...]  # the core of each function
    shares: tuple[float, ...]  # of each core's time
    load: Floats  # flows at once, ascending, shape (loads,)
    kpps: Floats  # packets that enter, shape (loads, runs); at least two runs
    passes: float  # the share of the packets that the first function passes on

    @property
    def name(self) -> str:
        """As the paper writes them: `NAT-LB`."""
        return "-".join(self.nfs)

    @property
    def placed(self) -> str:
        """Where it runs: `two cores at 0.5, 1`."""
        shares = ", ".join(f"{share:g}" for share in self.shares)
        return f"{'one core' if len(self.shares) == 1 else 'two cores'} at {shares}"

    @property
    def once(self) -> Floats:
        """Response time (ms) as a single run shows it; models are retrained with these. Shape (loads,)."""
        return self.load / self.kpps[:, 0]

    @property
    def truth(self) -> Floats:
        """Response time (ms), by the mean of all other runs; models are judged by it. Shape (loads,)."""
        return np.asarray(self.load / self.kpps[:, 1:].mean(axis=1))

    @property
    def lower(self) -> Bools:
        """Which loads are in the lower half, shape (loads,)."""
        return np.asarray(self.load <= self.load.max() / 2)


@dataclass(frozen=True)
class LoadRuns:
    """Functions and chains over the load."""

    measured: Sequence[LoadedChain]
    testbed: str  # which runs these are, as a sentence

    @property
    def chains(self) -> list[LoadedChain]:
        """Those of several functions."""
        return [run for run in self.measured if len(run.nfs) > 1]

    def predicted(self, chain: LoadedChain) -> Floats:
        """Response time (ms) of a chain as its functions alone predict it, by the weakest link (equation 4)."""
        alone = {(run.nfs[0], run.shares[0]): run for run in self.measured if len(run.nfs) == 1}
        stages = [alone[nf, chain.shares[core]] for nf, core in zip(chain.nfs, chain.cores, strict=True)]
        reaching = np.cumprod([1.0, *(stage.passes for stage in stages[:-1])])
        costs = [
            share * np.interp(chain.load, one.load, one.truth) for share, one in zip(reaching, stages, strict=True)
        ]
        return np.asarray(np.max(costs, axis=0))


def rising_loads(
    description: TestbedDescription, step: float = FLOW_STEP, pairs: Sequence[tuple[str, str]] | None = None
) -> list[ChainLoad]:
    """Every function alone, then every chain, at every share and load; tables of flows hold all of them. `description`:
    of the testbed. `step`: flows by which the load rises, of `MOST_FLOWS`. `pairs`: in place of those that all testbeds
    have."""
    tables = {nf.name for nf in description.nfs if ENTRIES_PARAMETER in nf.parameters}
    most = most_flows(description, MOST_FLOWS)
    step = max(step * most / MOST_FLOWS, 1.0)
    traffics = [
        TrafficProfile(flows, AT_SIZE, description.traffic.mtbr)
        for flows in np.unique(np.arange(step, most + 1, step).round()).tolist()
    ]

    def loads(nfs: Sequence[str], cores: Sequence[int], shares: Sequence[float]) -> Iterator[ChainLoad]:
        stages = [NfStage.of(nf, {ENTRIES_PARAMETER: MOST_FLOWS} if nf in tables else None) for nf in nfs]
        of_cores = [[at for at, core in enumerate(cores) if core == number] for number in range(len(shares))]
        given = shares if set(shares) != {1.0} else ()
        return (ChainLoad.of(stages, of_cores, traffic, shares=given) for traffic in traffics)

    pairs = pairs_of(description) if pairs is None else pairs
    nfs = dict.fromkeys(nf for pair in pairs for nf in pair)
    chains = [order for pair in pairs for order in (pair, pair[::-1])]
    singles = [load for nf, share in product(nfs, SHARES_ALONE) for load in loads([nf], [0], [share])]
    return singles + [
        load for pair, (cores, shares) in product(chains, PAIR_PLACEMENTS) for load in loads(pair, cores, shares)
    ]


def load_chains(table: pd.DataFrame) -> list[LoadedChain]:
    """The functions and chains of a table of chains that were measured at rising load. `table`: of
    `profiles.chain_table`; each load has as many runs as the next."""
    found = []
    for (order, cores, shares), rows in table.groupby(
        [chain_table.ORDER_COLUMN, chain_table.CORES_COLUMN, chain_table.SHARES_COLUMN], sort=False
    ):
        stages, _ = parse_chain(str(order))
        core_of = {at: core for core, of_core in enumerate(json.loads(str(cores))) for at in of_core}
        runs = rows.pivot_table(
            index="flows", columns=chain_table.REPEAT_COLUMN, values=chain_table.CHAIN_KPPS
        ).dropna()
        passes = 1 - float(rows[drop_column_of(0)].mean()) / 100
        nfs = tuple(stage.nf for stage in stages)
        placed = tuple(core_of[at] for at in range(len(nfs)))
        of_cores, load = tuple(json.loads(str(shares))), runs.index.to_numpy(float)
        found.append(LoadedChain(nfs, placed, of_cores, load, runs.to_numpy(float), passes))
    return found


def load_runs(setting: Setting) -> LoadRuns:
    """The runs in the folder `loads` of the one that the setting names, else runs on the simulated server. Raises
    `CannotRun` when that folder is missing. Raises `InputError` when its files are wrong."""
    if setting.chains is not None:
        folder = setting.chains / LOADS_FOLDER
        if not folder.is_dir():
            raise CannotRun(f"{setting.chains} has no folder {LOADS_FOLDER} of chains at rising load")
        name, simulated = read_testbed_name(folder)
        found = load_chains(read_chains(folder / chain_table.CHAINS_FILE))
        runs = sum(chain.kpps.size for chain in found)
        return LoadRuns(found, f"{name}: {runs:,} runs in {folder.name}, {'simulated' if simulated else 'measured'}.")
    return _simulate(setting.count(SHARE_REPEATS, least=2), FLOW_STEP, setting.seed)


@cache
def _simulate(repeats: int, step: float, seed: int) -> LoadRuns:
    with (
        tempfile.TemporaryDirectory() as folder,
        SimulatedServer(seed=seed) as server,
        ChainRounds(server, Path(folder) / "runs", seed=seed) as rounds,
    ):
        rounds.measure(rising_loads(server.describe(), step), repeats)
        found = load_chains(rounds.write())
        name = server.describe().name
    runs = sum(chain.kpps.size for chain in found)
    return LoadRuns(found, f"{name}: {runs:,} runs, all simulated; nothing was measured on hardware.")
