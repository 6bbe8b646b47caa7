"""`placer pack` as a whole: exit status, stdout and stderr."""

import json
from pathlib import Path

import numpy as np

from placer.optimal.packing import read_vbp
from tests.placer.commands.conftest import Placer


def test_a_packing_is_one_json_object(placer: Placer, tmp_path: Path) -> None:
    """5 5 4 4 3 3 in bins of 12 takes two full bins, proven, and the documented keys in order."""
    file = tmp_path / "six.vbp"
    file.write_text("1\n12\n6\n5 1\n5 1\n4 1\n4 1\n3 1\n3 1\n")
    ended = placer("pack", file)
    assert ended.status == 0
    result = json.loads(ended.stdout)
    assert list(result) == ["bins", "lower_bound", "proven", "seconds", "assignment"]
    assert (result["bins"], result["lower_bound"], result["proven"]) == (2, 2, True)
    assert sorted(item for members in result["assignment"] for item in members) == [0, 1, 2, 3, 4, 5]


def test_the_time_limit_ends_with_a_packing(placer: Placer, shared_data: Path) -> None:
    """A tenth of a second is too short for 120 items: exit 0, not proven, and every item in a bin that holds it."""
    file = shared_data / "vectorpack" / "new-class2_120_5_2.vbp"
    ended = placer("pack", file, "--time-limit", 0.1)
    assert ended.status == 0
    result = json.loads(ended.stdout)
    packing = read_vbp(file)
    assert (result["proven"], result["lower_bound"] < result["bins"]) == (False, True)
    assert sorted(item for members in result["assignment"] for item in members) == list(range(120))
    assert all(np.all(packing.sizes[members].sum(axis=0) <= packing.capacities) for members in result["assignment"])
