"""The foreign testbed of `tests/data`, as tests start it, and the bytes of folders."""

import sys
from pathlib import Path

from profiles import TrafficProfile, Workload

PROGRAM = Path(__file__).parents[1] / "data" / "foreign_testbed.py"
FOREIGN = f"{sys.executable} {PROGRAM}"
PROXY = Workload("tls-proxy", TrafficProfile(4000, 1024))
FIREWALL = Workload("edge-firewall", TrafficProfile(4000, 1024))


def bytes_of(directory: Path) -> dict[str, bytes]:
    """Every file below a folder, by its path inside."""
    return {str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()}
