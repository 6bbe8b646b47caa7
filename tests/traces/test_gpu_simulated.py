"""The recorded profile of the simulated server with a GPU."""

from importlib.resources import as_file, files

import pytest

from profiles.gpu_tables import STAGE_COLUMNS, read_gpu_profile


@pytest.mark.long
def test_the_recorded_profile_is_read_whole() -> None:
    """Four NFs; sharers are pairs and more; the stages of each latency add up to its mean."""
    with as_file(files("traces") / "gpu-simulated") as path:
        profile = read_gpu_profile(path)
    assert profile.testbed.simulated and profile.testbed.nic.sms == 30
    assert set(profile.nfs) == {"ACL", "IPRouter", "IPSec", "NIDS"}
    for nf in profile.nfs.values():
        assert min(len(nf.batching), len(nf.kernel), len(nf.transfer), len(nf.prepost)) > 40
        assert {text.count(";") for text in nf.sharing.others} == {0, 1, 2}
    assert (abs(profile.latency[STAGE_COLUMNS].sum(axis=1) / profile.latency.latency_mean_us - 1) < 0.02).all()
    sizes = profile.latency.groupby("run").size()
    assert sizes.max() > 5 and (sizes == 1).any()
