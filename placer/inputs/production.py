"""Production files: how a simulated production measures and drifts, and who lies (docs/formats/production.md)."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat
from pydantic_core import ErrorDetails

from profiles import InputError
from profiles.faults import suggestion
from profiles.files.toml import Key, WrongKey, locate_faults, read_toml, validate_toml

MOST_EVENTS = 1_000_000_000
LEAST_FACTOR, MOST_FACTOR = 0.01, 100.0
MOST_SEED = 2**63

SLA_PROMISED, SLA_RELATIVE = "promised", "relative"
"""What a largest drop is relative to: what the NF reached alone when the instance arrived, or what it reaches now."""

Percent = Annotated[FiniteFloat, Field(ge=0, le=100)]
Factor = Annotated[FiniteFloat, Field(ge=LEAST_FACTOR, le=MOST_FACTOR)]
Moment = Annotated[int, Field(strict=True, ge=1, le=MOST_EVENTS)] | Annotated[float, Field(strict=True, gt=0, lt=1)]


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class MonitorTable(_Table):
    """How production is measured. `every`: events of the trace from one measurement to the next. `share`: the share of
    the NICs in use that are measured each time, at least one NIC. `window_s`: seconds of a measurement. `noise_pct`:
    standard deviation of readings. `lost_pct`, `outliers_pct`, `unsaturated_pct`: readings, per 100, that get lost,
    that are wrong by a factor of 1.5 to 3, and whose instance is offered less than it can do."""

    every: Annotated[int, Field(ge=1, le=MOST_EVENTS)] = 1
    share: Annotated[FiniteFloat, Field(gt=0, le=1)] = 0.01
    window_s: Annotated[FiniteFloat, Field(gt=0, le=1e6)] = 10.0
    noise_pct: Percent = 1.0
    lost_pct: Percent = 0.0
    outliers_pct: Percent = 0.0
    unsaturated_pct: Percent = 0.0


class DriftTable(_Table):
    """An NF that changes. `nf`: its name. `at`, `until`: when it changes and, if it does, changes back: the number of
    an event, or a fraction of all events. `factor`: from then on it has so many times its throughput, alone and beside
    others."""

    nf: Annotated[str, Field(min_length=1)]
    at: Moment
    factor: Factor
    until: Moment | None = None

    def span(self, events: int) -> tuple[int, int | None]:
        """The numbers of its first event and of the first event after it, in a trace of so many events."""
        return _number(self.at, events), None if self.until is None else _number(self.until, events)


class LiarTable(_Table):
    """Tenants that report false readings of their own throughput. `tenant`, `share`: the id of one, or which share of
    all; one of the two is given. `factor`: they report so many times what they reach."""

    tenant: Annotated[str, Field(min_length=1)] | None = None
    share: Annotated[FiniteFloat, Field(gt=0, le=1)] | None = None
    factor: Factor


class RetrainTable(_Table):
    """How models are retrained. `profiles`: folders of the profiles that the models of NICs were trained from; none to
    keep the models. `takes`: events, measurements included, from the start of a training to its version."""

    profiles: list[Annotated[str, Field(min_length=1)]] = []
    takes: Annotated[int, Field(ge=1, le=MOST_EVENTS)] = 100


class ProductionTables(_Table):
    """A whole file."""

    testbed: Annotated[str, Field(min_length=1)] | None = None
    seed: Annotated[int, Field(ge=0, lt=MOST_SEED)] = 0
    sla: Literal["promised", "relative"] = "promised"
    measure: MonitorTable = MonitorTable()
    retrain: RetrainTable = RetrainTable()
    drift: list[DriftTable] = []
    liar: list[LiarTable] = []


@dataclass(frozen=True)
class ProductionFile:
    """A production file. `name`, `text`: its path and its text. `tables`: what it holds."""

    name: str
    text: str
    tables: ProductionTables

    def refuse(self, faults: Sequence[WrongKey]) -> None:
        """InputError when there are any, each with its line."""
        if faults:
            raise InputError(locate_faults(self.name, self.text, faults))

    def refuse_unknown(self, nfs: Sequence[str], tenants: Sequence[str], events: int) -> None:
        """InputError for NFs and tenants that are not in the trace, and for changes after its end."""
        faults = []
        for index, drift in enumerate(self.tables.drift):
            start, end = drift.span(events)
            if drift.nf not in nfs:
                message = f"no arrival has the NF '{drift.nf}'"
                faults.append(WrongKey(("drift", index, "nf"), message, suggestion(drift.nf, nfs)))
            if start > events:
                faults.append(WrongKey(("drift", index, "at"), f"{start:,} is after the last of {events:,} events"))
            if end is not None and end <= start:
                faults.append(WrongKey(("drift", index, "until"), f"event {end:,} is not after event {start:,}"))
        known = set(tenants)
        for index, liar in enumerate(self.tables.liar):
            if liar.tenant is not None and liar.tenant not in known:
                faults.append(WrongKey(("liar", index, "tenant"), f"no arrival is '{liar.tenant}'"))
        self.refuse(faults)


def read_production(path: Path) -> ProductionFile:
    """The production file at a path. Raises `InputError` with every fault of the file."""
    name = str(path)
    text, document = read_toml(path)
    tables = validate_toml(ProductionTables, name, text, document, _reword)
    file = ProductionFile(name, text, tables)
    file.refuse(
        [
            WrongKey(("liar", index), "needs one of tenant and share", 'as in tenant = "a", or share = 0.1')
            for index, liar in enumerate(tables.liar)
            if (liar.tenant is None) == (liar.share is None)
        ]
    )
    return file


def _number(moment: int | float, events: int) -> int:
    """The number of an event; a fraction is of all events, and means the first event after that part of them."""
    return moment if isinstance(moment, int) else int(moment * events) + 1


def _reword(path: tuple[Key, ...], reported: ErrorDetails) -> WrongKey | None:
    """What is wrong with the moment of a drift, which has two forms."""
    if not path or path[-1] not in ("at", "until") or reported["type"] == "missing":
        return None
    message = f"{reported['input']!r} is neither the number of an event nor a fraction between 0 and 1"
    return WrongKey(path, message, "at = 1000 is the 1,000th event, at = 0.5 half of all events")
