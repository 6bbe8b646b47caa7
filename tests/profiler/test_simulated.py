"""The simulated testbed keeps the testbed protocol's promises."""

from profiler.simulated import SimulatedTestbed
from profiles import Workload


def test_every_nf_runs_alone_at_default_traffic() -> None:
    """Every NF that the testbed describes runs."""
    testbed = SimulatedTestbed()
    description = testbed.describe()
    for nf in description.nfs:
        (measured,) = testbed.run([Workload(nf.name, description.traffic)], noise=False).measurements
        assert 100 < measured.throughput_kpps < 20000
