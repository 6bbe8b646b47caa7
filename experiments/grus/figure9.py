"""Figure 9: by how much the latency of a firewall grows beside others, with executors and the first order (VII-A)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import pandas as pd
from matplotlib.figure import Figure

from experiments.grus import NOT_PRINTED, PAPER, SIMULATED
from experiments.grus.methodology.firewalls import IN_TURNS, FirewallRun, runs_beside, scheduled_firewalls
from experiments.grus.methodology.simulated_server import BATCH, FIREWALL, FIREWALL_TRAFFIC, GBPS, on_sms
from experiments.registry import Result, Setting, experiment
from profiles import PacedWorkload

OTHERS = range(10)
PUBLISHED_BELOW_PCT = 10.0
"""Beside nine others."""
BESIDE_FIRST = 6
"""Others with two executors each that fit on SM 0 beside the first firewall."""
LARGER = 2
"""Times as many packets, as often: the first meets more traffic on the bus, in runs of the same length."""
OWN, SHARED, IPSEC = PLACEMENTS = ("firewalls, own SMs", "firewalls, SM 0 shared", "IPSec, 4 Gb/s, batch 512")
SHOWN = ("mean_us", "increase_pct", "p99_increase_pct", "transfer_wait_us", "kernel_us")


@experiment(PAPER, "grus-figure9", "Latency of a firewall beside others, with executors and the first order")
def run(setting: Setting) -> Result:
    """Zero to nine others: on SMs of their own, beside the first, and with larger transfers."""
    setting.say(f"without guarantees: {len(OTHERS)} runs")
    without = {one.others: one.increase_pct for one in scheduled_firewalls(IN_TURNS, OTHERS)}
    runs: list[FirewallRun] = []
    for placement in PLACEMENTS:
        setting.say(f"{placement}: {len(OTHERS)} runs")
        runs += runs_beside(placement, OTHERS, partial(loads, placement))
    table = pd.DataFrame([_row(one, without) for one in runs])
    return Result(table, (SIMULATED,), lambda figure: _draw(figure, table), NOTES)


def loads(placement: str, others: int) -> list[PacedWorkload]:
    """The first firewall on two executors of SM 0 with order 0, and so many others after it."""
    first = on_sms(FIREWALL, FIREWALL_TRAFFIC, [(0, BATCH)], order=0)
    return [first, *(_other(placement, order) for order in range(1, others + 1))]


def _other(placement: str, order: int) -> PacedWorkload:
    if placement == IPSEC:
        return on_sms("IPSec", FIREWALL_TRAFFIC, [(order, LARGER * BATCH)], gbps=LARGER * GBPS, order=order)
    sm = 0 if placement == SHARED and order <= BESIDE_FIRST else order
    return on_sms(FIREWALL, FIREWALL_TRAFFIC, [(sm, BATCH)], order=order)


def _row(one: FirewallRun, without: Mapping[int, float]) -> dict[str, object]:
    published = one.beside != IPSEC and one.others == max(OTHERS)
    return {
        "beside": one.beside,
        "others": one.others,
        **one.shown(SHOWN, 3),
        "without_guarantee_pct": round(without[one.others], 2),
        "published_increase": f"below {PUBLISHED_BELOW_PCT:g} %" if published else NOT_PRINTED,
        "verdict": "worse" if published and one.increase_pct >= PUBLISHED_BELOW_PCT else "",
    }


NOTES = (
    f"The latency of a firewall with batches of {BATCH} packets on two executors of SM 0 and order 0, beside others "
    "with two executors each, or with IPSec in larger batches; increases are against the firewall alone. "
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
    axes.set_xlabel("others")
    axes.set_ylabel("increase of the mean latency (%)")
    axes.legend(frameon=False)
