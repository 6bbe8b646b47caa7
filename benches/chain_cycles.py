"""Cycles per packet of chains in C on one core, measured, beside the sum of what their functions cost alone."""

import pandas as pd

from benches.bench import register
from benches.cycles import measured


@register("chain-cycles")
def run() -> pd.DataFrame:
    """Per chain and number of flows: cycles, those predicted, and their ratio, with quartiles; empty if not built."""
    return measured("chains")
