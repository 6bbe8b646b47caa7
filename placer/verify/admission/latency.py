"""The latency of every admitted SLO, part by part."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple

from placer.verify.admission.claims import ClaimedAdmitted, ClaimedDevice, ClaimedSlo


class LatencyTerms(NamedTuple):
    """Parts of a latency, us; the wait is None where it has no bound, or none that can be computed."""

    batching: Fraction
    pre_post: Fraction
    wait: Fraction | None
    transfer: Fraction
    kernel: Fraction
    utilisation: Fraction  # of the bus, by this SLO and all earlier ones; 0 where transfers do not recur

    @property
    def total(self) -> Fraction | None:
        """The latency, us."""
        return None if self.wait is None else self.batching + self.pre_post + self.wait + self.transfer + self.kernel

    def __str__(self) -> str:
        wait = "no bound" if self.wait is None else f"{float(self.wait):g}"
        return (
            f"batching {float(self.batching):g}, pre/post {float(self.pre_post):g}, wait {wait}, "
            f"transfer {float(self.transfer):g}, kernel {float(self.kernel):g}"
        )


def latency_terms(
    device: ClaimedDevice, slos: Mapping[str, ClaimedSlo], admitted: Sequence[ClaimedAdmitted]
) -> Iterator[tuple[ClaimedAdmitted, LatencyTerms]]:
    """The parts of every latency, in the order of transfers. `slos`: by id, with all those of `admitted`. `admitted`:
    each with a batch of at least 1 and another order than the others."""
    in_order = sorted(admitted, key=lambda one: one.order)
    streams = [_stream(device, slos[claim.id], claim.batch) for claim in in_order]
    for place, one in enumerate(in_order):
        slo, own = slos[one.id], streams[place]
        earlier, later = streams[:place], streams[place + 1 :]
        wait, utilisation = one_shot_wait(earlier), Fraction(0)
        bounded: Fraction | None = wait
        if device.arbitration == "sporadic":
            utilisation = utilisation_of(streams[: place + 1])
            bounded = _longest(own, earlier, later) if utilisation < 1 else None
        yield (
            one,
            LatencyTerms(
                1000 * (one.batch - 1) / slo.rate_kpps,
                device.nfs[slo.nf].pre_post_us,
                bounded,
                own.transfer,
                kernel_us(device, slos, admitted, one),
                utilisation,
            ),
        )


def kernel_us(
    device: ClaimedDevice, slos: Mapping[str, ClaimedSlo], admitted: Sequence[ClaimedAdmitted], one: ClaimedAdmitted
) -> Fraction:
    """The longest kernel of an SLO's minibatches: executors, and the largest penalty of who shares the SM."""
    nf = slos[one.id].nf
    per_executor, fixed = device.nfs[nf].kernel_us
    penalties = device.sharing_us.get(nf, {})
    longest = Fraction(0)
    for minibatch in one.minibatches:
        others = [
            slos[other.id].nf
            for other in admitted
            if other is not one and any(shared.sm == minibatch.sm for shared in other.minibatches)
        ]
        penalty = max((penalties.get(other, Fraction(0)) for other in others), default=Fraction(0))
        longest = max(longest, per_executor * device.executors(minibatch.packets) + fixed + penalty)
    return longest


def _stream(device: ClaimedDevice, slo: ClaimedSlo, batch: int) -> Stream:
    return Stream(device.transfer(slo.nf, batch), slo.period_us(batch))


def _longest(own: Stream, earlier: Sequence[Stream], later: Sequence[Stream]) -> Fraction | None:
    try:
        return sporadic_wait(own, earlier, later)
    except TooManySteps:
        return None


# How long a batch waits for the bus, by both models of arbitration.
#
# `one-shot`: every NF transfers once, in order (Grus, section V-B). `sporadic`: batches recur, a transfer that has
# begun
# is not interrupted, and the smallest order goes first.
#
# References
# ----------
# Davis, Burns, Bril, Lukkien: Controller Area Network (CAN) schedulability analysis: refuted, revisited and revised.
# Real-Time Systems 35, 2007. https://doi.org/10.1007/s11241-007-9012-7 (section 3.2, without jitter).


MOST_STEPS = 1_000_000  # of the search for the longest wait; only where the utilisation is next to 1 there are more


class Stream(NamedTuple):
    """Batches of an NF on the bus: the time of one transfer, and the time between two, us."""

    transfer: Fraction
    period: Fraction

    @property
    def utilisation(self) -> Fraction:
        """Share of the bus that they take."""
        return self.transfer / self.period


class TooManySteps(Exception):
    """The longest wait is not found within `MOST_STEPS`."""


def one_shot_wait(earlier: Sequence[Stream]) -> Fraction:
    """The sum of all earlier transfers, us."""
    return sum((stream.transfer for stream in earlier), start=Fraction(0))


def utilisation_of(streams: Sequence[Stream]) -> Fraction:
    """The share of the bus that streams take together."""
    return sum((stream.utilisation for stream in streams), start=Fraction(0))


def sporadic_wait(own: Stream, earlier: Sequence[Stream], later: Sequence[Stream]) -> Fraction:
    """The longest wait of a batch from its arrival to the begin of its transfer, us.

    All streams arrive together just after the longest later transfer began. Batch `q` of the own stream begins at the
    smallest `w = blocking + q * transfer + sum over earlier of (floor(w / period) + 1) * transfer`, and arrived at `q *
    period`. Batches are examined until the line above all of them falls below the longest wait found.

    `own`, `earlier`, `later`: the streams with this, smaller and larger orders; own and earlier leave the bus idle at
    times (`utilisation_of` is below 1).

    Raises TooManySteps when the utilisation is so near 1 that this takes too long."""
    blocking = max((stream.transfer for stream in later), default=Fraction(0))
    burst = blocking + one_shot_wait(earlier)
    idle = 1 - utilisation_of(earlier)
    begin, longest, steps, batch = burst, Fraction(0), 0, 0
    while batch == 0 or (burst + batch * own.transfer) / idle - batch * own.period > longest:
        while True:
            steps += 1
            if steps > MOST_STEPS:
                raise TooManySteps
            served = sum((begin // stream.period + 1) * stream.transfer for stream in earlier)
            after = blocking + batch * own.transfer + served
            if after == begin:
                break
            begin = after
        longest = max(longest, begin - batch * own.period)
        batch += 1
        begin += own.transfer
    return longest
