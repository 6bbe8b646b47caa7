"""`placer generate`."""

from __future__ import annotations

import contextlib
import os
import sys
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from placer.commands.options import Seed, complete_nf, one_of, refuse_same_files, refuse_unwritable, take_option
from profiles import InputError
from profiles.faults import suggestion
from profiles.text import number_of
from traces.arrivals import LARGEST_LOAD, TABLE_2_NFS, TRAFFICS, Recipe, generate
from traces.days import HOURS, day_csv

if TYPE_CHECKING:
    from profiles import TestbedDescription

DEFAULT_SLA = "0.05-0.20"

Count = Annotated[int, typer.Option(min=1, max=100_000_000, help="Arrivals.")]
Nfs = Annotated[
    str | None,
    take_option(
        "NF names, separated by commas; by default the nine of Tomur's experiments, or all of --models.",
        autocompletion=complete_nf,
    ),
]
SlaRange = Annotated[
    str | None,
    take_option("Smallest and largest allowed drop, LOW-HIGH.  [default: 0.05-0.20; none with --loads]", "--sla"),
]
Loads = Annotated[
    str | None,
    take_option(
        "Offered rates: smallest and largest share of what the NF carries alone on its default cores, LOW:HIGH, "
        "drawn uniformly in the logarithm."
    ),
]
Day = Annotated[
    Path | None,
    take_option(
        "With --loads: also write loads over the day (office, evening, night) to this file, for `placer run "
        "--loads`; each NF draws one."
    ),
]
Traffic = Annotated[
    str,
    typer.Option(
        help="default: the default traffic; mixed: one of nine traffic profiles per NF; unique: a new profile per NF."
    ),
]
Departures = Annotated[
    float | None, take_option("Mean time from arrival to departure, in seconds; without it, no NF departs.", min=0.001)
]
ModelsDir = Annotated[Path | None, take_option("Draw traffic from the range of these models.", "--models")]
Out = Annotated[Path | None, take_option("Write this file instead of stdout.")]


def command(
    count: Count = 500,
    nfs: Nfs = None,
    sla: SlaRange = None,
    loads: Loads = None,
    day: Day = None,
    traffic: Traffic = "default",
    departures: Departures = None,
    models: ModelsDir = None,
    seed: Seed = 0,
    out: Out = None,
) -> None:
    """Generate a trace of arrivals as in Tomur's section 7.5.1: about one every ten seconds, NFs drawn uniformly."""
    from profiles.aside import file_aside

    shares = None if loads is None else _shares(loads)
    if day is not None and shares is None:
        raise InputError.of("--day", "needs --loads: a load over the day is a share of a rate", hint="--loads 0.05:1.1")
    refuse_unwritable("--day", day)
    refuse_same_files({"--day": day, "--out": out}, {"--models": models})
    testbed = _description(models)
    recipe = Recipe(
        count=count,
        nfs=_names(nfs, testbed, TABLE_2_NFS if models is None else None),
        sla=None if sla is None and shares else _range(sla or DEFAULT_SLA),
        traffic=one_of("--traffic", traffic, TRAFFICS),
        attributes=dict(testbed.attributes),
        mean_stay_s=departures,
        seed=seed,
        loads=shares,
        days=() if day is None else tuple(HOURS),
    )
    if shares is not None:
        from placer.inputs.models import capacities_of, open_models

        trained = open_models(models, lambda line: typer.echo(line, err=True))
        recipe = replace(recipe, capacity_kpps=capacities_of(trained))
    if day is not None:
        with file_aside(day) as aside:
            aside.write_text(day_csv(), encoding="utf-8")
    if out is None:
        with contextlib.suppress(BrokenPipeError):
            sys.stdout.writelines(generate(recipe))
            sys.stdout.flush()
            return
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return
    with file_aside(out) as aside, aside.open("w", encoding="utf-8", newline="") as file:
        file.writelines(generate(recipe))


def _names(text: str | None, testbed: TestbedDescription, default: tuple[str, ...] | None) -> tuple[str, ...]:
    known = [nf.name for nf in testbed.nfs]
    if text is None:
        return default or tuple(known)
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    if not names:
        raise InputError.of("--nfs", "names no NF", hint="as in --nfs NAT,ACL")
    if unknown := [name for name in names if name not in known]:
        raise InputError.of("--nfs", f"unknown: {', '.join(unknown)}", hint=suggestion(unknown[0], known))
    return names


def _range(text: str) -> tuple[float, float]:
    low, _, high = text.partition("-")
    smallest, largest = number_of(low), number_of(high or low)
    if smallest is None or largest is None or not 0 <= smallest <= largest < 1:
        raise InputError.of("--sla", f"'{text}' is not a range of drops within [0, 1)", hint="as in --sla 0.05-0.20")
    return smallest, largest


def _shares(text: str) -> tuple[float, float]:
    low, _, high = text.partition(":")
    smallest, largest = number_of(low), number_of(high or low)
    if smallest is None or largest is None or not 0 < smallest <= largest <= LARGEST_LOAD:
        message = f"'{text}' is not a range of shares above 0 and at most {LARGEST_LOAD:g}"
        raise InputError.of("--loads", message, hint="as in --loads 0.05:1.1")
    return smallest, largest


def _description(models: Path | None) -> TestbedDescription:
    if models is None:
        recorded = files("traces") / "bluefield-2-simulated" / "testbed.json"
        from profiles import TestbedDescription

        return TestbedDescription.model_validate_json(recorded.read_bytes())
    from predictor import load_models

    testbed = load_models(models).testbed
    if testbed is None:
        raise InputError.of("--models", "were trained on a profile without a range of traffic")
    return testbed
