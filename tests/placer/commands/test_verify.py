"""`placer chain place --certificate` and `placer verify` of what it writes. `placer verify` of an admission to a
GPU."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from tests.placer.commands.conftest import Placer, refuse
from tests.placer.commands.test_chain_place import EDGE, RACK, SMALL_RACK
from tests.placer.verify.admission.hand import ANSWER, DEVICE, SLOS

CHAINS = """packets: 125 B
slo a: 1 Gbps to 100 Gbps, at most 12 us
slo b: 0 Mbps to 500 Mbps
chain a: A -> B
chain b: B -> A -> last=B
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two chains and a rack."""
    (tmp_path / "edge.chains").write_text(CHAINS, encoding="utf-8")
    (tmp_path / "rack.toml").write_text(SMALL_RACK, encoding="utf-8")
    return tmp_path


def certify(placer: Placer, folder: Path, *more: object) -> dict[str, Any]:
    written = folder / "c.json"
    status, _, stderr = placer(
        "chain", "place", folder / "edge.chains", "--rack", folder / "rack.toml", "--certificate", written, *more
    )
    assert (status, stderr) == (0, "")
    claims: dict[str, Any] = json.loads(written.read_text(encoding="utf-8"))
    return claims


def verify(placer: Placer, folder: Path, claims: object, *more: object) -> tuple[int, str, str]:
    (folder / "c.json").write_text(json.dumps(claims), encoding="utf-8")
    return placer("verify", folder / "c.json", *more)


def test_a_plan_is_proven_optimal(placer: Placer, folder: Path) -> None:
    """One line; with the files that it is about."""
    claims = certify(placer, folder)
    files = ("--chains", folder / "edge.chains", "--rack", folder / "rack.toml")
    proven = (
        "result: the plan of 2 chains on 1 server keeps all SLOs, with 2,476.2 Mbps beyond the least rates, and is "
        "optimal: no plan gives more\n"
    )
    assert verify(placer, folder, claims) == (0, proven, "")
    assert verify(placer, folder, claims, *files) == (0, proven, "")


def test_lemurs_example_is_proven_optimal(placer: Placer, tmp_path: Path) -> None:
    """The files in examples/."""
    placer("chain", "place", EDGE, "--rack", RACK, "--certificate", tmp_path / "c.json")
    status, stdout, stderr = placer("verify", tmp_path / "c.json", "--chains", EDGE, "--rack", RACK)
    assert (status, stderr) == (0, "")
    assert stdout.endswith("24,663.2 Mbps beyond the least rates, and is optimal: no plan gives more\n")


def test_that_there_is_no_plan_is_proven(placer: Placer, folder: Path) -> None:
    """Four cores do not carry 5 Gbps through B."""
    (folder / "edge.chains").write_text(CHAINS.replace("1 Gbps to", "5 Gbps to"), encoding="utf-8")
    claims = certify(placer, folder)
    assert verify(placer, folder, claims) == (0, "result: no plan of 2 chains on 1 server keeps all SLOs\n", "")


@pytest.mark.parametrize(
    ("strategy", "result"),
    [
        ("greedy", "with 1,500.0 Mbps beyond the least rates; no plan gives more than 2,476.2 Mbps\n"),
        (
            "software-preferred",
            "the certificate has no plan of 2 chains on 1 server; no plan gives more than 2,476.2 Mbps\n",
        ),
    ],
)
def test_other_strategies_have_certificates_of_what_they_find(
    placer: Placer, folder: Path, strategy: str, result: str
) -> None:
    """A plan that is not the best one; and none, where A on the server makes the chain too slow."""
    (folder / "edge.chains").write_text(CHAINS.replace("12 us", "11.05 us"), encoding="utf-8")
    status, stdout, stderr = verify(placer, folder, certify(placer, folder, "--strategy", strategy))
    assert (status, stderr) == (0, "") and stdout.endswith(result)


def test_every_fault_is_named(placer: Placer, folder: Path) -> None:
    """A rate above what the cores carry, and a bound above the plan's rates."""
    claims = certify(placer, folder)
    claims["plan"]["chains"][0]["rate_mbps"] = 4000.0
    claims["plan"]["bound_mbps"] = 3000.0
    assert verify(placer, folder, claims) == (
        1,
        "",
        "plan: a: B on s0 carries 3000 Mbps, not 4000\n"
        "plan: the marginal throughput is 3476.19 Mbps, not 2476.19\n"
        "bound: the status is optimal, and the bound is 3000 Mbps\n",
    )


def test_a_certificate_about_other_files_is_refused(placer: Placer, folder: Path) -> None:
    """Another SLO, another chain, another cost, another server."""
    claims = certify(placer, folder)
    others = CHAINS.replace("500 Mbps", "600 Mbps").replace("chain a", "chain c").replace("slo a", "slo c")
    (folder / "other.chains").write_text(others, encoding="utf-8")
    (folder / "other.toml").write_text(
        SMALL_RACK.replace("cores = 4", "cores = 5").replace("cycles = 1000", "cycles = 900"), encoding="utf-8"
    )
    chains, rack = folder / "other.chains", folder / "other.toml"
    assert verify(placer, folder, claims, "--chains", chains, "--rack", rack) == (
        1,
        "",
        f"chains: c is only in {chains}\n"
        f"chains: b differs from {chains}\n"
        "chains: a is only in the certificate\n"
        f"rack: s0 differs from {rack}\n"
        f"rack: B differs from {rack}\n",
    )


