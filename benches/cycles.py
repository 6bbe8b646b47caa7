"""Cycles per packet of each network function in C, beside a plain loop over the same DPDK structure."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path

import pandas as pd

from benches.bench import register

PROGRAM = Path(__file__).resolve().parents[1] / "build" / "nfs" / "cycles"


@register("cycles")
def run() -> pd.DataFrame:
    """Per function and number of flows: its cycles, the loop's, their ratio; empty where nothing is built."""
    if not PROGRAM.exists():
        print("the network functions are not built: `make deps nfs` builds them", file=sys.stderr)
        return pd.DataFrame()
    told = subprocess.run([PROGRAM], stdout=subprocess.PIPE, text=True, check=False)
    if told.returncode:
        print("cycles: some functions could not be measured; the others follow", file=sys.stderr)
    return pd.read_csv(io.StringIO(told.stdout))
