"""Random small instances: chains and racks as JSON, for comparison with the exhaustive search.

Generators draw different kinds: `everyday` has a little of everything, `edges` has what is exact, tight or zero,
`openflow` has switches with fixed tables in a fixed order, `racks` has three servers and more, `sockets` has servers
with several sockets and NICs, and shared cores, `tabled` has tables of NFs on the switch. The same seed gives the same
instance. Of each, 20 to 40 % are infeasible.
"""

from collections.abc import Callable, Sequence
from fractions import Fraction
from random import Random
from typing import Any

import pytest

Json = dict[str, Any]
Generator = Callable[[int], tuple[Json, Json]]
FaultsOf = Callable[[Json, Json], object]
KINDS = ("Encrypt", "Dedup", "Limiter", "Monitor", "NAT", "LB", "Match")


def everyday(seed: int) -> tuple[Json, Json]:
    """Chains and a rack: 1 to 3 chains of 1 to 5 NFs with branches and merges, one or two servers, SmartNICs."""
    random = Random(seed)
    servers = _servers(random, (1, 1, 2), cores=(3, 7), smartnic=0.4)
    switch: Json = {"stages": None, "blocks_per_stage": 24}
    if random.random() < 0.7:
        reserved = random.choice((0, 0, 2))
        switch = {
            "stages": reserved + random.randint(1, 6),
            "reserved_stages": reserved,
            "blocks_per_stage": random.choice((2, 4, 24)),
        }
    kinds = random.sample(KINDS, random.randint(3, 6))
    nfs = {
        kind: _costs(random, (20, 9000), switch["blocks_per_stage"], smartnic=0.4 * _with_smartnics(servers))
        for kind in kinds
    }
    rack = {"switch": switch, "crossing_us": random.choice((0, 1, 6)), "servers": servers, "nfs": nfs}
    if random.random() < 0.25:
        rack["overheads"] = {"subgroup_cycles": 220, "replica_cycles": 180, "stages": random.choice((0, 1))}
    sizes = [random.randint(1, 5) for _ in range(random.choice((1, 2, 2, 3)))]
    chains = []
    for at, size in enumerate(sizes):
        chain = _chain(random, f"c{at}", size, kinds, extra=0.5)
        least = int(_fastest(chain, rack) * random.choice((0.05, 0.1, 0.2, 0.4, 0.7, 1.1))) // len(sizes)
        chain["t_min_mbps"] = least
        chain["t_max_mbps"] = max(least, 1) + random.choice((100_000, least, random.randint(0, 5000)))
        chain["d_max_us"] = random.choice((None, None, random.randint(2, 16), random.randint(10, 60)))
        chains.append(chain)
    return {"chains": chains}, rack


def edges(seed: int) -> tuple[Json, Json]:
    """Chains and a rack at the edges of the model.

    Long chains on a switch with few stages, shares of thirds and of decimal numbers, NFs without cycles, NICs as
    bottleneck, t_min equal to t_max or to nothing, rates that cores reach exactly, no overheads.
    """
    random = Random(f"edges {seed}")
    flavour = random.choice(("stages", "nics", "exact"))
    long = flavour == "stages"
    servers = _servers(random, (1,) if long else (1, 2, 2), cores=(2, 5), smartnic=0.0 if long else 0.5)
    if flavour == "nics":
        for server in servers:
            server["nic_mbps"] = random.choice((0, 1000, 2000, 3000, 5000))
    blocks = random.choice((1, 2, 3, 5))
    switch = {"stages": random.randint(2, 7) if long else random.choice((None, 3)), "blocks_per_stage": blocks}
    kinds = random.sample(KINDS, random.randint(2, 5))
    smartnic, on_switch = 0.4 * _with_smartnics(servers), 0.9 if long else 0.35
    nfs = {kind: _costs(random, (0, 4000), blocks, smartnic, on_switch) for kind in kinds}
    for costs in nfs.values():
        if random.random() < 0.25:
            costs["server"] = {"cycles": 0, "replicable": random.random() < 0.5}
    rack = {"switch": switch, "crossing_us": random.choice((0, 2.5)), "servers": servers, "nfs": nfs}
    chains = []
    number = random.randint(1, 3)
    for at in range(number):
        chain = _chain(
            random,
            f"c{at}",
            random.randint(5, 8) if long and number < 3 else random.randint(1, 4),
            kinds,
            extra=0.25,
            thirds=True,
        )
        chain["packet_size"] = random.choice((64, 750, 1500)) if flavour == "exact" else 1500
        least = _least_at_the_edge(random, chain, rack) if flavour != "nics" else random.choice((0, 0, 100, 300, 500))
        chain["t_min_mbps"] = least
        chain["t_max_mbps"] = random.choice((max(least, 1), max(least, 1), least + 0.5, 2000 + least, 100_000 + least))
        chain["d_max_us"] = random.choice((None, None, None, 5, 10, 7.5))
        chains.append(chain)
    return {"chains": chains}, rack


