"""Who runs the units of a study: this machine's cores, or a cluster. Results are the same, whoever it is."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib import import_module
from importlib.util import find_spec

import joblib

from placer.studies.run_task import Row, Unit, judged
from profiles import InputError

Task = tuple[str, Unit]
"""A unit under the name of its results."""

Done = tuple[str, list[Row]]

Runner = Callable[[Sequence[Task]], Iterator[Done]]
"""Runs tasks and tells each as soon as it is done, in any order."""


def locally(jobs: int) -> Runner:
    """On this machine, `jobs` at a time; -1 is one per core.

    Raises
    ------
    InputError
        When it is none at a time.
    """
    if jobs == 0:
        raise InputError.of("--jobs", "0 runs at a time is none", hint="-1 is one per core")
    return partial(_with_joblib, jobs=jobs)


def on_cluster(name: str, address: str | None = None) -> Runner:
    """On a cluster, `dask` or `ray`, each an optional extra.

    Parameters
    ----------
    name
        What runs the cluster.
    address
        Of a running cluster, as its own client takes it; None starts one on this machine. Its workers need this program
        and the files that the study names.

    Raises
    ------
    InputError
        When the name is unknown or its extra not installed.
    """
    if name not in CLUSTERS:
        raise InputError.of("--parallel", f"'{name}' is not understood", hint=f"it is {' or '.join(CLUSTERS)}")
    package, runner = CLUSTERS[name]
    if find_spec(package) is None:
        raise InputError.of("--parallel", f"{package} is not installed", hint=f"pip install 'nf-placer[{name}]'")
    return partial(runner, address=address)


def _with_joblib(tasks: Sequence[Task], jobs: int) -> Iterator[Done]:
    workers = min(joblib.effective_n_jobs(jobs), len(tasks))
    calls = (joblib.delayed(_run)(task) for task in tasks)
    yield from joblib.Parallel(n_jobs=workers, return_as="generator_unordered")(calls)


def _with_dask(tasks: Sequence[Task], address: str | None) -> Iterator[Done]:
    distributed = import_module("distributed")
    options = {"address": address} if address else {"threads_per_worker": 1, "dashboard_address": None}
    with distributed.Client(**options) as client:
        # not pure: a task that failed in an earlier session is no answer to this one
        for future in distributed.as_completed(client.map(_run, tasks, pure=False)):
            yield future.result()


def _with_ray(tasks: Sequence[Task], address: str | None) -> Iterator[Done]:
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


def _run(task: Task) -> Done:
    name, unit = task
    return name, judged(unit)


CLUSTERS = {"dask": ("distributed", _with_dask), "ray": ("ray", _with_ray)}
"""By name, the package that it needs and what runs on it."""
