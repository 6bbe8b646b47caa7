"""The command line: `placer COMMAND`. Data on stdout, everything else on stderr; exit 0, 1 (failed) or 2 (refused)."""

from __future__ import annotations

import os
import sys
from importlib import import_module

import typer

COMMANDS = (
    "run", "compare", "size", "diagnose", "generate", "profile", "train", "predict", "pack", "verify",
    "online", "explain", "rebalance", "reproduce", "testbed",
)  # fmt: skip

INTERRUPTED = 130

app = typer.Typer(
    name="placer",
    help="Place network functions on SmartNICs: few NICs, no SLA broken.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

for _name in COMMANDS:
    app.command(_name)(import_module(f"placer.commands.{_name}").command)


def main() -> None:
    """Run the command line and end the process with its exit status."""
    try:
        sys.exit(_run())
    except KeyboardInterrupt:
        sys.exit(_tell("interrupted", INTERRUPTED))


def _run() -> int:
    from placer.evaluate.checks import InvalidPlan
    from profiler.testbed import TestbedError
    from profiles import InputError

    try:
        app()
    except SystemExit as ended:
        status = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
        return _tell("interrupted; the same command goes on where it can", status) if status == INTERRUPTED else status
    except InputError as refused:
        return _tell(str(refused), 2)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (TestbedError, InvalidPlan, OSError) as failed:
        return _tell(f"error: {failed}", 1)
    return 0


def _tell(message: str, status: int) -> int:
    print(message, file=sys.stderr)
    return status
