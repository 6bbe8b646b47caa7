"""A synthetic host that runs chains of packet-processing NFs: costs add on a core, and NFs disturb one another."""

from itertools import combinations, permutations

import numpy as np
from numpy.typing import NDArray

from benches.chain_family import ChainRun
from predictor.chains.placed_chain import PlacedChain
from predictor.chains.profiled_nf import ProfiledNf

NFS = ("ACL", "NAT", "FlowStats", "Router", "Tunnel", "Filter", "Monitor", "Scan")
SIZES = (64.0, 512.0, 1500.0)
FLOWS = (1000.0, 16000.0, 100000.0)
NULL = "null"


class Host:
    """A host; each seed has other NFs. Microseconds per packet: the source takes `source`, an NF its own time, and
    beside other NFs on its core more, since they share its caches."""

    def __init__(self, seed: int) -> None:
        draw = np.random.default_rng([seed, 77])
        self.seed = seed
        self.source = draw.uniform(0.03, 0.08)
        self.own = dict(zip(NFS, draw.uniform(0.02, 0.6, len(NFS)), strict=True))
        self.per_byte = dict(zip(NFS, draw.choice([0.0, 0.0002, 0.001], len(NFS)), strict=True))
        self.per_flow = dict(zip(NFS, draw.uniform(0.0, 0.05, len(NFS)), strict=True))
        self.disturbed = dict(zip(NFS, draw.uniform(0.98, 1.18, len(NFS)), strict=True))
        self.stage = draw.uniform(0.0, 0.02)

    def profile(self, nf: str) -> ProfiledNf:
        """The NF alone, three repeats of each of nine workloads, noise of 2 %."""
        draw = np.random.default_rng([self.seed, 78, (*NFS, NULL).index(nf)])
        at = np.array([(size, flows) for size in SIZES for flows in FLOWS for _ in range(3)])
        time = self.source + (self._time(nf, at[:, 0], at[:, 1]) if nf != NULL else 0.0)
        kpps = 1000 / time * np.exp(draw.normal(0, 0.02, len(at)))
        return ProfiledNf.fit(nf, ("packet_size", "flows"), at, kpps, regressor="smooth")

    def run(self, chain: PlacedChain, draw: np.random.Generator, *, noise: float = 0.02) -> ChainRun:
        """A measured run of a chain at one of the workloads."""
        size, flows = draw.choice(SIZES), draw.choice(FLOWS)
        loads = [self._load(chain, core, size, flows) for core in chain.cores]
        kpps = 1000 / max(loads) * float(np.exp(draw.normal(0, noise)))
        return ChainRun(chain, {"packet_size": float(size), "flows": float(flows)}, kpps)

    def chains(self) -> list[PlacedChain]:
        """All ordered pairs and some triples on one core, and some on two."""
        pairs = [PlacedChain.of(pair, cores=[[0, 1]]) for pair in permutations(NFS, 2)]
        triples = list(combinations(NFS, 3))
        together = [PlacedChain.of(three, cores=[[0, 1, 2]]) for three in triples[::4]]
        apart = [PlacedChain.of(three, cores=[[0, 1], [2]]) for three in triples[1::4]]
        return [*pairs, *together, *apart]

    def _load(self, chain: PlacedChain, core: tuple[int, ...], size: float, flows: float) -> float:
        total = self.source + self.stage * (len(core) - 1)
        for at in core:
            nf = chain.stages[at].nf
            total += float(self._time(nf, np.array([size]), np.array([flows]))[0]) * (
                self.disturbed[nf] if len(core) > 1 else 1.0
            )
        return total

    def _time(self, nf: str, size: NDArray[np.float64], flows: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(self.own[nf] + self.per_byte[nf] * size + self.per_flow[nf] * np.log(flows / 1000 + 1))
