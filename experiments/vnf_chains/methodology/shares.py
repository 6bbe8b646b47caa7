"""Functions alone and pairs of them on two cores, at shares of the cores' time (the paper's section 5.1). The paper
measures response times of proxies and firewalls in containers and virtual machines; here it is the throughput of
functions on packets. With a fixed number of packets in flight, one is proportional to the inverse of the other, so that
the longest response time of the paper's equation 4 is the least throughput."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, pairwise, product

import numpy as np
import pandas as pd

from predictor.chains.placed_chain import PlacedChain, StageEffect
from predictor.chains.settings import Settings, settings_of
from profiles import ChainLoad, InputError, TestbedDescription, TrafficProfile
from profiles.arrays import Floats
from profiles.chain import parse_chain
from profiles.chain_table import (
    CHAIN_KPPS,
    CHAINS_FILE,
    CORES_COLUMN,
    ORDER_COLUMN,
    RATE_COLUMN,
    SHARES_COLUMN,
    drop_column_of,
)

NF_PAIRS = (("NAT", "LB"), ("ACL", "Match"))
"""Each is measured in both orders, as the paper's two pairs are; a testbed without them has all pairs of its NFs."""
MOST_PAIRS = 10  # that are measured without being named
SHARES_ALONE = (0.25, 0.5, 0.75, 1.0)
SHARES_TOGETHER = ((0.25, 1.0), (1.0, 0.25), (0.5, 0.5), (0.5, 1.0), (1.0, 0.5), (1.0, 1.0))
PACKET_SIZES = (128.0, 256.0, 512.0, 1024.0, 1400.0)
FLOW_COUNT = 1000.0  # or as many as the testbed allows
CPU_INPUT, SIZE_INPUT = "cpu", "packet_size"
FEWEST_SETTINGS = 5  # settings of a topology for five-fold cross-validation


def pairs_of(description: TestbedDescription) -> Sequence[tuple[str, str]]:
    """The pairs that are measured on this testbed. Raises `InputError` when they are too many."""
    known = [nf.name for nf in description.nfs if nf.cores == 1 and not nf.accelerators]
    if len(known) < 2 or any(nf in known for pair in NF_PAIRS for nf in pair):
        return NF_PAIRS
    if len(pairs := list(combinations(known, 2))) > MOST_PAIRS:
        counted = f"{description.name} has {len(pairs)} pairs of functions"
        raise InputError.of("--testbed", f"{counted}, more than {MOST_PAIRS}", hint="choose them by --pair A,B")
    return pairs


def most_flows(description: TestbedDescription, flows: float) -> float:
    """So many flows, or as many as the testbed allows."""
    return min(flows, description.attributes.get("flows", (0.0, flows))[1])


def share_loads(
    description: TestbedDescription,
    pairs: Sequence[tuple[str, str]] | None = None,
    *,
    cpu: Sequence[float] = (),
    sizes: Sequence[float] = (),
    flows: float = FLOW_COUNT,
) -> list[ChainLoad]:
    """Every function alone, then every chain, at every share and packet size. `pairs`, `cpu`, `sizes`, `flows`: of
    functions, shares of a core (pairs at every combination, functions alone also halfway between them), packet sizes
    and flows in place of those that all testbeds have. Raises `InputError` when the testbed lacks a function, or a
    second core."""
    pairs = pairs_of(description) if pairs is None else pairs
    known = {nf.name for nf in description.nfs if nf.cores == 1 and not nf.accelerators}
    if missing := [nf for pair in pairs for nf in pair if nf not in known]:
        raise InputError.of("--testbed", f"{description.name} runs no {', '.join(missing)} on one core")
    if description.nic.cores < 2:
        raise InputError.of("--testbed", f"{description.name} has one core, pipelines need two")
    flows = most_flows(description, flows)
    traffics = [TrafficProfile(flows, size, description.traffic.mtbr) for size in sizes or PACKET_SIZES]
    nfs = dict.fromkeys(nf for pair in pairs for nf in pair)
    given = sorted(set(cpu))
    of_one = sorted({*given, *((low + high) / 2 for low, high in pairwise(given))}) or SHARES_ALONE
    alone = [share_load([nf], traffic, [share]) for nf, share, traffic in product(nfs, of_one, traffics)]
    chains = [order for pair in pairs for order in (pair, pair[::-1])]
    together = list(product(given, repeat=2)) or SHARES_TOGETHER
    return alone + [share_load(nfs, traffic, shares) for nfs, shares, traffic in product(chains, together, traffics)]


