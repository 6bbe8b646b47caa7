"""The emulated switch, in its build with sanitizers."""

from pathlib import Path

import pytest

from tests.nfs.builds import build_sanitized, require


@pytest.fixture(scope="session")
def nf_switch() -> Path:
    """The program, with sanitizers."""
    require("cc")
    return build_sanitized("rack/nf-switch") / "rack" / "nf-switch"