def openflow(seed: int) -> tuple[Json, Json]:
    """Chains and a rack whose switch has fixed tables in an order.

    Most NFs run on the switch, some have no table there, and chains visit tables against the order; some instances have
    stages, too.
    """
    random = Random(f"openflow {seed}")
    servers = _servers(random, (1, 1, 2), cores=(2, 5), smartnic=0.3)
    kinds = random.sample(KINDS, random.randint(2, 5))
    smartnic = 0.4 * _with_smartnics(servers)
    nfs = {kind: _costs(random, (20, 9000), 4, smartnic, switch=0.85) for kind in kinds}
    switch: Json = {"kind": "openflow", "table_order": random.sample(kinds, random.randint(len(kinds) - 1, len(kinds)))}
    if random.random() < 0.3:
        switch |= {"stages": random.randint(1, 5), "blocks_per_stage": random.choice((4, 6))}
    rack = {"switch": switch, "crossing_us": random.choice((0, 1, 6)), "servers": servers, "nfs": nfs}
    if random.random() < 0.25:
        rack["overheads"] = {"subgroup_cycles": 220, "replica_cycles": 180, "stages": random.choice((0, 1))}
    sizes = [random.randint(1, 5) for _ in range(random.choice((1, 2, 2)))]
    return {"chains": [_asked(random, f"c{at}", size, rack, len(sizes)) for at, size in enumerate(sizes)]}, rack


def racks(seed: int) -> tuple[Json, Json]:
    """Short chains on three or four servers, equal or not, so few that all plans can be tried."""
    random = Random(f"racks {seed}")
    servers = _servers(random, (3, 3, 3, 4), cores=(1, 3), smartnic=0.2)
    for server in servers[1:]:
        if random.random() < 0.3:
            server["nic_mbps"] = random.choice((2000, 5000))
    kinds = random.sample(KINDS, random.randint(2, 4))
    smartnic = 0.4 * _with_smartnics(servers)
    nfs = {kind: _costs(random, (500, 9000), 4, smartnic, switch=0.3) for kind in kinds}
    switch: Json = {"stages": random.choice((None, 1, 2, 3)), "blocks_per_stage": random.choice((4, 6))}
    rack = {"switch": switch, "crossing_us": random.choice((0, 1, 6)), "servers": servers, "nfs": nfs}
    number = random.choice((2, 2, 3, 3, 4))
    sizes = [random.choice({2: (1, 2, 3, 3), 3: (1, 2, 2), 4: (1, 1, 2)}[number]) for _ in range(number)]
    chains = [_asked(random, f"c{at}", size, rack, 2) for at, size in enumerate(sizes)]
    for at in range(1, len(chains)):
        if random.random() < 0.5:  # equal chains, as fleets have them
            chains[at] = chains[0] | {"name": f"c{at}"}
    return {"chains": chains}, rack


def tabled(seed: int) -> tuple[Json, Json]:
    """Chains and a rack whose NFs on the switch are tables: their keys, writes and memory decide what fits."""
    random = Random(f"tabled {seed}")
    servers = _servers(random, (1, 1, 2), cores=(1, 4), smartnic=0.2)
    kinds = random.sample(KINDS, random.randint(2, 4))
    nfs = {kind: _costs(random, (500, 9000), 1, 0.2 * _with_smartnics(servers), switch=0.85) for kind in kinds}
    for costs in nfs.values():
        if "switch" in costs:
            costs["switch"]["tables"] = [_table(random, f"t{at}") for at in range(random.choice((1, 1, 2)))]
    switch = {
        "stages": random.randint(1, 5),
        "tcam": {"blocks": random.choice((4, 4, 5)), "bits": 44, "entries": 512},
        "sram": {"blocks": random.choice((1, 2)), "bits": 80, "entries": 2000},
    }
    rack = {"switch": switch, "crossing_us": random.choice((0, 1, 6)), "servers": servers, "nfs": nfs}
    if random.random() < 0.25:
        rack["overheads"] = {"subgroup_cycles": 220, "replica_cycles": 180, "stages": random.choice((0, 1))}
    sizes = [random.randint(1, 4) for _ in range(random.choice((1, 2, 2)))]
    return {"chains": [_asked(random, f"c{at}", size, rack, len(sizes)) for at, size in enumerate(sizes)]}, rack


