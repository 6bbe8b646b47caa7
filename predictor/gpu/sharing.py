"""How much longer a kernel takes while others run on its SM. Grus (section V-A) measures a penalty per pair. A third
sharer adds another, so here the slowdown is over the executors of all sharers: a linear law per sharer, and a smooth
correction of the sum, fitted to pairs and to more."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from predictor.regression.gaussian_process import GaussianProcess
from profiles.arrays import Floats

ENOUGH_MEASUREMENTS = 12
TYPICAL_NOISE = 0.05


@dataclass(frozen=True)
class Sharer:
    """Another NF on the SM: its executors, and the share of the time during which its kernel runs."""

    nf: str
    executors: float
    busy: float = 1.0


@dataclass(frozen=True)
class SharingModel:
    """The slowdown of one NF's kernel."""

    nfs: tuple[str, ...]  # the NFs that it was measured with
    law: Floats  # slowdown per executor of each of `nfs` (and of itself), shape (len(nfs),)
    correction: GaussianProcess  # logarithm of measured over the law's time
    most_sharers: int  # of the measured groups
    left_out_pct: Floats  # error of each measured kernel as predicted without it, %; positive where it takes longer

    @classmethod
    def fit(cls, own: Floats, groups: Sequence[Sequence[Sharer]], ratio: Floats) -> "SharingModel":
        """Fit to measured groups. `own`: the executors of the NF itself, shape (N,). `groups`: the sharers of each.
        `ratio`: time of the kernel over its time alone, shape (N,)."""
        from scipy.optimize import nnls

        nfs = tuple(sorted({member.nf for group in groups for member in group}))
        loads = _loads(nfs, groups)
        law: Floats = nnls(loads, np.maximum(ratio - 1.0, 0.0))[0]
        at = _coordinates(own, loads)
        rest = np.log(ratio / (1.0 + loads @ law))[:, None]
        correction, left = GaussianProcess.none(at.shape[1]), rest
        if len(rest) >= ENOUGH_MEASUREMENTS:
            correction = GaussianProcess.fit(at, rest, anchored=True, noise=TYPICAL_NOISE)
            left = correction.left_out(rest)
        most = max(len(group) for group in groups)
        return cls(nfs, law, correction, most, 100 * np.expm1(left[:, 0]))

    def slowdown(self, own: float, group: Sequence[Sharer]) -> float:
        """By which share the kernel takes longer with these sharers; one that was not measured counts as the worst."""
        if not group:
            return 0.0
        loads = _loads(self.nfs, [group])
        unknown = sum(member.executors * member.busy for member in group if member.nf not in self.nfs)
        loads[0, int(np.argmax(self.law))] += unknown
        smooth = float(np.exp(self.correction(_coordinates(np.array([own]), loads))[0, 0]))
        return max((1.0 + float(loads[0] @ self.law)) * smooth - 1.0, 0.0)

    def parts(self, own: float, group: Sequence[Sharer]) -> list[float]:
        """What each sharer adds, so that all together add up to `slowdown`; each alone otherwise decides its share."""
        alone = [self.slowdown(own, [member]) for member in group]
        total, together = sum(alone), self.slowdown(own, group)
        return [together * time / total for time in alone] if total > 0 else [together / len(group)] * len(group)

    @property
    def error_pct(self) -> float:
        """Mean absolute error of left-out measurements, %."""
        return float(np.abs(self.left_out_pct).mean())

    def as_arrays(self) -> dict[str, NDArray[np.generic]]:
        """What was learnt, as plain arrays."""
        own: dict[str, NDArray[np.generic]] = {
            "nfs": np.array(self.nfs),
            "law": self.law,
            "most_sharers": np.array(self.most_sharers),
            "left_out_pct": self.left_out_pct,
        }
        return own | {f"correction.{name}": value for name, value in self.correction.as_arrays().items()}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[np.generic]]) -> "SharingModel":
        """The model that `as_arrays` returned."""
        mine = {name.partition(".")[2]: one for name, one in arrays.items() if name.startswith("correction.")}
        correction = GaussianProcess.from_arrays({name: np.asarray(one, np.float64) for name, one in mine.items()})
        nfs, law, left = tuple(map(str, arrays["nfs"])), arrays["law"], arrays["left_out_pct"]
        most = int(arrays["most_sharers"])
        return cls(nfs, np.asarray(law, np.float64), correction, most, np.asarray(left, np.float64))


def _loads(nfs: Sequence[str], groups: Sequence[Sequence[Sharer]]) -> Floats:
    """Busy executors of each of `nfs` in each group, shape (groups, nfs)."""
    loads = np.zeros((len(groups), len(nfs)))
    for row, group in enumerate(groups):
        for member in group:
            if member.nf in nfs:
                loads[row, nfs.index(member.nf)] += member.executors * member.busy
    return loads


def _coordinates(own: Floats, loads: Floats) -> Floats:
    return np.column_stack([np.log(own), np.log1p(loads)])


# Kernels of several NFs side by side on their SMs: each runs slower while the kernels of its sharers run.


@dataclass(frozen=True)
class KernelShare:
    """The kernel of one NF."""

    alone_us: tuple[float, ...]  # time of each of its minibatches with its SM for itself
    slowdowns: tuple[dict[int, float], ...] = field(default=())
    """For each minibatch, by index of another NF: by which share it takes longer while that one's kernel runs."""

    @property
    def longest_us(self) -> float:
        """Of its minibatches, alone."""
        return max(self.alone_us)

    def time(self, running: Sequence[bool]) -> float:
        """The longest time of its minibatches if these other NFs run all the while."""
        if not self.slowdowns:
            return self.longest_us
        return max(
            alone * (1.0 + sum(by for other, by in slower.items() if running[other]))
            for alone, slower in zip(self.alone_us, self.slowdowns, strict=True)
        )


def as_arrays(shares: Sequence[KernelShare]) -> tuple[NDArray[np.int64], Floats, Floats]:
    """Where the minibatches of each NF begin, each one's time alone, and its slowdowns by NF (`tandem`)."""
    parts = np.cumsum([0, *(len(share.alone_us) for share in shares)])
    alone = np.concatenate([share.alone_us for share in shares])
    slowdowns = np.zeros((len(alone), len(shares)))
    for at, share in enumerate(shares):
        for part, slower in enumerate(share.slowdowns):
            for other, by in slower.items():
                slowdowns[parts[at] + part, other] = by
    return parts, alone, slowdowns
