"""`placer profile --chain` and `--chains`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from profiles.chain_table import read_chains
from tests.placer.commands.conftest import Placer
from tests.profiler.foreign import FOREIGN

SERVER = ("profile", "--testbed", "simulated:server")


def test_chains_are_profiled_into_a_folder(tmp_path: Path, placer: Placer) -> None:
    """The placement that the user names, with its NFs alone; results in files, progress on stderr."""
    arguments = ("--out", tmp_path / "p", "--chain", "Tunnel|Tunnel", "--repeats", 1)
    status, out, err = placer(*SERVER, *arguments)
    assert (status, out) == (0, "")
    assert err.endswith(f"chains written: {tmp_path / 'p'}\n")
    table = read_chains(tmp_path / "p" / "chains.csv")
    assert list(dict.fromkeys(zip(table.order, table.cores, strict=True))) == [
        ("Tunnel", "[[0]]"),
        ("Tunnel,Tunnel", "[[0], [1]]"),
    ]
    cycles = json.loads((tmp_path / "p" / "cycles.json").read_text())
    assert cycles["simulated"] is True and list(cycles["nfs"]) == ["Tunnel"]
    status, _, err = placer(*SERVER, *arguments)
    assert status == 0 and "nothing to measure" in err


def test_a_testbed_without_chains_is_reported_plainly(tmp_path: Path, placer: Placer) -> None:
    """With its answer and a hint, as bad input."""
    status, _, err = placer("profile", "--testbed", f"exec:{FOREIGN}", "--out", tmp_path / "p", "--chain", "tls-proxy")
    assert status == 2
    assert err.startswith("--testbed: somewhere-else does not run chains: testbed `")
    assert "bad-request: no workload chain" in err and "\nhint: a testbed that runs chains describes" in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--chain", "ACL,Nat"), "--chain: 'ACL,Nat': the testbed has no Nat\nhint: did you mean NAT?"),
        (("--chain", "ACL:rules=x"), "--chain: 'ACL:rules=x': 'rules=x' is not of the form NAME=NUMBER\nhint: as in"),
        (("--chains", "pears"), "--chains: 'pears' is not understood\nhint: it is one of pairs, triples"),
        (("--chain", "ACL", "--share", "1.5"), "--share: 1.5 is not above 0 and at most 1"),
        (("--chain", "ACL", "--nf", "ACL"), "--nf: chooses the NFs of --chains, which is missing"),
        (("--chain", "ACL", "--quota", "9"), "--quota: does not go with chains"),
        (("--chain", "ACL", "--method", "full"), "--method: does not go with chains"),
        (("--chains", "pairs", "--budget", "1"), "--budget: does not go with chains"),
        (("--repeats", "3"), "--repeats: goes with --chain, --chains or --latency only"),
        (("--cores-of-chain", "3"), "--cores-of-chain: goes with --chain or --chains only"),
    ],
)
def test_options_that_do_not_fit_are_refused(
    tmp_path: Path, placer: Placer, arguments: tuple[str, ...], message: str
) -> None:
    """Before anything is measured."""
    status, out, err = placer(*SERVER, "--out", tmp_path / "p", *arguments)
    assert (status, out) == (2, "")
    assert err.startswith(message)
    assert list(tmp_path.iterdir()) == []
