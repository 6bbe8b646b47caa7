"""What feedback is worth in production, on testbeds that nothing was tuned on: drift, no drift, and lies.

3,000 arrivals (defaults of `placer generate`, seed 0) are placed online by Tomur on the testbeds of `benches.budget`,
with its models. After every arrival 1 % of the NICs in use are measured, with 1 % noise and 5 % of readings lost.

- `drift`: one NF after the other has 0.85 times its throughput from a third of the arrivals on. `late` are arrivals at
  least 100 events after it; `of by hand` compares their violations, and NICs, with models corrected at the very event.
- `drift, relative`: as above, with largest drops that are relative to what the NF does alone now.
- `no drift`: compared with placement without feedback.
- `lies`: without drift, 10 % outliers, half of the readings not saturated, one tenant that reports half or one and a
  half times its throughput, and all of it; compared with placement with feedback and honest readings.
"""

import io
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd
from joblib import Parallel, delayed

from benches.bench import register
from benches.budget import TESTBEDS, prepared, profile_of, spec_of
from placer.fleet.simulated import ProductionRequest, simulate
from placer.fleet.simulated.outcome import (
    BY_HAND,
    COMPARED_FLEETS,
    WITH_FEEDBACK,
    WITHOUT_FEEDBACK,
    FleetOutcome,
    Production,
)
from placer.inputs import production
from placer.inputs.arrivals import read_arrivals
from placer.inputs.catalogue import Cards, open_catalogue
from placer.model.arrival import Arrival
from placer.progress import Progress
from traces.arrivals import TABLE_2_NFS, Recipe, generate

ARRIVALS = 3000
AT, FACTOR = 1 / 3, 0.85
HONEST = production.MonitorTable(share=0.01, noise_pct=1.0, lost_pct=5.0)
OUTLIERS = HONEST.model_copy(update={"outliers_pct": 10.0})
UNSATURATED = HONEST.model_copy(update={"unsaturated_pct": 50.0})
ALL = OUTLIERS.model_copy(update={"unsaturated_pct": 50.0})
LIAR = 10  # the number of the arrival that lies: it is there from early on, so that it is read most
CASES = ("drift", "drift, relative", "no drift", "lies")


@register("production")
def run(
    testbeds: str = "",
    cases: str = "",
    nfs: int = 100,
    arrivals: int = ARRIVALS,
    seed: int = 0,
    jobs: int = 1,
    retrain: bool = False,
) -> pd.DataFrame:
    """Per testbed and case: violations (%) and NICs with feedback, and what they are compared with. `nfs` is the most
    NFs that drift, one after the other. With `retrain`, models are also retrained and tried."""
    chosen = [name for name in TESTBEDS if not testbeds or name in testbeds.split(",")]
    wanted = [case for case in CASES if not cases or case in cases.split(";")]
    studies = Parallel(n_jobs=jobs)(delayed(rows_of)(name, wanted, nfs, arrivals, seed, retrain) for name in chosen)
    return pd.DataFrame([row for rows in studies for row in rows]).fillna("")


def rows_of(
    name: str, cases: Sequence[str], most: int, count: int, seed: int, retrain: bool = False
) -> list[dict[str, object]]:
    """The rows of one testbed, where at most `most` NFs drift."""
    play = Play(name, prepared(name, spec_of(name)), count, seed, [str(profile_of(name))] if retrain else [])
    rows = []
    for case in cases:
        for row in _rows(play, case, most):
            print(*row.values(), file=sys.stderr, flush=True)
            rows.append(row)
    return rows


def _rows(play: "Play", case: str, most: int) -> Iterator[dict[str, object]]:
    if case in ("drift", "drift, relative"):
        sla = production.SLA_PROMISED if case == "drift" else production.SLA_RELATIVE
        for nf in play.nfs[:most]:
            yield drift_row(play, case, sla, nf)
    elif case == "no drift":
        yield steady_row(play)
    else:
        yield from lie_rows(play)