@pytest.mark.parametrize(
    ("part", "value", "message"),
    [
        (("certificate",), 2, "c.json: certificate: "),
        (("plan", "status"), "best", "c.json: plan.status: "),
        (("plan", "bound_mbps"), "3", "c.json: plan.bound_mbps: "),
        (("plan", "bound_mbps"), float("nan"), "c.json: plan.bound_mbps: "),
        (("plan", "chains", 0, "subgroups", 0, "cores"), 1.5, "c.json: plan.chains.0.subgroups.0.cores: "),
        (("chains", "chains", 0, "edges", 0, 0), "zz", "c.json: chains.0.edges.0: there is no NF 'zz'"),
        (("rack", "servers", 0, "cores"), -1, "c.json: servers.0.cores: "),
        (("chains", "chains", 0, "nfs", 0, "nf"), "Q", "c.json: rack.nfs: the rack has no NF Q"),
        (("proof", "tree", 0, "prices", "gain"), 2, "c.json: proof.tree.0.prices.gain: "),
        (("proof", "tree", 0, "prices", "cores", "s0"), 1e300, "c.json: proof.tree.0.prices.cores.s0: "),
        (("kind",), "placements", "is not a certificate"),
    ],
)
def test_a_file_that_is_no_certificate_is_refused(
    placer: Placer, folder: Path, part: tuple[str | int, ...], value: object, message: str
) -> None:
    """The place and what is wrong; the exit status is 2."""
    claims = certify(placer, folder)
    inside: Any = claims
    for key in part[:-1]:
        inside = inside[key]
    inside[part[-1]] = value
    status, stdout, stderr = verify(placer, folder, claims)
    assert (status, stdout) == (2, "") and message in stderr


def test_options_of_the_other_certificates_are_refused(placer: Placer, folder: Path) -> None:
    """A plan of chains is compared with no trace, and a certificate of `placer run` with no chains."""
    claims = certify(placer, folder)
    status, _, stderr = verify(placer, folder, claims, "--arrivals", "x.csv", "--testbed", "simulated")
    assert (status, stderr.splitlines()[:2]) == (
        2,
        ["--arrivals: plans of chains have none", "--testbed: plans of chains have none"],
    )
    status, _, stderr = verify(placer, folder, {"certificate": 1}, "--rack", RACK)
    assert (status, stderr.splitlines()[0]) == (2, "--rack: is for certificates of `placer chain place`")


def test_a_certificate_that_proves_less_is_announced(
    placer: Placer, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the proof takes too long, the certificate has the bound that was reached."""
    monkeypatch.setattr("placer.rack.proofs.certificate._proof", lambda *_: None)
    status, _, stderr = placer(
        "chain", "place", folder / "edge.chains", "--rack", folder / "rack.toml", "--certificate", folder / "c.json"
    )
    assert (status, stderr) == (0, "note: the certificate says feasible, and proves no bound\n")
    status, stdout, _ = placer("verify", folder / "c.json")
    assert (status, stdout.endswith("beyond the least rates; its bound is not proven\n")) == (0, True)


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


@pytest.mark.long
@pytest.mark.parametrize("method", ["grus", "g-net"])
def test_what_placer_admit_writes_is_accepted(method: str, tmp_path: Path, placer: Placer) -> None:
    """The certificate of the example, with the files that it is about."""
    files = ("--slos", EXAMPLES / "slos.jsonl", "--device", EXAMPLES / "gpu.json")
    written = tmp_path / "c.json"
    admit = ("admit", files[1], "--device", files[3], "--method", method, "--certificate", written)
    assert placer(*admit).status == 0
    status, out, err = placer("verify", written, *files)
    assert (status, err) == (0, "") and "SLOs keep their latency" in out


def test_an_answer_is_checked_with_its_slos_and_device(tmp_path: Path, placer: Placer) -> None:
    """The three files say what a certificate says."""
    answer, device = written(tmp_path, ANSWER, "answer.json"), written(tmp_path, DEVICE, "device.json")
    status, out, _err = placer("verify", answer, "--slos", lines(tmp_path, SLOS), "--device", device)
    assert status == 0 and "the 2 admitted of 3 SLOs keep" in out


def test_an_answer_alone_is_refused(tmp_path: Path) -> None:
    """Without SLOs and device, nothing can be checked: exit status 2."""
    err = refuse("verify", written(tmp_path, ANSWER))
    assert "--slos: " in err and "--device: " in err


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
    assert err == (f"device: differs from {device}\nslos: a differs from {slos}\nslos: c is only in the certificate\n")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"certificate": 2}, "certificate: is of version 2, not 1"),
        ({"slos": {}}, "slos: is not a list"),
        ({"proof": []}, "proof: unknown key"),
    ],
)
def test_a_broken_certificate_is_refused(
    change: dict[str, Any], message: str, certificate: dict[str, Any], tmp_path: Path
) -> None:
    """Exit status 2, the place is named."""
    assert message in refuse("verify", written(tmp_path, certificate | change))


def test_options_of_other_certificates_are_refused(certificate: dict[str, Any], tmp_path: Path) -> None:
    """An admission has no rack."""
    assert "--rack: an admission to a GPU has none" in refuse(
        "verify", written(tmp_path, certificate), "--rack", "rack.toml"
    )
