"""The check of plans on GPUs, on plans that are right and on plans that are not."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from placer.evaluate.checks import InvalidPlan
from placer.inputs.gpu.admission import DeviceTest
from placer.inputs.gpu.slos import read_device
from placer.model.fleet import NicKind
from placer.model.gpu_oracle import GpuOracle, GpuSchedule
from placer.model.plan import Placement, Plan
from placer.run import check_gpus, gpu_faults
from placer.strategies import find_strategy
from profiles import Workload
from profiles.gpu import GpuSettings
from tests.placer.toy_gpu import MixedCatalogue, mixed, promised

DEVICE = read_device(Path(__file__).parents[2] / "examples" / "gpu.json")
TRACE = [promised("1", "ACL", 600.0, 300.0), promised("2", "NIDS", 300.0, 500.0), promised("3", "ACL", 900.0, 200.0)]


def gpus(test: DeviceTest) -> MixedCatalogue:
    """GPUs of the example that have this test, and toy NICs."""
    fleet = mixed()
    kind = NicKind(
        1, "titan-xp", 22, dict.fromkeys(DEVICE.nfs, 1), latency_of={"p99": frozenset(DEVICE.nfs)}, paced=True
    )
    return replace(fleet, kinds=(fleet.kinds[0], kind), gpus={1: GpuOracle(test)})


def test_plans_of_strategies_break_nothing() -> None:
    """Each state of the GPU is checked: alone, with the second NF, with the third."""
    catalogue = gpus(DeviceTest(DEVICE))
    plan = find_strategy("contention-aware").build(catalogue, "toy").place(TRACE)
    assert len({placement.nic for placement in plan.placements}) == 1
    assert list(gpu_faults(plan, catalogue)) == []


class LateTest(DeviceTest):
    """Admits everything, in batches that take too long to fill."""

    def schedule(self, workloads: Sequence[Workload]) -> GpuSchedule:
        found = super().schedule(workloads)
        late = [replace(one, settings=GpuSettings.of([(at, 1000)], order=at)) for at, one in enumerate(found.workloads)]
        return GpuSchedule(tuple(late))


def test_a_late_batch_is_found() -> None:
    """The fault names the NIC, and says what the latency is."""
    catalogue = gpus(LateTest(DEVICE))
    plan = Plan("mine", None, (Placement(TRACE[0], "nic-1", catalogue.kinds[1]),), 0.0)
    with pytest.raises(InvalidPlan, match=r"nic-1: admitted: 0: its latency is 1[0-9]{3}.* us"):
        check_gpus(plan, catalogue)


def test_what_the_admission_test_rejects_is_found() -> None:
    """600 kpps within 20 us are not served by any GPU."""
    catalogue = gpus(DeviceTest(DEVICE))
    plan = Plan("mine", None, (Placement(promised("x", "IPSec", 600.0, 20.0), "nic-1", catalogue.kinds[1]),), 0.0)
    assert list(gpu_faults(plan, catalogue)) == ["nic-1: IPSec is rejected: batching"]
