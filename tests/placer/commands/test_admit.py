"""`placer admit`: the answer, the table, explanations, the certificate, and what is refused."""

import json
from pathlib import Path
from typing import Any

import pytest

from placer.gpu.registry import METHODS
from tests.placer.commands.conftest import Placer, refuse

pytestmark = pytest.mark.long  # the kernels of admission take half a minute to compile

EXAMPLES = Path(__file__).parents[3] / "examples"
SLOS, GPU = EXAMPLES / "slos.jsonl", EXAMPLES / "gpu.json"

PREDICTED = "predicted"

SMALL_GPU = """{"sms": 1, "executors_per_sm": 4, "packets_per_executor": 10, "workers": 3, "arbitration": "one-shot",
 "transfer_us": {"header": [0, 4]}, "nfs": {"acl": {"class": "header", "pre_post_us": 5, "kernel_us": [2, 8]}}}
"""


def slo(name: str, latency_us: float, **more: object) -> dict[str, object]:
    return {"id": name, "nf": "acl", "rate_kpps": 1000, "latency_us": latency_us} | more


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """An acl alone takes 9 + 5 + 4 + 10 us; each transfer before it 4 us more. The third SLO is 0.5 us too short."""
    (tmp_path / "gpu.json").write_text(SMALL_GPU, encoding="utf-8")
    write(tmp_path, slo("a", 28), slo("b", 32), slo("c", 35.5))
    return tmp_path


def write(folder: Path, *slos: dict[str, object]) -> None:
    (folder / "slos.jsonl").write_text("".join(json.dumps(one) + "\n" for one in slos), encoding="utf-8")


def admit(placer: Placer, folder: Path, *more: object) -> tuple[int, str, str]:
    return placer("admit", folder / "slos.jsonl", "--device", folder / "gpu.json", *more)


def answer(placer: Placer, folder: Path, *more: object) -> dict[str, Any]:
    status, stdout, _ = admit(placer, folder, "--format", "json", "--quiet", *more)
    assert status == 0
    return dict(json.loads(stdout))


def test_json_is_the_answer(placer: Placer, small: Path) -> None:
    """Its keys are those of CONTRACTS 10, and no more."""
    found = answer(placer, small, "--method", "grus")
    assert found.pop("seconds") >= 0
    assert found == {
        "admitted": [
            {"id": "a", "batch": 10, "order": 0, "minibatches": [{"sm": 0, "packets": 10}]},
            {"id": "b", "batch": 10, "order": 1, "minibatches": [{"sm": 0, "packets": 10}]},
        ],
        "rejected": [{"id": "c", "cause": "pcie"}],
        "bound": 2,
        "proven": True,
    }


def test_the_table_shows_stages_and_causes(placer: Placer, small: Path) -> None:
    status, stdout, stderr = admit(placer, small, "--method", "grus")
    # on a busy machine it takes over a second, and says so
    assert status == 0 and all(line.startswith("admitting 3 SLOs") for line in stderr.splitlines())
    admitted, rejected, verdict = stdout.split("\n\n")
    assert [line.split() for line in admitted.splitlines()[1:]] == [
        ["a", "acl", "1,000.0", "28.0", "28.0", "9.0", "5.0", "0.0", "4.0", "10.0", "10", "0", "10", "on", "0"],
        ["b", "acl", "1,000.0", "32.0", "32.0", "9.0", "5.0", "4.0", "4.0", "10.0", "10", "1", "10", "on", "0"],
    ]
    assert rejected.splitlines()[1].split() == ["c", "acl", "1,000.0", "35.5", "PCIe", "bus"]
    assert verdict.startswith("2 of 3 SLOs admitted by grus in ")
    assert "Optimal, proven: no plan admits more than 2." in verdict


def test_explain_names_stages_and_what_is_enough(placer: Placer, small: Path) -> None:
    """c takes 36 us beside the others; with that latency it is admitted."""
    (reason,) = answer(placer, small, "--method", "grus", "--explain")["explanations"]
    assert reason["stages_us"] == {"batching": 9, "pre_post": 5, "transfer_wait": 8, "transfer": 4, "kernel": 10}
    assert (reason["id"], reason["cause"], reason["latency_us"]) == ("c", "pcie", 36)
    assert reason["enough"][0] == {"kind": "latency_us", "to": 36}
    for change in reason["enough"]:
        write(small, slo("a", 28), slo("b", 32), slo("c", 35.5) | {change["kind"]: change["to"]})
        assert len(answer(placer, small, "--method", "grus")["admitted"]) == 3, change
    _, table, _ = admit(placer, small, "--method", "grus", "--explain")
    assert table.count("what would be enough is enough alone") == 0  # all are admitted now


def test_what_is_enough_is_shown_as_a_sentence(placer: Placer, small: Path) -> None:
    _, table, _ = admit(placer, small, "--method", "grus", "--explain")
    row = next(line for line in table.splitlines() if line.startswith("c "))
    assert row.split()[:8] == ["c", "35.5", "36.0", "9.0", "5.0", "8.0", "4.0", "10.0"]
    assert "PCIe bus" in row and "36 us" in row


