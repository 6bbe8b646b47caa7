"""Small instances of `planned`, with a predictor whose errors are normally distributed and whose table is random."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from placer.model.arrival import Arrival
from placer.model.catalogue import Catalogue
from placer.model.nic_kind import NicKind
from placer.model.sla import Sla
from placer.testing.strategies import CORES_BY_NF, SOLO_KPPS, TOY_TRAFFIC
from predictor import Models, Prediction, Predictor
from profiles import Workload

SPREAD = 0.05  # how far the logarithm of a throughput beside others errs: its standard deviation
NAME = "toy"


class ErringPredictor(Predictor):
    """Predicts the share of its throughput that an NF keeps, by a table or at random from a seed. A departure may slow
    down the others. Throughput alone is known exactly."""

    def __init__(self, seed: int = 0, kept: Mapping[tuple[str, ...], Sequence[float]] | None = None) -> None:
        self.seed, self.kept = seed, kept

    def _share(self, nf: str, names: Sequence[str]) -> float:
        if len(names) == 1:
            return 1.0
        if self.kept is not None:
            return self.kept[tuple(names)][list(names).index(nf)]
        random = np.random.default_rng([self.seed, *f"{nf}/{' '.join(names)}".encode()])
        return float(random.choice([1.0, 0.97, 0.94, 0.9, 0.85, 0.8, 0.7]))

    def solo(self, workloads: Sequence[Workload]) -> NDArray[np.float64]:
        return np.array([SOLO_KPPS[workload.nf] for workload in workloads])

    def throughput(
        self, co_locations: Sequence[Sequence[Workload]], *, risk: float | None = None
    ) -> list[NDArray[np.float64]]:
        lower = 1.0 if risk is None else float(np.exp(SPREAD * ndtri(risk)))
        answers = []
        for co_location in co_locations:
            names = sorted(workload.nf for workload in co_location)
            shares = np.array([self._share(workload.nf, names) for workload in co_location])
            answers.append(self.solo(co_location) * shares * (lower if len(names) > 1 else 1.0))
        return answers

    def shortfall(
        self, co_locations: Sequence[Sequence[Workload]], required_kpps: Sequence[Sequence[float]]
    ) -> list[NDArray[np.float64]]:
        return [
            ndtr(np.log(np.asarray(need) / kpps) / SPREAD) if len(kpps) > 1 else (kpps < need).astype(float)
            for kpps, need in zip(self.throughput(co_locations), required_kpps, strict=True)
        ]

    @classmethod
    def train(cls, *_: Any, **__: Any) -> Self:
        raise NotImplementedError

    def save(self, folder: Path) -> None:
        raise NotImplementedError

    @classmethod
    def load(cls, *_: Any) -> Self:
        raise NotImplementedError

    def predict(self, *_: Any, **__: Any) -> list[list[Prediction]]:
        raise NotImplementedError

    def predict_contention(self, *_: Any) -> NDArray[np.float64]:
        raise NotImplementedError


def catalogue_of(kinds: Sequence[NicKind], predictors: Sequence[Predictor], budget_pct: float) -> Catalogue:
    models = tuple(Models({NAME: predictor}, None, TOY_TRAFFIC, {}) for predictor in predictors)
    specs = ("none",) * len(kinds)
    return Catalogue(tuple(kinds), models, (None,) * len(kinds), specs=specs, budget_pct=budget_pct)


class Instance(NamedTuple):
    arrivals: list[Arrival]
    catalogue: Catalogue


@st.composite
def instances(draw: st.DrawFn, most: int = 6, departures: bool = False) -> Instance:
    """Up to `most` arrivals of three NFs, some at the same time, and one or two kinds of NIC."""
    time, arrivals = 0.0, []
    for number in range(draw(st.integers(1, most))):
        time += draw(st.sampled_from([0.0, 1.0, 1.0, 3.0]))
        workload = Workload(draw(st.sampled_from("abc")), TOY_TRAFFIC)
        drop = draw(st.sampled_from([0.0, 0.03, 0.08, 0.15, 0.25, 0.4]))
        stay = draw(st.sampled_from([None, 1.0, 2.5, 6.0])) if departures else None
        least = draw(st.sampled_from([None, None, 0.9, 1.1]))
        sla = Sla(max_drop=drop) if least is None else Sla(min_kpps=least * SOLO_KPPS[workload.nf])
        arrivals.append(Arrival(f"t{number}", time, workload, sla, None if stay is None else time + stay))
    kinds = [
        NicKind(
            index,
            f"toy-{index}",
            draw(st.sampled_from([3, 4, 5])),
            CORES_BY_NF,
            draw(st.sampled_from([None, None, 1, 2])),
            draw(st.sampled_from([1.0, 1.0, 0.7, 2.0])),
        )
        for index in range(draw(st.integers(1, 2)))
    ]
    seed = draw(st.integers(0, 10**6))
    predictors = [ErringPredictor(seed + kind.index) for kind in kinds]
    return Instance(arrivals, catalogue_of(kinds, predictors, draw(st.sampled_from([1.0, 5.0, 15.0, 40.0]))))
