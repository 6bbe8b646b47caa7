"""The command line: `placer COMMAND`. Data on stdout, all else on stderr; exit 0, 1 (failed) or 2 (refused).

A command is one file in `placer/commands/`, loaded when it is used.
"""

from __future__ import annotations

import os
import sys
import warnings
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

COMMANDS = (
    "run", "compare", "size", "diagnose", "generate", "profile", "sweep", "train", "predict", "fit", "pack", "verify",
    "online", "serve", "feedback", "explain", "rebalance", "chain", "admit", "reproduce", "testbed",
)  # fmt: skip
"""In the order of the help."""

DISTRIBUTION = "nf-placer"
INTERRUPTED = 130


class Commands(TyperGroup):
    """The commands, each imported when it is named, or when the help lists all."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Names, in the order of the help."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of that name, from its file."""
        if cmd_name not in COMMANDS:
            return None
        found = import_module(f"placer.commands.{cmd_name}")
        if hasattr(found, "app"):  # a command with subcommands
            return typer.main.get_command(found.app)
        one = typer.Typer(
            add_completion=False, rich_markup_mode=None, context_settings={"help_option_names": ["-h", "--help"]}
        )
        command = found.command
        one.command(cmd_name, short_help=str(command.__doc__).splitlines()[0])(command)
        return typer.main.get_command(one)


app = typer.Typer(
    name="placer",
    cls=Commands,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"placer {version(DISTRIBUTION)}")
        raise typer.Exit


Version = Annotated[
    bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
]


@app.callback()
def commands(version: Version = False) -> None:
    """Place network functions on as few SmartNICs as possible while meeting their SLAs."""


def main() -> None:
    """Run the command line and end the process with its exit status."""
    _open_closed_streams()
    warnings.showwarning = _show_warning  # type: ignore[assignment]
    try:
        sys.exit(_run())
    except KeyboardInterrupt:
        sys.exit(_report("interrupted", INTERRUPTED))


def _open_closed_streams() -> None:
    """Let a stream that the caller closed (`<&-`) be as /dev/null: commands and their testbeds need all three."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115


def _run() -> int:
    try:
        app()
    except SystemExit as ended:
        status = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
        return (
            _report("interrupted; the same command resumes where it can", status) if status == INTERRUPTED else status
        )
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        from placer.failures import failure_of

        failure = failure_of(error)
        if failure is None:
            raise
        return _report(*failure)
    return 0


def _report(message: str, status: int) -> int:
    print(message, file=sys.stderr)
    return status


def _show_warning(message: Warning | str, *details: object) -> None:
    print(f"warning: {message}", file=sys.stderr)
