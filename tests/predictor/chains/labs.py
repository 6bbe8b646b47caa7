"""Synthetic labs: NFs with a CPU share and a workload, measured alone and in a chain, with noise and outliers. Each
seed is another lab: other laws of the NFs, another law of the chain, another noise. What a lab returns looks like
measurements of real ones: repeats of every setting, of which some are off by a factor of seven."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache

import numpy as np
import pandas as pd

from predictor.chains.profiled_nf import ProfiledNf
from profiles.arrays import Floats

NFS = ("nx", "sc", "sq")
OUTLIERS, FACTOR = 0.03, 7.0
CHAIN_LAWS = ("weakest link", "factor", "soft", "costs add", "factor per NF", "cap", "uneven")


@dataclass(frozen=True)
class Lab:
    """One lab."""

    seed: int  # of everything
    workloads: int = 1  # how many workload columns there are, at most two
    response_time: bool = False  # measures response time (ms) instead of throughput (kpps)
    chain_law: str = "weakest link"  # one of `CHAIN_LAWS`
    repeats: int = 10  # of each setting of a profile
    noise: float = 0.05
    nfs: Mapping[str, Callable[[Floats, Floats], Floats]] = field(
        default_factory=dict, init=False, compare=False, repr=False
    )

    @classmethod
    def of(cls, seed: int) -> "Lab":
        """The lab of a seed."""
        draw = np.random.default_rng([seed, 1])
        return cls(
            seed,
            workloads=int(draw.integers(0, 3)),
            response_time=bool(draw.random() < 0.4),
            chain_law=str(draw.choice(CHAIN_LAWS)),
            repeats=int(draw.integers(3, 16)),
            noise=float(draw.uniform(0.02, 0.10)),
        )

    def __post_init__(self) -> None:
        draw = np.random.default_rng([self.seed, 2])
        object.__setattr__(self, "nfs", {nf: _law(draw) for nf in NFS})

    @property
    def measure(self) -> str:
        """The column that is measured."""
        return "response_ms" if self.response_time else "kpps"

    @property
    def workload_names(self) -> list[str]:
        """The columns of the workload."""
        return ["clients", "size"][: self.workloads]

    def alone(self, nf: str, cpu: Floats, workload: Floats) -> Floats:
        """What the NF reaches alone, without noise; `workload` of shape (N, workloads)."""
        return self._measured(self.nfs[nf](cpu, self._size(workload)), workload)

    def chained(self, cpu: Floats, workload: Floats) -> Floats:
        """What the chain of all reaches, without noise; `cpu` of shape (N, NFs)."""
        each = np.column_stack([self.nfs[nf](cpu[:, at], self._size(workload)) for at, nf in enumerate(NFS)])
        return self._measured(self._composed(each, cpu), workload)

    def profile(self, nf: str, *, cpus: int = 10) -> pd.DataFrame:
        """The NF alone at every point of a grid, with repeats."""
        draw = np.random.default_rng([self.seed, 3, NFS.index(nf)])
        grid = self._grid(np.linspace(0.1, 1.0, cpus)[:, None], ["cpu"])
        true = self.alone(nf, grid["cpu"].to_numpy(), grid[self.workload_names].to_numpy())
        return self._repeated(grid, true, draw)

    def chain_runs(self, count: int, *, seed: int = 0, repeats: int = 1, noise: bool = True) -> pd.DataFrame:
        """The chain at random settings inside the grid of the profiles."""
        draw = np.random.default_rng([self.seed, 4, seed])
        table = pd.DataFrame({f"{nf}.cpu": draw.choice(np.linspace(0.1, 1.0, 10), count) for nf in NFS})
        for name, values in self._workload_values().items():
            table[name] = draw.choice(values, count)
        true = self.chained(table[[f"{nf}.cpu" for nf in NFS]].to_numpy(), table[self.workload_names].to_numpy())
        if not noise:
            return table.assign(**{self.measure: true})
        return self._repeated(table, true, draw, repeats=repeats)

    def _workload_values(self) -> dict[str, Floats]:
        values = {"clients": np.array([1.0, 5, 20, 80, 320]), "size": np.array([64.0, 256, 700, 1500])}
        return {name: values[name] for name in self.workload_names}

    def _grid(self, cpu: Floats, names: list[str]) -> pd.DataFrame:
        grid = pd.DataFrame(cpu, columns=names)
        for name, values in self._workload_values().items():
            grid = grid.merge(pd.DataFrame({name: values}), how="cross")
        return grid

    def _size(self, workload: Floats) -> Floats:
        return workload[:, 1] if self.workloads > 1 else np.full(len(workload), 512.0)

    def _measured(self, capacity: Floats, workload: Floats) -> Floats:
        """Throughput or response time of a closed loop of clients on a server of that capacity."""
        clients, think_ms = (workload[:, 0] if self.workloads else np.full(len(workload), 50.0)), 20.0
        if self.response_time:
            return np.asarray(2.0 + (clients / capacity**1.0) * 1.0 + 1.0 / capacity)
        return np.asarray(((clients / think_ms * 40) ** -4 + capacity**-4) ** -0.25)

    def _composed(self, each: Floats, cpu: Floats) -> Floats:
        draw = np.random.default_rng([self.seed, 5])
        weakest = each.min(axis=1)
        factor = draw.uniform(0.6, 0.95)
        if self.chain_law == "weakest link":
            return weakest
        if self.chain_law == "factor":
            return np.asarray(factor * weakest)
        if self.chain_law == "soft":
            power = draw.uniform(2.5, 8)
            return np.asarray((each**-power).sum(axis=1) ** (-1 / power))
        if self.chain_law == "costs add":
            source = 1 / (4 * each.max())
            return np.asarray(1 / (source + (1 / each - source).sum(axis=1)))
        if self.chain_law == "factor per NF":
            return np.asarray((each * draw.uniform(0.6, 1.2, len(NFS))).min(axis=1))
        if self.chain_law == "cap":
            return np.minimum(weakest, np.quantile(weakest, draw.uniform(0.5, 0.9))) * factor
        wave = sum(
            draw.normal(0, 0.08) * np.sin(draw.uniform(1, 4) * np.log(column) + draw.uniform(0, 6)) for column in cpu.T
        )
        return np.asarray(factor * weakest * np.exp(wave))

    def _repeated(
        self, settings: pd.DataFrame, true: Floats, draw: np.random.Generator, *, repeats: int | None = None
    ) -> pd.DataFrame:
        repeats = repeats or self.repeats
        table = settings.loc[settings.index.repeat(repeats)].reset_index(drop=True)
        measured = np.repeat(true, repeats) * np.exp(draw.normal(0, self.noise, len(table)))
        outlying = draw.random(len(table)) < OUTLIERS
        measured[outlying] *= FACTOR ** draw.choice([-1.0, 1.0], outlying.sum())
        return table.assign(**{self.measure: measured})


def _law(draw: np.random.Generator) -> Callable[[Floats, Floats], Floats]:
    """Capacity of an NF (kpps) by its CPU share and packet size."""
    most, power, half = draw.uniform(20, 200), draw.uniform(0.5, 1.1), draw.uniform(0.1, 1.0)
    cap, floor, slope = draw.uniform(0.3, 1.5), draw.uniform(0.0, 0.05), draw.uniform(0.0, 0.6)
    kind = draw.choice(["power", "saturating", "kink", "threshold"])

    def law(cpu: Floats, size: Floats) -> Floats:
        if kind == "power":
            reached = cpu**power
        elif kind == "saturating":
            reached = cpu / (cpu + half) * (1 + half)
        elif kind == "kink":
            reached = np.minimum(cpu, cap)
        else:
            reached = np.maximum(cpu - floor, 0.02)
        return np.asarray(most * reached * (size / 512) ** -slope)

    return law


Profiles = dict[str, ProfiledNf]


@cache
def profiles_of(lab: Lab) -> Profiles:
    """The profile of each NF, with the regressor `smooth`: comparing all takes seconds."""
    profiles = {}
    for nf in NFS:
        table, names = lab.profile(nf, cpus=7), ("cpu", *lab.workload_names)
        at, measured = table[list(names)].to_numpy(np.float64), table[lab.measure].to_numpy()
        profiles[nf] = ProfiledNf.fit(nf, names, at, measured, regressor="smooth")
    return profiles


def columns(lab: Lab, table: pd.DataFrame) -> dict[str, np.ndarray]:
    """The configurations and workloads of a table of chain runs."""
    return {name: table[name].to_numpy(np.float64) for name in [*(f"{nf}.cpu" for nf in NFS), *lab.workload_names]}
