"""How the runs of an NF are divided."""

from __future__ import annotations

import pytest

from profiler.methods import DEFAULT_QUOTA
from profiler.quota import DECIDING_SHARES, divide
from profiles import InputError


@pytest.mark.parametrize("quota", [200, 400, 600, 5000])
def test_a_fifth_to_a_half_of_a_usual_quota_is_for_deciding_co_locations(quota: int) -> None:
    """All shares together are the quota; what is more than enough for benches goes to co-locations."""
    shares = divide("NAT", quota, 20)
    assert shares.own is not None and shares.own + shares.deciding == quota
    least, most = DECIDING_SHARES
    assert least * quota <= shares.deciding <= most * quota
    assert shares.random == quota // 10 // 2 * 2


def test_small_quotas_leave_what_every_method_needs() -> None:
    """The share of co-locations shrinks to nothing before a quota is refused."""
    with pytest.raises(InputError, match="32 runs are too few for NAT\nhint: it needs at least") as refused:
        divide("NAT", 32, 10)
    least = int(str(refused.value).rsplit(maxsplit=1)[-1])
    assert divide("NAT", least, 10).deciding == 0
    for quota in range(least, 200):
        benches = divide("NAT", quota, 10).benches
        assert benches is not None and benches >= 33


def test_a_method_without_quota_has_the_usual_co_locations() -> None:
    shares = divide("NAT", None, 10)
    assert shares.own is None and (shares.random, shares.deciding) == (40, divide("NAT", DEFAULT_QUOTA, 10).deciding)
