"""`--testbed switch`: programs of the software switch by their components, where it is built."""

from collections.abc import Iterator
from pathlib import Path
from statistics import median

import pytest

from profiler.testbed import RunRefused, Testbed
from profiler.testbeds import open_testbed, switch
from profiler.testbeds.switch import EXACT, TERNARY
from profiles import ConfiguredWorkload, InputError, Workload
from tests.placer.commands.conftest import run_placer

SWEEPS = Path(__file__).resolve().parents[3] / "examples" / "sweeps"


@pytest.fixture
def testbed() -> Iterator[Testbed]:
    if not switch.PROGRAM.is_file():
        pytest.skip("the software switch is not built: its programs are not measured")
    with open_testbed("switch") as opened:
        yield opened


def times_the_cycles(testbed: Testbed, nf: str, more: dict[str, float], fewer: dict[str, float]) -> float:
    """How many times the cycles per packet of `fewer` a program of `more` takes: the median of five pairs, measured
    in turn, since other work on this machine slows both alike."""
    description = testbed.describe()

    def kpps(parts: dict[str, float]) -> float:
        load = ConfiguredWorkload.of(Workload(nf, description.traffic), {"entries": 100.0} | parts)
        (measured,) = testbed.run([load]).measurements
        return measured.throughput_kpps

    return median(kpps(fewer) / kpps(more) for _ in range(5))


@pytest.mark.long
@pytest.mark.parametrize("nf", [EXACT, TERNARY])
def test_each_component_costs_cycles(testbed: Testbed, nf: str) -> None:
    """Eight tables, eight headers and four recirculations take longer than one of each; so do keys of 32 bytes, found
    among ternary entries."""
    assert times_the_cycles(testbed, nf, {"tables": 8}, {}) > 2
    assert times_the_cycles(testbed, nf, {"recirculations": 4}, {}) > 2
    assert times_the_cycles(testbed, nf, {"tables": 0, "headers": 8}, {"tables": 0, "headers": 0}) > 1
    if nf == TERNARY:
        assert times_the_cycles(testbed, nf, {"key_bytes": 32}, {}) > 1


@pytest.mark.long
def test_a_sweep_fits_the_cost_of_a_table(testbed: Testbed, tmp_path: Path) -> None:
    """The example, shortened: with more tables, more cycles."""
    text = (SWEEPS / "switch-tables.toml").read_text(encoding="utf-8").replace("repeats = 5", "repeats = 2")
    (tmp_path / "spec.toml").write_text(text.replace("points = 9", "points = 3"), encoding="utf-8")
    ended = run_placer("sweep", str(tmp_path / "spec.toml"), "--out", str(tmp_path / "out"))
    assert ended.status == 0 and "cycles_per_packet over tables" in ended.stdout, ended


def test_it_runs_one_program_of_known_components(testbed: Testbed) -> None:
    """Two loads and a component out of range are refused."""
    load = Workload(EXACT, testbed.describe().traffic)
    for loads in ([load, load], [ConfiguredWorkload.of(load, {"tables": 9})], [ConfiguredWorkload.of(load, {"x": 1})]):
        with pytest.raises(RunRefused, match=r"needs 2 cores|tables 9 is outside|has no parameter x"):
            testbed.run(loads)


def test_a_switch_that_is_not_built_is_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The message says how to build it; options are refused."""
    monkeypatch.setattr(switch, "PROGRAM", tmp_path / "missing")
    with pytest.raises(InputError, match="its program is not built"):
        open_testbed("switch")
    with pytest.raises(InputError, match="it has no options"):
        open_testbed("switch:fast")
