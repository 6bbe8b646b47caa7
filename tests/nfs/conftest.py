"""The program of the host testbed, as it is and with sanitizers."""

from __future__ import annotations

from pathlib import Path

import pytest

from profiler.host import BUILD, find_program
from profiles import InputError
from tests.nfs.building import SANITIZED, built, needs


@pytest.fixture(scope="session")
def program() -> Path:
    """The built program."""
    try:
        return find_program()
    except InputError:
        pytest.skip(f"the host testbed is not built: `{BUILD}` builds it")


@pytest.fixture(scope="session")
def sanitized() -> Path:
    """The program that ends, with what it found, at the first byte that it should not have touched."""
    needs("cc")
    return built("nfs-sanitized", *SANITIZED, target="testbed/nf-testbed") / "testbed" / "nf-testbed"


@pytest.fixture(params=["program", "sanitized"])
def either(request: pytest.FixtureRequest) -> Path:
    """One of them after the other. (Neither valgrind nor a measurement makes sense of the sanitized one.)"""
    found = request.getfixturevalue(request.param)
    assert isinstance(found, Path)
    return found