def _table(random: Random, name: str) -> Json:
    """A table of up to six blocks, or of none."""
    fields = ("ip.src", "ip.dst", "l4.ports", "meta.class")
    key = {one: random.choice((8, 32, 48)) for one in random.sample(fields, random.choice((0, 1, 1, 2)))}
    match = random.choice(("exact", "ternary", "lpm"))
    writes = random.sample(fields, random.choice((0, 1, 1, 2)))
    return {"name": name, "key": key, "match": match, "entries": random.choice((1, 600, 1000, 3000)), "writes": writes}


def _asked(random: Random, name: str, size: int, rack: Json, chains: int) -> Json:
    """A chain of an everyday graph whose SLO asks for little or much."""
    chain = _chain(random, name, size, list(rack["nfs"]), extra=0.5)
    least = int(_fastest(chain, rack) * random.choice((0.05, 0.1, 0.2, 0.4, 0.7, 1.1))) // chains
    largest = max(least, 1) + random.choice((100_000, least, random.randint(0, 5000)))
    d_max = random.choice((None, None, random.randint(2, 16), random.randint(10, 60)))
    return chain | {"t_min_mbps": least, "t_max_mbps": largest, "d_max_us": d_max}


def sockets(seed: int) -> tuple[Json, Json]:
    """Short chains on one or two servers with several sockets and NICs, and cores that subgroups share."""
    random = Random(f"sockets {seed}")
    servers = _servers(random, (1, 1, 2), cores=(2, 5), smartnic=0.2)
    for server in servers:
        cores, mbps, server["shared_cores"] = server["cores"], server["nic_mbps"], random.random() < 0.6
        reserved = server.pop("reserved_cores")
        if random.random() < 0.7:
            first = random.randint(0, cores)
            del server["cores"]
            server["sockets"] = [{"cores": first}, {"cores": cores - first, "reserved_cores": reserved}]
            server["cross_socket_cycles"] = random.choice((0, 100, 300, 1000))
        if random.random() < 0.7:
            nics = 1 if "smartnic" in server or random.random() < 0.2 else 2
            del server["nic_mbps"]
            numbers = [random.randrange(len(server.get("sockets", [0]))) for _ in range(nics)]
            rate = random.choice((mbps, mbps // 2))
            server["nics"] = [{"name": f"p{at}", "mbps": rate, "socket": to} for at, to in enumerate(numbers)]
    kinds = random.sample(KINDS, random.randint(2, 4))
    nfs = {kind: _costs(random, (0, 9000), 4, 0.4 * _with_smartnics(servers), switch=0.3) for kind in kinds}
    switch: Json = {"stages": random.choice((None, 1, 2, 3)), "blocks_per_stage": random.choice((4, 6))}
    rack = {"switch": switch, "crossing_us": random.choice((0, 1, 6)), "servers": servers, "nfs": nfs}
    if random.random() < 0.25:
        rack["overheads"] = {"subgroup_cycles": 220, "replica_cycles": 180, "stages": random.choice((0, 1))}
    sizes = [random.randint(1, 5 - len(servers)) for _ in range(random.choice((1, 2, 3)))]
    return {"chains": [_asked(random, f"c{at}", size, rack, len(sizes) + 1) for at, size in enumerate(sizes)]}, rack


def _servers(random: Random, numbers: Sequence[int], cores: tuple[int, int], smartnic: float) -> list[Json]:
    alike = random.random() < 0.5
    servers: list[Json] = []
    for at in range(random.choice(numbers)):
        if servers and alike:
            servers.append(servers[0] | {"name": f"s{at}"})
        else:
            reserved = random.choice((0, 0, 1))
            servers.append(
                {
                    "name": f"s{at}",
                    "cores": reserved + random.randint(*cores),
                    "reserved_cores": reserved,
                    "clock_mhz": random.choice((1700, 1700, 2400)),
                    "nic_mbps": random.choice((5000, 10_000, 40_000)),
                }
            )
            if random.random() < smartnic:
                servers[-1]["smartnic"] = {"cores": random.randint(1, 3), "clock_mhz": random.choice((1000, 800))}
        if nic := servers[-1].get("smartnic"):
            servers[-1]["smartnic"] = nic | {"name": f"n{at}"}
    return servers


def _with_smartnics(servers: Sequence[Json]) -> bool:
    return any("smartnic" in server for server in servers)


def _costs(random: Random, cycles: tuple[int, int], blocks: int, smartnic: float, switch: float = 0.5) -> Json:
    """Where a kind of NF runs: at one place at least."""
    costs: Json = {}
    while not costs:
        if random.random() < 0.9:
            costs["server"] = {"cycles": random.randint(*cycles), "replicable": random.random() < 0.7}
        if random.random() < switch:
            costs["switch"] = {"blocks": random.randint(0 if random.random() < 0.1 else 1, min(blocks, 6))}
        if random.random() < smartnic:
            costs["smartnic"] = {"cycles": random.randint(*cycles) // 4, "replicable": random.random() < 0.7}
    return costs


def _chain(random: Random, name: str, size: int, kinds: Sequence[str], extra: float, thirds: bool = False) -> Json:
    """A graph with one entry: each NF follows an earlier one, and some follow a second one, so that branches merge."""
    pairs = set()
    for head in range(1, size):
        pairs.add((head - 1 if random.random() < 0.65 else random.randrange(head), head))
        if head > 1 and random.random() < extra:
            pairs.add((random.randrange(head), head))
    order = random.sample(range(size), size)
    ids = [f"f{at}" for at in order]
    edges: list[list[Any]] = []
    for tail in range(size):
        heads = sorted(head for one, head in pairs if one == tail)
        weights = [1 if thirds else random.randint(1, 4) for _ in heads]
        for head, weight in zip(heads, weights, strict=True):
            edges.append([ids[tail], ids[head], _written(random, Fraction(weight, sum(weights)))])
    random.shuffle(edges)
    nfs = [{"id": one, "nf": random.choice(kinds)} for one in sorted(ids)]
    return {"name": name, "packet_size": random.choice((256, 1500)), "nfs": nfs, "edges": edges}


def _written(random: Random, share: Fraction) -> str | float:
    """A share as a text, or as a number where that is exact."""
    decimal = Fraction(str(float(share))) == share
    return float(share) if decimal and random.random() < 0.5 else str(share)


def _fastest(chain: Json, rack: Json) -> float:
    """What the first server's cores give the chain's NFs when they share them, in Mbps."""
    server = rack["servers"][0]
    cycles = sum(rack["nfs"][nf["nf"]].get("server", {"cycles": 500})["cycles"] for nf in chain["nfs"]) + 100
    cores = server["cores"] if "cores" in server else sum(socket["cores"] for socket in server["sockets"])
    return float(cores * server["clock_mhz"] * 8 * chain["packet_size"] / cycles)


def _least_at_the_edge(random: Random, chain: Json, rack: Json) -> float | int:
    """Nothing, or the rate of whole cores for one NF: exactly, or rounded to a number just above or below."""
    costs = [rack["nfs"][nf["nf"]].get("server") for nf in chain["nfs"]]
    cycles = random.choice([cost["cycles"] for cost in costs if cost and cost["cycles"]] or [1000])
    rate = Fraction(rack["servers"][0]["clock_mhz"] * 8 * chain["packet_size"] * random.randint(1, 2), cycles)
    rate /= random.choice((1, 2, 3, 4))
    return random.choice((0, float(rate), float(rate), int(rate), int(rate) + 1))


def seed_ranges(few: int, many: range, at_a_time: int = 100) -> pytest.MarkDecorator:
    """Parametrizes a test with `seeds`: a few from 0 on, and those that only slow tests draw, some at a time."""
    slow = [many[at : at + at_a_time] for at in range(0, len(many), at_a_time)]
    chosen = [range(few), *(pytest.param(seeds, marks=pytest.mark.slow) for seeds in slow)]
    return pytest.mark.parametrize("seeds", chosen, ids=str)


def faulty(faults_of: FaultsOf, generator: Generator, seeds: range) -> dict[int, object]:
    """What is wrong with the instances of a generator, by seed."""
    each = {seed: faults_of(*generator(seed)) for seed in seeds}
    return {seed: wrong for seed, wrong in each.items() if wrong}
