"""What a testbed measures of a plan: the rate that each subgroup reaches beside its neighbours.

A core that runs a subgroup is a chain of one core to the testbed, run to completion. Testbeds know no branches: where
a subgroup branches, or packets enter it in several places, each path is a chain, and paths divide the core's time as
their cycles do. Each subgroup is measured while it takes all that it can: that is its capacity, which a run at the
offered rate would hide. Its neighbours meanwhile run at the rates of the plan; those that are busy nearly all the time
by these take all that they can, too.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from placer.rack.chain import Chain
from placer.rack.contention.co_location import Member, Placed, co_locations
from placer.rack.contention.modelled_growth import chain_traffic, testbed_nf
from placer.rack.plan import RackPlan
from placer.rack.rack import Device, Rack
from profiler.testbed import Testbed
from profiles import ChainLoad, NfStage, TrafficProfile

NEARLY_BUSY = 0.9  # the share of its time for which a subgroup is busy
LEAST_KPPS = 1e-3  # in place of an offered load of 0, which stands for all that a chain takes
LEAST_SHARE = 1e-6  # of a core's time, for a path that takes none by cycles
KPPS_PER_MBPS = 1000.0  # of packets of one bit


@dataclass(frozen=True)
class Capacity:
    """What a testbed measures of a subgroup of a plan.

    `chain`, `group`: their numbers in the plan. `mbps`, `alone_mbps`: the largest rate of the chain, beside its
    neighbours and with the server to itself.
    """

    chain: int
    group: int
    mbps: float
    alone_mbps: float


@dataclass(frozen=True)
class CorePath:
    """NFs that packets pass on one core, and how many packets per packet of the chain do."""

    load: ChainLoad
    packets: float


def capacities(plan: RackPlan, testbed: Testbed) -> list[Capacity]:
    """The capacity of each subgroup on servers; noise-free where the testbed can.

    Raises RunRefused when the testbed cannot run a co-location: unknown NFs, or more paths than it has cores.
    """
    found = []
    for device, placed in co_locations(plan.chains, plan.rack):
        if device.is_smartnic:
            continue
        paths = [_paths(core_nf.member, plan.rack, device, testbed.describe().traffic) for core_nf in placed]
        beside = [_beside(at, plan, placed, paths) for at in range(len(placed))]
        alone = [[path.load for path in of_group] for of_group in paths]
        runs = testbed.run_many([*beside, *alone], noise=False)
        for at, one in enumerate(placed):
            kpps = [[each.throughput_kpps for each in run.measurements] for run in (runs[at], runs[len(placed) + at])]
            each = len(paths[at])
            copies = [kpps[0][first : first + each] for first in range(0, each * one.member.cores, each)]
            bits = one.member.chain.packet_bits / KPPS_PER_MBPS
            mbps = sum(_capacity(paths[at], copy) for copy in copies) * bits
            found.append(Capacity(one.chain, one.group, mbps, one.member.cores * _capacity(paths[at], kpps[1]) * bits))
    return found


def measure_rates(plan: RackPlan, found: Sequence[Capacity]) -> list[float]:
    """What each chain of a plan reaches of its rate, Mbps."""
    rates = [chain.rate_mbps for chain in plan.chains]
    for capacity in found:
        rates[capacity.chain] = min(rates[capacity.chain], capacity.mbps)
    return rates


def _beside(at: int, plan: RackPlan, placed: Sequence[Placed], paths: Sequence[Sequence[CorePath]]) -> list[ChainLoad]:
    """A co-location in which one subgroup takes all that it can; its loads come first, one copy after another."""
    loads = [path.load for path in paths[at]] * placed[at].member.cores
    for other, one in enumerate(placed):
        if other != at:
            offered = [path.load for path in paths[other]]
            rate = plan.chains[one.chain].rate_mbps
            # the share of its time that a subgroup works at a rate of its chain, by cycles
            group, cores = plan.chains[one.chain].subgroups[one.group]
            most = group.rate(cores, plan.rack.devices[group.device], one.member.chain.packet_bits)
            if (rate / float(most) if most else 0.0) < NEARLY_BUSY:
                kpps = rate * KPPS_PER_MBPS / one.member.chain.packet_bits / one.member.cores
                offered = [replace(path.load, rate_kpps=max(kpps * path.packets, LEAST_KPPS)) for path in paths[other]]
            loads += offered * one.member.cores
    return loads


def _capacity(paths: Sequence[CorePath], kpps: Sequence[float]) -> float:
    """Packets of the chain, kpps, that a core passes which gives each path the time that it needs."""
    time = sum(
        path.packets * (path.load.shares[0] if path.load.shares else 1.0) / rate
        for path, rate in zip(paths, kpps, strict=True)
    )
    return 1 / time


def _paths(member: Member, rack: Rack, device: Device, default: TrafficProfile) -> list[CorePath]:
    """The paths of a subgroup; those of the same NFs are one."""
    chain, traffic = member.chain, chain_traffic(rack, member.chain, default)
    busy = dict(zip(member.nfs, member.busy, strict=True))
    packets: dict[tuple[NfStage, ...], Fraction] = {}
    first: dict[tuple[NfStage, ...], tuple[int, ...]] = {}
    for nfs, share in walks(chain, member.nfs).items():
        key = tuple(testbed_nf(rack, chain.nfs[at], device) for at in nfs)
        packets[key] = packets.get(key, Fraction(0)) + share
        first.setdefault(key, nfs)
    # the time of an NF is divided among the paths through it as their packets are
    times = [float(packets[key]) * sum(busy[at] / float(chain.reach[at]) for at in nfs) for key, nfs in first.items()]
    total = sum(times)
    found = []
    for key, time in zip(first, times, strict=True):
        shares = [max(time / total, LEAST_SHARE)] if len(times) > 1 and total else []
        load = ChainLoad.of(key, [list(range(len(key)))], traffic, shares=shares)
        found.append(CorePath(load, float(packets[key])))
    return found


def walks(chain: Chain, nfs: Sequence[int]) -> Mapping[tuple[int, ...], Fraction]:
    """The ways of packets through some connected NFs of a chain, with the share of the chain's packets that takes each.

    A way begins where packets enter these NFs, and ends where they leave them.
    """
    inside = set(nfs)
    found: dict[tuple[int, ...], Fraction] = {}
    into = [edge for edge in chain.edges if edge.head in inside and edge.tail not in inside]
    waiting: list[tuple[tuple[int, ...], Fraction]] = [
        ((edge.head,), chain.reach[edge.tail] * edge.share) for edge in into
    ]
    waiting += [((chain.entry,), Fraction(1))] if chain.entry in inside else []
    while waiting:
        way, share = waiting.pop()
        edges = chain.edges_from(way[-1])
        waiting += [((*way, edge.head), share * edge.share) for edge in edges if edge.head in inside]
        leaving = sum((edge.share for edge in edges if edge.head not in inside), Fraction(0 if edges else 1))
        if leaving:
            found[way] = found.get(way, Fraction(0)) + share * leaving
    return found
