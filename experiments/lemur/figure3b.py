"""Figure 3b: chain 5 with and without a SmartNIC that encrypts (section 5.3)."""

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from experiments.lemur import BY_CYCLES, NOT_PRINTED, PAPER
from experiments.lemur.methodology.compared import TIME_LIMIT_S, aggregate_gbps
from experiments.lemur.methodology.paper_rack import BASE_MBPS, CLOCK_MHZ, NF_CYCLES, chains, rack, rack_json, server
from experiments.registry import Result, Setting, experiment
from placer.rack.strategies.optimal import best_plan

CHAIN_NUMBER = 5
RATE_DELTAS = (0.5, 1.0, 1.5, 4.0, 7.0, 7.5)
SMARTNIC_SPEEDUP = 10  # times, of the eBPF program on the SmartNIC
NIC_CORES = 2  # the fewest that encrypt at the line rate of 40 Gbps
PUBLISHED_TEXTS = {0.5: "SmartNIC higher", 1.5: "server alone: no plan"}


@experiment(PAPER, "lemur-figure3b", "Chain 5 on a server alone and with a SmartNIC")
def run(setting: Setting) -> Result:
    """The proven optimum at the published least rates, and at those where the server alone is no longer enough."""
    table = pd.DataFrame([_row(delta) for delta in RATE_DELTAS])
    alone = table["server_gbps"].max()
    return Result(
        table,
        (BY_CYCLES,),
        lambda figure: _draw(figure, table),
        (
            "Our model contradicts the figure. Published: at delta 1.5 a server alone has no plan, even with several "
            f"cores. Here UrlFilter and FastEncrypt can be replicated, and 14 cores carry {alone:.2f} Gbps. With a "
            f"base rate of {BASE_MBPS[CHAIN_NUMBER] / 1000:.2f} Gbps, one core for UrlFilter, a server alone is enough "
            f"up to delta {1000 * alone / BASE_MBPS[CHAIN_NUMBER]:.2f}. The paper prints neither base rate nor t_min "
            "of this chain.",
            f"The SmartNIC is modelled as {NIC_CORES} cores of {CLOCK_MHZ} MHz on which FastEncrypt takes a "
            f"{SMARTNIC_SPEEDUP}th of the cycles, the published speedup. Published is close to the line rate of 40 "
            "Gbps, lower for the service header; here there is no header.",
        ),
    )


def _row(delta: float) -> dict[str, object]:
    alone, with_nic = (_gbps(delta, smartnic) for smartnic in (False, True))
    agrees = {0.5: with_nic > alone, 1.5: bool(np.isnan(alone))}.get(delta, True)
    return {
        "delta": delta,
        "t_min_gbps": round(delta * BASE_MBPS[CHAIN_NUMBER] / 1000, 2),
        "server_gbps": alone,
        "smartnic_gbps": with_nic,
        "published": PUBLISHED_TEXTS.get(delta, NOT_PRINTED),
        "published_smartnic_gbps": "close to 40" if delta <= 1.5 else NOT_PRINTED,
        "verdict": "" if agrees else "differs",
    }


def _gbps(delta: float, smartnic: bool) -> float:
    nfs = rack_json()["nfs"]
    nfs["FastEncrypt"]["smartnic"] = {"cycles": NF_CYCLES["FastEncrypt"][0] / SMARTNIC_SPEEDUP, "replicable": True}
    of_server = server() | (
        {"smartnic": {"name": "n0", "cores": NIC_CORES, "clock_mhz": CLOCK_MHZ}} if smartnic else {}
    )
    on = rack(servers=[of_server], nfs=nfs)
    return round(aggregate_gbps(best_plan(chains((CHAIN_NUMBER,), delta), on, time_limit=TIME_LIMIT_S)), 2)


def _draw(figure: Figure, table: pd.DataFrame) -> None:
    axes = figure.subplots()
    at = np.arange(len(table))
    axes.bar(at, table["t_min_gbps"], 0.9, color="0.85", label="t_min")
    for number, (column, label) in enumerate((("server_gbps", "server alone"), ("smartnic_gbps", "with SmartNIC"))):
        axes.bar(at + (number - 0.5) * 0.4, table[column].fillna(0), 0.38, label=label)
    axes.set_xticks(at, [f"{delta:g}" for delta in table["delta"]])
    axes.set(xlabel="delta", ylabel="rate (Gbps)")
    axes.legend(frameon=False)
