"""Greedy admission, compiled: of many SLOs, and of equal ones; small cases are in `test_methods.py`."""

from dataclasses import replace
from random import Random

import pytest

from placer.gpu.device import Arbitration, GpuNf
from placer.gpu.greedy import admit_greedily
from placer.gpu.plan import Admission, LatencySlo
from placer.gpu.tables import slo_arrays
from tests.placer.gpu.instances import broken_rules, small_gpu


def test_times_of_a_million_years_are_no_batch() -> None:
    """A kernel in which more packets arrive than an integer counts is too slow."""
    slow = replace(small_gpu(), nfs={"acl": GpuNf("header", 5.0, (0.0, 1e12))}, sharing_us={})
    assert [one.cause for one in admit_greedily(slow, [LatencySlo("a", "acl", 1e12, 1e12)])[1]] == ["executors"]


@pytest.mark.parametrize("arbitration", Arbitration)
def test_a_set_of_many_slos_keeps_the_model(arbitration: Arbitration) -> None:
    """Eighty SLOs on twelve SMs, many of which are shared."""
    rng = Random(1)
    device = small_gpu(arbitration, sms=12, executors=12, workers=80)
    slos = [
        LatencySlo(f"{number}", rng.choice(("acl", "ids")), rng.uniform(2, 10), rng.uniform(600, 4000))
        for number in range(80)
    ]
    admitted, rejected = admit_greedily(device, slos)
    assert len(admitted) > 12
    assert broken_rules(device, slos, Admission(admitted, rejected, 80, len(admitted) == 80, 0.0)) == []


@pytest.mark.parametrize("arbitration", Arbitration)
def test_of_equal_slos_the_first_are_admitted(arbitration: Arbitration) -> None:
    """A hundred that differ in their names only: as many as fit, from the first one on, in this order."""
    slos = [LatencySlo(f"{number}", "acl", 10.0, 130.0) for number in range(100)]
    admitted, rejected = admit_greedily(small_gpu(arbitration, sms=8, workers=100), slos)
    assert 8 < len(admitted) < 32 and [one.slo for one in (*admitted, *rejected)] == slos


def test_slos_become_arrays() -> None:
    """NFs by number, 0 where no batch is fixed."""
    arrays = slo_arrays(small_gpu(), [LatencySlo("a", "ids", 4.0, 50.0, 7), LatencySlo("b", "acl", 5.0, 60.0)])
    assert [column.tolist() for column in arrays] == [[1, 0], [4.0, 5.0], [50.0, 60.0], [7, 0]]
