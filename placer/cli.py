"""The command line: `placer COMMAND`. Data on stdout, all else on stderr; exit 0, 1 (failed) or 2 (refused). A command
is one file in `placer/commands/`, loaded when it is used."""

import ast
import gc
import os
import sys
import warnings
from importlib import import_module
from importlib.metadata import entry_points, version
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

COMMAND_PANELS = {
    "Planning": ("run", "compare", "size", "explain", "diagnose", "generate"),
    "Models": ("profile", "train", "predict", "sweep", "fit", "testbed"),
    "Running": ("serve", "online", "rebalance", "feedback"),
    "Racks": ("chain",),
    "GPUs": ("admit",),
    "Checking": ("verify", "reproduce", "pack"),
}
"""Commands under their headings, in the order of the help."""
COMMANDS = tuple(name for names in COMMAND_PANELS.values() for name in names)
PACKAGES_OF_COMMANDS = "placer.commands"  # entry points of other packages that are commands: `NAME = MODULE`

DISTRIBUTION = "nf-placer"
INTERRUPTED_STATUS = 130

ENDLESS_COMMANDS = (["online"], ["serve"], ["testbed"], ["chain", "run"])  # commands that go on until they are ended

COLLECTED_AFTER = 20_000
"""Objects after which garbage is looked for by other commands, which make little of it: their objects are code and
models. Looking after 700, Python's own number, takes a tenth of their time."""


class Commands(TyperGroup):
    """The commands, each imported when it is named, or when the help lists all."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Names, in the order of the help."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of that name, from its file."""
        if cmd_name not in COMMANDS:
            return None
        found = import_module(_module_of(cmd_name))
        if hasattr(found, "app"):  # a command with subcommands
            return typer.main.get_command(found.app)
        one = typer.Typer(
            add_completion=False, rich_markup_mode=None, context_settings={"help_option_names": ["-h", "--help"]}
        )
        command = found.command
        one.command(
            cmd_name,
            cls=import_module("placer.commands.options").Command,
            short_help=str(command.__doc__).splitlines()[0],
        )(command)
        return typer.main.get_command(one)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that is named; an unknown name is refused with the one that is nearest."""
        if not args[0].startswith("-") and args[0] not in COMMANDS:
            from profiles.faults import suggestion

            ctx.fail(f"there is no command '{args[0]}': {suggestion(args[0], COMMANDS)}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write each command with its summary under its heading, without importing any."""
        for heading, names in COMMAND_PANELS.items():
            with formatter.section(heading):
                formatter.write_dl([(name, _summary_of(name)) for name in names])


def _module_of(name: str) -> str:
    """The module of a command: a file of ours, or what an entry point names."""
    if (Path(__file__).parent / "commands" / f"{name}.py").exists():
        return f"placer.commands.{name}"
    return next(point.module for point in entry_points(group=PACKAGES_OF_COMMANDS, name=name))


def _summary_of(name: str) -> str:
    """The first line of the docstring of the command's function, read from its file: importing takes seconds."""
    package, _, rest = _module_of(name).partition(".")
    found = find_spec(package)
    assert found is not None and found.submodule_search_locations
    file = Path(found.submodule_search_locations[0], f"{rest.replace('.', '/')}.py")
    functions = [node for node in ast.parse(file.read_bytes()).body if isinstance(node, ast.FunctionDef)]
    command = next(node for node in functions if node.name in ("command", "subcommands"))
    return str(ast.get_docstring(command)).splitlines()[0]


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
    if not _is_endless():
        gc.set_threshold(COLLECTED_AFTER)
    warnings.showwarning = _show_warning  # type: ignore[assignment]
    try:
        sys.exit(_run())
    except KeyboardInterrupt:
        sys.exit(_report("interrupted", INTERRUPTED_STATUS))


def _is_endless() -> bool:
    return any(sys.argv[1 : len(words) + 1] == words for words in ENDLESS_COMMANDS)


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
        if status == INTERRUPTED_STATUS:
            return _report("interrupted" + "; the same command resumes where it can" * (not _is_endless()), status)
        return status
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
