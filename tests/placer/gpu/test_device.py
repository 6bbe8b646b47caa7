"""A GPU's times."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.placer.gpu.devices import small_device


def test_times_are_those_of_the_contract() -> None:
    """Batching 1000 * (batch - 1) / rate; a kernel by executors; the largest penalty; unknown neighbours cost 0."""
    device = small_device(kernel_us=(3.0, 20.0), transfer_us=(0.5, 10.0), beta_us=4.0)
    assert device.batching_us(11, 20.0) == 500.0
    assert device.period_us(11, 20.0) == 550.0
    assert device.transfer("ids", 8) == 14.0
    assert [device.executors(packets) for packets in (1, 10, 11)] == [1, 1, 2]
    assert device.kernel("ids", 11) == 26.0
    assert [device.penalty("ids", others) for others in ([], ["acl"], ["acl", "ids"])] == [0.0, 0.0, 4.0]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sms": 0}, "sms is 0"),
        ({"workers": -1}, "workers is -1"),
        ({"transfer_us": {}}, "ids has class payload"),
        ({"transfer_us": {"payload": (-1.0, 0.0)}}, "transfer_us of payload is -1"),
        ({"sharing_us": {"ids": {"acl": float("nan")}}}, "sharing_us of ids beside acl is nan"),
    ],
)
def test_impossible_devices_are_refused(change: dict[str, object], message: str) -> None:
    """Sizes below 1, unknown classes, and numbers that are no times."""
    with pytest.raises(ValueError, match=message):
        replace(small_device(), **change)  # type: ignore[arg-type]
