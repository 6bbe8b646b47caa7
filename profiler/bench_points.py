"""The co-runs with benches that reveal queues, service time and execution pattern of an NF (Tomur, 4.1.1 and 4.2)."""

from collections.abc import Sequence

from profiler.contention import (
    NO_CONTENTION,
    AcceleratorLevels,
    BenchLevel,
    BenchLevels,
    Contention,
    MemoryContention,
    OperatingPoint,
)
from profiler.sampling import traffic_ranges, traffic_with
from profiles import NfDescription, TestbedDescription, TrafficProfile

MOST_BENCHES = 3


def accelerator_points(
    description: TestbedDescription, nf: NfDescription, benches: BenchLevels
) -> list[OperatingPoint]:
    """With each accelerator's bench alone: fewer than ten points per accelerator. At saturation: three service demands
    with the most work an NF can request, two at default traffic, the heaviest without matches and with small packets.
    The NF must spend most of its time on the accelerator, and its service time must be measured over all that
    determines it. Then two light competitors, for the linear part of the throughput curve."""
    free = description.nic.cores - nf.cores
    points = []
    for levels in select_levels(nf, benches):
        strengths = _strengths(levels, free)
        if not strengths:
            continue
        heavy, medium, weak = strengths
        most, default, fewest, small = _work(description)
        points += [(most, strength) for strength in (heavy, medium, weak)]
        points += [(default, heavy), (default, medium), (fewest, heavy), (small, heavy)]
        points += [(default, Contention((light,))) for light in levels.light[-2:]]
    return list(dict.fromkeys(points))


def pattern_points(
    description: TestbedDescription, nf: NfDescription, benches: BenchLevels, memory: MemoryContention
) -> list[OperatingPoint]:
    """Memory and accelerator benches together: what one resource costs while the other is scarce shows the pattern.
    Every combination of two strengths of memory contention with none and two of accelerator contention, at three
    amounts of accelerator work; then every accelerator of the NF loaded at once."""
    free = description.nic.cores - nf.cores
    used = [strengths for levels in select_levels(nf, benches) if (strengths := _strengths(levels, free - 1))]
    mediums = [medium for _, medium, _ in used]
    together = [sum(mediums, start=NO_CONTENTION)] if len(mediums) > 1 else []
    pressures = [pressure for heavy, medium, _ in used for pressure in (heavy, medium)] + together
    points: list[OperatingPoint] = []
    for traffic in _work(description)[:3]:
        for pressure in [NO_CONTENTION, *pressures] if pressures else []:
            left = free - _cores(pressure)
            memories = [memory.strongest(cores) for cores in (max(left // 2, 1), left)]
            points += [(traffic, pressure + contention) for contention in memories if contention.levels]
    return list(dict.fromkeys(points))


def select_levels(nf: NfDescription, benches: BenchLevels) -> list[AcceleratorLevels]:
    """The bench levels of the NF's accelerators, of those that have a bench."""
    return [benches.accelerators[name] for name in nf.accelerators if name in benches.accelerators]


def _strengths(levels: AcceleratorLevels, cores: int) -> tuple[Contention, Contention, Contention] | None:
    """Heavy, medium and weak demand, saturating: several of the slowest requests, one of them, a middle one."""
    slowest, middle = levels.saturating[-1], levels.saturating[len(levels.saturating) // 2]
    if slowest.cores > cores:
        return None
    count = min(cores // slowest.cores, MOST_BENCHES)
    second: Sequence[BenchLevel] = (slowest,) if count > 1 else (middle,)
    weak = middle if count > 1 else levels.saturating[0]
    return Contention((slowest,) * count), Contention(tuple(second)), Contention((weak,))


def _work(description: TestbedDescription) -> list[TrafficProfile]:
    """Traffic with the most accelerator work, the default, no matches, and small packets full of matches."""
    ranges = {name: bounds for name, bounds in traffic_ranges(description).items() if name != "flows"}
    most = traffic_with(description.traffic, {name: high for name, (_, high) in ranges.items()})
    fewest = traffic_with(description.traffic, {"mtbr": ranges["mtbr"][0]}) if "mtbr" in ranges else None
    small = (
        traffic_with(most, {"packet_size": float(round(sum(ranges["packet_size"]) / 4))})
        if "packet_size" in ranges
        else most
    )
    return [most, description.traffic, fewest or small, small]


def _cores(contention: Contention) -> int:
    return sum(level.cores for level in contention.levels)
