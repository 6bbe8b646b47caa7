"""`python -m tests.nfs.references`: compares functions with their references and prints a line for each."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from tests.nfs.references import references
from tests.nfs.references.comparison import compare

PROGRAM = Path(__file__).resolve().parents[3] / "build" / "nfs" / "run" / "nf-run"


def main() -> int:
    """Exit status 0 if all agree, 1 otherwise."""
    known = references()
    parser = argparse.ArgumentParser(prog="python -m tests.nfs.references", description=__doc__)
    parser.add_argument("nf", nargs="*", help=f"functions; default: all of {', '.join(known)}")
    parser.add_argument("--packets", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--program", type=Path, default=PROGRAM, help="nf-run")
    parser.add_argument("--variant", type=int, default=0, help="which of the reference's settings")
    chosen = parser.parse_args()
    unknown = [nf for nf in chosen.nf if nf not in known]
    if unknown:
        parser.error(f"{', '.join(unknown)}: no reference")
    print(f"{'function':<16}{'packets':>9}{'left':>9}{'disagree':>9}{'nf-run s':>9}{'Python s':>9}")
    agreed = True
    for nf in chosen.nf or known:
        with tempfile.TemporaryDirectory() as folder:
            reference = known[nf](known[nf].settings_of(chosen.variant, Path(folder)), Path(folder))
            result = compare(reference, chosen.program, chosen.seed, chosen.packets)
        numbers = f"{result.packets:>9}{result.left:>9}{result.disagreements:>9}"
        print(f"{nf:<16}{numbers}{result.nf_run_s:>9.1f}{result.reference_s:>9.1f}", flush=True)
        for line in result.shown[:20]:
            print(f"  {line[:400]}", file=sys.stderr)
        agreed = agreed and result.disagreements == 0
    return 0 if agreed else 1


if __name__ == "__main__":
    sys.exit(main())
