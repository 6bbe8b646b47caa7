"""Executors: a cluster of two workers gives the results of one process, to the byte."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from placer.studies import cluster_executor, execute, local_executor, read_study, tasks_of_study
from placer.studies.execute import CLUSTER_EXECUTORS, RESULTS_FILE
from profiles import InputError


@contextmanager
def dask() -> Iterator[str]:
    """The address of a local cluster of two workers."""
    distributed = pytest.importorskip("distributed", reason="distributed is not installed: dask is not tested")
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        yield cluster.scheduler_address


@contextmanager
def ray() -> Iterator[str]:
    """The address of a local cluster of two workers."""
    utils = pytest.importorskip("ray.cluster_utils", reason="ray is not installed: it is not tested")
    head = {"num_cpus": 2, "include_dashboard": False}
    cluster = utils.Cluster(initialize_head=True, head_node_args=head)
    yield cluster.address
    cluster.shutdown()


@pytest.mark.slow
@pytest.mark.parametrize("started", [dask, ray], ids=["dask", "ray"])
def test_a_cluster_gives_the_same_bytes(
    study: Path, tmp_path: Path, started: Callable[[], AbstractContextManager[str]]
) -> None:
    """The results file does not depend on the executor."""
    tasks = tasks_of_study(read_study(study), print)
    execute(tasks, tmp_path / "serial")
    with started() as address:
        execute(tasks, tmp_path / "cluster", executor=cluster_executor(started.__name__, address))
    assert (tmp_path / "cluster" / RESULTS_FILE).read_bytes() == (tmp_path / "serial" / RESULTS_FILE).read_bytes()


def test_a_cluster_that_is_not_installed_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The hint names the extra; unknown names are refused, too."""
    monkeypatch.setitem(CLUSTER_EXECUTORS, "dask", ("no_such_package", CLUSTER_EXECUTORS["dask"][1]))
    with pytest.raises(InputError, match=r"pip install 'nf-placer\[dask\]'"):
        cluster_executor("dask")
    with pytest.raises(InputError, match="'cloud' is no cluster software"):
        cluster_executor("cloud")


def test_zero_jobs_are_refused() -> None:
    """Zero jobs would never finish."""
    with pytest.raises(InputError, match="--jobs: 0 runs at a time can finish no study"):
        local_executor(0)
