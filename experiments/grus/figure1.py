"""Figure 1: by how much the latency of a firewall grows beside others, without guarantees (section II-A)."""

import pandas as pd
from matplotlib.figure import Figure

from experiments.grus import NOT_PRINTED, PAPER, SIMULATED_GPU
from experiments.grus.methodology.firewalls import IN_TURNS, FirewallRun, schedule_firewalls
from experiments.grus.methodology.simulated_server import DEFAULT_BATCH
from experiments.methodology.findings import Finding
from experiments.registry import Result, Setting, experiment

OTHER_FIREWALLS = range(10)
GPU_SCHEDULERS = (IN_TURNS, "spatial")  # NFs have the GPU in turns, or side by side on SMs of their own
PUBLISHED_PCT = {2: 19.0, 9: 210.0}  # increase of the mean latency, by the number of other firewalls
MOST_DROP_PCT = 1.0  # of throughput; the paper: "no obvious throughput drop"
SHOWN_COLUMNS = ("mean_us", "p99_us", "increase_pct", "drop_pct", "kernel_wait_us", "kernel_us")


@experiment(PAPER, "grus-figure1", "Latency of a firewall beside others, without guarantees")
def run(setting: Setting) -> Result:
    """Zero to nine other firewalls, in turns and side by side."""
    runs: list[FirewallRun] = []
    for scheduler in GPU_SCHEDULERS:
        setting.say(f"{scheduler} sharing: {len(OTHER_FIREWALLS)} runs")
        runs += schedule_firewalls(scheduler, OTHER_FIREWALLS)
    table = pd.DataFrame([_row(run) for run in runs])
    return Result(table, (SIMULATED_GPU,), lambda figure: _draw(figure, table), FIGURE_NOTES)


def _row(one: FirewallRun) -> dict[str, object]:
    published = PUBLISHED_PCT.get(one.others)
    differs = published is not None and Finding("latency", one.increase_pct, published).verdict
    return {
        "sharing": one.beside,
        "others": one.others,
        **one.shown(SHOWN_COLUMNS, 2),
        "published_increase_pct": NOT_PRINTED if published is None else published,
        "verdict": "differs" if differs or one.drop_pct > MOST_DROP_PCT else "",
    }


FIGURE_NOTES = (
    f"The latency of the first of one to ten firewalls, each with flows of 2 Gb/s and batches of {DEFAULT_BATCH} "
    "packets; increase_pct is against the first alone, drop_pct how much of its packets the server does not carry. "
    "Long runs whose packets are always the same: neither seed nor scale changes them.",
    "Published: 0.19 times longer beside two others and 2.1 times beside nine, without an obvious drop of throughput; "
    "what is between is drawn. The verdict is `differs` beyond a quarter of the published increase.",
    "How NFs shared the GPU is not printed. In turns (temporal), the simulated server comes near, but it was "
    "calibrated to these two numbers: the time for a change of NFs was chosen for them, and ten firewalls use 98 % of "
    "the card's time, where 1 us more or less doubles or halves the increase. They confirm nothing.",
    "Most of the latency is the wait for a batch, about 430 us at 294 kpps; what grows is the time of the kernel and "
    "the wait for it.",
)


def _draw(figure: Figure, table: pd.DataFrame) -> None:
    axes = figure.subplots()
    for sharing, of in table.groupby("sharing", sort=False):
        axes.plot(of["others"], of["increase_pct"], marker=".", label=str(sharing))
    axes.plot(list(PUBLISHED_PCT), list(PUBLISHED_PCT.values()), "x", color="black", label="published")
    axes.set(xlabel="other firewalls", ylabel="increase of the mean latency (%)")
    axes.legend(frameon=False)
