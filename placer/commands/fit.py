"""`placer fit`: from a CSV file of measurements to a formula, its predictions, and code."""

from __future__ import annotations

import io
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from placer.commands import options
from placer.progress import Progress
from profiles import InputError
from profiles.files.lines import STDIN

if TYPE_CHECKING:
    from predictor.fitting.fitted_model import FittedModel
    from predictor.fitting.points import MeasuredCurve

SELECTION_METHODS = ("bic", "tum")
SHAPES = ("free", "continuous", "steps")
MODEL_SUFFIX = ".json"
FIT_FORMATS = ("json", "text")
BYTES_TO_GUESS_FORMAT = 64  # bytes that show whether a file is JSON

Data = Annotated[
    str,
    options.take_argument(
        "DATA.csv|MODEL.json", "Measurements, one per row, or a model written by --out; - reads standard input."
    ),
]
X = Annotated[
    list[str] | None,
    options.take_option(
        "The column that was varied. Repeated: further columns are settings, and there is a fit for each "
        "combination of their values.  [default: the first of two columns with numbers]",
        "--x",
    ),
]
Y = Annotated[
    str | None,
    options.take_option("The column that was measured.  [default: the second of two columns with numbers]", "--y"),
]
Out = Annotated[Path | None, options.take_option("Write the model; `placer fit MODEL.json` uses it again.")]
At = Annotated[
    str | None,
    options.take_option("CSV of the points to predict: the columns of x and the settings; - reads stdin.", "--at"),
]
Code = Annotated[str | None, options.take_option("Print the model as python, c, latex or p4.", "--code")]
Select = Annotated[
    str | None,
    options.take_option(
        "How to choose the number, breakpoints and families of segments: bic (Bayesian information criterion) or "
        "tum (Scholz et al.).  [default: bic]"
    ),
]
Shape = Annotated[
    str | None,
    options.take_option(
        "What the curve may be: free, continuous (without jumps) or steps (levels only).  [default: free]"
    ),
]
Break = Annotated[
    list[float] | None, options.take_option("Where a segment ends; repeatable.  [default: found]", "--break")
]
Error = Annotated[
    str | None, options.take_option("The column with the standard deviation of each measurement.", "--error")
]
Format = Annotated[str | None, options.take_option("json or text.  [default: text on a terminal, else json]")]


@dataclass(frozen=True)
class _Fits:
    """The models, and the curves that they were fitted to: none for models that were read."""

    models: tuple[FittedModel, ...]
    curves: tuple[MeasuredCurve, ...] = ()


def command(
    context: typer.Context,
    data: Data,
    x: X = None,
    y: Y = None,
    out: Out = None,
    at: At = None,
    code: Code = None,
    select: Select = None,
    shape: Shape = None,
    breaks: Break = None,
    error: Error = None,
    report: options.Report = None,
    plots: options.Plots = None,
    format: Format = None,
    quiet: options.Quiet = False,
) -> None:
    """Fit a readable formula to measurements of one curve: segments, breakpoints and errors."""
    progress = Progress(quiet=quiet)
    _refuse(data, out, at, code, format, report)
    options.refuse_unwritable_folder("--plots", plots)
    shown_as = options.one_of("--format", format or ("text" if sys.stdout.isatty() else "json"), FIT_FORMATS)
    if _is_model(data):
        given = {"--x": x, "--y": y, "--select": select, "--shape": shape, "--break": breaks, "--error": error}
        fits = _Fits(_read_models(data, {**given, "--report or --plots": report or plots}))
    else:
        how = _choose_fit(select, shape, breaks or ())
        fits = _fit(data, x or (), y, error, how, progress)
    text = _print(fits, at, code, shown_as, progress)
    if out is not None:
        _write(fits.models, out)
        progress.say(f"wrote {out}")
    if report is not None or plots is not None:
        made_by = options.command_line(context)
        from placer.report.html import page_files
        from placer.report.html.fit import fit_page
        from profiles.aside import write_files

        write_files(page_files(fit_page(fits.models, fits.curves, made_by), report, plots, made_by=made_by))
    typer.echo(text, nl=False)


def _refuse(
    data: str, out: Path | None, at: str | None, code: str | None, format: str | None, report: Path | None
) -> None:
    """InputError when options are wrong or contradict each other, before any work."""
    if code is not None:
        from predictor.fitting.generated_code import CODES

        CODES.find(code)
    if at is not None and code is not None:
        raise InputError.of("--at", "is given together with --code", hint="both print on standard output: give one")
    if format is not None and (at is not None or code is not None):
        given = "--at" if at is not None else "--code"
        raise InputError.of("--format", f"is given together with {given}", hint="--at prints CSV, --code prints code")
    if at == data == STDIN:
        raise InputError.of("--at", "standard input is already the data", hint="only one file can be `-`")
    for option, path in (("--out", out), ("--report", report)):
        options.refuse_unwritable(option, path)
    read = {"DATA": None if data == STDIN else Path(data), "--at": None if at in (None, STDIN) else Path(str(at))}
    options.refuse_same_files({"--out": out, "--report": report}, read)


def _is_model(data: str) -> bool:
    """Whether the file is a fitted model, and not measurements: a JSON object."""
    if data == STDIN:
        peek = getattr(sys.stdin.buffer, "peek", None)
        return peek is not None and _begins_as_json(peek(BYTES_TO_GUESS_FORMAT))
    path = Path(data)
    if path.suffix.lower() == MODEL_SUFFIX:
        return True
    try:
        if not path.is_file():  # a pipe can be read only once
            return False
        with path.open("rb") as file:
            return _begins_as_json(file.read(BYTES_TO_GUESS_FORMAT))
    except OSError:  # reported by the one who reads all of it
        return False