def share_load(nfs: Sequence[str], traffic: TrafficProfile, shares: Sequence[float]) -> ChainLoad:
    """Functions, each on a core of its own with a share of its time; all shares of 1 are none."""
    given = shares if set(shares) != {1.0} else ()
    return ChainLoad.of(nfs, [[at] for at in range(len(nfs))], traffic, shares=given)


@dataclass(frozen=True)
class Topology:
    """A function alone or a chain, with its runs."""

    nfs: tuple[str, ...]  # in the order of the packets
    inputs: tuple[str, ...]
    """Names of the inputs: `NAT.cpu` for each function of a chain, `cpu` for one alone, then `packet_size`."""
    at: Floats  # their values, shape (runs, inputs)
    kpps: Floats  # packets that enter, or another measure; shape (runs,)
    dropped_pct: float  # of the packets that reach the first function, mean over runs

    @property
    def name(self) -> str:
        """As the paper writes them: `NAT-LB`."""
        return "-".join(self.nfs)

    @cached_property
    def settings(self) -> Settings:
        """Repeats of a setting as one."""
        return settings_of(self.inputs, self.at, self.kpps)

    @property
    def columns(self) -> dict[str, Floats]:
        """The settings by input."""
        return dict(zip(self.inputs, self.settings.inputs.T, strict=True))


def topologies(table: pd.DataFrame, measure: str = CHAIN_KPPS, flows: float | None = None) -> dict[str, Topology]:
    """The functions and chains of a table of chains that were measured at shares of cores, functions first. `table`: of
    `profiles.chain_table`. `measure`: its column. `flows`: of the runs; None where all that are at shares have as many.
    Raises `InputError` when the table lacks the measure, or there are runs at several numbers of flows."""
    table = table[table[measure].notna()] if measure in table else table[:0]
    if table.empty:
        raise InputError.of(CHAINS_FILE, f"no chain has {measure}: its testbed did not measure it")
    found: dict[str, Topology] = {}
    closed = table[(table[RATE_COLUMN] == 0) & (True if flows is None else table["flows"] == flows)]
    for (order, cores), rows in closed.groupby([ORDER_COLUMN, CORES_COLUMN], sort=False):
        stages, _ = parse_chain(str(order))
        nfs = tuple(stage.nf for stage in stages)
        if json.loads(str(cores)) != [[at] for at in range(len(nfs))] or any(stage.parameters for stage in stages):
            continue
        shares = np.array([json.loads(text) for text in rows[SHARES_COLUMN]], dtype=np.float64)
        of_runs = rows["flows"].to_numpy(float)
        at_shares = np.unique(of_runs[(shares < 1).any(axis=1)])
        if len(at_shares) > 1:
            several = " and ".join(f"{count:g}" for count in at_shares)
            raise InputError.of(CHAINS_FILE, f"{order} ran with {several} flows: these are not repeats of one setting")
        if not (kept := np.isin(of_runs, at_shares)).any():
            continue
        of_shares = [CPU_INPUT] if len(nfs) == 1 else [f"{nf}.{CPU_INPUT}" for nf in nfs]
        at = np.column_stack([shares, rows[SIZE_INPUT].to_numpy(float)])[kept]
        kpps, dropped = rows[measure].to_numpy(float)[kept], rows[drop_column_of(0)].to_numpy(float)[kept]
        one = Topology(nfs, (*of_shares, SIZE_INPUT), at, kpps, float(dropped.mean()))
        if len(one.settings) >= FEWEST_SETTINGS:
            found[one.name] = one
    return dict(sorted(found.items(), key=lambda item: len(item[1].nfs)))


def place_on_cores(chain: Topology, functions: Mapping[str, Topology]) -> PlacedChain:
    """The chain, each stage on its core; what functions drop is what they drop alone."""
    effects = [StageEffect(1 - functions[nf].dropped_pct / 100) for nf in chain.nfs]
    return PlacedChain.of(chain.nfs, effects=effects)
