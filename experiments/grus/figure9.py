"""Figure 9: by how much the latency of a firewall grows beside others, with executors and the first order (VII-A)."""

from collections.abc import Mapping
from functools import partial

import pandas as pd
from matplotlib.figure import Figure

from experiments.grus import NOT_PRINTED, PAPER, SIMULATED_GPU
from experiments.grus.methodology.firewalls import IN_TURNS, FirewallRun, runs_beside, schedule_firewalls
from experiments.grus.methodology.simulated_server import (
    DEFAULT_BATCH,
    FIREWALL_NF,
    FIREWALL_TRAFFIC,
    FLOW_GBPS,
    on_sms,
)
from experiments.registry import Result, Setting, experiment
from profiles import GpuWorkload

OTHER_FIREWALLS = range(10)
PUBLISHED_BELOW_PCT = 10.0  # beside nine others
BESIDE_FIRST = 6  # others with two executors each that fit on SM 0 beside the first firewall
LOAD_FACTOR = 2  # times as many packets, as often: the first meets more traffic on the bus, in runs of the same length
OWN_SMS, SHARED_SM, IPSEC_FLOW = PLACEMENT_NAMES = (
    "firewalls, own SMs",
    "firewalls, SM 0 shared",
    "IPSec, 4 Gb/s, batch 512",
)
SHOWN_COLUMNS = ("mean_us", "increase_pct", "p99_increase_pct", "transfer_wait_us", "kernel_us")


@experiment(PAPER, "grus-figure9", "Latency of a firewall beside others, with executors and the first order")
def run(setting: Setting) -> Result:
    """Zero to nine others: on SMs of their own, beside the first, and with larger transfers."""
    setting.say(f"without guarantees: {len(OTHER_FIREWALLS)} runs")
    without = {run.others: run.increase_pct for run in schedule_firewalls(IN_TURNS, OTHER_FIREWALLS)}
    runs: list[FirewallRun] = []
    for placement in PLACEMENT_NAMES:
        setting.say(f"{placement}: {len(OTHER_FIREWALLS)} runs")
        runs += runs_beside(placement, OTHER_FIREWALLS, partial(loads, placement))
    table = pd.DataFrame([_row(run, without) for run in runs])
    return Result(table, (SIMULATED_GPU,), lambda figure: _draw(figure, table), FIGURE_NOTES)


def loads(placement: str, others: int) -> list[GpuWorkload]:
    """The first firewall on two executors of SM 0 with order 0, and so many others after it."""
    first = on_sms(FIREWALL_NF, FIREWALL_TRAFFIC, [(0, DEFAULT_BATCH)], order=0)
    return [first, *(_other(placement, order) for order in range(1, others + 1))]


def _other(placement: str, order: int) -> GpuWorkload:
    if placement == IPSEC_FLOW:
        return on_sms(
            "IPSec", FIREWALL_TRAFFIC, [(order, LOAD_FACTOR * DEFAULT_BATCH)], gbps=LOAD_FACTOR * FLOW_GBPS, order=order
        )
    sm = 0 if placement == SHARED_SM and order <= BESIDE_FIRST else order
    return on_sms(FIREWALL_NF, FIREWALL_TRAFFIC, [(sm, DEFAULT_BATCH)], order=order)


def _row(one: FirewallRun, without: Mapping[int, float]) -> dict[str, object]:
    published = one.beside != IPSEC_FLOW and one.others == max(OTHER_FIREWALLS)
    return {
        "beside": one.beside,
        "others": one.others,
        **one.shown(SHOWN_COLUMNS, 3),
        "without_guarantee_pct": round(without[one.others], 2),
        "published_increase": f"below {PUBLISHED_BELOW_PCT:g} %" if published else NOT_PRINTED,
        "verdict": "worse" if published and one.increase_pct >= PUBLISHED_BELOW_PCT else "",
    }


FIGURE_NOTES = (
    f"The latency of a firewall with batches of {DEFAULT_BATCH} packets on two executors of SM 0 and order 0, beside "
    "others with two executors each, or with IPSec in larger batches; increases are against the firewall alone. "
    "without_guarantee_pct is that of `grus-figure1` in turns. Long runs whose packets are always the same: neither "
    "seed nor scale changes them.",
    "Published: below 10 % beside nine others, and 19 % beside two without guarantees. Where the others run is not "
    "printed: on SMs of their own, or as many as fit beside the first. IPSec is no part of the figure.",
    "Increases are far below the published bound, because the simulated bus is used little by firewalls: ten batches "
    "of 10 us in 870 us. The first in order waits only for a transfer that is under way, which is longer with IPSec.",
)


def _draw(figure: Figure, table: pd.DataFrame) -> None:
    axes = figure.subplots()
    for beside, of in table.groupby("beside", sort=False):
        axes.plot(of["others"], of["increase_pct"], marker=".", label=str(beside))
    axes.axhline(PUBLISHED_BELOW_PCT, color="gray", linewidth=0.8, label="published: below")
    axes.set(xlabel="others", ylabel="increase of the mean latency (%)")
    axes.legend(frameon=False)
