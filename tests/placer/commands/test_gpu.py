"""`placer profile`, `train` and `predict` on a GPU server: from runs to latencies."""

import json
import shutil
import sys
from pathlib import Path

import pytest

from predictor.gpu.device import DeviceEntry
from predictor.gpu.models import GpuModels, load_gpu_models
from predictor.gpu.prediction import Overload
from profiler.gpu.together import workload
from profiles import InputError, TrafficProfile
from tests.placer.commands.conftest import Placer, refuse
from tests.profiler.gpu.toy_gpu import ToyGpu, ToyTimes, toy_description

pytestmark = pytest.mark.long  # the kernels of admission take half a minute to compile

TOY = f"exec:{sys.executable} -m tests.profiler.gpu.toy_program"
TRAFFIC = toy_description().traffic


@pytest.fixture
def profile(toy_gpu: Path) -> Path:
    """A profile of both NFs of the toy server."""
    return toy_gpu / "profile"


@pytest.fixture
def saved(toy_gpu: Path) -> Path:
    """Models trained from it."""
    return toy_gpu / "models"


@pytest.fixture(scope="module")
def models(toy_gpu: Path) -> GpuModels:
    """The same, loaded."""
    return load_gpu_models(toy_gpu / "models")


def _nf(name: str, rate_kpps: float, batch: int, sm: int = 0, order: int = 0) -> dict[str, object]:
    gpu = {"batch": batch, "order": order, "minibatches": [{"sm": sm, "packets": batch}]}
    return {"kind": "nf", "name": name, "rate_kpps": rate_kpps, "gpu": gpu}


def _scenarios(path: Path, *scenarios: list[dict[str, object]]) -> Path:
    path.write_text("".join(json.dumps({"workloads": one}) + "\n" for one in scenarios), encoding="utf-8")
    return path


def test_latency_of_co_locations_is_predicted(models: GpuModels) -> None:
    """Against the truth of the server, on a co-location that was not measured."""
    loads = [
        workload("hash", TRAFFIC, 400.0, [(0, 96)], 0),
        workload("scan", TrafficProfile(1000, 900), 300.0, [(1, 128)], 1),
        workload("hash", TRAFFIC, 200.0, [(2, 64)], 2),
    ]
    runs = [ToyGpu(noise=0.0).run(loads, seed=seed).measurements for seed in range(4)]
    for at, one in enumerate(models.predict(loads)):
        latencies = [run[at].latency_us for run in runs]
        mean, p99 = (sum(getattr(found, name) for found in latencies) / 4 for name in ("mean", "p99"))
        assert one.mean_us == pytest.approx(mean, rel=0.04) and one.p99_us == pytest.approx(p99, rel=0.1)
        assert one.stages_us["transfer"] == pytest.approx(ToyTimes.of(loads[at]).transfer, rel=0.025)
        assert one.low_us is not None and one.high_us is not None and one.low_us <= one.p99_us <= one.high_us


def test_models_that_were_loaded_are_saved_with_the_same_bytes(saved: Path, tmp_path: Path) -> None:
    load_gpu_models(saved).save(tmp_path / "again")
    files = [path.relative_to(saved) for path in saved.rglob("*") if path.is_file()]
    assert files and all((saved / one).read_bytes() == (tmp_path / "again" / one).read_bytes() for one in files)


def test_the_commands_go_from_a_testbed_to_predictions(placer: Placer, saved: Path, tmp_path: Path) -> None:
    """The server is reached by exec: and its profile is that of the server in this process."""
    status, _, err = placer("profile", "--testbed", TOY, "--out", tmp_path / "p", "--quota", 70, "--nf", "hash")
    assert status == 0, err
    status, out, _ = placer("profile", "--out", tmp_path / "p", "--status")
    assert status == 0 and "hash" in out and "sharers" in out and "benches" not in out
    status, _, err = placer("train", tmp_path / "p", "--out", tmp_path / "m", "--quiet")
    assert status == 0, err
    scenario = _scenarios(tmp_path / "s.jsonl", [_nf("hash", 300, 64)])
    status, out, _ = placer("predict", "--models", tmp_path / "m", "--scenarios", scenario)
    answer = json.loads(out)
    assert status == 0 and set(answer) == {"latency_us", "stages_us", "overload", "extrapolated"}
    (latency,), (stages,) = answer["latency_us"], answer["stages_us"]
    assert latency["mean"] == pytest.approx(sum(stages.values()), rel=1e-4)
    assert latency["mean_low"] <= latency["mean"] <= latency["mean_high"] < latency["p99_high"]


def test_an_overloaded_server_is_an_answer_and_no_latency(placer: Placer, saved: Path, tmp_path: Path) -> None:
    scenarios = _scenarios(tmp_path / "s.jsonl", [_nf("scan", 300, 64)], [_nf("scan", 900, 2)])
    status, out, err = placer("predict", "--models", saved, "--scenarios", scenarios, "--extrapolate")
    first, second = map(json.loads, out.splitlines())
    assert status == 0 and first["overload"] == [] and second["latency_us"] is None
    assert second["overload"][0].startswith("the bus to the GPU") or "takes" in second["overload"][0]
    assert "is overloaded in 1 of 2 scenarios" in err
    status, out, _ = placer(
        "predict", "--models", saved, "--scenarios", scenarios, "--extrapolate", "--format", "table"
    )
    assert status == 0 and "overload" in out and "p99 us" in out


