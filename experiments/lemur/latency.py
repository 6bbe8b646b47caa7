"""Section 5.3: chains 1 and 4 under a bound on latency."""

import pandas as pd
from matplotlib.figure import Figure

from experiments.lemur import BY_CYCLES, PAPER
from experiments.lemur.methodology.compared import TIME_LIMIT_S, aggregate_gbps
from experiments.lemur.methodology.paper_rack import chains, rack
from experiments.methodology.findings import Finding
from experiments.registry import Result, Setting, experiment
from placer.rack.strategies.optimal import best_plan

CHAIN_NUMBERS = (1, 4)
RATE_DELTA = 0.5
BOUNDS_US = (20, 25, 30, 32, 34, 36, 40, 44, 45, 46, 48, 50, 60)
PUBLISHED_GBPS: dict[float, float] = {45: 21.0, 25: 9.0}


@experiment(PAPER, "lemur-latency", "Chains 1 and 4 under a bound on latency")
def run(setting: Setting) -> Result:
    """The proven optimum at each bound."""
    table = pd.DataFrame([_row(bound) for bound in BOUNDS_US])
    return Result(
        table,
        (BY_CYCLES,),
        lambda figure: _draw(figure, table),
        (
            "Published: over 21 Gbps at 45 us, 9 Gbps at 25 us, measured; the latency of a crossing and the least "
            f"rates are not printed. Ours: 6 us for each crossing between switch and server, delta {RATE_DELTA:g}.",
            "The two steps are there, at other bounds. At 25 us no plan is possible here: Dedup takes 19.5 us in the "
            "worst case, two crossings 12 us. The plan with over 21 Gbps needs 45.5 us for chain 1.",
            "A dash is an instance that is proven infeasible.",
        ),
    )


def _row(bound: float) -> dict[str, object]:
    plan = best_plan(chains(CHAIN_NUMBERS, RATE_DELTA, d_max_us=bound), rack(), time_limit=TIME_LIMIT_S)
    ours, theirs = aggregate_gbps(plan), PUBLISHED_GBPS.get(bound, float("nan"))
    latencies = [float(chain.layout.latency_us) for chain in plan.chains] or [float("nan")] * len(CHAIN_NUMBERS)
    missing = not plan.chains and theirs == theirs
    return {
        "d_max_us": bound,
        "rate_gbps": round(ours, 2),
        **{f"chain{number}_us": round(latency, 1) for number, latency in zip(CHAIN_NUMBERS, latencies, strict=True)},
        "published_gbps": theirs,
        "verdict": "differs" if missing else Finding("rate", ours, theirs, "Gbps").verdict,
    }


def _draw(figure: Figure, table: pd.DataFrame) -> None:
    axes = figure.subplots()
    axes.step(table["d_max_us"], table["rate_gbps"].fillna(0), where="post", label="by cycles")
    axes.plot(table["d_max_us"], table["published_gbps"], "x", label="published, measured")
    axes.set(xlabel="bound on latency (us)", ylabel="aggregate (Gbps)")
    axes.legend(frameon=False)