@dataclass
class Play:
    """Plays one trace on one testbed again and again, at the risk that was chosen the first time."""

    name: str
    models: Path | None
    count: int
    seed: int
    profiles: list[str]
    arrivals: list[Arrival] = field(init=False)
    risk: float | None = None

    def __post_init__(self) -> None:
        with ExitStack() as stack:
            catalogue = open_catalogue(Cards(models=self.models, testbed="none"), stack, lambda message: None)
            known = catalogue.models[0].nfs
            nfs = TABLE_2_NFS if set(TABLE_2_NFS) <= set(known) else tuple(known)
            text = "".join(generate(Recipe(count=self.count, nfs=nfs, seed=self.seed)))
            self.arrivals = read_arrivals(io.StringIO(text), catalogue.default_traffic, catalogue.check)

    @property
    def nfs(self) -> list[str]:
        """The NFs of the trace."""
        return sorted({one.workload.nf for one in self.arrivals})

    def __call__(self, tables: production.ProductionTables, *fleets: str) -> Production:
        tables = tables.model_copy(update={"retrain": production.RetrainTable(profiles=self.profiles)})
        cards = Cards(models=self.models, testbed=spec_of(self.name), risk=self.risk)
        file = production.ProductionFile(self.name, "", tables)
        found = simulate(
            ProductionRequest(self.arrivals, file, cards, fleets=fleets or COMPARED_FLEETS), Progress(quiet=True)
        )
        self.risk = found.risk
        return found


def drift_row(play: Play, case: str, sla: str, nf: str) -> dict[str, object]:
    """One NF slows."""
    drift = [production.DriftTable(nf=nf, at=AT, factor=FACTOR)]
    found = play(production.ProductionTables.model_validate({"sla": sla, "measure": HONEST, "drift": drift}))
    without, learned, by_hand = (found.fleet(name) for name in (WITHOUT_FEEDBACK, WITH_FEEDBACK, BY_HAND))
    return {
        "testbed": play.name,
        "case": case,
        "nf": nf,
        "found_after": learned.count_until_found(found.drifts[0]),
        "false_alarms": learned.false_alarms,
        "late_without_pct": _pct(without.late_violations_pct),
        "late_pct": _pct(learned.late_violations_pct),
        "late_by_hand_pct": _pct(by_hand.late_violations_pct),
        "late_of_by_hand": _ratio(learned.late_violations_pct or 0.0, by_hand.late_violations_pct or 0.0),
        "nics_without": without.nics,
        "nics": learned.nics,
        "rejected": learned.rejected,
        "nics_by_hand": by_hand.nics,
        "more_nics_pct": round(100.0 * (learned.nics / by_hand.nics - 1.0), 2),
        **_learnt(learned),
    }


def steady_row(play: Play) -> dict[str, object]:
    """Nothing drifts."""
    found = play(production.ProductionTables(measure=HONEST), WITHOUT_FEEDBACK, WITH_FEEDBACK)
    without, learned = found.fleet(WITHOUT_FEEDBACK), found.fleet(WITH_FEEDBACK)
    return {
        "testbed": play.name,
        "case": "no drift",
        "false_alarms": learned.false_alarms,
        "without_pct": _pct(without.violations_pct),
        "pct": _pct(learned.violations_pct),
        "nics_without": without.nics,
        "nics": learned.nics,
        "rejected": learned.rejected,
        "repeated": learned.repeated,
        **_learnt(learned),
    }


def lie_rows(play: Play) -> Iterator[dict[str, object]]:
    """Readings that mislead, beside honest ones."""
    liar = play.arrivals[LIAR].id
    honest = play(production.ProductionTables(measure=HONEST), WITH_FEEDBACK).fleet(WITH_FEEDBACK)
    for case, measure, factor in (
        ("outliers", OUTLIERS, None),
        ("unsaturated", UNSATURATED, None),
        ("liar, half", HONEST, 0.5),
        ("liar, more", HONEST, 1.5),
        ("all", ALL, 0.5),
    ):
        liars = [] if factor is None else [production.LiarTable(tenant=liar, factor=factor)]
        learned = play(production.ProductionTables(measure=measure, liar=liars), WITH_FEEDBACK).fleet(WITH_FEEDBACK)
        yield {
            "testbed": play.name,
            "case": case,
            "false_alarms": learned.false_alarms,
            "honest_pct": _pct(honest.violations_pct),
            "pct": _pct(learned.violations_pct),
            "of_honest": _ratio(learned.violations_pct, honest.violations_pct),
            "rejected": learned.rejected,
            "nics_honest": honest.nics,
            "nics": learned.nics,
            **_learnt(learned),
        }


def _learnt(learned: FleetOutcome) -> dict[str, object]:
    return {"measurements": learned.measurements, "readings": learned.readings, "model": learned.model}


def _pct(value: float | None) -> float | None:
    return None if value is None else round(value, 2)


def _ratio(value: float, other: float) -> float | None:
    return round(value / other, 2) if other else None
