"""Runs benchmarks by name, or all of them: `python -m benches [NAME ...]`."""

from __future__ import annotations

import sys

from benches.bench import bench_names, table_of


def main(names: list[str]) -> int:
    """Print the table of each benchmark; return 2 when a name is unknown."""
    known = bench_names()
    unknown = [name for name in names if name not in known]
    if unknown:
        print(f"{', '.join(unknown)}: no such benchmark\nhint: one of {', '.join(known)}", file=sys.stderr)
        return 2
    for name in names or known:
        print(f"{name}\n{table_of(name).to_string(index=False)}\n", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
