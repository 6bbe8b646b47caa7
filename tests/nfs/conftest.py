"""The host testbed's program, in its normal build and, with SANITIZE=1, with sanitizers."""

from pathlib import Path

import pytest

from profiler.testbeds.host import BUILD_COMMAND, find_program
from profiles import InputError
from tests.nfs.builds import SANITIZE, build_sanitized, require


@pytest.fixture(scope="session")
def program() -> Path:
    """The program of the normal build."""
    try:
        return find_program()
    except InputError:
        pytest.skip(f"the host testbed is not built: `{BUILD_COMMAND}` builds it")


@pytest.fixture(scope="session")
def sanitized() -> Path:
    """The program with the address and undefined-behaviour sanitizers, which exits at the first error they find."""
    require()
    return build_sanitized("testbed/nf-testbed") / "testbed" / "nf-testbed"


@pytest.fixture(params=["program", *(["sanitized"] if SANITIZE else [])])
def either(request: pytest.FixtureRequest) -> Path:
    """Each of the builds. (The sanitized one is too slow for measurements and does not run under valgrind.)"""
    found = request.getfixturevalue(request.param)
    assert isinstance(found, Path)
    return found
