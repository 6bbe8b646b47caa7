"""Every constraint that the answer of an admission breaks."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from fractions import Fraction

from placer.verify.admission.claims import AdmissionCase, ClaimedAdmitted, ClaimedDevice, ClaimedSlo
from placer.verify.admission.latency import LatencyTerms, latency_terms

RELATIVE_SLACK = Fraction(1, 10**9)
"""A time this share above its limit still keeps it: the admission may compute with floating-point numbers."""


def admission_faults(case: AdmissionCase) -> Iterator[str]:
    """Everything that is wrong with an answer, a sentence each."""
    slos = {slo.id: slo for slo in case.slos}
    known = [claim for claim in case.answer.admitted if claim.id in slos]
    yield from _ids(case)
    yield from _workers(case)
    yield from _orders(case.answer.admitted)
    for claim in known:
        yield from (f"admitted: {claim.id}: {fault}" for fault in _shape(case.device, slos[claim.id], claim))
    yield from _executors(case.device, case.answer.admitted)
    if all(claim.batch >= 1 for claim in known):
        for one, terms in latency_terms(case.device, slos, known):
            yield from (f"admitted: {one.id}: {fault}" for fault in _times(slos[one.id], one.batch, terms))
    yield from _check_bound(case)


def late(case: AdmissionCase) -> set[str]:
    """Ids of admitted SLOs whose own times break a limit: latency, kernel, pre/post or bus. The answer has known ids,
    each once, with batches of at least 1."""
    slos = {slo.id: slo for slo in case.slos}
    terms = latency_terms(case.device, slos, case.answer.admitted)
    return {one.id for one, parts in terms if any(_times(slos[one.id], one.batch, parts))}


def _ids(case: AdmissionCase) -> Iterator[str]:
    """Every SLO is either admitted or rejected, once; and nothing else is."""
    asked = [slo.id for slo in case.slos]
    answered = Counter([claim.id for claim in case.answer.admitted] + [claim.id for claim in case.answer.rejected])
    for unknown in sorted(answered.keys() - set(asked)):
        yield f"ids: {unknown} is not one of the SLOs"
    for name, times in answered.items():
        if times > 1:
            yield f"ids: {name} is answered {times} times"
    for missing in asked:
        if missing not in answered:
            yield f"ids: {missing} is neither admitted nor rejected"


def _workers(case: AdmissionCase) -> Iterator[str]:
    admitted, workers = len(case.answer.admitted), case.device.workers
    if admitted > workers:
        yield f"workers: {admitted} SLOs are admitted, there are {workers} workers"


def _orders(admitted: Sequence[ClaimedAdmitted]) -> Iterator[str]:
    by_order = defaultdict(list)
    for claim in admitted:
        by_order[claim.order].append(claim.id)
    for order, names in sorted(by_order.items()):
        if len(names) > 1:
            yield f"orders: {' and '.join(names)} all have order {order}"


def _shape(device: ClaimedDevice, slo: ClaimedSlo, one: ClaimedAdmitted) -> Iterator[str]:
    """Batch and minibatches, apart from times and the other SLOs."""
    if one.batch < 1:
        yield f"its batch is {one.batch}, below 1"
    if slo.batch is not None and one.batch != slo.batch:
        yield f"its batch is {one.batch}, and is fixed at {slo.batch}"
    if (packets := sum(part.packets for part in one.minibatches)) != one.batch:
        yield f"its minibatches are {packets} packets together, its batch is {one.batch}"
    for part in one.minibatches:
        if part.packets < 1:
            yield f"a minibatch on SM {part.sm} has {part.packets} packets"
        if not 0 <= part.sm < device.sms:
            yield f"SM {part.sm} is not one of 0 to {device.sms - 1}"
    for sm, times in Counter(part.sm for part in one.minibatches).items():
        if times > 1:
            yield f"it has {times} minibatches on SM {sm}"


def _executors(device: ClaimedDevice, admitted: Sequence[ClaimedAdmitted]) -> Iterator[str]:
    taken: Counter[int] = Counter()
    for claim in admitted:
        for part in claim.minibatches:
            taken[part.sm] += max(device.executors(part.packets), 0)
    for sm, executors in sorted(taken.items()):
        if executors > device.executors_per_sm:
            yield f"executors: SM {sm} has {device.executors_per_sm}, its minibatches take {executors}"


def _times(slo: ClaimedSlo, batch: int, terms: LatencyTerms) -> Iterator[str]:
    """Kernel, pre/post and bus against the period, and the latency against the SLO."""
    period = slo.period_us(batch)
    for name, value in (("kernel", terms.kernel), ("pre/post", terms.pre_post)):
        if above(value, period):
            yield f"its {name} takes {float(value):g} us, its period is {float(period):g} us"
    if terms.utilisation >= 1:
        yield f"with all earlier transfers it takes {float(terms.utilisation):g} of the bus, which must be below 1"
    elif terms.total is None:
        yield f"its wait is not computed: it and all earlier take {float(terms.utilisation):.9g} of the bus"
    elif above(terms.total, slo.latency_us):
        yield f"its latency is {float(terms.total):g} us ({terms}), its SLO is {float(slo.latency_us):g} us"


def _check_bound(case: AdmissionCase) -> Iterator[str]:
    bound, admitted = case.answer.bound, len(case.answer.admitted)
    if bound < admitted:
        yield f"bound: {bound} is below the {admitted} admitted"
    if case.answer.proven and bound > admitted:
        yield f"bound: {bound} is said to be reached, and {admitted} are admitted"


def above(value: Fraction, limit: Fraction) -> bool:
    """Whether a time is above its limit by more than the slack."""
    return value > limit + RELATIVE_SLACK * abs(limit)
