"""Cycles per packet of each network function in C, compared with its peers: loops over DPDK's or other tables."""

import io
import subprocess
import sys
from pathlib import Path

import pandas as pd

from benches.bench import register

PROGRAM = Path(__file__).resolve().parents[1] / "build" / "nfs" / "cycles"


def measured(kind: str) -> pd.DataFrame:
    """The table of all `functions` or `chains`; empty if they are not built."""
    if not PROGRAM.exists():
        print("cycles: the network functions are not built; `make deps nfs` builds them", file=sys.stderr)
        return pd.DataFrame()
    ended = subprocess.run([PROGRAM, f"--{kind}"], stdout=subprocess.PIPE, text=True, check=False)
    if ended.returncode:
        print(f"cycles: some {kind} could not be measured; the table has the others", file=sys.stderr)
    return pd.read_csv(io.StringIO(ended.stdout))


@register("cycles")
def run() -> pd.DataFrame:
    """Per function, peer and number of flows: the cycles of both, and their ratio; empty if they are not built."""
    return measured("functions")
