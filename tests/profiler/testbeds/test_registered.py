"""Testbeds are found by the name before the colon of their SPEC."""

from __future__ import annotations

import math

import pytest

from profiler.testbeds import TESTBEDS, known_testbeds, open_testbed
from profiles import InputError


def test_every_file_of_the_package_is_a_kind_of_testbed() -> None:
    assert list(TESTBEDS) == ["exec", "host", "replay", "simulated"]
    simulated = (
        "simulated, simulated:contended, simulated:bluefield-3, simulated:server, simulated:gpu, simulated:gpu-b"
    )
    assert known_testbeds() == f"exec:COMMAND, host, replay:PROFILE, {simulated}"


@pytest.mark.parametrize("timeout", [math.nan, math.inf, 0.0, -1.0, 1e300])
def test_a_timeout_that_no_clock_can_measure_is_refused(timeout: float) -> None:
    with pytest.raises(InputError, match=r"--timeout: .* is not between 0 and 1,000,000 s"):
        open_testbed("exec:true", timeout=timeout)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("simulator", "--testbed: 'simulator' is not a testbed\nhint: did you mean simulated?"),
        ("Exec:ssh bf2", "--testbed: 'Exec' is not a testbed\nhint: did you mean exec?"),
        ("lab", "--testbed: 'lab' is not a testbed\nhint: one of exec, host, replay, simulated"),
        ("none", "nothing can be run without a testbed\nhint: one of exec:COMMAND, host, replay:PROFILE, simulated, "),
        ("", "--testbed: names no testbed\nhint: one of exec:COMMAND"),
        ("replay:", "--testbed: replay: names no profile\nhint: replay:PROFILE"),
        (
            "simulated:fast",
            "--testbed: there is no simulated card 'fast'\n"
            "hint: simulated, simulated:contended, simulated:bluefield-3, simulated:server, simulated:gpu or "
            "simulated:gpu-b",
        ),
    ],
)
def test_a_spec_that_opens_nothing_is_refused(spec: str, message: str) -> None:
    """The error has the nearest name, or all."""
    with pytest.raises(InputError) as raised:
        open_testbed(spec)
    assert message in str(raised.value)
