"""NFs on a GPU, as the protocol writes them."""

from __future__ import annotations

from profiles import GpuSettings, Minibatch, PacedWorkload, TrafficProfile, Workload

NAT = Workload("NAT", TrafficProfile(1000, 64))


def test_a_paced_workload_writes_what_is_set() -> None:
    """Rate and settings; what is absent stays away."""
    plain = PacedWorkload(NAT, 5.5)
    assert plain.as_request() == {**NAT.as_request(), "rate_kpps": 5.5}
    gpu = GpuSettings.of([(0, 3), (4, 2)], order=1, flush_us=90.0)
    assert gpu == GpuSettings(5, 1, (Minibatch(0, 3), Minibatch(4, 2)), 90.0)
    assert PacedWorkload(NAT, 5.5, gpu).as_request()["gpu"] == {
        "batch": 5,
        "order": 1,
        "flush_us": 90.0,
        "minibatches": [{"sm": 0, "packets": 3}, {"sm": 4, "packets": 2}],
    }
    assert GpuSettings(7, None, scheduler="temporal").as_request() == {"batch": 7, "scheduler": "temporal"}


def test_a_paced_workload_is_known_by_its_nf_and_traffic() -> None:
    """Equal ones are one key."""
    one, other = (PacedWorkload(NAT, 5.5, GpuSettings.of([(0, 3)], order=1)) for _ in range(2))
    assert (one.nf, one.label, one.traffic) == ("NAT", "NAT", NAT.traffic)
    assert {one: 1}[other] == 1
