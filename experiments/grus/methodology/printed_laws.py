"""The latency model as Grus prints it (section V-A): a straight line per stage, and a penalty per pair of NFs."""

from collections.abc import Sequence

import numpy as np

from experiments.grus.methodology.simulated_server import read_recorded_profile
from predictor.gpu.models import GpuModels
from predictor.gpu.nf_model import rows
from profiles import ATTRIBUTES, TrafficProfile
from profiles.arrays import Floats
from profiles.gpu_tables import MEAN_COLUMN, OTHERS_COLUMN, PACKETS_COLUMN, parse_others


def line(at: Sequence[float], times: Sequence[float]) -> Floats:
    """Slope and intercept of least squares, for `numpy.polyval`."""
    found: Floats = np.polyfit(at, times, 1)
    return found


def penalties_us(models: GpuModels, nf: str) -> dict[str, float]:
    """By how much the kernel of an NF takes longer beside each other one: means over the recorded pairs on an SM."""
    table = read_recorded_profile().nfs[nf].sharing
    found: dict[str, list[float]] = {}
    for row in table.to_dict("records"):
        others = parse_others(str(row[OTHERS_COLUMN]))
        if len(others) == 1:
            traffic = TrafficProfile(*(float(row[name]) for name in ATTRIBUTES))
            alone = float(models.models[nf].kernel.mean(rows(traffic, [int(row[PACKETS_COLUMN])]))[0])
            found.setdefault(others[0][0], []).append(float(row[MEAN_COLUMN]) - alone)
    return {other: max(float(np.mean(longer)), 0.0) for other, longer in found.items()}
