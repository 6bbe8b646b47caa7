"""`placer profile --latency`."""

from __future__ import annotations

from pathlib import Path

import pytest

from profiles.profile import read_profile
from tests.placer.commands.conftest import Placer

SERVER = ("profile", "--testbed", "simulated:server", "--latency")


@pytest.mark.long
def test_latency_is_profiled_into_a_folder(tmp_path: Path, placer: Placer) -> None:
    """Of the NFs that the user names; results in files, progress on stderr; the same command measures nothing again."""
    arguments = (*SERVER, "--out", tmp_path / "p", "--nf", "Tunnel", "--repeats", 1)
    status, out, err = placer(*arguments)
    assert (status, out) == (0, "") and err.endswith(f"latency written: {tmp_path / 'p'}\n")
    nfs = read_profile(tmp_path / "p").nfs
    assert list(nfs) == ["Tunnel"] and (nfs["Tunnel"].latency.repeats == 1).all()
    status, _, err = placer(*arguments)
    assert status == 0 and "nothing to measure" in err
    status, out, _ = placer("profile", "--out", tmp_path / "p", "--status")
    assert status == 0 and "latency" in out and "left: nothing" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--nf", "Nat"), "--nf: the testbed has no Nat\nhint: did you mean NAT?"),
        (("--quota", "9"), "--quota: does not go with --latency"),
        (("--chain", "ACL"), "--chain: does not go with --latency"),
        (("--share", "0.5"), "--share: does not go with --latency"),
        (("--method", "full"), "--method: does not go with --latency"),
        (("--seed", "-1"), "--seed: -1 is negative"),
    ],
)
def test_options_that_do_not_fit_are_refused(
    tmp_path: Path, placer: Placer, arguments: tuple[str, ...], message: str
) -> None:
    """Before anything is measured."""
    status, _, err = placer(*SERVER, "--out", tmp_path / "p", *arguments)
    assert status == 2 and message in err and not (tmp_path / "p").exists()
