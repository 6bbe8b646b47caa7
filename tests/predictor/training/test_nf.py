"""What is inferred of an NF from its runs alone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from predictor import Models, train
from profiles import InputError
from tests.predictor.made_up import CRYPTO, DEFAULT, Engine, MadeUpNf, measure, play, profile


@pytest.mark.parametrize(
    ("pipeline", "engines", "queues"),
    [
        # each value with each other one
        (True, 1, 1),
        (True, 2, 2),
        (False, 1, 2),
        (False, 2, 1),
        *(
            pytest.param(*others, marks=pytest.mark.long)
            for others in ((True, 1, 2), (True, 2, 1), (False, 1, 1), (False, 2, 2))
        ),
    ],
)
def test_pattern_and_queues_are_found(pipeline: bool, engines: int, queues: int) -> None:
    """Pattern, queues and evidence of NFs with one or two accelerators, and one or two queues on each."""
    uses = {f"engine{at}": Engine(queues, 3e-4 * (1 + at), 4e-4 * (1 + 0.5 * at)) for at in range(engines)}
    found = train(profile([MadeUpNf("nf", pipeline, 7e-4, uses)], seed=queues), ["tomur"]).completed_nf_json["nf"]
    assert found["execution_pattern"] == ("pipeline" if pipeline else "run-to-completion")
    assert found["queues"] == dict.fromkeys(uses, queues)
    evidence = found["evidence"]["mape_pct"]  # type: ignore[index]
    assert set(evidence) == {"pipeline", "run-to-completion"}
    assert evidence[found["execution_pattern"]] == min(evidence.values()) < 1.5


def test_service_time_of_a_pipeline(models: Models) -> None:
    """Equation 5: the time per packet and per match that the accelerator was given."""
    (use,) = models.models["crypto-pipeline"].execution.uses
    traffic = np.array([DEFAULT.as_tuple(), (16000.0, 1500.0, 0.0)])
    expected = [CRYPTO.engines["crypto"].service_ms(DEFAULT), CRYPTO.engines["crypto"].packet_ms]
    np.testing.assert_allclose(use.service(traffic), expected, rtol=0.03)


def test_solo_throughput_over_traffic(models: Models) -> None:
    """Alone, at traffic that was never measured, within 2 %."""
    for flows, size, mtbr in ((300, 200, 900), (50000, 1200, 100), (2000, 800, 500)):
        traffic = replace(DEFAULT, flows=float(flows), packet_size=float(size), mtbr=float(mtbr))
        expected = play(CRYPTO, CRYPTO.core_time(traffic, 0, 0), traffic, {})
        predicted = models.models["crypto-pipeline"].solo_kpps(np.array([traffic.as_tuple()]))
        np.testing.assert_allclose(predicted, expected, rtol=0.02)


def test_without_nf_json_one_queue_and_a_pipeline_are_assumed_with_a_warning() -> None:
    """A profile written by hand, with neither testbed.json nor nf.json, trains, with a warning of what was assumed."""
    serial = MadeUpNf("nf", False, 8e-4, {"crypto": Engine(2, 3e-4, 5e-4)})
    made = profile([serial])
    by_hand = replace(made, testbed=None, nfs={"nf": replace(made.nfs["nf"], description=None)})
    warnings: list[str] = []
    found = train(by_hand, ["tomur"], warn=warnings.append).completed_nf_json["nf"]
    assert (found["execution_pattern"], found["queues"]) == ("pipeline", {"crypto": 1})
    assert warnings == ["nf: no nf.json, one queue per accelerator and a pipeline are assumed"]


@pytest.mark.parametrize(
    ("missing", "file", "message"),
    [
        ("memory", "nf/memory.csv", "5 runs, at least 10 are needed"),
        ("accelerators", "nf/crypto.csv", "no runs, at least 1 is needed"),
    ],
)
def test_too_few_runs_are_refused(missing: str, file: str, message: str) -> None:
    """The refusal names the file and how many runs are needed."""
    measured = measure(replace(CRYPTO, name="nf"))
    poor = replace(measured, memory=measured.memory[:5]) if missing == "memory" else replace(measured, accelerators={})
    with pytest.raises(InputError) as refused:
        train(replace(profile([CRYPTO]), nfs={"nf": poor}))
    (fault,) = refused.value.faults
    assert fault.file == file
    assert message in fault.message
