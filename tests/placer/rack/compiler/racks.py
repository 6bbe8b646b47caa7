"""Racks, chains and plans to compile, made by hand and at random."""

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import product
from random import Random

from placer.rack.chain import Chain, ChainEdge, ChainNf, Slo
from placer.rack.compiler.library.nf_kind import NF_KINDS
from placer.rack.files.plan_file import PlanFile, SubgroupCores
from placer.rack.plan import Layout
from placer.rack.rack import CoreCost, NfCosts, Rack, Server, SmartNic, Switch
from placer.rack.replanning.moves import PlacedNf

SLO = Slo(Fraction(1), Fraction(100000))


def made_chain(
    nfs: Sequence[str | tuple[str, Mapping[str, float]]],
    edges: Sequence[tuple[int, int, str, str]] | None = None,
    name: str = "c",
    aggregates: Sequence[str] = (),
) -> Chain:
    """A chain of NFs f0, f1, ...; edges as tail, head, share, match; without edges a line."""
    pairs = [(nf, {}) if isinstance(nf, str) else nf for nf in nfs]
    if edges is None:
        edges = [(at, at + 1, "1", "") for at in range(len(nfs) - 1)]
    return Chain(
        name,
        1500,
        SLO,
        tuple(ChainNf(f"f{at}", nf, parameters) for at, (nf, parameters) in enumerate(pairs)),
        tuple(ChainEdge(tail, head, Fraction(share), match) for tail, head, share, match in edges),
        tuple(aggregates),
    )


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


SAME_BYTES = ("ACL", "Detunnel", "IPv4Fwd", "LB", "Match", "Monitor", "Tunnel")
"""Kinds whose output depends on nothing but the packet."""
ALL_KINDS = tuple(sorted(NF_KINDS))
ONE_CORE = ("Dedup", "Limiter", "NAT")  # kinds of which copies on several cores would do something else
MATCHES = (
    "udp",
    "tcp",
    "udp port 53",
    "tcp dst port 80",
    "src net 10.0.0.0/9",
    "dst net 192.0.2.0/24",
    "vlan",
    "not ip",
    "portrange 1024-40000",
    "icmp or udp src port 4000",
    "dst net 198.18.0.0/15 and not tcp",
)
AGGREGATES = ("10.0.0.0/9", "tcp", "udp", "icmp", "vlan", "net 10.128.0.0/9", "other", "not ip", "10.0.0.0/10, udp")


def random_plan(seed: int, kinds: Sequence[str] = SAME_BYTES, *, smartnics: float = 0.4) -> PlanFile:
    """One to three chains of one to eight NFs on one or two servers."""
    random = Random(seed)
    rack = rack_of([random.random() < smartnics for _ in range(random.choice((1, 1, 2)))], kinds)
    chains = [random_chain(random, f"c{at}", kinds, at) for at in range(random.choice((1, 1, 2, 3)))]
    chains.sort(key=lambda chain: not chain.aggregates)  # those that take all packets leave none to others
    return placed_at_random(random, chains, rack)


def rack_of(smartnics: Sequence[bool], kinds: Sequence[str]) -> Rack:
    """A rack with so many servers, some of them with SmartNICs."""
    servers = tuple(
        Server(
            f"s{at}",
            64,
            Fraction(2000),
            Fraction(40000),
            smartnic=SmartNic(f"n{at}", 3, Fraction(1000)) if has_one else None,
        )
        for at, has_one in enumerate(smartnics)
    )
    return Rack(Switch(), servers, Fraction(6), {kind: _costs(kind) for kind in kinds})


def _costs(kind: str) -> NfCosts:
    cost = CoreCost(Fraction(100), replicable=kind not in ONE_CORE)
    return NfCosts(cost, cost, 1)


def placed_at_random(random: Random, chains: Sequence[Chain], rack: Rack) -> PlanFile:
    """Any placement; neighbours like to stay together."""
    places: dict[str, Mapping[str, PlacedNf]] = {}
    subgroups = {}
    for chain in chains:
        sites: dict[int, str] = {}
        for at in chain.order:
            possible = devices_for(chain.nfs[at], rack)
            before = [sites[edge.tail] for edge in chain.edges_into(at) if sites[edge.tail] in possible]
            stays = before and random.random() < 0.4
            sites[at] = random.choice(before) if stays else random.choice(possible)
        places[chain.name] = {chain.nfs[at].id: PlacedNf(chain.nfs[at].nf, on) for at, on in sites.items()}
        subgroups[chain.name] = random_subgroups(random, chain, rack, sites)
    return PlanFile(tuple(chains), rack, places, subgroups)