@pytest.mark.parametrize(
    ("workload", "fault"),
    [
        (_nf("hsh", 300, 64), "s.jsonl:1: name: 'hsh' is not profiled (did you mean hash?)"),
        (_nf("hash", 1e9, 64), "s.jsonl:1: gpu: rate_kpps 1e+09 is outside the measured"),
        (_nf("hash", 300, 64, sm=9), "s.jsonl:1: gpu: hash: minibatch on SM 9: there are 4"),
        (_nf("hash", 0, 64), "s.jsonl:1: workloads.0.rate_kpps: 0 is not above 0"),
        ({"name": "hash"}, "s.jsonl:1: workloads.0.rate_kpps: is missing"),
        (_nf("hash", 300, 64) | {"traffic": {"size": 3}}, "s.jsonl:1: traffic: unknown attribute size"),
    ],
)
def test_what_cannot_be_predicted_is_refused(
    saved: Path, tmp_path: Path, workload: dict[str, object], fault: str
) -> None:
    assert fault in refuse("predict", "--models", saved, "--scenarios", _scenarios(tmp_path / "s.jsonl", [workload]))


def test_options_of_nics_are_refused(placer: Placer, profile: Path, saved: Path, tmp_path: Path) -> None:
    status, _, err = placer("train", profile, "--out", tmp_path / "m", "--predictor", "tomur")
    assert status == 2 and "--predictor: is for profiles of NICs" in err
    status, _, err = placer("profile", "--testbed", TOY, "--out", tmp_path / "p", "--method", "random")
    assert status == 2 and "--method: is for NICs" in err
    status, _, err = placer("predict", "--models", saved, "--nf", "hash", "--contention", tmp_path / "x.csv")
    assert status == 2 and "--contention: is not for models of a GPU server" in err


def test_an_arrival_on_a_gpu_needs_its_rate(saved: Path, tmp_path: Path) -> None:
    trace = tmp_path / "a.csv"
    trace.write_text("id,time,nf,sla_drop\na,0,hash,0.1\n", encoding="utf-8")
    assert "rate_kpps: is missing, and 'hash' runs on GPUs only" in refuse("run", trace, "--models", saved)


def test_damaged_models_are_refused(saved: Path, tmp_path: Path) -> None:
    copy = tmp_path / "models"
    shutil.copytree(saved, copy)
    (copy / "hash" / "kernel.npz").write_bytes(b"x")
    with pytest.raises(InputError, match=r"kernel\.npz: is damaged"):
        load_gpu_models(copy)


def test_the_device_is_never_faster_than_the_model(models: GpuModels) -> None:
    """Without waiting it is above the predicted p99, also at batches between those it was held against."""
    entries = {"a": DeviceEntry("hash", TRAFFIC, (300.0, 300.0)), "b": DeviceEntry("scan", TRAFFIC, (200.0, 200.0))}
    device = models.device_with(entries)
    for name, rate in (("a", 300.0), ("b", 200.0)):
        nf = device["nfs"][name]
        slope, fixed = device["transfer_us"][nf["class"]]
        ratios = []
        for batch in (20, 50, 110, 230):
            one = models.predict([workload(entries[name].nf, TRAFFIC, rate, [(0, batch)])], extrapolate=True)[0]
            kernel = nf["kernel_us"][0] * -(-batch // 32) + nf["kernel_us"][1]
            latency = 1000 * (batch - 1) / rate + nf["pre_post_us"] + slope * batch + fixed + kernel
            ratios.append(latency / one.p99_us)
        assert 0.97 < min(ratios) < 1.25
    assert device["sharing_us"]["a"]["b"] > 0 and json.loads(json.dumps(device)) == device


def test_slos_are_admitted_by_models(placer: Placer, saved: Path, tmp_path: Path) -> None:
    """What is admitted keeps its latency by the models, alone on the server; an impossible SLO is rejected."""
    slos = tmp_path / "slos.jsonl"
    lines = [("a", "hash", 2000), ("b", "scan", 3000), ("c", "scan", 1)]
    slos.write_text(
        "".join(json.dumps({"id": one, "nf": nf, "rate_kpps": 200, "latency_us": us}) + "\n" for one, nf, us in lines),
        encoding="utf-8",
    )
    status, out, err = placer("admit", slos, "--models", saved, "--format", "json")
    assert status == 0, err
    answer = json.loads(out)
    assert [one["id"] for one in answer["admitted"]] == ["a", "b"]
    assert [one["id"] for one in answer["rejected"]] == ["c"]
    slos.write_text('{"id": "a", "nf": "hsh", "rate_kpps": 200, "latency_us": 900}\n', encoding="utf-8")
    status, _, err = placer("admit", slos, "--models", saved)
    assert status == 2 and "did you mean hash?" in err


def test_too_much_is_an_overload(models: GpuModels) -> None:
    with pytest.raises(Overload, match="kernel of scan"):
        models.predict([workload("scan", TRAFFIC, 900.0, [(0, 2)])], extrapolate=True)