def test_workers_that_are_missing_are_enough(placer: Placer, small: Path) -> None:
    """The fourth SLO would keep its latency: one more worker is enough. The fifth would not."""
    write(small, *(slo(name, 100) for name in "abcd"), slo("e", 10_000, rate_kpps=10, batch=40))
    found = answer(placer, small, "--method", "grus", "--explain")
    assert {one["cause"] for one in found["rejected"]} == {"workers"}
    assert {slo["id"]: slo["enough"] for slo in found["explanations"]}["d"] == [{"kind": "workers", "to": 4}]


def test_an_slo_without_a_place_has_no_latency(placer: Placer, small: Path) -> None:
    write(small, slo("a", 5000, rate_kpps=100_000))
    (reason,) = answer(placer, small, "--method", "grus", "--explain")["explanations"]
    assert (reason["cause"], reason["latency_us"], reason["stages_us"]) == ("executors", None, None)
    assert [one["kind"] for one in reason["enough"]] in ([], ["rate_kpps"])


def test_slos_come_from_standard_input(placer: Placer, small: Path) -> None:
    options = ("--device", small / "gpu.json", "--method", "grus", "--format", "json")
    ended = placer("admit", "-", *options, stdin=(small / "slos.jsonl").read_bytes())
    assert (ended.status, len(json.loads(ended.stdout)["admitted"])) == (0, 2)


def test_the_certificate_has_all_that_a_checker_needs(placer: Placer, small: Path) -> None:
    """The GPU, the SLOs and the answer, as in their files."""
    found = answer(placer, small, "--method", "grus", "--certificate", small / "proof.json")
    written = json.loads((small / "proof.json").read_text(encoding="utf-8"))
    assert (written["certificate"], written["kind"]) == (1, "admission")
    assert written["device"] == json.loads(SMALL_GPU) | {"sharing_us": {}}
    assert written["slos"] == [slo("a", 28), slo("b", 32), slo("c", 35.5)]
    assert {**written["answer"], "seconds": 0} == {**found, "seconds": 0}


def test_exact_is_the_default(placer: Placer, small: Path) -> None:
    found = answer(placer, small)
    assert [slo["id"] for slo in found["admitted"]] == ["a", "b"]
    assert (found["rejected"], found["bound"], found["proven"]) == ([{"id": "c", "cause": "pcie"}], 2, True)


@pytest.mark.parametrize("method", [method for method in METHODS if method != PREDICTED])
def test_every_method_answers_the_example(placer: Placer, method: str) -> None:
    """Each SLO is admitted or rejected."""
    ended = placer("admit", SLOS, "--device", GPU, "--method", method, "--format", "json")
    assert ended.status == 0
    found = json.loads(ended.stdout)
    assert len(found["admitted"]) + len(found["rejected"]) == 20 and found["bound"] >= len(found["admitted"])


def test_faults_of_both_files_are_named_at_once(placer: Placer, small: Path) -> None:
    (small / "gpu.json").write_text(SMALL_GPU.replace('"sms": 1', '"sms": 0'), encoding="utf-8")
    write(small, slo("a", 0))
    status, stdout, stderr = admit(placer, small)
    assert (status, stdout) == (2, "")
    assert stderr.splitlines() == [
        f"{small / 'gpu.json'}:1: sms: 0 is below 1",
        f"{small / 'slos.jsonl'}:1: latency_us: 0 is below 1e-06",
    ]


@pytest.fixture
def hashes(tmp_path: Path) -> Path:
    """Two SLOs of a hash: one that is easily kept, and one that is shorter than a transfer."""
    loose, tight = (
        {"id": name, "nf": "hash", "rate_kpps": 200, "latency_us": us} for name, us in [("a", 2000), ("b", 2)]
    )
    write(tmp_path, loose, tight)
    return tmp_path / "slos.jsonl"


def test_models_admit_by_the_predicted_p99(placer: Placer, toy_gpu: Path, hashes: Path) -> None:
    """An answer is of the same form as by a device; the table has the p99 of what is admitted."""
    ended = placer("admit", hashes, "--models", toy_gpu / "models", "--method", PREDICTED, "--format", "json")
    found = json.loads(ended.stdout)
    assert [slo["id"] for slo in found["admitted"]] == ["a"] and [slo["id"] for slo in found["rejected"]] == ["b"]
    assert found["admitted"][0].keys() == {"id", "batch", "order", "minibatches"}
    table = placer("admit", hashes, "--models", toy_gpu / "models", "--method", PREDICTED).stdout
    assert "p99" in table.splitlines()[0]
    assert table.splitlines()[-1].startswith("1 of 2 SLOs admitted by predicted p99 in ")


@pytest.mark.parametrize("more", [["--explain"], ["--certificate", "c.json"]])
def test_what_speaks_of_a_device_is_refused_beside_predictions(toy_gpu: Path, hashes: Path, more: list[str]) -> None:
    """Explanations and certificates count by the formulas of a device."""
    assert f"{more[0]}: is not available with --method predicted" in refuse(
        "admit", hashes, "--models", toy_gpu / "models", "--method", PREDICTED, *more
    )


def test_an_nf_that_the_gpu_lacks_is_named_with_its_line(placer: Placer, small: Path) -> None:
    write(small, slo("a", 28), slo("b", 30, nf="ACL"))
    _, _, stderr = admit(placer, small)
    assert stderr == f"{small / 'slos.jsonl'}:2: nf: the device has no NF 'ACL'\nhint: did you mean acl?\n"
