"""The latency of one NF: the law, the NF's own factor, and how far predictions are from measurements."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from predictor.gpu.prediction import LatencyErrors
from predictor.model_folder import read_arrays, write_arrays
from predictor.regression.gaussian_process import GaussianProcess
from profiles import TrafficProfile
from profiles.arrays import Floats
from profiles.profile import write_json

LATENCY_STATISTICS = ("mean", "p99")  # what is learned of the latency of packets, in this order
INTERVAL_COVERAGE = 0.9  # of intervals
UTILISATION_STEPS, IDLE_STEPS = 240, 60  # utilisations of a curve, from the least measured one up and below it
IDLE_UTILISATION = 1e-4  # the smallest utilisation of a curve


@dataclass(frozen=True)
class PredictedLatency:
    """Mean and p99 of the latency of an NF's packets, us, each with the ends of its 90 % interval."""

    mean_us: float
    p99_us: float
    mean_interval: tuple[float, float] | None
    p99_interval: tuple[float, float] | None


@dataclass(frozen=True)
class NfLatency:
    """The latency model of an NF."""

    law: LatencyLaw  # what it shares with the other NFs
    factors: tuple[float, float]  # by which its mean and its p99 are above the law's
    errors: LatencyErrors  # logarithms of measured over predicted latencies at left-out settings, by utilisation
    settings: int  # Co-locations in which the NF itself was measured

    def predict(self, traffic: TrafficProfile, rate_kpps: float, capacity_kpps: float) -> PredictedLatency | None:
        """The latency at a rate, where the NF could have a throughput of `capacity_kpps` in its co-location.

        None beyond the utilisation up to which traffic of this kind was carried.
        """
        used = rate_kpps / capacity_kpps if capacity_kpps > 0 else np.inf
        if used > self.law.most(traffic):
            return None
        mean, p99 = (self._packets(traffic, np.array([used]))[0] * 1e3 / capacity_kpps).tolist()
        return PredictedLatency(
            mean,
            p99,
            *(
                self.errors.interval(what, value, used, INTERVAL_COVERAGE)
                for what, value in zip(LATENCY_STATISTICS, (mean, p99), strict=True)
            ),
        )

    def curve(
        self, statistic: str, traffic: TrafficProfile, rate_kpps: float, risk: float | None = None
    ) -> tuple[Floats, Floats]:
        """A statistic of the latency at a rate against utilisation: the less throughput is left, the longer.

        Parameters
        ----------
        statistic
            One of `LATENCY_STATISTICS`.
        traffic, rate_kpps
            Of the packets.
        risk
            The share of measured latencies that are above, where predictions are of similar utilisation; None: the
            prediction.

        Returns
        -------
        utilisations, latencies_us
            Rising, and never falling; the last utilisation is the largest that is predicted."""
        least, most = self.law.least, self.law.most(traffic)
        used = np.concatenate([
            np.geomspace(IDLE_UTILISATION, least, IDLE_STEPS, endpoint=False),
            1.0 - np.geomspace(1.0 - least, 1.0 - most, UTILISATION_STEPS) if most > least else [least],
        ])  # fmt: skip
        latencies = self._packets(traffic, used)[:, LATENCY_STATISTICS.index(statistic)] * 1e3 * used / rate_kpps
        if risk is not None:
            latencies *= self.errors.exceeded(statistic, used, risk)
        return used, np.maximum.accumulate(latencies)

    def _packets(self, traffic: TrafficProfile, used: Floats) -> Floats:
        value: Floats = self.law.packets(traffic, used) * self.factors
        return value


# The law of latency: a queue whose waiting grows as 1 / (1 - u) towards full utilisation u.
#
# Kingman's law says that packets wait for V u / (1 - u) service times, where V is how irregular arrivals and service
# are. A core that polls takes packets in batches, and bursts wait for themselves even when the core is idle, so here
# the latency as a whole is
#
#     latency = 1000 / capacity_kpps * V / (1 - u),    u = rate_kpps / capacity_kpps,
#
# and V, in packets, is measured: a smooth function of utilisation, flows and packet size that all NFs of a testbed
# share, since irregularity comes from traffic mostly, times a factor of the NF. It is learned for the mean and for the
# p99. The capacity is the throughput that the NF would have in the same co-location, so neighbours slow down the whole
# queue.


NEAREST_SETTINGS = 3
"""Measured settings of similar traffic, of which each must have carried a utilisation for it to be predicted."""


def law_inputs(utilisation: Floats, flows: Floats, packet_size: Floats) -> Floats:
    """What irregularity depends on, shape (N, 3)."""
    return np.stack([utilisation, np.log(flows), np.log(packet_size)], axis=1)


