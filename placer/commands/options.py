"""Options that several commands share."""

from __future__ import annotations

import os
import shlex
import signal
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib.metadata import entry_points
from importlib.resources import files
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from profiler.testbeds import TESTBEDS, list_testbeds
from profiles import InputError

if TYPE_CHECKING:
    from placer.inputs.arrivals import TraceOptions
    from placer.progress import Advance, Progress
    from profiler.testbed import Testbed


EXPERT_OPTIONS = frozenset({
    "--coverage", "--draws", "--ignore-columns", "--log-requests", "--method", "--move-cost", "--of",
    "--plan-strategy", "--quota", "--range", "--regressor", "--repair", "--retrain", "--risk",
    "--risk-worth", "--rule", "--skip-empty-stays", "--sla-budget", "--solver", "--spare-domains", "--time-limit",
    "--timeout", "--when-full",
})  # fmt: skip
"""Options that the defaults suit, listed under a heading of their own."""


class Command(TyperCommand):
    """A command whose help lists the options that only experts change under a heading of their own."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments, options and expert options, each under its heading."""
        sections: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": [], "Options for experts": []}
        for parameter in self.get_params(ctx):
            if record := parameter.get_help_record(ctx):
                is_expert = EXPERT_OPTIONS.intersection(parameter.opts)
                kind = "Options for experts" if is_expert else f"{parameter.param_type_name.title()}s"
                sections[kind].append(record)
        for heading, records in sections.items():
            if records:
                with formatter.section(heading):
                    formatter.write_dl(records)


class Group(TyperGroup):
    """A command whose help gives the whole first sentence of each subcommand."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write each subcommand with the first line of its docstring."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, str(self.commands[name].help).splitlines()[0]) for name in self.commands])


STRATEGY_NAMES = ("monopolization", "greedy", "contention-aware", "planned", "optimal")
"""Strategies of placer, written here since a shell that completes a word waits for no import."""

RULE_NAMES = ("look-ahead", "best-fit", "first-fit", "worst-fit")  # rules of contention-aware


def complete_strategy(incomplete: str) -> list[str]:
    """The strategies that begin so, those of other packages too; after `contention-aware:` its rules."""
    names = [*STRATEGY_NAMES, *(point.name for point in entry_points(group="placer.strategies"))]
    names += [f"contention-aware:{rule}" for rule in RULE_NAMES if ":" in incomplete]
    return [name for name in names if name.startswith(incomplete)]


def complete_testbed(incomplete: str) -> list[str]:
    """The testbeds that begin so."""
    names = dict.fromkeys([*RECORDED_TESTBEDS, *TESTBEDS.file_names(), "none"])
    return [name for name in names if name.startswith(incomplete)]


def complete_nf(incomplete: str) -> list[str]:
    """The NFs of the recorded profiles that begin so; of a list with commas, the last one."""
    before, comma, last = incomplete.rpartition(",")
    profiles = [folder for folder in files("traces").iterdir() if folder.is_dir()]
    names = {item.name for profile in profiles for item in profile.iterdir() if item.is_dir()}
    return [f"{before}{comma}{name}" for name in sorted(names) if name.startswith(last)]


def take_option(text: str, *names: str, **settings: Any) -> Any:
    """An option whose help is `text`, without its default; `names`: where they are not that of the parameter."""
    return typer.Option(*names, help=text, show_default=False, **settings)


def take_argument(metavar: str, text: str, **settings: Any) -> Any:
    """An argument, whose help is `text`."""
    return typer.Argument(metavar=metavar, help=text, show_default=False, **settings)


RECORDED_TESTBEDS = ("simulated", "simulated:contended", "simulated:server")
"""Testbeds whose recorded profiles come with placer."""

ModelsDir = Annotated[
    Path | None,
    take_option("A folder written by `placer train`; by default the recorded models of the simulated card."),
]
TestbedSpec = Annotated[
    str | None,
    take_option(
        f"The ground truth: {list_testbeds()} or none. "
        "By default `simulated` for models of the simulated card, `none` for others.",
        autocompletion=complete_testbed,
    ),
]
RecordedCard = Annotated[
    str | None,
    take_option(
        f"Without --models: the testbed whose recorded models are used, one of {', '.join(RECORDED_TESTBEDS)}.  "
        "[default: simulated]",
        "--testbed",
        autocompletion=complete_testbed,
    ),
]
SpareNics = Annotated[
    int,
    take_option(
        "Find the spare NICs with which any N NICs of a plan may fail: their instances then fit on the others, "
        "which keep theirs.",
        "--spare",
        min=0,
        metavar="N",
    ),
]
SpareDomains = Annotated[
    int, take_option("As --spare, for any N domains of the fleet file, each with all its NICs.", min=0, metavar="N")
]
Fleet = Annotated[Path | None, take_option("A TOML file with [[nic]] tables; by default, unlimited NICs.")]
OnePredictor = Annotated[
    str, typer.Option("--predictor", help="The predictor of throughput; tomur and slomo come with placer.")
]
RuleName = Annotated[str, typer.Option("--rule", help=f"How to choose among feasible NICs: {', '.join(RULE_NAMES)}.")]
Budget = Annotated[
    float | None,
    take_option(
        "SLA violations to accept, in % of the instances: safety margins are chosen so that the expected "
        "violations stay below.  [default: 2]"
    ),
]
Risk = Annotated[
    float | None,
    take_option(
        "Instead of a budget of SLA violations: the chance that an NF is slower than placement assumes; 0.5 uses "
        "the median prediction. It has no effect on slomo, which has no error model.",
        min=0.001,
        max=0.5,
    ),
]
Seed = Annotated[int, typer.Option(help="Random seed; the same seed gives the same output.")]
Timeout = Annotated[float, typer.Option(min=0.1, help="Seconds that a testbed may take for one answer.")]
Jobs = Annotated[int, typer.Option(min=-1, help="Parallel runs on this machine; -1: one per core.")]
ResultsFolder = Annotated[
    Path | None, take_option("The folder for results; by default one in your cache, which stderr names.", "--out")
]
Report = Annotated[Path | None, take_option("Write a report: one self-contained HTML file.")]
Plots = Annotated[Path | None, take_option("Write the charts of the report into this folder, as SVG and PNG.")]
NOT_OF_THE_PAGE = {
    "report", "plots", "quiet", "out", "plan", "certificate", "format", "jobs", "timeout"
}  # fmt: skip
"""Options that change nothing on a page."""

IgnoreColumns = Annotated[
    bool, typer.Option("--ignore-columns", help="Ignore unknown columns of the arrivals; stderr names them.")
]
SkipEmptyStays = Annotated[
    bool,
    typer.Option(
        "--skip-empty-stays",
        help="Skip arrivals that depart at the time of their arrival; stderr reports their number.",
    ),
]
Loads = Annotated[
    Path | None,
    take_option(
        "The loads that the column `load` of the trace names: a CSV file with the share of the rate in each part "
        "of a day."
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", help="Print only errors on stderr.")]


def trace_options(
    ignore_columns: bool, skip_empty_stays: bool, say: Callable[[str], None], loads: Path | None = None
) -> TraceOptions:
    """How a command reads arrivals; what it says of a file is said once, however often the file is read."""
    from placer.inputs.arrivals import TraceOptions
    from placer.inputs.day_loads import read_day_loads

    return TraceOptions(
        ignore_columns, skip_empty_stays, cache(say), None if loads is None else read_day_loads(str(loads))
    )


def refuse_without_arrivals(option: str, ignore_columns: bool, skip_empty_stays: bool) -> None:
    """InputError when it is said how arrivals are read where none are; `option` names them."""
    for given, name in ((ignore_columns, "--ignore-columns"), (skip_empty_stays, "--skip-empty-stays")):
        if given:
            raise InputError.of(name, f"needs {option}")


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
        if given is True:
            words.append(parameter.opts[0])
            continue
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
            raise InputError.of(option, f"{path} is also the file of {used[path.resolve()]}", hint="name another file")
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


def results_folder(out: Path | None, of: Path) -> Path:
    """Where results are kept at once and continued: `out`, or the folder of the file `of` in the user's cache."""
    if out is not None:
        return out
    import hashlib

    import platformdirs

    key = hashlib.sha256(str(of.resolve()).encode()).hexdigest()[:8]
    return platformdirs.user_cache_path("nf-placer") / "studies" / f"{of.stem}-{key}"


