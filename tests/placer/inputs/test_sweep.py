"""Sweep files: every fault with its line; the text names the testbed that ran."""

import tomllib
from pathlib import Path

import pytest

from placer.inputs.sweep import read_sweep
from profiles import InputError

WHOLE = """\
testbed = "simulated"   # everywhere
seed = 3

[workload]
nf = "FlowStats"

[[vary]]
key = "flows"
from = 1
to = 1000
points = 10
scale = "log"
"""


def read(tmp_path: Path, text: str, testbed: str | None = None) -> str:
    """What is printed of the file's faults; the text that is kept where there are none."""
    path = tmp_path / "s.toml"
    path.write_text(text, encoding="utf-8")
    try:
        return read_sweep(path, testbed).text
    except InputError as refused:
        return str(refused).replace(f"{tmp_path}/", "")


def test_what_is_left_out_has_a_default(tmp_path: Path) -> None:
    """Throughput over the first key, three repeats."""
    (tmp_path / "s.toml").write_text(WHOLE, encoding="utf-8")
    sweep = read_sweep(tmp_path / "s.toml")
    assert (sweep.x, sweep.y, sweep.select) == ("flows", ("throughput_kpps",), "bic")
    assert sweep.spec.measure.repeats == 3 and sweep.spec.runs == 30
    axis = sweep.spec.vary[0].axis
    assert axis is not None and axis.whole and axis.scale == "log"


def test_a_decimal_point_makes_a_range_continuous(tmp_path: Path) -> None:
    """`from = 1.0` means that values lie between whole numbers, too."""
    (tmp_path / "s.toml").write_text(WHOLE.replace("from = 1", "from = 1.0"), encoding="utf-8")
    axis = read_sweep(tmp_path / "s.toml").spec.vary[0].axis
    assert axis is not None and not axis.whole


def test_the_testbed_of_the_command_line_is_written_down(tmp_path: Path) -> None:
    """In place of that of the file, whose comments and other lines stay; at the top where it names none."""
    kept = read(tmp_path, WHOLE, 'exec:ssh "lab"')
    assert tomllib.loads(kept) == tomllib.loads(WHOLE) | {"testbed": 'exec:ssh "lab"'}
    assert kept.splitlines()[1:] == WHOLE.splitlines()[1:]
    without = WHOLE.replace('testbed = "simulated"   # everywhere\n', "")
    assert read(tmp_path, without, "host") == f'testbed = "host"\n{without}'
    assert read(tmp_path, WHOLE, "simulated") == WHOLE


@pytest.mark.parametrize("command", ["", "exec:" + "x" * 4_092])
def test_a_testbed_of_the_command_line_that_is_no_command_is_refused(tmp_path: Path, command: str) -> None:
    """Neither empty nor beyond any command: 4,096 characters."""
    (tmp_path / "s.toml").write_text(WHOLE, encoding="utf-8")
    with pytest.raises(InputError, match="--testbed: has"):
        read_sweep(tmp_path / "s.toml", command)


