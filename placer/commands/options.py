"""Options that several commands share."""

from __future__ import annotations

import os
import shlex
import tempfile
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from profiler.testbeds import known_testbeds
from profiles import InputError

RECORDED_TESTBEDS = ("simulated", "simulated:contended", "simulated:server")
"""Testbeds whose recorded profiles come with placer."""

ModelsDir = Annotated[
    Path | None,
    typer.Option(
        help="A folder written by `placer train`; by default the recorded models of the simulated card.",
        show_default=False,
    ),
]
TestbedSpec = Annotated[
    str | None,
    typer.Option(
        help=f"The ground truth: {known_testbeds()} or none. "
        "By default `simulated` for models of the simulated card, `none` for others.",
        show_default=False,
    ),
]
RecordedCard = Annotated[
    str | None,
    typer.Option(
        "--testbed",
        help=f"Without --models: use the recorded models of this testbed, {', '.join(RECORDED_TESTBEDS)}.  "
        "[default: simulated]",
        show_default=False,
    ),
]
Fleet = Annotated[
    Path | None,
    typer.Option(help="A TOML file with [[nic]] tables; by default, unlimited NICs.", show_default=False),
]
OnePredictor = Annotated[
    str, typer.Option("--predictor", help="The predictor of throughput; tomur and slomo come with placer.")
]
RuleName = Annotated[
    str, typer.Option("--rule", help="How to choose among feasible NICs: look-ahead, best-fit, first-fit or worst-fit.")
]
Budget = Annotated[
    float | None,
    typer.Option(
        help="SLA violations to accept, in % of the instances: contention-aware chooses its margins so that its plan "
        "is expected to stay below.  [default: 2]",
        show_default=False,
    ),
]
Risk = Annotated[
    float | None,
    typer.Option(
        min=0.001,
        max=0.5,
        help="Instead of --budget, the margin itself: the share of cases that fall short of the throughput that "
        "placement uses; 0.5 uses the median prediction. No effect on slomo, which has no error model.",
        show_default=False,
    ),
]
Seed = Annotated[int, typer.Option(help="Random seed; the same seed gives the same output.")]
Timeout = Annotated[float, typer.Option(min=0.1, help="Seconds that a testbed may take for one answer.")]
Jobs = Annotated[int, typer.Option(min=-1, help="Runs at a time on this machine; -1 is one per core.")]
Parallel = Annotated[
    str | None, typer.Option(help="Run on a cluster instead: dask or ray (optional extras).", show_default=False)
]
Cluster = Annotated[
    str | None,
    typer.Option(help="Address of a running cluster; without it, one is started on this machine.", show_default=False),
]
Report = Annotated[Path | None, typer.Option(help="Write a report: one self-contained HTML file.", show_default=False)]
Plots = Annotated[
    Path | None,
    typer.Option(help="Write the charts of the report into this folder, as SVG and PNG.", show_default=False),
]
NOT_OF_THE_PAGE = {
    "report", "plots", "quiet", "out", "plan", "certificate", "format", "jobs", "parallel", "cluster", "timeout"
}  # fmt: skip
"""Options that change nothing on a page."""

Quiet = Annotated[bool, typer.Option("--quiet", help="Print only errors on stderr.")]


def one_of(option: str, value: str, known: Collection[str]) -> str:
    """The value, if it is known; else InputError."""
    if value not in known:
        raise InputError.of(option, f"'{value}' is not understood", hint=f"it is one of {', '.join(known)}")
    return value


def refuse_bad_budget(budget: float | None, risk: float | None = None, option: str = "--budget") -> None:
    """InputError when the budget (%) is out of range, or given together with a risk."""
    if budget is None:
        return
    if not 0 < budget <= 100:
        raise InputError.of(option, f"{budget:g} is not above 0 and at most 100", hint="as in 2, for 2 % of instances")
    if risk is not None:
        hint = f"{option} chooses the risk by itself: give one of the two"
        raise InputError.of(option, "is given together with --risk", hint=hint)


def command_line(context: typer.Context) -> str:
    """The command that gives the same page again: what was typed, without what decides where and how fast only."""
    words = ["placer", *_subcommands(context)]
    for parameter in context.command.params:
        source = context.get_parameter_source(str(parameter.name))
        if parameter.name in NOT_OF_THE_PAGE or source is None or source.name != "COMMANDLINE":
            continue
        given = context.params[str(parameter.name)]
        for value in given if isinstance(given, (list, tuple)) else [given]:
            option = [parameter.opts[0]] if parameter.param_type_name == "option" else []
            words += [*option, f"{value:.12g}" if isinstance(value, float) else str(value)]
    return f"{shlex.join(words)} --report FILE.html"


def _subcommands(context: Any) -> list[str]:
    """The names of a command below `placer`, such as `chain place`."""
    return [] if context.parent is None else [*_subcommands(context.parent), str(context.info_name)]


def refuse_same_files(written: Mapping[str, Path | None], read: Mapping[str, Path | None]) -> None:
    """InputError when a file to write is also read, or written twice; by option."""
    used = {path.resolve(): option for option, path in read.items() if path is not None}
    for option, path in written.items():
        if path is None or (path.exists() and not path.is_file()):
            continue
        if path.resolve() in used:
            raise InputError.of(option, f"{path} is the file of {used[path.resolve()]}, too", hint="name another file")
        used[path.resolve()] = option


def refuse_unwritable(option: str, path: Path | None) -> None:
    """InputError when nothing can be written to `path`, before the work for it is done."""
    if path is None:
        return
    if path.exists() and not path.is_file() and not path.is_dir():  # a device or a pipe
        writable = os.access(path, os.W_OK)
    else:
        writable = not path.is_dir() and _takes_files(path.resolve().parent)
    if not writable:
        raise InputError.of(option, f"{path} cannot be written", hint="name a file in a folder that you may write to")


def refuse_unwritable_folder(option: str, path: Path | None) -> None:
    """InputError when no files can be written into the folder `path`, before the work for them is done."""
    if path is None:
        return
    if path.exists() and not path.is_dir():
        raise InputError.of(option, f"{path} is a file", hint="name a folder; it is created when it does not exist")
    if not _takes_files(path.resolve()):
        raise InputError.of(option, f"{path} cannot be written", hint="name a folder that you may write to")


def _takes_files(folder: Path) -> bool:
    """Whether a file can be created in a folder, or in the folder above in which it would be created."""
    there = next(one for one in (folder, *folder.parents) if one.exists())
    try:  # permissions do not show it: root has all, but /proc takes no file
        with tempfile.TemporaryFile(dir=there):
            return True
    except OSError:
        return False
