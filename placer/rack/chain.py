"""A chain of NFs as an operator wants it: a directed acyclic graph of NFs with shares, and its SLO."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property

BYTE_BITS = 8
TableId = tuple[int, int]
"""Index of the chain, index of its NF."""
OwnRule = Mapping[str, str | int | bool]
OwnData = str | tuple[OwnRule, ...]
"""What an author gives an NF in place of a number: the name of a file, a key or a prefix itself, or rules."""


FACTOR_MARK = "\0"
"""Between a kind of NF and the factors by which its cycles grow (`contention/loop.py`); no name that people write has
it."""


@dataclass(frozen=True)
class ChainNf:
    """One NF of a chain. `id`: unique in its chain. `nf`: the kind of NF, as the rack names it.

    `parameters`: numbers; of own data, once it is read, how many entries it has. `not_on`: devices, by name, that
    cannot run it, though they can run its kind. `data`: by parameter, own data. `most_copies`: on how many cores it can
    run at once, even if its kind is replicable; a plan keeps a limit of one.
    """

    id: str
    nf: str
    parameters: Mapping[str, float] = field(default_factory=dict)
    data: Mapping[str, OwnData] = field(default_factory=dict)
    not_on: frozenset[str] = frozenset()
    most_copies: int | None = None


@dataclass(frozen=True)
class ChainEdge:
    """Packets that leave one NF for another; numbers are indices of the chain's NFs.

    `share`: of the packets that leave the tail. `match`: what decides that a packet goes this way, as the chain's
    author wrote it; empty for a share alone.
    """

    tail: int
    head: int
    share: Fraction
    match: str = ""


UNBOUNDED_MBPS = Fraction(1_000_000)
"""What stands for a t_max without a bound: more than servers and ports of switches carry."""


@dataclass(frozen=True)
class Slo:
    """What an operator promises for a chain: a rate of at least `t_min_mbps`, a latency of at most `d_max_us`.

    `t_min_mbps`, `t_max_mbps`: the least rate that is promised, and the largest that is of use, Mbps. `d_max_us`:
    latency on the longest path, us; None if any will do.
    """

    t_min_mbps: Fraction
    t_max_mbps: Fraction
    d_max_us: Fraction | None = None


@dataclass(frozen=True)
class Chain:
    """A chain of NFs.

    `packet_size`: of its packets, bytes. `nfs`, `edges`: the graph: one entry, no cycle, and edges between the same NFs
    only with different matches. Edges of one NF are in the order in which matches are tried, and their shares add up to
    1. Packets leave the chain at NFs without edges out. `aggregates`: which traffic enters it, as its author wrote it.
    """

    name: str
    packet_size: int
    slo: Slo
    nfs: tuple[ChainNf, ...]
    edges: tuple[ChainEdge, ...]
    aggregates: tuple[str, ...] = ()

    @cached_property
    def order(self) -> tuple[int, ...]:
        """The NFs such that every edge leads forward; all of them only without a cycle."""
        waiting = [len(self.edges_into(at)) for at in range(len(self.nfs))]
        ready = [at for at, edges in enumerate(waiting) if edges == 0]
        done: list[int] = []
        while ready:
            done.append(ready.pop(0))
            for edge in self.edges_from(done[-1]):
                waiting[edge.head] -= 1
                if waiting[edge.head] == 0:
                    ready.append(edge.head)
        return tuple(done)

    @cached_property
    def entry(self) -> int:
        """The NF where packets enter."""
        return next(at for at in range(len(self.nfs)) if not self.edges_into(at))

    @cached_property
    def exits(self) -> tuple[int, ...]:
        """The NFs where packets leave."""
        return tuple(at for at in range(len(self.nfs)) if not self.edges_from(at))

    @cached_property
    def reach(self) -> tuple[Fraction, ...]:
        """Per NF the share of the chain's packets that reaches it."""
        shares = [Fraction(0)] * len(self.nfs)
        shares[self.entry] = Fraction(1)
        for at in self.order:
            for edge in self.edges_from(at):
                shares[edge.head] += shares[at] * edge.share
        return tuple(shares)

    @cached_property
    def forks(self) -> tuple[bool, ...]:
        """Per NF whether it branches or merges: has several edges out, or several edges in."""
        return tuple(len(self.edges_from(at)) > 1 or len(self.edges_into(at)) > 1 for at in range(len(self.nfs)))

    @property
    def packet_bits(self) -> int:
        return BYTE_BITS * self.packet_size

    def edges_from(self, at: int) -> Sequence[ChainEdge]:
        """The edges by which packets leave an NF."""
        return self._edges[0][at]

    def edges_into(self, at: int) -> Sequence[ChainEdge]:
        """The edges by which packets reach an NF."""
        return self._edges[1][at]

    @cached_property
    def _edges(self) -> tuple[tuple[tuple[ChainEdge, ...], ...], tuple[tuple[ChainEdge, ...], ...]]:
        nfs = range(len(self.nfs))
        return (
            tuple(tuple(edge for edge in self.edges if edge.tail == at) for at in nfs),
            tuple(tuple(edge for edge in self.edges if edge.head == at) for at in nfs),
        )


def same_but_for_names(chain: Chain) -> object:
    """Equal for chains that may exchange their places in a plan: their programs need the same, too."""
    nfs = tuple(
        (nf.nf, tuple(sorted(nf.parameters.items())), repr(sorted(nf.data.items())), nf.not_on, nf.most_copies)
        for nf in chain.nfs
    )
    return chain.packet_size, chain.slo, nfs, chain.edges