def test_a_text_of_several_lines_is_not_replaced(tmp_path: Path) -> None:
    """Nothing is guessed."""
    assert read(tmp_path, WHOLE.replace('"simulated"', '"""simul\\\nated"""'), "host").startswith("s.toml")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (('testbed = "simulated"', ""), "s.toml: testbed: is missing\nhint: as in testbed"),
        (("seed = 3", "seed = -3"), "s.toml:2: seed: -3 is below 0"),
        (("seed = 3", "sed = 3"), "s.toml:2: sed: unknown key\nhint: did you mean seed?"),
        (('nf = "FlowStats"', ""), "s.toml:4: workload.nf: is missing"),
        (('nf = "FlowStats"', 'nf = "FlowStats"\nflow = 3'),
         "s.toml:6: workload.flow: unknown key\nhint: did you mean flows?"),
        (('nf = "FlowStats"', 'nf = "FlowStats"\nflows = "3"'), "s.toml:6: workload.flows: '3' is not a number"),
        (("from = 1", "from = inf"), "s.toml:9: vary.1.from: inf is not a number up to 1e+15"),
        (("from = 1", ""), "s.toml:7: vary.1.from: is missing\nhint: a range is from, to and points"),
        (("from = 1", "from = 0"), "s.toml:9: vary.1.from: 0 is not above 0, as a logarithmic scale needs"),
        (("to = 1000", "to = 1"), "s.toml:10: vary.1.to: 1 is not above from, 1"),
        (("points = 10", "points = 1"), "s.toml:11: vary.1.points: 1 is below 2"),
        (("points = 10", "values = [1, 2]"), "s.toml:9: vary.1.from: does not go with values"),
        (('scale = "log"', 'scale = "ln"'), "s.toml:12: vary.1.scale: 'ln' is not one of 'linear' or 'log'"),
        (('key = "flows"', 'key = "run"'), "s.toml:8: vary.1.key: run is another column of measurements.csv"),
        (("[[vary]]", "[[vari]]"), "s.toml: vary: is missing"),
        (("seed = 3", "measure = { metrics = ['ips'] }"),
         "s.toml:2: measure.metrics: 'ips' is not a metric\nhint: did"),
        (("seed = 3", "measure = { repeats = 0 }"), "s.toml:2: measure.repeats: 0 is below 1"),
        (("seed = 3", "measure = { metrics = [] }"), "s.toml:2: measure.metrics: is too short"),
        (("seed = 3", "fit = { x = 'flow' }"), "s.toml:2: fit.x: flow is not varied\nhint: did you mean flows?"),
        (("seed = 3", "fit = { y = 'ipc' }"), "s.toml:2: fit.y: ipc is not among the metrics"),
        (("seed = 3", "fit = { select = 'aic' }"), "s.toml:2: fit.select: 'aic' is not one of 'bic' or 'tum'"),
        (("points = 10", "points = 10001"), "s.toml:11: vary.1.points: 10001 is above 10000"),
        (("[workload]", "[workload"), "s.toml:4: is not TOML"),
    ],
)  # fmt: skip
def test_a_fault_is_named_with_its_line(tmp_path: Path, change: tuple[str, str], message: str) -> None:
    """The file, the line, the key, what is wrong, and what to do."""
    assert change[0] in WHOLE and read(tmp_path, WHOLE.replace(*change, 1)).startswith(message)


def test_competitors_are_benches_or_nfs(tmp_path: Path) -> None:
    """Not both, not neither; benches have no traffic."""
    both = '[[workload.competitors]]\nbench = "mem-bench"\nnf = "NAT"\n'
    traffic = '[[workload.competitors]]\nbench = "mem-bench"\nflows = 3\n'
    shown = read(tmp_path, WHOLE + "[[workload.competitors]]\n" + both + traffic)
    assert shown.splitlines()[:3] == [
        "s.toml:13: workload.competitors.1: is a bench or an nf",
        "s.toml:14: workload.competitors.2: is a bench or an nf",
        "s.toml:19: workload.competitors.3.flows: a bench has no traffic",
    ]


def test_all_faults_are_listed_at_once(tmp_path: Path) -> None:
    """Two keys varied twice, and too many runs."""
    shown = read(tmp_path, WHOLE + '[[vary]]\nkey = "flows"\nvalues = [1, 1]\n').splitlines()
    assert shown == ["s.toml:15: vary.2.values: holds a value twice", "s.toml:14: vary.2.key: flows is varied twice"]
    grid = "".join(f'[[vary]]\nkey = "k{n}"\nfrom = 1\nto = 9999\npoints = 5000\n' for n in range(2))
    assert read(tmp_path, WHOLE + grid) == "s.toml:7: vary.1: 750,000,000 runs are more than 1,000,000"