def irregularity(latency_us: Floats, capacity_kpps: Floats, utilisation: Floats) -> Floats:
    """V of measured latencies (us), in packets."""
    value: Floats = latency_us * capacity_kpps / 1e3 * (1.0 - utilisation)
    return value


@dataclass(frozen=True)
class LatencyLaw:
    """What the NFs of a testbed share."""

    process: GaussianProcess  # logarithms of V of the mean and of the p99, over `law_inputs`
    settings: Floats
    """Of each co-location that was measured, logarithms of the flows and of the packet size; shape (settings, 2)."""
    carried: Floats  # the largest utilisation of each at which latency was measured; shape (settings,)
    least: float  # the smallest utilisation that was measured; below, V is taken as there

    def packets(self, traffic: TrafficProfile, utilisation: Floats) -> Floats:
        """Mean and p99 of the latency in service times (1000 / capacity_kpps us), shape (N, 2)."""
        used = np.maximum(utilisation, self.least)
        flows, size = (np.full(len(used), value) for value in (traffic.flows, traffic.packet_size))
        value: Floats = np.exp(self.process(law_inputs(used, flows, size))) / (1.0 - utilisation)[:, None]
        return value

    def most(self, traffic: TrafficProfile) -> float:
        """The largest utilisation that is predicted: all of the settings of the most similar traffic carried it.

        The longer bursts are, the sooner packets are lost, and then there is no latency to predict.
        """
        low, high = self.settings.min(axis=0), self.settings.max(axis=0)
        here = np.log([traffic.flows, traffic.packet_size])
        distance = np.abs((self.settings - here) / np.where(high > low, high - low, 1.0)).sum(axis=1)
        nearest = np.sort(distance)[:NEAREST_SETTINGS][-1]
        return float(self.carried[distance <= nearest].min())

    def as_arrays(self) -> dict[str, Floats]:
        """What was learnt, as plain arrays."""
        own = {"settings": self.settings, "carried": self.carried, "least": np.array(self.least)}
        return {f"process_{name}": values for name, values in self.process.as_arrays().items()} | own

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Floats]) -> LatencyLaw:
        """The law that `as_arrays` returned."""
        process = {name.removeprefix("process_"): values for name, values in arrays.items()}
        return cls(GaussianProcess.from_arrays(process), arrays["settings"], arrays["carried"], float(arrays["least"]))


# `latency/` in a MODELS folder: what NFs share in arrays, and a JSON file per NF; loading executes nothing.


LATENCY_FOLDER = "latency"
SHARED_FILE = "shared.npz"
LATENCY_VERSION = 1


def save_latencies(folder: Path, models: Mapping[str, NfLatency]) -> None:
    """Write the models, which share a law, into `folder`; nothing if there are none."""
    if not models:
        return
    folder.mkdir(exist_ok=True)
    shared = next(iter(models.values()))
    errors = {f"errors_{name}": values for name, values in shared.errors.as_arrays().items()}
    write_arrays(folder / SHARED_FILE, shared.law.as_arrays() | errors)
    for name, model in models.items():
        write_json(_describe(model), folder / f"{name}.json")


def load_latencies(folder: Path, nfs: Iterable[str]) -> dict[str, NfLatency]:
    """The models of those of the NFs that have one. Raises `KeyError, TypeError, ValueError, OSError` when the files
    are damaged.
    """
    if not (folder / SHARED_FILE).exists():
        return {}
    arrays = read_arrays(folder / SHARED_FILE)
    errors = LatencyErrors.from_arrays(
        {name.removeprefix("errors_"): values for name, values in arrays.items() if name.startswith("errors_")}
    )
    law = LatencyLaw.from_arrays(arrays)
    models = {}
    for name in nfs:
        found = _read(folder / f"{name}.json")
        if found is not None:
            factors = found["factor"]
            models[name] = NfLatency(law, (float(factors["mean"]), float(factors["p99"])), errors, found["settings"])
    return models


def is_trained(path: Path) -> bool:
    """Whether a file in `latency/` is one that training wrote; others are fitted curves of users."""
    try:
        return "latency" in json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, TypeError):
        return False


def _read(path: Path) -> dict | None:  # type: ignore[type-arg]
    if not path.exists() or not is_trained(path):
        return None
    found = json.loads(path.read_text(encoding="utf-8"))
    if found["latency"] != LATENCY_VERSION:
        raise ValueError(f"{path.name}: version {found['latency']}, not {LATENCY_VERSION}")
    return dict(found)


def _describe(model: NfLatency) -> dict[str, object]:
    return {
        "latency": LATENCY_VERSION,
        "factor": dict(zip(LATENCY_STATISTICS, model.factors, strict=True)),
        "settings": model.settings,
        "utilisation": [model.law.least, float(model.law.carried.max())],
        "left_out_error_pct": {what: model.errors.error_pct(what) for what in LATENCY_STATISTICS},
    }
