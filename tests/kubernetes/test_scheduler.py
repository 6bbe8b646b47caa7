"""The real kube-scheduler places pods through the extender, with an API server in memory and with a real one."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
BUILD_AND_RUN_S = 2400


@pytest.mark.slow
@pytest.mark.parametrize(
    "test", ["TestScheduler", "TestSchedulerThatSendsNodes", "TestConstraints", "TestSchedulerWithEtcd"]
)
def test_kube_scheduler_places_pods_through_the_extender(test: str) -> None:
    """100 pods on 50 nodes, or constraints on six; see the Go tests. Building scheduler and API server takes minutes
    the first time.

    A real API server stores in etcd; service and scheduler have the rights of the manifests there, and no others.
    """
    go = shutil.which("go")
    if go is None:
        pytest.skip("there is no go")
    real = test == "TestSchedulerWithEtcd"
    if real and shutil.which("etcd") is None:
        pytest.skip("there is no etcd (Debian: etcd-server)")
    environment = {**os.environ, "PLACER": f"{sys.executable} -m placer", "PYTHONPATH": str(HERE.parents[1])}
    tags = ["-tags", "etcd"] if real else []
    command = [go, "test", "-count=1", "-v", *tags, "-run", f"^{test}$", "-timeout", "30m", "."]
    found = subprocess.run(command, cwd=HERE, env=environment, capture_output=True, text=True, timeout=BUILD_AND_RUN_S)
    print(found.stdout[-8000:])
    assert found.returncode == 0, found.stdout[-4000:] + found.stderr[-4000:]
