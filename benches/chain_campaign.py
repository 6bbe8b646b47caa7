"""Which functions, traffic and chains the benchmark of chains measures."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations, product

from profiler.chains.plan import MeasuredChain, draw_orders
from profiler.chains.rounds import ChainRounds
from profiles import ChainLoad, InputError, TestbedDescription, TrafficProfile
from profiles.description import NULL_NF

PREFERRED = (
    "ACL", "IPRouter", "IPv4Fwd", "NAT", "FlowStats", "LB", "Tunnel", "Encrypt", "Monitor", "FlowTracker", "Match",
    "Limiter", "FlowClassifier", "FastEncrypt", "UrlFilter", "Dedup",
)  # fmt: skip
"""Functions that need no special input, the first choice first."""
MOST_DROPPED_PCT = 90.0
"""A function that drops more than that of its packets ends a chain: what is behind it has nothing to do."""
SIZES, FLOWS = (128.0, 512.0, 1400.0), (1000.0, 16000.0)
CHAIN_TRAFFIC = ((128.0, 16000.0), (512.0, 1000.0), (1400.0, 16000.0))
"""Packet sizes and flows of chains, of which each has some, in turn."""


@dataclass(frozen=True)
class CampaignSize:
    """How much is measured."""

    functions: int = 9  # how many distinct functions the chains are made of
    pairs: int = 72  # ordered, on one core
    triples: int = 24  # the same of three functions
    pipelines: int = 24  # ordered pairs, a core for each function
    traffics: int = 2  # of each chain
    rounds: int = 3  # runs of each chain
    single_rounds: int = 3  # runs of each function alone: they are in every prediction


FULL = CampaignSize()
QUICK = CampaignSize(functions=5, pairs=20, triples=5, pipelines=8, traffics=1, rounds=2, single_rounds=2)


def chosen_functions(
    rounds: ChainRounds, named: Sequence[str], count: int, say: Callable[[str], None]
) -> tuple[str, ...]:
    """The functions of all chains: those named, else the first that the testbed can run as stages of any chain. Raises
    `InputError` when the testbed runs no chains, lacks one of those named, or has fewer than three that can be used."""
    description = rounds.description
    if not description.chains:
        raise InputError.of("--testbed", f"{description.name} does not run chains")
    offered = [nf.name for nf in description.nfs if nf.cores == 1 and not nf.accelerators]
    if missing := [nf for nf in (*named, NULL_NF) if nf not in offered]:
        raise InputError.of("--nf", f"{description.name} runs no {', '.join(missing)} on one core")
    candidates = list(named) or [nf for nf in PREFERRED if nf in offered]
    found: list[str] = []
    for nf in candidates:
        if len(found) == count and not named:
            break
        for measured in rounds.measure(alone([nf], description)[:1], 1).values():
            dropped = measured.runs[0].stages[0].dropped_pct
            if dropped > MOST_DROPPED_PCT:
                say(f"{nf} drops {dropped:.0f} % of these packets; left out")
            else:
                found.append(nf)
    if len(found) < 3:
        raise InputError.of("--nf", f"{len(found)} functions can be stages of any chain, three are needed")
    return tuple(found)


def alone(functions: Sequence[str], description: TestbedDescription) -> list[ChainLoad]:
    """Each function as a chain of one, at every packet size and number of flows."""
    traffics = [traffic(description, size, flows) for size, flows in product(SIZES, FLOWS)]
    return [ChainLoad.of([nf], [[0]], one) for nf in functions for one in traffics]


def beside_a_ring(functions: Sequence[str], description: TestbedDescription) -> list[ChainLoad]:
    """Each function in front of a ring and behind one; the function that does nothing is on the other core."""
    if description.nic.cores < 2:
        return []
    traffics = [traffic(description, size, flows) for size, flows in CHAIN_TRAFFIC]
    pairs = [(NULL_NF, NULL_NF), *(pair for nf in functions for pair in ((nf, NULL_NF), (NULL_NF, nf)))]
    return [ChainLoad.of(pair, [[0], [1]], one) for pair in pairs for one in traffics]


def chains(functions: Sequence[str], description: TestbedDescription, size: CampaignSize, seed: int) -> list[ChainLoad]:
    """The chains of several functions: pairs and triples on one core, pairs on two."""
    all_pairs: list[tuple[str, ...]] = list(permutations(functions, 2))
    pairs = all_pairs if len(all_pairs) <= size.pairs else draw_orders(functions, 2, size.pairs, seed)
    triples = draw_orders(functions, 3, size.triples, seed)
    pipelines = draw_orders(functions, 2, size.pipelines, seed + 1) if description.nic.cores > 1 else []
    placed = [(pair, [[0, 1]]) for pair in pairs] + [(triple, [[0, 1, 2]]) for triple in triples]
    return list(_with_traffic([*placed, *((pair, [[0], [1]]) for pair in pipelines)], description, size.traffics))


def traffic(description: TestbedDescription, size: float, flows: float) -> TrafficProfile:
    """Traffic of this packet size and number of flows; all else as the testbed's default."""
    return TrafficProfile(flows, size, description.traffic.mtbr)


def _with_traffic(
    placed: Sequence[tuple[Sequence[str], list[list[int]]]], description: TestbedDescription, count: int
) -> Iterator[ChainLoad]:
    for number, (nfs, cores) in enumerate(placed):
        for at in range(min(count, len(CHAIN_TRAFFIC))):
            size, flows = CHAIN_TRAFFIC[(number + at) % len(CHAIN_TRAFFIC)]
            yield ChainLoad.of(nfs, cores, traffic(description, size, flows))


def measure(
    rounds: ChainRounds, named: Sequence[str], size: CampaignSize, seed: int, say: Callable[[str], None]
) -> tuple[tuple[str, ...], list[MeasuredChain]]:
    """The functions, and everything that was measured of them: each alone, the one that does nothing, the chains."""
    functions = chosen_functions(rounds, named, size.functions, say)
    description = rounds.description
    singles = alone([NULL_NF, *functions], description)
    several = [*beside_a_ring(functions, description), *chains(functions, description, size, seed)]
    say(
        f"{', '.join(functions)}: {len(singles)} settings of single functions, {size.single_rounds} runs of each; "
        f"{len(several)} of chains and beside a ring, {size.rounds} runs of each"
    )
    measured: dict[ChainLoad, MeasuredChain] = {}
    for number in range(1, size.rounds + 1):  # in turns: what changes within an hour is in both alike
        measured |= rounds.measure(singles, max(size.single_rounds * number // size.rounds, 1))
        measured |= rounds.measure([one for one in several if len(one.cores) == 1], number)
    measured |= rounds.measure([one for one in several if len(one.cores) > 1], size.rounds)
    return functions, list(measured.values())
