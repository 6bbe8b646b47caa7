"""`placer chain scale`: the smallest allocation, and what is refused."""

import json
from pathlib import Path

import pytest

from tests.placer.commands.conftest import Placer, refuse

SHARES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0)


@pytest.fixture
def command(tmp_path: Path) -> list[object]:
    """Two NFs whose throughput is proportional to their CPU share, and falls with the packet size."""
    given: list[object] = ["chain", "scale", "--order", "nx,sc", "--y", "kpps", "--regressor", "interpolation"]
    for nf, most in (("nx", 100.0), ("sc", 50.0)):
        rows = [f"{cpu},{size},{most * cpu * (1 if size == 64 else 0.5)}" for cpu in SHARES for size in (64, 1500)]
        (tmp_path / f"{nf}.csv").write_text("\n".join(["cpu,packet_size,kpps", *rows]) + "\n")
        given += ["--profile", f"{nf}={tmp_path}/{nf}.csv"]
    return given


def test_the_least_shares_are_found_beside_the_greedy_procedure(placer: Placer, command: list[object]) -> None:
    """20 kpps are 0.2 of an NF that reaches 100, and 0.4 of one that reaches 50."""
    ended = placer(*command, "--target", 20, "--workload", "packet_size=64")
    assert ended.status == 0
    heading, one_shot, greedy, _, sentence = ended.stdout.splitlines()
    assert heading.split()[:4] == ["method", "nx.cpu", "sc.cpu", "total"]
    assert one_shot.split()[:4] == ["one-shot", "0.2", "0.4", "0.6"] and one_shot.split()[-1] == "0"
    assert greedy.split()[0] == "greedy" and int(greedy.split()[-1]) > 1
    assert sentence == "Target: kpps at least 20, as predicted."


def test_json_holds_both(placer: Placer, command: list[object]) -> None:
    """With larger packets everything takes twice as much; a finer step than was profiled is interpolated."""
    more = ("--workload", "packet_size=1500", "--step", 0.05, "--format", "json")
    found = json.loads(placer(*command, "--target", 11, *more).stdout)
    assert found["one_shot"]["allocation"] == {"nx": pytest.approx(0.25), "sc": pytest.approx(0.45)}
    assert found["one_shot"]["chain_runs"] == 0 < found["greedy"]["chain_runs"]
    assert found["one_shot"]["low"] < found["one_shot"]["predicted"] < found["one_shot"]["high"]


def test_safe_needs_more(placer: Placer, command: list[object]) -> None:
    more = ("--target", 10, "--workload", "packet_size=64", "--format", "json")
    expected, safe = (json.loads(placer(*command, *more, *option).stdout)["one_shot"] for option in ((), ("--safe",)))
    assert safe["total"] > expected["total"] and safe["low"] >= 10


def test_a_target_out_of_reach_is_answered(placer: Placer, command: list[object]) -> None:
    ended = placer(*command, "--target", 90, "--workload", "packet_size=64")
    assert ended.status == 0 and "No profiled allocation meets it." in ended.stdout
    found = json.loads(placer(*command, "--target", 90, "--workload", "packet_size=64", "--format", "json").stdout)
    assert found["one_shot"] == {"allocation": None, "chain_runs": 0}


@pytest.mark.parametrize(
    ("more", "fault"),
    [
        (("--target", 0), "--target: 0 is not above 0"),
        (("--target", 9), "--workload: does not name packet_size\nhint: --workload packet_size=VALUE"),
        (("--target", 9, "--workload", "size=64"), "--workload: 'size' is not a column of the profiles"),
        (("--target", 9, "--workload", "packet_size=big"), "--workload: packet_size: 'big' is not a number"),
        (("--target", 9, "--workload", "packet_size=64", "--step", 0), "--step: 0 makes no or more than"),
        (("--target", 9, "--workload", "packet_size=64", "--step", 3), "--step: no multiple of 3 is in the profiled"),
        (("--target", 9, "--workload", "packet_size=64", "--resource", "ram"), "has no column ram"),
    ],
)
def test_what_cannot_be_scaled_is_refused(command: list[object], more: tuple[object, ...], fault: str) -> None:
    assert fault in refuse(*command, *more)
