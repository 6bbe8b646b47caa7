"""A compiler as the oracle of stages: what it is asked, its plans, and answers that are refused."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from placer.rack.place import best_plan
from placer.rack.plan import Status
from placer.rack.rack import Rack
from placer.rack.stages.stage_oracles import CompilerError, StageCompiler, check_stages
from profiles import InputError
from tests.placer.rack import lemur

COUNTS = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    with open(sys.argv[1], "a") as log:
        log.write(line)
    print(json.dumps({"id": asked["id"], "fits": len(asked["tables"]) <= asked["stages"]}), flush=True)
"""
"""A compiler that gives each table a stage of its own."""


def with_compiler(folder: Path, stages: int | None) -> Rack:
    (folder / "compiler.py").write_text(COUNTS, encoding="utf-8")
    command = f"exec:{sys.executable} {folder / 'compiler.py'} {folder / 'log'}"
    return check_stages(lemur.rack(switch={"stages": stages}), lemur.chains((3,), 0.5), command)


def test_a_compiler_decides_what_fits(tmp_path: Path) -> None:
    """Steering and IPv4Fwd take four tables; LB would take two more, ACL one."""
    chains = lemur.chains((3,), 0.5)
    assert best_plan(chains, with_compiler(tmp_path, 3)).status is Status.INFEASIBLE
    plan = best_plan(chains, with_compiler(tmp_path, 4))
    assert plan.chains[0].layout.on_switch == (4,)
    lines = (tmp_path / "log").read_text(encoding="utf-8").splitlines()
    asked = json.loads(next(line for line in reversed(lines) if "routes" in line))
    assert asked["stages"] == 4
    assert asked["tcam"] == {"blocks": 24, "bits": 44, "entries": 512}
    routes = next(one for one in asked["tables"] if one["name"] == "chain3/IPv4Fwd/routes")
    assert routes["key"] == {"ip.dst": 32} and routes["match"] == "lpm"
    assert ["steering", "chain3/IPv4Fwd/routes", "match"] in asked["dependencies"]


def test_it_is_not_asked_again(tmp_path: Path) -> None:
    """Not even by another search of the same process."""
    chains, rack = lemur.chains((3,), 0.5), with_compiler(tmp_path, 5)
    best_plan(chains, rack)
    questions = (tmp_path / "log").read_text(encoding="utf-8")
    best_plan(chains, rack)
    assert (tmp_path / "log").read_text(encoding="utf-8") == questions


def test_a_compiler_needs_a_number_of_stages(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="the rack has no number of stages"):
        with_compiler(tmp_path, None)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ("", "answered with what is not JSON"),
        ("no", "answered with what is not JSON: no"),
        ("[" * 100_000, "answered with what is not JSON"),
        ('{"fits": true}', "did not answer with an object whose id is 0"),
        ('{"id": 1, "fits": true}', "did not answer with an object whose id is 0"),
        ('{"id": 0, "fits": 1}', "answered without `fits` true or false"),
        ("7", "did not answer with an object"),
    ],
)
def test_a_wrong_answer_ends_the_compiler(tmp_path: Path, answer: str, message: str) -> None:
    """The error names what it answered, and holds what it wrote to stderr."""
    program = tmp_path / "compiler.py"
    program.write_text(f"import sys\nsys.stdin.readline()\nprint('oh', file=sys.stderr)\nprint({answer!r})\n")
    with pytest.raises(CompilerError, match=message) as failed:
        StageCompiler(f"{sys.executable} {program}").fits({})
    assert "on stderr:\n  oh" in str(failed.value)


def test_a_compiler_that_ends_is_an_error() -> None:
    with pytest.raises(CompilerError, match=r"`true` ended without an answer \(exit status 0\)"):
        StageCompiler("true").fits({})


def test_an_answer_that_takes_too_long_ends_the_compiler(tmp_path: Path) -> None:
    with pytest.raises(CompilerError, match=r"gave no answer within 0\.05 s"):
        StageCompiler("sleep 60", timeout=0.05).fits({})


def test_a_compiler_that_cannot_be_started_is_named() -> None:
    with pytest.raises(CompilerError, match=r"compiler `\./no-such-program` cannot be started"):
        StageCompiler("./no-such-program")
