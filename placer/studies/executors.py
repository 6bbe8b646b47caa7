"""Executors run the tasks of a study: on the cores of this machine, or on a cluster. Results are the same on all."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib import import_module
from importlib.util import find_spec

import joblib

from placer.studies.run_task import Row, RunTask, run_task
from profiles import InputError

NamedTask = tuple[str, RunTask]
"""A task with the name of its results."""

NamedRows = tuple[str, list[Row]]

Executor = Callable[[Sequence[NamedTask]], Iterator[NamedRows]]
"""Runs tasks and yields the rows of each as soon as it is done, in any order."""


def local_executor(jobs: int) -> Executor:
    """Runs `jobs` tasks at a time on this machine; -1 means one per core.

    Raises
    ------
    InputError
        When `jobs` is 0.
    """
    if jobs == 0:
        raise InputError.of("--jobs", "0 runs at a time can finish no study", hint="-1 is one per core")
    return partial(_with_joblib, jobs=jobs)


def cluster_executor(name: str, address: str | None = None) -> Executor:
    """Runs tasks on a cluster of `dask` or `ray`, each an optional extra.

    Parameters
    ----------
    name
        The cluster software.
    address
        Address of a running cluster, as its client takes it; None starts one on this machine. Workers need this program
        and the files that the study names.

    Raises
    ------
    InputError
        When the name is unknown or its extra not installed.
    """
    if name not in CLUSTERS:
        raise InputError.of("--parallel", f"'{name}' is no cluster software", hint=f"one of {', '.join(CLUSTERS)}")
    package, executor = CLUSTERS[name]
    if find_spec(package) is None:
        raise InputError.of("--parallel", f"{package} is not installed", hint=f"pip install 'nf-placer[{name}]'")
    return partial(executor, address=address)


def _with_joblib(tasks: Sequence[NamedTask], jobs: int) -> Iterator[NamedRows]:
    workers = min(joblib.effective_n_jobs(jobs), len(tasks))
    calls = (joblib.delayed(_run)(task) for task in tasks)
    yield from joblib.Parallel(n_jobs=workers, return_as="generator_unordered")(calls)


def _with_dask(tasks: Sequence[NamedTask], address: str | None) -> Iterator[NamedRows]:
    distributed = import_module("distributed")
    options = {"address": address} if address else {"threads_per_worker": 1, "dashboard_address": None}
    with distributed.Client(**options) as client:
        # not pure: otherwise dask returns the failure that it kept of a task in an earlier session
        for future in distributed.as_completed(client.map(_run, tasks, pure=False)):
            yield future.result()


def _with_ray(tasks: Sequence[NamedTask], address: str | None) -> Iterator[NamedRows]:
    ray = import_module("ray")
    ray.init(address=address, include_dashboard=False, log_to_driver=False, ignore_reinit_error=True)
    try:
        run = ray.remote(_run)
        pending = [run.remote(task) for task in tasks]
        while pending:
            (done, *_), pending = ray.wait(pending)
            yield ray.get(done)
    finally:
        ray.shutdown()


def _run(named: NamedTask) -> NamedRows:
    name, task = named
    return name, run_task(task)


CLUSTERS = {"dask": ("distributed", _with_dask), "ray": ("ray", _with_ray)}
"""By name, the package and the executor of a cluster."""
