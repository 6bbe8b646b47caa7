"""`cycles` on the command line: the tables of functions and of chains, and what it refuses."""

import csv
import io
import subprocess

import pytest

from tests.nfs.builds import ROOT

PROGRAM = ROOT / "build" / "nfs" / "cycles"


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the normal build: sanitizers would be measured, too."""
    if not PROGRAM.exists():
        pytest.skip("cycles is not built: `make nfs` builds it")
    return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, check=False, timeout=120)


def test_a_function_is_beside_its_peer_and_a_chain_beside_its_prediction() -> None:
    """An empty line is between the tables; quartiles enclose the median."""
    done = run("--flows", "16", "--packet-size", "128", "Tunnel", "ACL,Tunnel,Detunnel")
    assert (done.returncode, done.stderr) == (0, "")
    (function,), (chain,) = (list(csv.DictReader(io.StringIO(table))) for table in done.stdout.split("\n\n"))
    assert (function["function"], function["peer"], function["flows"]) == ("Tunnel", "plain loop", "16")
    assert (chain["chain"], chain["flows"]) == ("ACL,Tunnel,Detunnel", "16")
    for column, first, third in (
        ("cycles_per_packet", "cycles_q1", "cycles_q3"),
        ("predicted_cycles", "predicted_q1", "predicted_q3"),
        ("ratio", "ratio_q1", "ratio_q3"),
    ):
        assert 0 < float(chain[first]) <= float(chain[column]) <= float(chain[third])


def test_packets_that_a_function_drops_are_not_charged_to_those_behind_it() -> None:
    """Of 16 flows the default filters deny three: Null is visited by 13 of 16 packets, to within chance."""
    (chain,) = csv.DictReader(io.StringIO(run("--flows", "16", "ACL,Null").stdout))
    _, acl, null = chain["predicted_from"].split(" + ")
    assert acl.split()[:2] == ["ACL", "1.000"]
    assert float(null.split()[1]) == pytest.approx(13 / 16, abs=0.02)


@pytest.mark.parametrize(
    ("arguments", "fault", "hint"),
    [
        (["Nat"], "no peer of Nat", "hint: one of ACL "),
        (["ACL,Nat"], "ACL,Nat: no function 'Nat'", "hint: nf-run --list"),
        (["ACL,"], "ACL,: no function ''", "hint: nf-run --list"),
        ([",".join(["Null"] * 9)], "more than 8 functions", ""),
        (["--flows", "many"], '--flows: "many" is not a whole number from 1 to 1000000', "hint: cycles --help"),
        (["--flows"], "option '--flows' requires an argument", "hint: cycles --help"),
        (["--packet-size", "63"], '--packet-size: "63" is not a whole number from 64 to 1518', "hint: cycles --help"),
        (["--table"], "unrecognized option '--table'", "hint: cycles --help"),
    ],
)
def test_wrong_arguments_are_refused(arguments: list[str], fault: str, hint: str) -> None:
    """Exit status 2, nothing on stdout, and what is wrong before anything is measured."""
    done = run(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    first, *rest = done.stderr.splitlines()
    assert fault in first
    assert not hint or rest[0].startswith(hint)


def test_help_names_the_options() -> None:
    """On stdout, with exit status 0."""
    done = run("--help")
    assert done.returncode == 0
    for option in ("--functions", "--chains", "--flows", "--packet-size", "NAME"):
        assert option in done.stdout