def _begins_as_json(content: bytes) -> bool:
    return content.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"{")


def _read_models(data: str, given: Mapping[str, object]) -> tuple[FittedModel, ...]:
    from predictor.fitting.model_file import LARGEST_FILE, models_of
    from profiles.text import read_text

    for option, value in given.items():
        if value not in (None, []):
            raise InputError.of(option, "is for measurements; this is a fitted model", hint="give --at or --code")
    if data != STDIN:
        return models_of(read_text(Path(data), LARGEST_FILE), data)
    return models_of(_text_of_stdin(LARGEST_FILE), "<stdin>")


def _text_of_stdin(largest: int) -> str:
    content = sys.stdin.buffer.read(largest + 1)
    if len(content) > largest:
        raise InputError.of("<stdin>", f"is larger than {largest:,} bytes")
    try:
        return io.TextIOWrapper(io.BytesIO(content), encoding="utf-8-sig").read()
    except UnicodeDecodeError:
        raise InputError.of("<stdin>", "is not UTF-8 text", hint="save the file as UTF-8") from None


@dataclass(frozen=True)
class _HowToFit:
    select: str
    shape: str
    breaks: tuple[float, ...]


def _choose_fit(select: str | None, shape: str | None, breaks: Sequence[float]) -> _HowToFit:
    chosen = _HowToFit(
        options.one_of("--select", select or SELECTION_METHODS[0], SELECTION_METHODS),
        options.one_of("--shape", shape or SHAPES[0], SHAPES),
        tuple(breaks),
    )
    if chosen.select != SELECTION_METHODS[0] and (chosen.shape != SHAPES[0] or breaks):
        given = "--shape" if chosen.shape != SHAPES[0] else "--break"
        raise InputError.of("--select", f"{chosen.select} is given together with {given}", hint="give one of them")
    if chosen.shape == "continuous" and breaks:
        hint = "between given breakpoints each segment is fitted alone: give one of them"
        raise InputError.of("--shape", "continuous is given together with --break", hint=hint)
    return chosen


def _fit(data: str, x: Sequence[str], y: str | None, error: str | None, how: _HowToFit, progress: Progress) -> _Fits:
    """A fit of each curve of the file."""
    from placer.inputs.curve import read_curves
    from placer.report.text.fit import model_name
    from predictor.fitting.fit import fit

    read = read_curves(data, x, y, error, how.breaks)
    for note in read.notes:
        progress.say(note)
    models = []
    with progress.task("fits") as advance:
        for number, curve in enumerate(read.curves):
            advance(number, len(read.curves))
            models.append(fit(curve, select=how.select, shape=how.shape, breaks=how.breaks))
    for model in models:
        for note in model.notes:
            progress.say(f"{read.name}: {model_name(model)}: {note}")
    return _Fits(tuple(models), read.curves)


def _print(fits: _Fits, at: str | None, code: str | None, shown_as: str, progress: Progress) -> str:
    """What standard output gets."""
    from predictor.fitting.model_file import models_text

    models = fits.models
    if at is not None:
        return _predictions(models, at, progress)
    if code is not None:
        from predictor.fitting.generated_code import CODES

        return CODES[code](models)
    return models_text(models) if shown_as == "json" else _show(fits)


def _show(fits: _Fits) -> str:
    """What people read on a terminal."""
    import shutil

    from placer.report.text.fit import format_fit

    width, encoding = shutil.get_terminal_size().columns, sys.stdout.encoding
    curves = fits.curves or [None] * len(fits.models)
    return "\n".join(
        format_fit(model, curve, width, encoding=encoding) for model, curve in zip(fits.models, curves, strict=True)
    )


def _predictions(models: Sequence[FittedModel], at: str, progress: Progress) -> str:
    import numpy as np

    from placer.inputs.curve import read_points
    from placer.report.text.fit import format_fitted_points

    points = read_points(at, models[0].x, [model.setting for model in models])
    predicted, outside = np.empty(len(points.x)), np.empty(len(points.x), dtype=bool)
    for number, model in enumerate(models):
        rows = points.fits == number
        predicted[rows], outside[rows] = model.predict(points.x[rows]), model.extrapolated(points.x[rows])
    if count := int(outside.sum()):
        progress.say(f"{count} of {len(outside)} rows are outside what was measured: they are marked `extrapolated`")
    refused = np.zeros(len(points.x), dtype=bool)
    for number, model in enumerate(models):
        refused |= (points.fits == number) & model.beyond_reach(points.x)
    if count := int(refused.sum()):
        progress.say(
            f"{count} of {len(outside)} rows are not predicted: there, so far outside what was measured, formulas that "
            "explain the points about as well differ by more than 10 %"
        )
    if count := int((~np.isfinite(predicted) & ~refused).sum()):
        progress.say(f"{count} of {len(outside)} rows have no prediction: the formula has no finite value there")
    return format_fitted_points(points.table, predicted, outside)


def _write(models: Sequence[FittedModel], out: Path) -> None:
    from predictor.fitting.model_file import models_text
    from profiles.aside import write_files

    write_files({out: models_text(models).encode()})
