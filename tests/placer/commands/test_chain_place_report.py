"""`placer chain place --report`: the page as a file."""

from __future__ import annotations

from pathlib import Path

from tests.placer.commands.conftest import Placer

EXAMPLES = Path(__file__).parents[3] / "examples"
PLACE = ["chain", "place", EXAMPLES / "edge.chains", "--rack", EXAMPLES / "rack.toml", "--quiet"]


def test_a_report_is_written_beside_the_table(placer: Placer, tmp_path: Path) -> None:
    """It needs no network, and names the command that makes it again."""
    file = tmp_path / "rack.html"
    status, stdout, stderr = placer(*PLACE, "--report", file)
    assert (status, stderr) == (0, "") and "Optimal, proven" in stdout
    html = file.read_text(encoding="utf-8")
    assert "<title>Chains on a rack: edge.chains</title>" in html
    assert "placer chain place " in html and "--report FILE.html" in html


def test_a_report_that_cannot_be_written_is_refused_at_once(placer: Placer, tmp_path: Path) -> None:
    """A folder is no file."""
    status, stdout, stderr = placer(*PLACE, "--report", tmp_path)
    assert (status, stdout) == (2, "") and "--report" in stderr


def test_report_and_plan_cannot_be_one_file(placer: Placer, tmp_path: Path) -> None:
    file = tmp_path / "both"
    status, _, stderr = placer(*PLACE, "--report", file, "--plan", file)
    assert status == 2 and "is the file of --plan, too" in stderr and not file.exists()
