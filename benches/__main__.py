"""Runs benchmarks by name, or all of them: `python -m benches [NAME ...]`."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from benches.bench import bench_names, described, table_of


def main(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME]...", help="All by default.", show_default=False)
    ] = None,
    listed: Annotated[bool, typer.Option("--list", help="List the benchmarks.")] = False,
) -> None:
    """Run benchmarks, and print the table of each; some take half an hour."""
    known = bench_names()
    if listed:
        width = max(map(len, known))
        print("\n".join(f"{name:{width}}  {described(name)}" for name in known))
        return
    unknown = [name for name in names or () if name not in known]
    if unknown:
        print(f"{', '.join(unknown)}: no such benchmark\nhint: one of {', '.join(known)}", file=sys.stderr)
        raise typer.Exit(2)
    for name in names or known:
        print(f"{name}: {described(name)}", file=sys.stderr)
        print(f"{name}\n{table_of(name).to_string(index=False)}\n", flush=True)


if __name__ == "__main__":
    app = typer.Typer(add_completion=False, context_settings={"help_option_names": ["-h", "--help"]})
    app.command()(main)
    app()
