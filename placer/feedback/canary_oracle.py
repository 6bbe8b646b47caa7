"""The oracle of a canary: a retrained model is on trial, and an SLA counts as met only where both models say so."""

from __future__ import annotations

from collections.abc import Sequence

from placer.feedback.corrected_oracle import CorrectedOracle
from placer.model.oracle import CACHED, CoLocation, Oracle
from profiles import Workload


class CanaryOracle(Oracle):
    """The lower of two predictions.

    An SLA may be relative to the throughput alone, of which each model has its own. What the challenger predicts
    therefore counts twice: as it is, and as the same share of the champion's throughput alone. Alone on a NIC, where
    no placement is safer, the champion's prediction counts.

    Parameters
    ----------
    champion
        The model that decides.
    challenger
        The model on trial.
    """

    def __init__(self, champion: CorrectedOracle, challenger: CorrectedOracle) -> None:
        super().__init__()
        self.champion, self.challenger = champion, challenger
        self._lower: dict[CoLocation, tuple[float, ...]] = {}
        self._stamp = self.revision

    @property
    def revision(self) -> int:
        """Changes with everything that either model learns."""
        return self.champion.revision + self.challenger.revision

    def changed_since(self, revision: int) -> Sequence[tuple[Workload, CoLocation]] | None:
        """As of `Oracle`: both models learn each reading."""
        learnt = -(-(self.revision - revision) // 2)
        of_both = [one.changed_since(max(one.revision - learnt, 0)) for one in (self.champion, self.challenger)]
        return None if any(one is None for one in of_both) else of_both[0]

    def throughput(self, co_locations: Sequence[CoLocation]) -> list[tuple[float, ...]]:
        """As of `Oracle`: the lower prediction of each workload."""
        if self._stamp != self.revision or len(self._lower) > CACHED:
            self._stamp = self.revision
            self._lower.clear()
        new = [one for one in dict.fromkeys(co_locations) if one not in self._lower]
        if new:
            self._lower.update(zip(new, self._query(new), strict=True))
        return [self._lower[one] for one in co_locations]

    def bottleneck(self, co_location: CoLocation, workload: Workload) -> str:
        """As the champion knows it."""
        return self.champion.bottleneck(co_location, workload)

    def _query(self, co_locations: Sequence[CoLocation]) -> list[tuple[float, ...]]:
        alone = [(workload,) for workload in dict.fromkeys(one for each in co_locations for one in each)]
        ratio = {
            workload: of_champion / of_challenger if of_challenger > 0 else 1.0
            for (workload,), (of_champion,), (of_challenger,) in zip(
                alone, self.champion.throughput(alone), self.challenger.throughput(alone), strict=True
            )
        }
        answers = (oracle.throughput(co_locations) for oracle in (self.champion, self.challenger))
        both = zip(co_locations, *answers, strict=True)
        return [
            own if len(one) == 1 else tuple(
                min(kpps, other, other * ratio[workload])
                for workload, kpps, other in zip(one, own, others, strict=True)
            )
            for one, own, others in both
        ]  # fmt: skip
