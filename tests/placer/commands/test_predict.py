"""`placer predict` and `placer train`: what is refused, what is predicted with a warning, and names that miss."""

import csv
import io
import json
from pathlib import Path

import pytest

from predictor import Models
from tests.placer.commands.conftest import Placer, refuse
from tests.predictor.made_up import CRYPTO, PLAIN


def _scenario(path: Path, name: str, count: int) -> Path:
    path.write_text(json.dumps({"workloads": [{"name": name}] * count}) + "\n", encoding="utf-8")
    return path


@pytest.mark.long
def test_more_nfs_than_cores_are_refused_or_predicted_with_a_warning(
    placer: Placer, made_up_models: Path, tmp_path: Path
) -> None:
    """A hundred NFs on six cores."""
    predict = ("predict", "--models", made_up_models, "--scenarios", _scenario(tmp_path / "s.jsonl", PLAIN.name, 100))
    status, out, err = placer(*predict)
    assert (status, out) == (2, "")
    assert "s.jsonl:1: workloads: 100 NFs take 100 cores, a made-up has 6\nhint: --extrapolate" in err
    status, out, err = placer(*predict, "--extrapolate")
    assert status == 0 and len(json.loads(out)["throughput_kpps"]) == 100
    assert "too few cores for the co-locations of these lines: 1" in err


def test_a_name_in_the_wrong_case_is_answered_with_the_right_one(
    placer: Placer, made_up_models: Path, tmp_path: Path
) -> None:
    """Of an NF and of a predictor."""
    predict = ("predict", "--models", made_up_models, "--scenarios", _scenario(tmp_path / "s.jsonl", "Plain", 1))
    status, _, err = placer(*predict)
    assert status == 2 and "nf: 'Plain' is not profiled (did you mean plain?)" in err
    status, _, err = placer(*predict, "--predictor", "Tomur")
    assert status == 2 and "--predictor: 'Tomur' is not in the models\nhint: did you mean tomur?" in err
    status, _, err = placer("train", tmp_path, "--out", tmp_path / "out", "--predictor", "slow")
    assert status == 2 and "--predictor: 'slow' is not a predictor" in err


def test_a_risk_below_the_measured_errors_is_predicted_and_warned_of(made_up_models: Path) -> None:
    """A thousandth of a percent: throughputs stay well above 0, and a sentence is there for stderr."""
    from predictor import load_models
    from profiles import Workload

    loaded: Models = load_models(made_up_models)
    tomur, slomo = loaded.predictors["tomur"], loaded.predictors["slomo"]
    co_location = [Workload(PLAIN.name, loaded.default_traffic), Workload(CRYPTO.name, loaded.default_traffic)]
    median, wary = tomur.throughput([co_location])[0], tomur.throughput([co_location], risk=1e-5)[0]
    assert (wary < median).all() and (wary > median / 3.01).all()
    assert "smallest for which errors were measured" in str(tomur.risk_warning(1e-5))
    assert tomur.risk_warning(0.5) is None and slomo.risk_warning(1e-5) is None


def test_predict_scenarios(placer: Placer, tmp_path: Path) -> None:
    """One answer a line, aligned with the workloads; alone, an NF has its solo throughput."""
    scenarios = tmp_path / "s.jsonl"
    nat = {"kind": "nf", "name": "NAT", "traffic": {"flows": 16000, "packet_size": 1500, "mtbr": 600}}
    monitor = {**nat, "name": "FlowMonitor"}
    lines = [{"workloads": [nat]}, {"workloads": [monitor, nat, monitor]}]
    scenarios.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    alone, together = map(json.loads, placer("predict", "--scenarios", scenarios).stdout.splitlines())
    assert alone["throughput_kpps"] == alone["solo_kpps"] and together["bottleneck"][0] == "regex"
    assert together["throughput_kpps"][0] == together["throughput_kpps"][2] < together["solo_kpps"][0]
    assert together["solo_kpps"][1] == alone["solo_kpps"][0]
    assert "FlowMonitor" in placer("predict", "--scenarios", scenarios, "--format", "table").stdout


def test_a_prediction_has_drops_and_an_interval(placer: Placer, tmp_path: Path) -> None:
    """The interval contains the prediction; drops are of the resources that the NF uses; co-runs corrected it."""
    scenarios = tmp_path / "s.jsonl"
    scenarios.write_text(
        '{"workloads": [{"name": "FlowMonitor"}, {"name": "NIDS"}, {"name": "NAT"}]}\n', encoding="utf-8"
    )
    printed = json.loads(placer("predict", "--scenarios", scenarios).stdout)
    for low, got, high in zip(printed["low_kpps"], printed["throughput_kpps"], printed["high_kpps"], strict=True):
        assert low <= got <= high
    assert set(printed["drop_kpps"][0]) == {"memory", "regex"}
    assert printed["drop_kpps"][0]["regex"] > printed["drop_kpps"][0]["memory"] > 0
    assert printed["drop_kpps"][2].get("regex", 0) == 0 and printed["calibrated"] == [True, True, True]


