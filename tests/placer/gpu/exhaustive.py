"""The most SLOs that a small GPU admits, by trying everything; it shares no code with `placer`.

Tried are all sets of SLOs, numbers of executors, ways to put them on SMs, batches and orders. What is left out
cannot be better:

- A set whose part is not admitted. Who leaves takes transfers and penalties along, so no latency grows.
- More executors than `ceil(batch / packets_per_executor)`. Without the surplus a kernel is not longer and an SM not
  fuller; as the batch is larger than one executor less would process, any SMs can share it that way.
- Kernel times of which others are nowhere longer and somewhere shorter, for the same numbers of executors.
- A batch above `1 + latency * rate / 1000`, which takes longer to collect than the SLO allows, or above what the
  executors of the whole GPU process.
- Where transfers happen once each, all but the smallest batch whose period is as long as kernel and pre/post, for a
  number of executors: a larger one takes longer to collect, and longer on the bus. Where they recur, all are tried.

All times are whole multiples of one fraction of a microsecond; nothing is rounded."""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import cache, lru_cache
from itertools import combinations, product
from math import lcm
from typing import Any

Json = dict[str, Any]
Counts = tuple[int, ...]  # a number for each SLO of a set


def most_admitted(device: Json, slos: Sequence[Json]) -> int:
    """How many SLOs can be admitted at most. `device`, `slos`: in the layout of CONTRACTS.md, section 10."""
    search = _Search(device, slos)
    found: set[tuple[int, ...]] = {()}
    for size in range(1, min(len(slos), device["workers"]) + 1):
        found = {
            members
            for members in combinations(range(len(slos)), size)
            if all(members[:out] + members[out + 1 :] in found for out in range(size)) and search.admits(members)
        }
        if not found:
            return size - 1
    return min(len(slos), device["workers"])


def exact(value: float) -> Fraction:
    """The value of a number's decimals."""
    return Fraction(str(value))


class _Slo:
    """One SLO, in whole multiples of `1 / scale` us."""

    def __init__(self, slo: Json, device: Json, scale: int) -> None:

        def whole(value: float) -> int:
            return int(exact(value) * scale)

        nf = device["nfs"][slo["nf"]]
        self.id, self.nf, self.pinned = slo["id"], slo["nf"], slo.get("batch")
        self.latency, self.pre_post = whole(slo["latency_us"]), whole(nf["pre_post_us"])
        self.gap = int(1000 / exact(slo["rate_kpps"]) * scale)
        self.slope, self.fixed = (whole(value) for value in device["transfer_us"][nf["class"]])
        self.per_executor, self.kernel_fixed = (whole(value) for value in nf["kernel_us"])
        self.beside = {other: whole(beta) for other, beta in device.get("sharing_us", {}).get(slo["nf"], {}).items()}
        self.packets = device["packets_per_executor"]

    def transfer(self, batch: int) -> int:
        return self.slope * batch + self.fixed

    def left(self, batch: int, kernel: int) -> int:
        """What a batch may wait for the bus; below 0 where it is too late anyway, or overtaken by the next."""
        if self.gap * batch < max(kernel, self.pre_post):
            return -1
        return self.latency - self.gap * (batch - 1) - self.pre_post - self.transfer(batch) - kernel

    def batches(self, executors: int, kernel: int) -> list[int]:
        """Batches that take so many executors and are in time while the bus is free."""
        smallest = (executors - 1) * self.packets + 1
        chosen = [self.pinned] if self.pinned else range(smallest, executors * self.packets + 1)
        return [
            batch for batch in chosen if smallest <= batch <= executors * self.packets and self.left(batch, kernel) >= 0
        ]


