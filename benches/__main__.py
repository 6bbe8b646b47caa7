"""Runs benchmarks by name, or all of them: `python -m benches [NAME ...]`, or one with options of its own."""

import sys
from typing import Annotated

import pandas as pd
import typer

from benches.bench import bench_names, described, table_of
from profiler.testbed import TestbedError
from profiles import InputError


def main(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME]...", help="All by default.", show_default=False)
    ] = None,
    listed: Annotated[bool, typer.Option("--list", help="List the benchmarks.")] = False,
) -> None:
    """Run benchmarks, and print the table of each; some take half an hour. What follows the NAME of a single benchmark
    are its own options: `python -m benches chains --help`."""
    known = bench_names()
    # Names, and the options that follow them.
    arguments = names or []
    first = next((at for at, one in enumerate(arguments) if one.startswith("-")), len(arguments))
    names, options = arguments[:first], arguments[first:]
    if listed:
        width = max(map(len, known))
        print("\n".join(f"{name:{width}}  {described(name)}" for name in known))
        return
    if options and len(names) != 1:
        print(f"{' '.join(options)}: options of one benchmark\nhint: NAME {options[0]}", file=sys.stderr)
        raise typer.Exit(2)
    unknown = [name for name in names if name not in known]
    if unknown:
        print(f"{', '.join(unknown)}: no such benchmark\nhint: one of {', '.join(known)}", file=sys.stderr)
        raise typer.Exit(2)
    for name in names or known:
        print(f"{name}: {described(name)}", file=sys.stderr)
        table = _table(name, options)
        if table is not None:
            print(f"{name}\n{table.to_string(index=False)}\n", flush=True)


def _table(name: str, options: list[str]) -> pd.DataFrame | None:
    try:
        return table_of(name, options)
    except (InputError, TestbedError) as error:
        print(f"error: {error}", file=sys.stderr)
        raise typer.Exit(2) from None


if __name__ == "__main__":
    app = typer.Typer(add_completion=False)
    # options behind a NAME are those of the benchmark
    app.command(context_settings={"help_option_names": ["-h", "--help"], "allow_interspersed_args": False})(main)
    app()