def test_traffic_out_of_range_is_predicted_on_request(placer: Placer, tmp_path: Path) -> None:
    """Refused with the range and a hint; with --extrapolate predicted, marked, and reported on stderr."""
    scenarios = tmp_path / "s.jsonl"
    scenarios.write_text('{"workloads": [{"name": "NAT", "traffic": {"flows": 600000}}]}\n', encoding="utf-8")
    printed = refuse("predict", "--scenarios", scenarios)
    assert "flows: 600000 is outside the profiled range 1 to 500000" in printed
    assert "hint: --extrapolate" in printed
    answered = placer("predict", "--scenarios", scenarios, "--extrapolate")
    assert json.loads(answered.stdout)["extrapolated"] == [True]
    assert "outside what was measured" in answered.stderr


def test_bad_scenarios_are_refused_whole(placer: Placer, tmp_path: Path) -> None:
    """Unknown NFs, traffic out of range and lines that are not a scenario are all reported, with their lines."""
    scenarios = tmp_path / "s.jsonl"
    scenarios.write_text(
        '{"workloads": [{"name": "NTA"}]}\n{"workloads": [{"name": "NAT", "traffic": {"flows": 9e9}}]}\nnonsense\n'
        '{"workloads": []}\n',
        encoding="utf-8",
    )
    ended = placer("predict", "--scenarios", scenarios)
    assert (ended.status, ended.stdout) == (2, "")
    for line, printed in (
        (1, "nf: 'NTA' is not profiled"),
        (2, "flows: 9e+09 is outside"),
        (3, "is not JSON"),
        (4, "workloads: "),
    ):
        place = f"{scenarios}:{line}: "
        assert any(fault.startswith(place) and printed in fault for fault in ended.stderr.splitlines())


def test_predictions_under_measured_contention_have_drops_and_intervals(placer: Placer, tmp_path: Path) -> None:
    """Rows with `predicted_kpps` by default; with --format json interval, drops, bottleneck, and what co-runs did."""
    rows = tmp_path / "c.csv"
    rows.write_text(
        "note,flows,packet_size,mtbr,ipc,irt,l2crd,l2cwr,memrd,memwr,wss,competitor_service_ms\n"
        "mine,16000,1500,600,1.2,3e9,4e7,2e7,1.2e9,5e8,8,0.0005\n",
        encoding="utf-8",
    )
    command = ("predict", "--nf", "FlowMonitor", "--contention", rows)
    (plain,) = csv.DictReader(io.StringIO(placer(*command).stdout))
    assert plain["note"] == "mine" and set(plain) >= {"flows", "predicted_kpps"}
    ended = placer(*command, "--format", "json", "--coverage", "0.8")
    printed, wider = json.loads(ended.stdout), json.loads(placer(*command, "--format", "json").stdout)
    assert printed["throughput_kpps"] == [float(plain["predicted_kpps"])]
    assert wider["low_kpps"][0] < printed["low_kpps"][0] < printed["throughput_kpps"][0] < printed["high_kpps"][0]
    assert printed["bottleneck"] == ["regex"] and printed["drop_kpps"][0]["regex"] > printed["drop_kpps"][0]["memory"]
    assert printed["calibrated"] == [True] and "measured co-runs corrected 1 of 1 predictions" in ended.stderr
    shown = placer(*command, "--format", "table").stdout
    assert "regex" in shown and "calibrated" in shown


@pytest.mark.long
def test_a_simulated_card_has_its_own_recorded_models(placer: Placer, tmp_path: Path) -> None:
    """`--testbed` names the card; a testbed without recorded models is refused."""
    scenarios = _scenario(tmp_path / "s.jsonl", "NAT", 1)
    alone = [
        json.loads(placer("predict", "--scenarios", scenarios, *testbed).stdout)["solo_kpps"]
        for testbed in ((), ("--testbed", "simulated"), ("--testbed", "simulated:contended"))
    ]
    assert alone[0] == alone[1] != alone[2]
    assert "there are no recorded models of 'host'\nhint: it is one of simulated, simulated:contended" in refuse(
        "predict", "--scenarios", scenarios, "--testbed", "host"
    )
