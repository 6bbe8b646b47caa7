"""Runs nf-switch in tests."""

import subprocess
from pathlib import Path

PROGRAMS = Path(__file__).parent / "programs"
COUNTING = (PROGRAMS / "counting.spec").read_text()
TO_WORLD = "l2 match 0x020202020202 action to port 0\n"  # an entry of l2.spec, for all packets of udp_packet()


def run(program: Path, *arguments: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run nf-switch in a folder."""
    return subprocess.run(
        [str(program), *map(str, arguments)], cwd=cwd, capture_output=True, text=True, check=False, timeout=120
    )
