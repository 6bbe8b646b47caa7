"""The command line as a whole: help, version, and how it fails."""

import errno
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from placer.cli import COMMANDS, app
from placer.commands.options import RULE_NAMES, STRATEGY_NAMES, complete_nf, complete_strategy, complete_testbed
from placer.evaluate.checks import InvalidPlan
from placer.failures import failure_of
from placer.model.plan import OPTIMAL
from placer.policy.rules import RULES_BY_NAME
from placer.strategies.strategy import STRATEGIES
from profiler.testbed import TestbedError
from profiles import InputError

REPO = Path(__file__).parents[2]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_and_a_summary(name: str) -> None:
    """The help shows brackets as typed: `[[nic]]` is no markup."""
    shown = CliRunner().invoke(app, [name, "--help"])
    assert shown.exit_code == 0 and "Usage" in shown.output
    if "--fleet" in shown.output and name != "size":
        assert "[[nic]]" in " ".join(shown.output.split())


def test_the_help_lists_all_commands_under_their_headings_without_importing_them() -> None:
    code = "import sys; from placer.cli import app; app(['--help'], standalone_mode=False); print([*sys.modules])"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "Planning:\n  run " in shown and "Checking:\n  verify " in shown
    assert "  reproduce  Reproduce tables" in shown  # it comes from another package
    assert not any(f"'placer.commands.{name}'" in shown for name in COMMANDS) and "'numpy'" not in shown


def test_an_unknown_command_is_refused_with_the_nearest() -> None:
    shown = CliRunner().invoke(app, ["comparee"])
    assert shown.exit_code == 2 and "there is no command 'comparee': did you mean compare?" in shown.output


def test_shells_complete_strategies_rules_testbeds_and_nfs() -> None:
    """The names are those of the registries and of the recorded profiles."""
    assert {*STRATEGY_NAMES} == {*STRATEGIES, OPTIMAL} and {*RULE_NAMES} == {*RULES_BY_NAME}
    assert complete_strategy("contention-aware:b") == ["contention-aware:best-fit"]
    assert complete_testbed("simulated:c") == ["simulated:contended"]
    assert complete_nf("NAT,NID") == ["NAT,NIDS"]


@pytest.mark.parametrize(
    ("command", "common", "expert"), [("run", "--budget", "--solver"), ("serve", "--state", "--rule")]
)
def test_options_for_experts_stand_under_their_own_heading(command: str, common: str, expert: str) -> None:
    before, _, behind = CliRunner().invoke(app, [command, "--help"]).output.partition("Options for experts:")
    assert f"  {common} " in before and f"  {expert} " in behind


def test_summaries_of_subcommands_are_whole() -> None:
    assert "..." not in CliRunner().invoke(app, ["chain", "--help"]).output.partition("Commands:")[2]


def test_the_version_is_printed() -> None:
    shown = CliRunner().invoke(app, ["--version"])
    assert (shown.exit_code, shown.output.split()[0]) == (0, "placer")


@pytest.mark.parametrize(
    ("error", "line", "status"),
    [
        (InputError.of("a.csv", "is empty"), "a.csv: is empty", 2),
        (TestbedError("it died"), "error: it died", 1),
        (InvalidPlan("two NICs"), "error: two NICs", 1),
        (OSError(errno.ENOSPC, "No space left on device", "plan.csv"), "error: no space left on the disk for plan.csv",
            1),
        (PermissionError(errno.EACCES, "Permission denied", "plan.csv"), "error: [Errno 13]", 1),
        (sqlite3.OperationalError("database or disk is full"), "error: the state file: database or disk is full", 1),
        (MemoryError(), "error: out of memory", 1),
        (RecursionError(), "error: the input is nested too deeply", 2),
        (OverflowError("int too large"), "error: a number of the input is too large", 2),
    ],
)  # fmt: skip
def test_a_failure_is_one_line_with_its_exit_status(error: Exception, line: str, status: int) -> None:
    failure = failure_of(error)
    assert failure is not None and failure[0].startswith(line) and "\n" not in failure[0]
    assert failure[1] == status


def test_a_fault_of_the_program_keeps_its_traceback() -> None:
    assert failure_of(KeyError("pct")) is None


@pytest.mark.long
def test_standard_output_on_a_full_disk_is_one_line() -> None:
    """/dev/full refuses every write; files on a full disk are tested with the commands."""
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")
    command = [sys.executable, "-m", "placer", "generate", "--count", "1"]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False, cwd=REPO)
    assert done.returncode == 1 and done.stderr.strip().splitlines()[-1].startswith("error: ")


@pytest.mark.long
@pytest.mark.parametrize(
    ("command", "status", "printed"),
    [
        ('"$0" -m placer fit - <&-', 2,
            "<stdin>: is empty: not even a header\nhint: the first line names the columns\n"),
        ('printf "x,y\n1,1\n2,2\n3,3\n" | "$0" -m placer fit - --quiet >&-', 0, ""),
        ('"$0" -m placer generate --count 1 >&-', 0, ""),
    ],
)  # fmt: skip
def test_a_closed_stream_is_as_dev_null(command: str, status: int, printed: str) -> None:
    """Whichever of the three the caller closed: no command ends in a traceback."""
    done = subprocess.run(
        ["sh", "-c", command, sys.executable], stderr=subprocess.PIPE, text=True, check=False, cwd=REPO
    )
    assert (done.returncode, done.stderr) == (status, printed)