class _Search:
    def __init__(self, device: Json, slos: Sequence[Json]) -> None:
        numbers = [value for pair in device["transfer_us"].values() for value in pair]
        numbers += [value for nf in device["nfs"].values() for value in (nf["pre_post_us"], *nf["kernel_us"])]
        numbers += [beta for betas in device.get("sharing_us", {}).values() for beta in betas.values()]
        fractions = [exact(value) for value in numbers] + [exact(slo["latency_us"]) for slo in slos]
        fractions += [1000 / exact(slo["rate_kpps"]) for slo in slos]
        scale = lcm(*(one.denominator for one in fractions))
        self.device, self.slos = device, [_Slo(slo, device, scale) for slo in slos]
        self.sporadic = device["arbitration"] == "sporadic"
        self.tries = lru_cache(maxsize=None)(self._tries)

    def admits(self, members: Sequence[int]) -> bool:
        """Whether all members can be admitted."""
        slos = [self.slos[member] for member in members]
        for counts in self._executor_counts(slos):
            for kernels in self.tries(tuple(members), counts):
                choices = [
                    slo.batches(executors, kernel) for slo, executors, kernel in zip(slos, counts, kernels, strict=True)
                ]
                if not self.sporadic:
                    choices = [batches[:1] for batches in choices]
                if any(self._has_order(slos, batches, kernels) for batches in product(*choices)):
                    return True
        return False

    def _executor_counts(self, slos: Sequence[_Slo]) -> Iterator[Counts]:
        """Executors of each SLO that the GPU has, and with which each alone is in time."""
        all_of_them = self.device["sms"] * self.device["executors_per_sm"]
        fewest = {number: -(-number // self.device["sms"]) for number in range(1, all_of_them + 1)}
        choices = [
            [number for number in fewest if slo.batches(number, slo.per_executor * fewest[number] + slo.kernel_fixed)]
            for slo in slos
        ]
        return (counts for counts in product(*choices) if sum(counts) <= all_of_them)

    def _tries(self, members: tuple[int, ...], counts: Counts) -> list[Counts]:
        """The kernel times that putting so many executors on SMs can give, without those that are worse."""
        slos = [self.slos[member] for member in members]
        found = set(self._fill(slos, counts, (0,) * len(slos), None, self.device["sms"]))
        return [
            kernels
            for kernels in found
            if not any(other != kernels and all(a <= b for a, b in zip(other, kernels, strict=True)) for other in found)
        ]

    def _fill(
        self, slos: Sequence[_Slo], left: Counts, kernels: Counts, before: Counts | None, sms: int
    ) -> Iterator[Counts]:
        """Fill the next SM in every way; SMs are alike, so that each has at most what the one before has."""
        if not any(left):
            yield kernels
            return
        for on_sm in _within(left, self.device["executors_per_sm"]) if sms else ():
            if any(on_sm) and (before is None or on_sm <= before):
                rest = tuple(have - taken for have, taken in zip(left, on_sm, strict=True))
                longer = tuple(max(pair) for pair in zip(kernels, _kernels(slos, on_sm), strict=True))
                yield from self._fill(slos, rest, longer, on_sm, sms - 1)

    def _has_order(self, slos: Sequence[_Slo], batches: Sequence[int], kernels: Counts) -> bool:
        """Whether all are in time in some order, which is looked for from its end."""
        left = [slo.left(batch, kernel) for slo, batch, kernel in zip(slos, batches, kernels, strict=True)]
        bus = [(slo.transfer(batch), slo.gap * batch) for slo, batch in zip(slos, batches, strict=True)]

        @cache
        def before(unplaced: frozenset[int]) -> bool:
            blocking = max((bus[place][0] for place in range(len(slos)) if place not in unplaced), default=0)
            return not unplaced or any(
                self._in_time(bus[last], [bus[place] for place in unplaced if place != last], blocking, left[last])
                and before(unplaced - {last})
                for last in unplaced
            )

        return before(frozenset(range(len(slos))))

    def _in_time(self, own: tuple[int, int], earlier: Sequence[tuple[int, int]], blocking: int, left: int) -> bool:
        """Whether no batch waits longer than is left."""
        if not self.sporadic:
            return sum(transfer for transfer, _ in earlier) <= left
        return longest_wait(own, earlier, blocking, left) is not None


def longest_wait(own: tuple[int, int], earlier: Sequence[tuple[int, int]], blocking: int, most: int) -> int | None:
    """The longest wait of a batch in the busy period that begins with everybody's arrival; None where above `most`.
    `own`, `earlier`: times of transfer and periods. `blocking`: the longest transfer that is later in the order."""
    if sum(Fraction(transfer, period) for transfer, period in (own, *earlier)) >= 1:
        return None
    together = blocking + own[0] + sum(transfer for transfer, _ in earlier)
    while (after := blocking + sum(-(-together // period) * time for time, period in (own, *earlier))) > together:
        together = after
    longest = 0
    for instance in range(max(-(-together // own[1]), 1)):
        begin = own_work = blocking + instance * own[0]
        while (later := own_work + sum((begin // period + 1) * transfer for transfer, period in earlier)) > begin:
            begin = later
        if begin - instance * own[1] > most:
            return None
        longest = max(longest, begin - instance * own[1])
    return longest


def _within(most: Counts, free: int) -> Iterator[Counts]:
    """All numbers of executors of each SLO on one SM."""
    if not most:
        yield ()
        return
    for number in range(min(most[0], free), -1, -1):
        for rest in _within(most[1:], free - number):
            yield (number, *rest)


def _kernels(slos: Sequence[_Slo], on_sm: Counts) -> Counts:
    """The time of each SLO's kernel on one SM; 0 of those that are not there."""
    present = [place for place, number in enumerate(on_sm) if number]
    times = [0] * len(slos)
    for place in present:
        slo = slos[place]
        beta = max((slo.beside.get(slos[other].nf, 0) for other in present if other != place), default=0)
        times[place] = slo.per_executor * on_sm[place] + slo.kernel_fixed + beta
    return tuple(times)
