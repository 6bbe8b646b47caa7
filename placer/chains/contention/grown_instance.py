"""Chains and rack with grown cycles: each NF that grows becomes a kind of its own, which costs more on cores.

The program that places chains knows cycles by kind of NF, so it needs no change. Chains that are equal but for their
names share their factors, the largest that any of them has: they stay equal, and may exchange their places.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from math import ceil

from placer.chains.chain import Chain
from placer.chains.contention.co_location import CycleGrowth, co_locations
from placer.chains.layout import Layout
from placer.chains.plan import ChainPlan
from placer.chains.rack import CoreCost, NfCosts, Rack, SwitchKind
from placer.chains.search.fleet_bound import classes_of

GRAIN = 1_000_000
"""Factors are rounded up to multiples of its inverse."""

Key = tuple[int, int, bool]
"""The number of a class of equal chains, the index of the NF, and whether it runs on a SmartNIC."""
Factors = Mapping[Key, Fraction]
"""By which cycles grow; 1 where there is none."""


@dataclass(frozen=True)
class RackInstance:
    """Chains and a rack, as they were asked."""

    chains: Sequence[Chain]
    rack: Rack

    @cached_property
    def class_of(self) -> Sequence[int]:
        """Per chain the number of its class."""
        found = {number: at for at, numbers in enumerate(classes_of(self.chains)) for number in numbers}
        return [found[number] for number in range(len(self.chains))]

    def grown(self, factors: Factors) -> RackInstance:
        """The instance with cycles grown by these factors; layouts keep their sites."""
        costs = dict(self.rack.costs)
        chains = [self._grown_chain(number, factors, costs) for number in range(len(self.chains))]
        order = self.rack.switch.table_order
        kinds = [kind for nf in order for kind in costs if kind == nf or kind.startswith(f"{nf}{MARK}")]
        switch = replace(self.rack.switch, table_order=tuple(kinds))
        return RackInstance(chains, replace(self.rack, costs=costs, switch=switch))

    def _grown_chain(self, number: int, factors: Factors, costs: dict[str, NfCosts]) -> Chain:
        chain = self.chains[number]
        nfs = []
        for at, nf in enumerate(chain.nfs):
            server, smartnic = (self._factor(number, at, on_smartnic, factors) for on_smartnic in (False, True))
            kind = nf.nf if server == smartnic == 1 else f"{nf.nf}{MARK}{server}{MARK}{smartnic}"
            own = self.rack.costs[nf.nf]
            costs[kind] = replace(own, server=_times(own.server, server), smartnic=_times(own.smartnic, smartnic))
            nfs.append(replace(nf, nf=kind))
        return replace(chain, nfs=tuple(nfs))

    def _factor(self, number: int, at: int, on_smartnic: bool, factors: Factors) -> Fraction:
        """Of one NF; before an OpenFlow switch, the largest of its kind in the chain: packets pass a table once."""
        nfs = self.chains[number].nfs
        openflow = self.rack.switch.kind is SwitchKind.OPENFLOW
        alike = [other for other, nf in enumerate(nfs) if nf.nf == nfs[at].nf] if openflow else [at]
        return max(factors.get((self.class_of[number], other, on_smartnic), Fraction(1)) for other in alike)

    def placed(self, chains: Sequence[ChainPlan]) -> tuple[ChainPlan, ...]:
        """The same sites, cores and rates of this instance's chains; of a plan for it with other cycles."""
        return tuple(
            ChainPlan(Layout(chain, self.rack, one.layout.sites), one.rate_mbps, one.cores)
            for chain, one in zip(self.chains, chains, strict=True)
        )

    def predicted(self, chains: Sequence[ChainPlan], growth: CycleGrowth) -> Factors:
        """The factors of the NFs that a plan for this instance runs on cores.

        Raises
        ------
        ValueError
            When a predicted factor is below 1, or no number.
        """
        factors: dict[Key, Fraction] = {}
        for device, placed in co_locations(chains, self.rack):
            answers = growth(device, [one.member for one in placed])
            for one, answer in zip(placed, answers, strict=True):
                for at, factor in zip(one.member.nfs, answer, strict=True):
                    key = (self.class_of[one.chain], at, device.is_smartnic)
                    factors[key] = max(factors.get(key, Fraction(1)), _rounded_up(factor))
        return factors


MARK = "\0"
"""Between a kind of NF and its factors; no name that people write has it."""


def _times(cost: CoreCost | None, factor: Fraction) -> CoreCost | None:
    return cost and replace(cost, cycles=cost.cycles * factor)


def _rounded_up(factor: float) -> Fraction:
    if not 1 <= factor < float("inf"):
        raise ValueError(f"cycles cannot grow by a factor of {factor}")
    return Fraction(ceil(factor * GRAIN), GRAIN)
