"""Chains of functions measured on a testbed, for `placer reproduce chains --chains`.

`--part shares` runs functions and pairs on two cores at shares of the cores' time, allocates as little as meets a
target, and runs what was allocated; the folder gets `scaling.csv`.

`--part loads` runs functions and pairs at rising load, up to 100,000 flows, for retraining with canary samples, into
the folder `loads` in that of the other part.

The same command resumes after an interrupt.
"""

import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import pandas as pd
import typer

from benches.bench import register
from experiments.vnf_chains.methodology.chain_rounds import ChainRounds
from experiments.vnf_chains.methodology.loads import FLOW_STEP, LOADS_FOLDER, load_chains, rising_loads
from experiments.vnf_chains.methodology.scaling import scaling_table
from experiments.vnf_chains.methodology.shares import FLOW_COUNT, share_loads, topologies
from profiler.testbed_stack import RetryingTestbed
from profiler.testbeds import open_testbed
from profiles import ChainLoad, InputError
from profiles.table import write_table

FOLDER = Path("build") / "chains"
SIMULATED = "simulated:server"
SHARES, LOADS = "shares", "loads"
COARSE = 5_000.0  # flows by which the load rises where runs take seconds

Testbed = Annotated[str, typer.Option(help="Where chains run: `host`, or any other testbed that runs chains.")]
Out = Annotated[Path | None, typer.Option(help="Folder of what is measured; build/chains/TESTBED by default.")]
Part = Annotated[str, typer.Option(help="`shares` of cores: the paper's tables, and scaling; or rising `loads`.")]
Rounds = Annotated[int, typer.Option(min=1, help="Runs of each chain at each traffic.")]
Share = Annotated[list[float] | None, typer.Option(help="Of a core; repeatable: pairs run at every combination.")]
Size = Annotated[list[float] | None, typer.Option(help="Of packets, bytes; repeatable.")]
Flows = Annotated[float, typer.Option(min=1, help="Flows, if the testbed allows as many.")]
Seed = Annotated[int, typer.Option(min=0)]


@register("chains")
def run(
    testbed: Testbed = SIMULATED,
    out: Out = None,
    part: Part = SHARES,
    rounds: Rounds = 3,
    share: Share = None,
    size: Size = None,
    flows: Flows = FLOW_COUNT,
    seed: Seed = 0,
) -> pd.DataFrame:
    """Allocations that meet targets, or the chains that ran at rising load."""
    if part not in (SHARES, LOADS):
        raise InputError.of("--part", f"'{part}' is not understood", hint=f"{SHARES} or {LOADS}")
    out = out or FOLDER / re.sub(r"\W+", "-", testbed).strip("-")
    out = out / LOADS_FOLDER if part == LOADS else out
    with (
        RetryingTestbed(lambda: open_testbed(testbed), _say) as opened,
        ChainRounds(opened, out, seed=seed, notify=_say) as measuring,
    ):
        if part == SHARES:
            loads = share_loads(measuring.description, cpu=share or (), sizes=size or (), flows=flows)
            table = _shares(measuring, loads, rounds, flows)
        else:
            table = _loads(measuring, rounds)
    write_table(table, out / ("scaling.csv" if part == SHARES else "loaded.csv"))
    _say(f"written: {out}")
    return table.astype(object).fillna("")


def _shares(measuring: ChainRounds, loads: Sequence[ChainLoad], repeats: int, flows: float) -> pd.DataFrame:
    _say(f"{len(loads)} settings, {repeats} runs of each")
    measuring.measure(loads, repeats)
    scaling = scaling_table(topologies(measuring.write()), measuring, repeats, flows)
    measuring.write()
    return scaling


def _loads(measuring: ChainRounds, repeats: int) -> pd.DataFrame:
    simulated = measuring.description.simulated
    loads = rising_loads(measuring.description, FLOW_STEP if simulated else COARSE)
    _say(f"{len(loads)} settings, {max(repeats, 2)} runs of each")
    measuring.measure(loads, max(repeats, 2))
    found = load_chains(measuring.write())
    return pd.DataFrame(
        {"chain": one.name, "placed": one.placed, "loads": len(one.load), "runs": one.kpps.size} for one in found
    )


def _say(message: str) -> None:
    print(message, file=sys.stderr, flush=True)
