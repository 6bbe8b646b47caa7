"""Plans for tests: chains with the place of each NF, on a rack with a switch, two servers and a SmartNIC."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from placer.rack.chain import Chain
from placer.rack.compiler.library.nf_kind import NF_KINDS
from placer.rack.files.plan_file import PlanFile, SubgroupCores
from placer.rack.rack import CoreCost, NfCosts, Rack, Server, SmartNic, Switch
from placer.rack.replanning.moves import PlacedNf

COSTS = NfCosts(CoreCost(Fraction(100)), CoreCost(Fraction(100)), 1)
SERVERS = (
    Server("s0", 16, Fraction(2000), Fraction(40000), smartnic=SmartNic("n0", 3, Fraction(1000))),
    Server("s1", 16, Fraction(2000), Fraction(40000)),
)
RACK = Rack(Switch(), SERVERS, Fraction(6), dict.fromkeys(NF_KINDS, COSTS))


def made_plan(*placed: tuple[Chain, str], cores: Sequence[SubgroupCores] = ()) -> PlanFile:
    """A plan of chains, each with the places of its NFs in a line: `switch s0 n0`; cores are of the first chain."""
    places = {
        chain.name: {nf.id: PlacedNf(nf.nf, on) for nf, on in zip(chain.nfs, line.split(), strict=True)}
        for chain, line in placed
    }
    chains = tuple(chain for chain, _ in placed)
    return PlanFile(chains, RACK, places, {chains[0].name: list(cores)})
