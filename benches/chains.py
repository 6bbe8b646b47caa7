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
from experiments.vnf_chains.methodology.scaling import reached_by_running, scaling_table
from experiments.vnf_chains.methodology.shares import FEWEST_SETTINGS, FLOW_COUNT, most_flows, share_loads, topologies
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
Share = Annotated[
    list[float] | None,
    typer.Option(help="Of a core; repeatable. Pairs run at every combination, functions also between."),
]
Size = Annotated[list[float] | None, typer.Option(help="Of packets, bytes; repeatable.")]
Flows = Annotated[float | None, typer.Option(min=1, help=f"Flows ({FLOW_COUNT:g}), or as many as the testbed allows.")]
Pair = Annotated[list[str] | None, typer.Option(help="A,B: functions that run in both orders; repeatable.")]
Seed = Annotated[int, typer.Option(min=0)]


@register("chains")
def run(
    testbed: Testbed = SIMULATED,
    out: Out = None,
    part: Part = SHARES,
    rounds: Rounds = 3,
    share: Share = None,
    size: Size = None,
    flows: Flows = None,
    pair: Pair = None,
    seed: Seed = 0,
) -> pd.DataFrame:
    """Allocations that meet targets, or the chains that ran at rising load."""
    if part not in (SHARES, LOADS):
        raise InputError.of("--part", f"'{part}' is not understood", hint=f"{SHARES} or {LOADS}")
    if part == LOADS and (share or size or flows):
        raise InputError.of("--part", f"{LOADS} has shares, sizes and flows of its own: leave out those options")
    pairs = [_parse_pair(text) for text in pair] if pair else None
    out = out or FOLDER / re.sub(r"\W+", "-", testbed).strip("-")
    out = out / LOADS_FOLDER if part == LOADS else out
    with (
        RetryingTestbed(lambda: open_testbed(testbed), _say) as opened,
        ChainRounds(opened, out, seed=seed, notify=_say) as measuring,
    ):
        if part == SHARES:
            flows = most_flows(measuring.description, flows or FLOW_COUNT)
            loads = share_loads(measuring.description, pairs, cpu=share or (), sizes=size or (), flows=flows)
            table = _shares(measuring, loads, rounds, flows)
        else:
            table = _loads(measuring, rounds, pairs)
    write_table(table, out / ("scaling.csv" if part == SHARES else "loaded.csv"))
    _say(f"written: {out}")
    return table.astype(object).fillna("")


def _shares(measuring: ChainRounds, loads: Sequence[ChainLoad], repeats: int, flows: float) -> pd.DataFrame:
    _say(f"{len(loads)} settings, {repeats} runs of each")
    measuring.measure(loads, repeats)
    scaling = scaling_table(topologies(measuring.write(), flows=flows), reached_by_running(measuring, flows), repeats)
    measuring.write()
    if scaling.empty:
        _say(f"no chain is scaled: a chain and each of its functions need {FEWEST_SETTINGS} settings")
    return scaling


def _parse_pair(text: str) -> tuple[str, str]:
    first, _, second = text.partition(",")
    if not (first and second) or "," in second or first == second:
        raise InputError.of("--pair", f"'{text}' is not two functions, as in NAT,LB")
    return first, second


def _loads(measuring: ChainRounds, repeats: int, pairs: Sequence[tuple[str, str]] | None) -> pd.DataFrame:
    simulated = measuring.description.simulated
    loads = rising_loads(measuring.description, FLOW_STEP if simulated else COARSE, pairs)
    _say(f"{len(loads)} settings, {max(repeats, 2)} runs of each")
    measuring.measure(loads, max(repeats, 2))
    found = load_chains(measuring.write())
    return pd.DataFrame(
        {"chain": one.name, "placed": one.placed, "loads": len(one.load), "runs": one.kpps.size} for one in found
    )


def _say(message: str) -> None:
    print(message, file=sys.stderr, flush=True)