def _takes_files(folder: Path) -> bool:
    """Whether a file can be created in a folder, or in the folder above in which it would be created."""
    there = next(parent for parent in (folder, *folder.parents) if parent.exists())
    try:  # permissions do not show it: root has all, but /proc takes no file
        with tempfile.TemporaryFile(dir=there):
            return True
    except OSError:
        return False


# Signals during measurements.


@contextmanager
def end_by_signals() -> Iterator[None]:
    """SIGTERM and SIGHUP end the block as Ctrl-C does, so that the testbed's processes are ended as well."""
    former = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
    heeded = [number for number, handler in former.items() if handler == signal.SIG_DFL]

    def interrupt(number: int, frame: FrameType | None) -> None:
        for heeded_signal in heeded:
            signal.signal(heeded_signal, signal.SIG_IGN)
        raise KeyboardInterrupt

    for number in heeded:
        signal.signal(number, interrupt)
    try:
        yield
    finally:
        for number in heeded:
            signal.signal(number, former[number])


@contextmanager
def measuring(testbed: str, timeout: float, progress: Progress, task: str) -> Iterator[tuple[Testbed, Advance]]:
    """The testbed, which is started again where it fails, and what shows how far the task is; signals end both."""
    from profiler.testbed_stack import RetryingTestbed
    from profiler.testbeds import open_testbed

    with (
        end_by_signals(),
        RetryingTestbed(lambda: open_testbed(testbed, timeout=timeout), progress.say) as card,
        progress.task(task) as advance,
    ):
        yield card, advance
