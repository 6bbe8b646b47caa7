"""`--testbed switch`: programs of the software switch by their components, where it is built."""

from collections.abc import Iterator
from pathlib import Path

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


def cycles(testbed: Testbed, nf: str, **parts: float) -> float:
    """Cycles per packet of a program, the fewest of three runs: other work only adds to them."""
    description = testbed.describe()
    load = ConfiguredWorkload.of(Workload(nf, description.traffic), parts)
    kpps = [one.throughput_kpps for _ in range(3) for one in testbed.run([load]).measurements]
    assert description.nic.clock_mhz
    return 1e3 * description.nic.clock_mhz / max(kpps)


@pytest.mark.long
@pytest.mark.parametrize("nf", [EXACT, TERNARY])
def test_each_component_costs_cycles(testbed: Testbed, nf: str) -> None:
    """Eight tables, eight headers and four recirculations take longer than one of each; so do keys of 32 bytes, found
    among ternary entries."""
    plain = cycles(testbed, nf, entries=100)
    assert cycles(testbed, nf, entries=100, tables=8) > 2 * plain
    assert cycles(testbed, nf, entries=100, recirculations=4) > 2 * plain
    assert cycles(testbed, nf, entries=100, tables=0, headers=8) > cycles(testbed, nf, entries=100, tables=0, headers=0)
    if nf == TERNARY:
        assert cycles(testbed, nf, entries=100, key_bytes=32) > plain


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
