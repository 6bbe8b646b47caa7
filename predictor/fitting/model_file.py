"""Fitted models as JSON (CONTRACTS 8; docs/formats/curves.md): one model, or a table of them, one per setting. Numbers
are written with as many digits as give the same number back. A file that is read is refused whole with all that is
wrong in it, and nothing in it is executed: a family is looked up by its name."""

import json
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Annotated, Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from predictor.fitting.family import FAMILIES
from predictor.fitting.fitted_model import CurveBreak, CurveSegment, FittedModel
from profiles import Fault, InputError
from profiles.faults import printable
from profiles.files.json import parse_json
from profiles.validation import faults_of

MODEL_VERSION = 1
LARGEST_FILE = 100_000_000
MOST_SEGMENTS = 10_000
LONGEST_NAME = 1_000
CHECKED_PLACES = 101
"""Places of a segment at which its value must be finite."""
EXACT_INTEGERS = 2.0**53
"""Up to here, a whole number is written without a decimal point."""

Number = Annotated[float, Field(allow_inf_nan=False)]
NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Percent = Annotated[float, Field(ge=0, le=100, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1, le=10**12)]
Name = Annotated[str, Field(min_length=1, max_length=LONGEST_NAME)]


def models_text(models: Sequence[FittedModel]) -> str:
    """One model without setting as its JSON object; several as a table of fits. Ends with a line end."""
    first = models[0]
    if len(models) == 1 and not first.setting:
        return _lines({"fit": MODEL_VERSION, **model_document(first)})
    fits = [{**model_document(model), "setting": _setting(model)} for model in models]
    return _lines({"fit": MODEL_VERSION, "x": first.x, "y": first.y, "settings": list(first.setting), "fits": fits})


def model_document(model: FittedModel) -> dict[str, Any]:
    """The keys of one model, without `fit` and `setting`."""
    return {
        "x": model.x,
        "y": model.y,
        "points": model.points,
        "from": _number(model.start),
        "to": _number(model.end),
        "segments": [_segment(segment, model.x) for segment in model.segments],
        "breakpoints": [
            {"at": _number(bend.at), "low": _number(bend.low), "high": _number(bend.high), "jump": _number(bend.jump)}
            for bend in model.breakpoints
        ],
        "smape_pct": _number(model.smape_pct),
        "left_out_smape_pct": None if model.left_out_smape_pct is None else _number(model.left_out_smape_pct),
        "noise_pct": _number(model.noise_pct),
        "seconds": _number(model.seconds),
        **(
            {}
            if model.reach == (None, None)
            else {"reach": [end if end is None else _number(end) for end in model.reach]}
        ),
        **({"notes": list(model.notes)} if model.notes else {}),
    }


def _segment(segment: CurveSegment, x: str) -> dict[str, Any]:
    return {
        "from": _number(segment.start),
        "to": _number(segment.end),
        "family": segment.family,
        "parameters": [_number(value) for value in segment.parameters],
        "formula": segment.formula(x),
        "points": segment.points,
        "smape_pct": _number(segment.smape_pct),
        **({"origin": _number(segment.origin)} if segment.origin else {}),
    }


def _setting(model: FittedModel) -> dict[str, float]:
    return {name: _number(value) for name, value in model.setting.items()}


def _number(value: float) -> float:
    """A Python number that JSON writes exactly; whole ones without a decimal point."""
    number = float(value)
    negative_zero = number == 0 and np.signbit(number)
    return int(number) if number.is_integer() and abs(number) < EXACT_INTEGERS and not negative_zero else number


def _lines(document: Mapping[str, Any]) -> str:
    """JSON with a line per key, and per entry of a list of objects."""
    shown = []
    for key, value in document.items():
        text = json.dumps(value, allow_nan=False)
        if isinstance(value, list) and value and isinstance(value[0], dict):
            text = "[\n  " + ",\n  ".join(json.dumps(item, allow_nan=False) for item in value) + "\n ]"
        shown.append(f" {json.dumps(key)}: {text}")
    return "{\n" + ",\n".join(shown) + "\n}\n"


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class _Segment(_Part):
    start: Number = Field(alias="from")
    end: Number = Field(alias="to")
    family: Name
    parameters: list[Number] = Field(max_length=1_000)
    formula: str = ""
    points: Count
    smape_pct: Percent
    origin: Number = 0.0


class _Break(_Part):
    at: Number
    low: Number
    high: Number
    jump: Number


class _Model(_Part):
    x: Name
    y: Name
    points: Count
    start: Number = Field(alias="from")
    end: Number = Field(alias="to")
    segments: list[_Segment] = Field(min_length=1, max_length=MOST_SEGMENTS)
    breakpoints: list[_Break]
    smape_pct: Percent
    left_out_smape_pct: Percent | None = None
    noise_pct: Percent
    seconds: NotNegative
    setting: dict[str, Number] = {}
    reach: list[Number | None] = Field(default=[None, None], min_length=2, max_length=2)
    notes: list[Annotated[str, Field(max_length=LONGEST_NAME + 500)]] = Field(default=[], max_length=100)


class _OneModel(_Model):
    fit: int


class _Table(_Part):
    fit: int
    x: Name
    y: Name
    settings: list[Name] = Field(min_length=1)
    fits: list[_Model] = Field(min_length=1, max_length=100_000)


