"""nf-server-bench: a server's chain beside a loop by hand, and what it refuses."""

import csv
import io
import subprocess
from pathlib import Path

import pytest

from tests.nfs.builds import ROOT

PROGRAM = ROOT / "build" / "nfs" / "rack" / "nf-server-bench"

LINEAR = """\
a: ACL filters=10
b: Tunnel
c: Null
nsh 1 255 -> a
a -> b
b -> nsh 1 253
nsh 1 252 -> c 1/2
nsh 1 252 -> b 1/2
c -> out
"""


def run(folder: Path, *arguments: str, chain: str = LINEAR) -> subprocess.CompletedProcess[str]:
    """Measure a chain file."""
    if not PROGRAM.exists():
        pytest.skip("nf-server-bench is not built: `make nfs` builds it")
    (folder / "a.chain").write_text(chain)
    command = [str(PROGRAM), *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=60)


def test_the_chain_is_beside_the_loop_by_hand(tmp_path: Path) -> None:
    """One row: cycles of both, their ratio, and those of the label alone, each between its quartiles."""
    done = run(tmp_path, "--chain", "a.chain", "--flows", "16", "--packet-size", "128")
    assert (done.returncode, done.stderr) == (0, "")
    (row,) = csv.DictReader(io.StringIO(done.stdout))
    assert (row["functions"], row["flows"], row["packet_size"]) == ("ACL,Tunnel", "16", "128")
    for name in ("cycles", "by_hand", "ratio", "label"):
        middle = float(row.get(name) or row[f"{name}_{'per_packet' if name == 'cycles' else 'cycles'}"])
        assert 0 < float(row[f"{name}_q1"]) <= middle <= float(row[f"{name}_q3"])


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        (["--chain", "a.chain", "--entry", "1,252"], "a.chain: no way without branches from this entry to an exit"),
        (["--chain", "a.chain", "--entry", "1,1"], "a.chain: no way without branches from this entry to an exit"),
        (["--chain", "a.chain", "--entry", "1"], '--entry: "1" is not PATH,INDEX'),
        (["--chain", "a.chain", "--entry", "1,511"], '--entry: "1,511" is not PATH,INDEX'),
        (["--chain", "a.chain", "--entry", "-1,255"], '--entry: "-1,255" is not PATH,INDEX'),
        (["--chain", "a.chain", "--flows", "0"], '--flows: "0" is not a whole number from 1 to 1000000'),
        ([], "--chain is needed"),
        (["--chain", "none"], "none: No such file"),
    ],
)
def test_wrong_input_is_refused(tmp_path: Path, arguments: list[str], fault: str) -> None:
    """Exit status 2, nothing on stdout."""
    done = run(tmp_path, *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert fault in done.stderr
