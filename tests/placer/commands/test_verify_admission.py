"""`placer verify` of an admission to a GPU."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from tests.placer.commands.conftest import Placer
from tests.placer.verify.admission.hand import ANSWER, DEVICE, SLOS

EXAMPLES = Path(__file__).parents[3] / "examples"


@pytest.fixture
def certificate() -> dict[str, Any]:
    parts = {"certificate": 1, "kind": "admission", "device": DEVICE, "slos": SLOS, "answer": ANSWER}
    return copy.deepcopy(parts)


def written(folder: Path, document: object, name: str = "certificate.json") -> str:
    (folder / name).write_text(json.dumps(document))
    return str(folder / name)


def lines(folder: Path, documents: list[dict[str, Any]]) -> str:
    (folder / "slos.jsonl").write_text("".join(json.dumps(one) + "\n" for one in documents))
    return str(folder / "slos.jsonl")


def test_a_certificate_is_accepted(certificate: dict[str, Any], tmp_path: Path, placer: Placer) -> None:
    """One line on stdout, exit status 0."""
    assert placer("verify", written(tmp_path, certificate)) == (
        0,
        "result: the 2 admitted of 3 SLOs keep their latency on a one-shot bus; at most 3 are claimed possible, "
        "which is not checked\n",
        "",
    )


@pytest.mark.parametrize("method", ["grus", "g-net"])
def test_what_placer_admit_writes_is_accepted(method: str, tmp_path: Path, placer: Placer) -> None:
    """The certificate of the example, with the files that it is about."""
    files = ("--slos", EXAMPLES / "slos.jsonl", "--device", EXAMPLES / "gpu.json")
    written = tmp_path / "c.json"
    admit = ("admit", files[1], "--device", files[3], "--method", method, "--certificate", written)
    assert placer(*admit).status == 0
    status, out, err = placer("verify", written, *files)
    assert (status, err) == (0, "")
    assert "SLOs keep their latency" in out


def test_an_answer_is_checked_with_its_slos_and_device(tmp_path: Path, placer: Placer) -> None:
    """The three files say what a certificate says."""
    answer, device = written(tmp_path, ANSWER, "answer.json"), written(tmp_path, DEVICE, "device.json")
    status, out, _err = placer("verify", answer, "--slos", lines(tmp_path, SLOS), "--device", device)
    assert status == 0
    assert "the 2 admitted of 3 SLOs keep" in out


def test_an_answer_alone_is_refused(tmp_path: Path, placer: Placer) -> None:
    """Without SLOs and device, nothing can be checked: exit status 2."""
    status, _out, err = placer("verify", written(tmp_path, ANSWER))
    assert status == 2
    assert "--slos: " in err
    assert "--device: " in err


def test_broken_constraints_are_listed_on_stderr(certificate: dict[str, Any], tmp_path: Path, placer: Placer) -> None:
    """Exit status 1, and the parts of the latency."""
    certificate["slos"][0]["latency_us"] = 100
    assert placer("verify", written(tmp_path, certificate)) == (
        1,
        "",
        "admitted: a: its latency is 125 us (batching 63, pre/post 3, wait 0, transfer 12, kernel 47), its SLO is "
        "100 us\n",
    )


def test_a_certificate_about_other_slos_is_not_accepted(
    certificate: dict[str, Any], tmp_path: Path, placer: Placer
) -> None:
    """Each SLO that differs is named, and the device."""
    file = written(tmp_path, certificate)
    certificate["slos"][0]["latency_us"] = 126
    slos = lines(tmp_path, certificate["slos"][:2])
    device = written(tmp_path, DEVICE | {"workers": 4}, "device.json")
    status, _out, err = placer("verify", file, "--slos", slos, "--device", device)
    assert status == 1
    assert err == (
        f"device: it is another one in {device}\nslos: a is another SLO in {slos}\nslos: c is only in the certificate\n"
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"certificate": 2}, "certificate: is of version 2, not 1"),
        ({"slos": {}}, "slos: is not a list"),
        ({"proof": []}, "proof: unknown key"),
    ],
)
def test_a_broken_certificate_is_refused(
    change: dict[str, Any],
    message: str,
    certificate: dict[str, Any],
    tmp_path: Path,
    placer: Placer,
) -> None:
    """Exit status 2, the place is named."""
    status, _out, err = placer("verify", written(tmp_path, certificate | change))
    assert status == 2
    assert message in err


def test_options_of_other_certificates_are_refused(certificate: dict[str, Any], tmp_path: Path, placer: Placer) -> None:
    """An admission has no rack."""
    status, _out, err = placer("verify", written(tmp_path, certificate), "--rack", "rack.toml")
    assert status == 2
    assert "--rack: an admission to a GPU has none" in err