def models_of(text: str, file: str) -> tuple[FittedModel, ...]:
    """The models of a file written by `placer fit --out`: one, or one per setting. `text`: its content. `file`: its
    name, for messages. Raises `InputError` with every fault."""
    document = parse_json(text, file)
    if not isinstance(document, dict):
        raise InputError.of(file, "is no fitted model: it must be a JSON object")
    table = "fits" in document
    if document.get("fit") != MODEL_VERSION or isinstance(document.get("fit"), bool):
        found = (
            f"is {document['fit']!r}, not {MODEL_VERSION}"
            if "fit" in document
            else "is missing: this is no fitted model"
        )
        raise InputError.of(file, printable(found)[:200], column="fit", hint="`placer fit DATA.csv --out MODEL.json`")
    try:
        read = _Table.model_validate(document) if table else _OneModel.model_validate(document)
    except ValidationError as error:
        raise InputError(faults_of(error, file)) from None
    parts = read.fits if isinstance(read, _Table) else [read]
    faults = [fault for at, one in enumerate(parts) for fault in _faults(one, file, f"fits.{at}." if table else "")]
    if isinstance(read, _Table):
        faults += _table_faults(read, file)
    if faults:
        raise InputError(faults)
    return tuple(_model(part) for part in parts)


def _faults(read: _Model, file: str, place: str) -> list[Fault]:
    """What is wrong with a model whose values are all of the right type."""
    segments, breaks = read.segments, read.breakpoints
    found = [(f"segments.{at}.{key}", *rest) for at, one in enumerate(segments) for key, *rest in _of_segment(one)]
    for at, (one, following) in enumerate(pairwise(segments)):
        if not one.start < one.end:
            found.append((f"segments.{at}.to", f"{one.end!r} is not above `from`, {one.start!r}"))
        if one.end != following.start:
            found.append((f"segments.{at + 1}.from", f"{following.start!r} is not where the segment before ends"))
    if segments[-1].end < segments[-1].start:
        found.append((f"segments.{len(segments) - 1}.to", f"{segments[-1].end!r} is below `from`"))
    for key, value, edge in (("from", read.start, segments[0].start), ("to", read.end, segments[-1].end)):
        if value != edge:
            found.append((key, f"{value!r} is not that of the segments, {edge!r}"))
    low, high = read.reach
    if (low is not None and low > read.start) or (high is not None and high < read.end):
        found.append(("reach", "is less than from `from` to `to`"))
    if len(breaks) != len(segments) - 1:
        found.append(("breakpoints", f"there are {len(breaks)}, between {len(segments)} segments"))
    for at, (point, following) in enumerate(zip(breaks, segments[1:], strict=False)):
        if point.at != following.start:
            found.append((f"breakpoints.{at}.at", f"{point.at!r} is not where a segment begins, {following.start!r}"))
        if point.low > point.high:
            found.append((f"breakpoints.{at}.low", f"{point.low!r} is above `high`, {point.high!r}"))
    return [Fault(file, None, place + column, *rest) for column, *rest in found]


def _of_segment(read: _Segment) -> list[tuple[str, ...]]:
    if read.family not in FAMILIES:
        return [("family", f"'{read.family}' is not a family", f"families are {', '.join(FAMILIES)}")]
    family = FAMILIES[read.family]
    if len(read.parameters) != family.size:
        return [("parameters", f"there are {len(read.parameters)}, {read.family} has {family.size}")]
    if family.of_positive_x and read.start <= read.origin:
        return [("from", f"{read.start!r} is not above {read.origin:g}, as {read.family} needs")]
    at = np.linspace(read.start, read.end, CHECKED_PLACES)
    bad = at[~np.isfinite(_curve_segment(read).predict(at))]
    return [("parameters", f"the value at {float(bad[0])!r} is not finite")] if len(bad) else []


def _table_faults(read: _Table, file: str) -> list[Fault]:
    found = []
    known: dict[tuple[tuple[str, float], ...], int] = {}
    for at, one in enumerate(read.fits):
        for key, name, expected in (("x", one.x, read.x), ("y", one.y, read.y)):
            if name != expected:
                found.append((f"fits.{at}.{key}", f"{name!r} is not that of the table, {expected!r}"))
        if list(one.setting) != read.settings:
            names = ", ".join(one.setting) or "nothing"
            found.append((f"fits.{at}.setting", f"names {names}, `settings` names {', '.join(read.settings)}"))
        first = known.setdefault(tuple(one.setting.items()), at)
        if first != at:
            found.append((f"fits.{at}.setting", f"is that of fits.{first}, too"))
    return [Fault(file, None, column, message) for column, message in found]


def _curve_segment(read: _Segment) -> CurveSegment:
    return CurveSegment(
        read.start, read.end, read.family, tuple(read.parameters), read.points, read.smape_pct, read.origin
    )


def _model(read: _Model) -> FittedModel:
    return FittedModel(
        read.x,
        read.y,
        read.points,
        tuple(_curve_segment(segment) for segment in read.segments),
        tuple(CurveBreak(bend.at, bend.low, bend.high, bend.jump) for bend in read.breakpoints),
        read.smape_pct,
        read.left_out_smape_pct,
        read.noise_pct,
        read.seconds,
        read.setting,
        (read.reach[0], read.reach[1]),
        tuple(read.notes),
    )
