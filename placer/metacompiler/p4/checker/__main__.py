"""`python -m placer.metacompiler.p4.checker FILE...`: wrong programs are refused with all their faults: exit 2."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from placer.metacompiler.p4.checker.check import checked
from profiles.faults import InputError

USAGE = "usage: python -m placer.metacompiler.p4.checker FILE..."


def main(files: Sequence[str]) -> int:
    """Check files; faults and warnings go to stderr, one line per accepted file to stdout."""
    if not files or files[0].startswith("-"):
        print(USAGE, file=sys.stderr)
        return 2
    status = 0
    for file in files:
        try:
            text = Path(file).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "is not UTF-8"
            print(f"{file}: {reason}", file=sys.stderr)
            status = 2
            continue
        faults, warnings = checked(text, file)
        for one in warnings:
            print(f"{one} (warning)", file=sys.stderr)
        if faults:
            print(InputError(faults).render(), file=sys.stderr)
            status = 2
        else:
            print(f"{file}: accepted")
    return status


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
