"""A day of 24 hours: how many NICs are saved by knowing when each instance has its load.

Instances are those of the bench `loads`, rates log-uniform from 5 to 100 % of what two cores carry; each has the load
of an office, of an evening or of a night (`traces/days.py`). `by_peaks` is the plan of `planned` as if all had their
peak all day, and `bound` what no plan by the hours can be below. Violations are in any hour, by the testbed.

Fewer: `python -m benches days --testbeds simulated:contended --traces 1`.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace

import numpy as np
import pandas as pd

from benches.bench import register
from benches.budget import spec_of
from benches.loads import PACED, PREDICTOR, arrivals_of, prepared
from placer.evaluate.checks import check_plan
from placer.evaluate.evaluation import evaluate
from placer.inputs.catalogue import Cards, open_catalogue
from placer.model.arrival import Arrival
from placer.model.catalogue import Catalogue
from placer.optimal.planned.strategy import Planned
from traces.days import HOURS

SECONDS = 1200.0  # for each of the two plans: more than it takes, so that no other load on the machine decides


@register("days")
def run(testbeds: str = ",".join(PACED), traces: int = 2, instances: int = 300) -> pd.DataFrame:
    """Per testbed and trace: NICs by hours and by peaks, what is saved (%), SLA violations (%) and seconds of CPU."""
    rows: list[dict[str, object]] = []
    for name in testbeds.split(","):
        with ExitStack() as stack:
            cards = Cards(models=prepared(name), testbed=spec_of(name), budget_pct=2.0)
            catalogue = open_catalogue(cards, stack, lambda message: None)
            for row in _placed(catalogue, traces, instances):
                rows.append({"testbed": name, **row})
                print(rows[-1], file=sys.stderr, flush=True)
    return pd.DataFrame(rows)


def _placed(catalogue: Catalogue, traces: int, instances: int) -> Iterator[dict[str, object]]:
    for seed in range(traces):
        arrivals = _arrivals(catalogue, seed)[:instances]
        began = time.process_time()
        plan = Planned(catalogue, PREDICTOR, seconds=SECONDS).place(arrivals)
        seconds = time.process_time() - began
        check_plan(plan, arrivals, catalogue.kinds)
        found = evaluate(plan, catalogue.kinds, catalogue.truth())
        by_peaks = plan.peak_nics or found.nics
        yield {
            "trace": seed,
            "instances": len(arrivals),
            "nics": found.nics,
            "by_peaks": by_peaks,
            "saved_pct": round(100.0 * (1.0 - found.nics / by_peaks), 1),
            "bound": plan.within.nics_lower_bound if plan.within else 0,
            "rejected": plan.rejected,
            "violations_pct": round(found.violations_pct or 0.0, 2),
            "seconds": round(seconds, 1),
        }


def _arrivals(catalogue: Catalogue, seed: int) -> list[Arrival]:
    days = np.random.default_rng([seed, 45]).integers(len(HOURS), size=len(arrivals := arrivals_of(catalogue, seed)))
    return [replace(one, day=tuple(HOURS.values())[day]) for one, day in zip(arrivals, days.tolist(), strict=True)]
