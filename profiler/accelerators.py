"""The co-runs that tell queues, service time and execution pattern of an NF (Tomur, sections 4.1.1 and 4.2)."""

from __future__ import annotations

from collections.abc import Sequence

from profiler.contention import ALONE, AcceleratorLevels, BenchLevel, BenchLevels, Contention
from profiler.memory_contention import MemoryContention
from profiler.nf_runs import CoLocation
from profiler.sampling import traffic_ranges, traffic_with
from profiles import NfDescription, TestbedDescription, TrafficProfile

MOST_BENCHES = 3


def accelerator_co_locations(
    description: TestbedDescription, nf: NfDescription, benches: BenchLevels
) -> list[CoLocation]:
    """Beside each accelerator's bench alone: fewer than ten companies per accelerator.

    At saturation, three service demands at the most work an NF can ask, two at default traffic, the heaviest at no
    matches and at small packets: the NF must spend most of its time on the accelerator, and service time must be seen
    over whatever sets it. Then two light competitors, for the linear part of the throughput curve.
    """
    free = description.nic.cores - nf.cores
    co_locations = []
    for levels in used_levels(nf, benches):
        strengths = _strengths(levels, free)
        if not strengths:
            continue
        heavy, medium, weak = strengths
        most, default, fewest, small = _work(description)
        co_locations += [(most, strength) for strength in (heavy, medium, weak)]
        co_locations += [(default, heavy), (default, medium), (fewest, heavy), (small, heavy)]
        co_locations += [(default, Contention((light,))) for light in levels.light[-2:]]
    return list(dict.fromkeys(co_locations))


def pattern_co_locations(
    description: TestbedDescription, nf: NfDescription, benches: BenchLevels, memory: MemoryContention
) -> list[CoLocation]:
    """Memory and accelerator benches together: what one resource costs while the other is short tells the pattern.

    Every combination of two strengths of memory contention with none and two of accelerator contention, at three
    amounts of accelerator work; then every accelerator of the NF loaded at once.
    """
    free = description.nic.cores - nf.cores
    used = [strengths for levels in used_levels(nf, benches) if (strengths := _strengths(levels, free - 1))]
    mediums = [medium for _, medium, _ in used]
    together = [sum(mediums, start=ALONE)] if len(mediums) > 1 else []
    pressures = [pressure for heavy, medium, _ in used for pressure in (heavy, medium)] + together
    co_locations: list[CoLocation] = []
    for traffic in _work(description)[:3]:
        for pressure in [ALONE, *pressures] if pressures else []:
            room = free - _cores(pressure)
            beside = [memory.strongest(cores) for cores in (max(room // 2, 1), room)]
            co_locations += [(traffic, pressure + contention) for contention in beside if contention.levels]
    return list(dict.fromkeys(co_locations))


def used_levels(nf: NfDescription, benches: BenchLevels) -> list[AcceleratorLevels]:
    """The bench levels of the NF's accelerators, of those that have a bench."""
    return [benches.accelerators[name] for name in nf.accelerators if name in benches.accelerators]


def _strengths(levels: AcceleratorLevels, cores: int) -> tuple[Contention, Contention, Contention] | None:
    """Heavy, medium and weak demand, all saturating: many of the slowest requests, one of them, one of the middle."""
    slowest, middle = levels.saturating[-1], levels.saturating[len(levels.saturating) // 2]
    if slowest.cores > cores:
        return None
    count = min(cores // slowest.cores, MOST_BENCHES)
    second: Sequence[BenchLevel] = (slowest,) if count > 1 else (middle,)
    weak = middle if count > 1 else levels.saturating[0]
    return Contention((slowest,) * count), Contention(tuple(second)), Contention((weak,))


def _work(description: TestbedDescription) -> list[TrafficProfile]:
    """Traffic that asks the most of an accelerator, the default, no matches, and small packets full of matches."""
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
