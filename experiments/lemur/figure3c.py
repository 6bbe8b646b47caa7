"""Figure 3c: chain 3 with an OpenFlow switch, its ACL on the server or on the switch (section 5.3)."""

from collections.abc import Sequence

import pandas as pd
from matplotlib.figure import Figure

from experiments.lemur import BY_CYCLES, PAPER
from experiments.lemur.methodology.compared import TIME_LIMIT_S
from experiments.lemur.methodology.paper_rack import NF_CYCLES, chains, rack, rack_json
from experiments.methodology.findings import Finding
from experiments.registry import Result, Setting, experiment
from placer.rack.strategies.optimal import best_plan

CHAIN_NUMBER = 3
RATE_DELTA = 0.5
PUBLISHED_MBPS = {"server": 693.0, "switch": 7710.0}
SWITCH_TABLES = {"ACL, LB and IPv4Fwd": ("ACL", "LB", "IPv4Fwd"), "ACL and IPv4Fwd": ("ACL", "IPv4Fwd")}
"""Of the switch, in their order. Table 3 of the paper has no OpenFlow program of LB."""


@experiment(PAPER, "lemur-figure3c", "Chain 3 with its ACL on the server or on an OpenFlow switch")
def run(setting: Setting) -> Result:
    """The proven optimum, with two sets of tables on the switch."""
    table = pd.DataFrame([_row(name, acl) for name in SWITCH_TABLES for acl in PUBLISHED_MBPS])
    return Result(
        table,
        (BY_CYCLES,),
        lambda figure: _draw(figure, table),
        (
            "With its ACL on the server Dedup, ACL and Limiter are one subgroup, which Limiter keeps on one core; with "
            "ACL on the switch, Dedup has 13 cores. Where LB runs is not printed: the paper's table 3 has no OpenFlow "
            "program for it, so both cases are shown.",
            "Published rates are measured: 693 Mbps are more than one core gives for Dedup alone in the worst case, "
            f"{NF_CYCLES['Dedup'][0]:,} cycles (614.7 Mbps).",
        ),
    )


def _row(tables: str, acl: str) -> dict[str, object]:
    ours, theirs = _mbps(SWITCH_TABLES[tables], acl == "switch"), PUBLISHED_MBPS[acl]
    return {
        "tables_on_switch": tables,
        "acl_on": acl,
        "rate_mbps": round(ours, 1),
        "published_mbps": theirs,
        "verdict": Finding("rate", ours, theirs, "Mbps").verdict,
    }


def _mbps(tables: Sequence[str], acl_on_switch: bool) -> float:
    nfs = rack_json()["nfs"]
    if not acl_on_switch:
        del nfs["ACL"]["switch"]
    switch = {"stages": None, "kind": "openflow", "table_order": list(tables)}
    plan = best_plan(chains((CHAIN_NUMBER,), RATE_DELTA), rack(switch=switch, nfs=nfs), time_limit=TIME_LIMIT_S)
    return plan.chains[0].rate_mbps


def _draw(figure: Figure, table: pd.DataFrame) -> None:
    axes = figure.subplots()
    labels = [f"{row.acl_on}\n{row.tables_on_switch}" for row in table.itertuples()]
    for number, column in enumerate(("rate_mbps", "published_mbps")):
        at = [place + (number - 0.5) * 0.4 for place in range(len(table))]
        bars = axes.bar(at, table[column], 0.38, label=("by cycles", "published, measured")[number])
        axes.bar_label(bars, [f"{value:,.0f}" for value in table[column]])
    axes.set_xticks(range(len(table)), labels)
    axes.set(yscale="log", xlabel="ACL runs on; the switch has tables of", ylabel="rate (Mbps)")
    axes.legend(frameon=False)
