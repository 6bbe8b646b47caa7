"""Fixtures that all tests share."""

import gc
import os
import shutil
import tempfile
from collections.abc import Generator, Iterator
from contextlib import suppress
from importlib import import_module
from pathlib import Path

import pytest
from hypothesis import settings

from tests.artefacts import compiling_once, made_once
from tests.effort import NEW_DRAWS, examples
from tests.postgres import Cluster, cluster, programs

# before numpy is loaded: its threads would wait for one another and for those of other tests
os.environ.setdefault("OMP_NUM_THREADS", "1")

# Tests write into memory where it has room and runs programs: durable states wait for a disk, a third of their time.
MEMORY, ROOM_FOR_TESTS = Path("/dev/shm"), 8 * 2**30
if (
    "TMPDIR" not in os.environ
    and MEMORY.is_dir()
    and shutil.disk_usage(MEMORY).free >= ROOM_FOR_TESTS
    and not os.statvfs(MEMORY).f_flag & os.ST_NOEXEC
):
    os.environ["TMPDIR"] = tempfile.tempdir = str(MEMORY)

TESTS = Path(__file__).resolve().parent
SHARED = TESTS.parents[1] / "shared"
WORKER = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
"""The number of this one of the processes that run the tests."""


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Real measurements and packing instances that lie beside the project; tests of them are skipped without it."""
    data = SHARED / "data"
    if not data.is_dir():
        pytest.skip("../shared/data is not there: real measurements are not tested")
    return data


@pytest.fixture(scope="session")
def made_up_models() -> Path:
    """Saved models of three made-up NFs, of one core each on a NIC of six: read in a tenth of the time of real ones."""
    from predictor import train
    from tests.predictor import made_up

    def make(folder: Path) -> None:
        train(made_up.profile([made_up.PLAIN, made_up.CRYPTO, made_up.LOOKUP])).save(folder)

    return made_once("made-up-models", make, Path(made_up.__file__))


@pytest.fixture(scope="session", autouse=True)
def kernels() -> Iterator[None]:
    """Kernels are compiled once for all workers."""
    with compiling_once():
        yield


@pytest.fixture(scope="session", autouse=True)
def charts_library() -> Iterator[None]:
    """The script of charts in pages, which takes seconds to bundle, is bundled once for all workers."""
    import vl_convert

    bundle = vl_convert.javascript_bundle

    def bundled(snippet: str) -> str:
        def make(folder: Path) -> None:
            folder.mkdir()
            (folder / "bundle.js").write_text(bundle(snippet), encoding="utf-8")

        folder = made_once(f"charts-library-{vl_convert.__version__}", make)
        return (folder / "bundle.js").read_text(encoding="utf-8")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vl_convert, "javascript_bundle", bundled)
        yield


@pytest.fixture(scope="session")
def postgres() -> Iterator[Cluster]:
    """A PostgreSQL server; tests of it are skipped where there are no programs of one."""
    if programs() is None:
        pytest.skip("there is no PostgreSQL server: a state in a database is not tested")
    with cluster() as started:
        yield started


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Without -m, leave out what `make test-all` runs besides (long) and what only `make slow` runs (slow)."""
    if not config.option.markexpr:
        items[:] = [item for item in items if not {"long", "slow"} & set(item.keywords)]


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """What is collected stays to the end: looking for garbage in it is a seventh of the time to collect the tests."""
    gc.disable()
    try:
        if session.config.args_source is pytest.Config.ArgsSource.TESTPATHS and WORKER % 2:
            _import_backwards()
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def _import_backwards() -> None:
    """Import all tests, the last first: of two workers that compile them, in a fresh clone, each compiles half."""
    for path in sorted(TESTS.rglob("test_*.py"), reverse=True):
        with suppress(Exception, pytest.skip.Exception):  # collecting it says what is wrong
            import_module(".".join(path.relative_to(TESTS.parent).with_suffix("").parts))


# without a deadline, as the machine may be shared
settings.register_profile("tests", deadline=None, derandomize=not NEW_DRAWS, max_examples=examples(100))
settings.load_profile("tests")