def every_placement(chain: Chain, rack: Rack) -> Iterator[PlanFile]:
    """All placements of a chain; numbers of cores are random."""
    random = Random(chain.name)
    for devices in product(*(devices_for(nf, rack) for nf in chain.nfs)):
        places = {nf.id: PlacedNf(nf.nf, on) for nf, on in zip(chain.nfs, devices, strict=True)}
        groups = random_subgroups(random, chain, rack, dict(enumerate(devices)))
        yield PlanFile((chain,), rack, {chain.name: places}, {chain.name: groups})


def devices_for(nf: ChainNf, rack: Rack) -> list[str]:
    """The devices that can run an NF."""
    names = {"switch": ["switch"], "server": [one.name for one in rack.servers]}
    names["smartnic"] = [one.smartnic.name for one in rack.servers if one.smartnic]
    kind = NF_KINDS[nf.nf]
    return [
        name
        for platform in sorted(kind.runs_on(kind.completed(nf.parameters, nf.id)))
        for name in names.get(platform, ())
    ]


def random_subgroups(random: Random, chain: Chain, rack: Rack, sites: Mapping[int, str]) -> list[SubgroupCores]:
    numbers = {"switch": -1} | {device.name: at for at, device in enumerate(rack.devices)}
    layout = Layout(chain, rack, tuple(numbers[sites[at]] for at in range(len(chain.nfs))))
    return [
        SubgroupCores(
            rack.devices[group.device].name,
            tuple(chain.nfs[at].id for at in group.nfs),
            random.choice((1, 1, 2, 3)) if group.cycles_of_replicas is not None else 1,
        )
        for group in layout.subgroups
    ]


def random_chain(random: Random, name: str, kinds: Sequence[str], at: int) -> Chain:
    """Each NF but the first has one NF before it, or more: a merge; each with several behind it sorts packets."""
    size = random.choice((1, 2, 3, 4, 5, 6, 8))
    heads: dict[int, list[int]] = {one: [] for one in range(size)}
    for head in range(1, size):
        for tail in random.sample(range(head), k=min(head, random.choice((1, 1, 1, 2, 3)))):
            heads[tail].append(head)
    for tail in range(size):  # rarely more than three ways, and mostly lines
        if len(heads[tail]) > 1 and random.random() < 0.3:
            keep = [one for one in heads[tail] if sum(one in heads[other] for other in heads) > 1]
            for one in keep[: len(heads[tail]) - 1]:
                heads[tail].remove(one)
    edges = [edge for tail, behind in heads.items() for edge in _edges(random, tail, behind)]
    nfs = tuple(_nf(random, number, random.choice(kinds)) for number in range(size))
    aggregates = tuple(random.sample(AGGREGATES, k=random.choice((1, 2)))) if random.random() < 0.7 else ()
    return Chain(name, 1500, Slo(Fraction(1), Fraction(100_000)), nfs, tuple(edges), aggregates)


def _edges(random: Random, tail: int, heads: Sequence[int]) -> list[ChainEdge]:
    """Ways behind an NF: by shares, by matches, or by both."""
    if not heads:
        return []
    weights = [random.randint(1, 5) for _ in heads]
    matched = random.choice((0, 0, len(heads) - 1, len(heads) - 1, len(heads), random.randint(0, len(heads))))
    if len(heads) == 1 and random.random() < 0.9:
        matched = 0
    return [
        ChainEdge(tail, head, Fraction(weight, sum(weights)), random.choice(MATCHES) if at < matched else "")
        for at, (head, weight) in enumerate(zip(heads, weights, strict=True))
    ]


PARAMETERS = {
    "ACL": lambda random: {"rules": float(random.choice((0, 1, 8, 30))), "seed": float(random.randint(1, 5))},
    "IPv4Fwd": lambda random: {"routes": float(random.choice((4, 16, 40))), "seed": float(random.randint(1, 3))},
    "LB": lambda random: {
        "backends": float(random.choice((1, 3, 8))),
        "table": float(random.choice((8, 32, 256))),
        "seed": float(random.randint(1, 3)),
    },
    "Tunnel": lambda random: {"vlan": float(random.choice((1, 7, 100)))},
    "FastEncrypt": lambda random: {
        "blocks": float(random.choice((0, 1, 1, 1))),
        "in_udp": float(random.random() < 0.7),
    },
    "Encrypt": lambda random: {"in_udp": float(random.random() < 0.7)},
    "UrlFilter": lambda random: {"urls": float(random.choice((0, 5, 30))), "seed": float(random.randint(1, 3))},
    "NAT": lambda random: {"addresses": float(random.choice((1, 2, 16)))},
    "Limiter": lambda random: {"mbps": float(random.choice((100_000, 100_000, 50, 5)))},
}


def _nf(random: Random, number: int, kind: str) -> ChainNf:
    return ChainNf(f"f{number}", kind, PARAMETERS[kind](random) if kind in PARAMETERS else {})
