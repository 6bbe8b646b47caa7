"""A state that keeps its last events stays small, however many come."""

from pathlib import Path

import pytest

from benches.kept_log import run


@pytest.mark.long
def test_the_file_is_at_most_twice_what_the_fleet_needs(tmp_path: Path) -> None:
    """200,000 events, of which 10,000 are kept; a second call goes on where the first one ended."""
    run(events=100_000, folder=tmp_path)
    found = run(events=200_000, folder=tmp_path)
    assert len(found) == 5 and (found["file_mb"] <= 2 * found["needed_mb"]).all()
