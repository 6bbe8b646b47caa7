"""Chains of functions as predicted from single ones, compared with what was measured of them.

Each function alone, the one that does nothing, ordered pairs and triples on one core, and pairs on two, are measured in
rounds over all of them. The same command resumes after an interrupt. Then chains are predicted: from single functions
alone, after ten chain runs, and by models trained on the chains themselves. The folder gets `chains.csv`,
`singles.csv`, `predictions.csv` and `errors.csv`.

`--part shares` runs functions and pairs on two cores at shares of the cores' time, allocates as little as meets a
target, and runs what was allocated; the folder gets `scaling.csv`, and `placer reproduce chains --chains` reads it.

`--part loads` runs functions and pairs at rising load, up to 100,000 flows, for retraining with canary samples, into
the folder `loads` in that of the other parts.
"""

import re
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import pandas as pd
import typer

from benches.bench import register
from benches.chain_accuracy import chain_errors
from benches.chain_campaign import FULL, QUICK, CampaignSize, measure
from benches.chain_settings import GROWTH, SIMULATED_GROWTH, MeasuredSingles
from experiments.vnf_chains.methodology.loads import FLOW_STEP, LOADS_FOLDER, load_chains, rising_loads
from experiments.vnf_chains.methodology.scaling import scaling_table
from experiments.vnf_chains.methodology.shares import share_loads, topologies
from profiler.chains.rounds import ChainRounds
from profiler.testbed_stack import RetryingTestbed
from profiler.testbeds import open_testbed
from profiles import InputError
from profiles.table import write_table

FOLDER = Path("build") / "chains"
SIMULATED = "simulated:server"
SHOWN_EVERY = 50
CHAINS, SHARES, LOADS = "chains", "shares", "loads"
COARSE = 5_000.0  # flows by which the load rises where runs take seconds

Testbed = Annotated[str, typer.Option(help="Where chains run: `host`, or any other testbed that runs chains.")]
Out = Annotated[Path | None, typer.Option(help="Folder of what is measured; build/chains/TESTBED by default.")]
Part = Annotated[
    str, typer.Option(help="`chains`; `shares` of cores: the paper's tables, and scaling; or rising `loads`.")
]
Functions = Annotated[list[str] | None, typer.Option("--nf", help="A function of the chains, repeatable.")]
Rounds = Annotated[int | None, typer.Option(min=1, help="Runs of each chain at each traffic.")]
SingleRounds = Annotated[int | None, typer.Option(min=1, help="Runs of each function alone; by default as of chains.")]
Traffics = Annotated[int | None, typer.Option(min=1, max=3, help="Packet sizes and flows of each chain.")]
Quick = Annotated[bool, typer.Option("--quick", help="Five functions and fewer chains.")]
Seed = Annotated[int, typer.Option(min=0)]


@register("chains")
def run(
    testbed: Testbed = SIMULATED,
    out: Out = None,
    part: Part = CHAINS,
    nf: Functions = None,
    rounds: Rounds = None,
    single_rounds: SingleRounds = None,
    traffics: Traffics = None,
    quick: Quick = False,
    seed: Seed = 0,
) -> pd.DataFrame:
    """Per way of predicting: mean absolute error (%) of pairs, triples, pipelines and all, and its spread."""
    if part not in (CHAINS, SHARES, LOADS):
        raise InputError.of("--part", f"'{part}' is not understood", hint=f"{CHAINS}, {SHARES} or {LOADS}")
    size = QUICK if quick else FULL
    if rounds:
        size = replace(size, rounds=rounds, single_rounds=rounds)
    if single_rounds:
        size = replace(size, single_rounds=single_rounds)
    if traffics:
        size = replace(size, traffics=traffics)
    out = out or FOLDER / (re.sub(r"\W+", "-", testbed).strip("-") + ("-quick" if quick else ""))
    out = out / LOADS_FOLDER if part == LOADS else out
    with (
        RetryingTestbed(lambda: open_testbed(testbed), _say) as opened,
        ChainRounds(opened, out, seed=seed, progress=_Shown(), notify=_say) as measuring,
    ):
        match part:
            case "shares":
                tables = _shares(measuring, size.rounds)
            case "loads":
                tables = _loads(measuring, size.rounds)
            case _:
                tables = _chains(measuring, nf or (), size, seed)
    for name, table in tables.items():
        write_table(table, out / f"{name}.csv")
    _say(f"written: {out}")
    return list(tables.values())[-1].astype(object).fillna("")


def _chains(measuring: ChainRounds, named: Sequence[str], size: CampaignSize, seed: int) -> dict[str, pd.DataFrame]:
    growth = SIMULATED_GROWTH if measuring.description.simulated else GROWTH
    _, measured = measure(measuring, named, size, seed, _say)
    measuring.write()
    singles = MeasuredSingles.of(measured)
    errors = chain_errors(singles, singles.settings(measured, growth), measured, seed)
    return {"singles": singles.table, "predictions": errors.predictions, "errors": errors.table}


def _shares(measuring: ChainRounds, repeats: int) -> dict[str, pd.DataFrame]:
    loads = share_loads(measuring.description)
    _say(f"{len(loads)} settings, {repeats} runs of each")
    measuring.measure(loads, repeats)
    scaling = scaling_table(topologies(measuring.write()), measuring, repeats)
    measuring.write()
    return {"scaling": scaling}


def _loads(measuring: ChainRounds, repeats: int) -> dict[str, pd.DataFrame]:
    simulated = measuring.description.simulated
    loads = rising_loads(measuring.description, FLOW_STEP if simulated else COARSE)
    _say(f"{len(loads)} settings, {max(repeats, 2)} runs of each")
    measuring.measure(loads, max(repeats, 2))
    found = load_chains(measuring.write())
    rows = [{"chain": one.name, "placed": one.placed, "loads": len(one.load), "runs": one.kpps.size} for one in found]
    return {"loaded": pd.DataFrame(rows)}


def _say(message: str) -> None:
    print(message, file=sys.stderr, flush=True)


class _Shown:
    """Shows progress about every fiftieth run, so that the log of a long campaign stays short."""

    def __init__(self) -> None:
        self._last = 0

    def __call__(self, made: int, planned: int) -> None:
        if made < self._last:
            self._last = 0
        if made - self._last >= SHOWN_EVERY:
            self._last = made
            _say(f"{made:,} of {planned:,} runs")
