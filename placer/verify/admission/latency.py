"""The latency of every admitted SLO, part by part."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple

from placer.verify.admission.bus import (
    Stream,
    TooManySteps,
    one_shot_wait,
    sporadic_wait,
    utilisation_of,
)
from placer.verify.admission.claims import ClaimedAdmitted, ClaimedDevice, ClaimedSlo


class LatencyTerms(NamedTuple):
    """Parts of a latency, us; the wait is None where it has no bound, or none that can be computed."""

    batching: Fraction
    pre_post: Fraction
    wait: Fraction | None
    transfer: Fraction
    kernel: Fraction
    utilisation: Fraction
    """Of the bus, by this SLO and all earlier ones; 0 where transfers do not recur."""

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
    """The parts of every latency, in the order of transfers.

    Parameters
    ----------
    device
        The model.
    slos
        By id, with all those of `admitted`.
    admitted
        Each with a batch of at least 1 and another order than the others.
    """
    in_order = sorted(admitted, key=lambda one: one.order)
    streams = [_stream(device, slos[one.id], one.batch) for one in in_order]
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
