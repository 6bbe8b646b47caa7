"""What the commands load: nothing that they do not use."""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from placer.inputs.models import open_models

CHARTS = ("altair", "vl_convert", "matplotlib")
EXAMPLES = Path(__file__).parents[3] / "examples"
HEAVY = ("numpy", "pandas", "pydantic", "scipy", "sklearn", "numba", "ortools", *CHARTS)
FOR_TRAINING = ("ortools", "sklearn")

SCRIPT = """
import contextlib, io, json, sys
from placer.cli import main
for arguments in json.loads(sys.argv[1]):
    sys.argv = ["placer", *arguments]
    with contextlib.redirect_stdout(io.StringIO()):
        try:
            main()
        except SystemExit as ended:
            assert ended.code in (0, None), (arguments, ended.code)
    print(*sorted({name.partition(".")[0] for name in sys.modules}))
"""


def loaded_by(*commands: Sequence[object]) -> list[set[str]]:
    """The packages that a process has loaded after each of the commands, which it runs one after the other."""
    given = json.dumps([list(map(str, command)) for command in commands])
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, given], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return [set(line.split()) for line in done.stdout.splitlines()]


@pytest.mark.long
def test_explain_and_run_load_no_tables_and_no_charts(arrivals: Path) -> None:
    """Chains load no compiled models, explain seeks no optimum, and help is light; all in one process, in order."""
    open_models(None, print)  # now, as training them loads more
    place = ["chain", "place", EXAMPLES / "edge.chains", "--rack", EXAMPLES / "rack.toml"]
    help_, chains, explain, run = loaded_by(["--help"], place, ["explain", arrivals, "a"], ["run", arrivals])
    assert help_.isdisjoint(HEAVY) and chains.isdisjoint(("numba", "pandas", "sklearn", *CHARTS))
    assert explain.isdisjoint(("ortools", "pandas", "sklearn", "sympy", *CHARTS))
    assert run.isdisjoint(("pandas", "sklearn", "sympy", *CHARTS))
    assert "ortools" in run  # else nothing would be noticed


@pytest.mark.long
def test_commands_load_only_what_they_use(arrivals: Path, tmp_path: Path) -> None:
    """Predictions and a fleet load no solver and nothing of training; no command loads charts. One process runs them in
    an order in which each may load more than those before it."""
    open_models(None, print)
    scenarios, study = tmp_path / "one.jsonl", tmp_path / "study.toml"
    scenarios.write_text('{"workloads": [{"name": "NAT"}]}\n', encoding="utf-8")
    study.write_text(f'strategies = ["greedy"]\n[[trace]]\nfile = "{arrivals}"\n', encoding="utf-8")
    small = ("--growth", "1", "--draws", "1", "--strategy", "greedy")
    predict, online, *others = loaded_by(
        ["predict", "--scenarios", scenarios],
        ["online", "--quiet", "--risk", 0.3],
        ["diagnose", "NAT", "--along", "flows", "--steps", 2],
        ["compare", study, "--jobs", 1, "--out", tmp_path / "compared"],
        ["size", arrivals, *small, "--jobs", "1", "--out", tmp_path / "sized"],
    )
    for loaded in (predict, online):
        assert loaded.isdisjoint(FOR_TRAINING)
    for loaded in (predict, online, *others):
        assert loaded.isdisjoint(CHARTS)
