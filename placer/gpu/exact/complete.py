"""Complete search, for few SLOs: all sets of one more SLO, and all ways to put their minibatches on SMs. What is
admitted stays admitted without one of the others: so if no set of some size is, none that is larger is. A set or a
partly placed one is left out as soon as the bus cannot serve it with everybody not yet placed at its best."""

import time
from collections.abc import Callable, Iterator

import numpy as np

from placer.gpu.bus import in_time
from placer.gpu.exact.bound import BestCases
from placer.gpu.exact.sm_layout import Problem, SmLayout, empty_layout, least_batch, put, sharing, slack, take
from placer.gpu.tables import compile_kernel
from profiles.arrays import Floats, Ints


class CompleteSearch:
    """The search for a set of some size that can be admitted. `deadline`: on the monotonic clock, seconds."""

    def __init__(self, problem: Problem, cases: BestCases, deadline: float) -> None:
        self._p = problem
        self._cases = cases
        self._deadline = deadline
        self._layout = empty_layout(problem)
        count = len(problem.nf)
        self._executors, self._fewer = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
        self._kernel = np.zeros(count)
        self._low, self._high = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)

    def expired(self) -> bool:
        """Whether the time is over; what was not found until then is unknown."""
        return time.monotonic() > self._deadline

    def admits(self, size: int) -> SmLayout | None:
        """A layout that admits as many SLOs; None where there is none, or the time is over."""
        self._layout.chosen[:] = 0
        possible = np.flatnonzero(self._cases.size > 0)
        # Large batches first, as they fit least.
        possible = possible[np.argsort(-self._cases.batch[possible], kind="stable")]
        for members in self._sets(possible, 0, np.empty(0, dtype=np.int64), size):
            if self._places(members, 0):
                return self._layout
        return None

    def _sets(self, possible: Ints, at: int, members: Ints, size: int) -> Iterator[Ints]:
        """Sets of the size that the bus serves with everybody at its best."""
        if len(members) == size:
            yield members
            return
        for k in range(at, len(possible) - (size - len(members)) + 1):
            more = np.append(members, possible[k])
            if fits(self._p, more, self._cases.kernel, self._cases.batch, self._cases.most) and not self.expired():
                yield from self._sets(possible, k + 1, more, size)

    def _places(self, members: Ints, at: int) -> bool:
        """Whether the members from `at` on can be placed beside those before; leaves them placed where they can."""
        if at == len(members):
            return self._batches(members)
        i = int(members[at])
        width = self._p.width
        for executors in range(-(-int(self._cases.batch[i]) // width), -(-int(self._cases.most[i]) // width) + 1):
            self._executors[i], self._fewer[i] = executors, executors - 1
            for split in self._splits(executors):
                for sm, part in split:
                    put(self._p, self._layout, i, sm, part)
                if self._within_bounds(members) and self._places(members, at + 1):
                    return True
                take(self._p, self._layout, i)
                if self.expired():
                    return False
        return False

    def _within_bounds(self, members: Ints) -> bool:
        """Whether the bus may still serve all members."""
        cases = self._cases
        return bool(
            limits(
                self._p, self._layout, members, self._executors, self._fewer, cases.batch, cases.most, cases.kernel,
                self._kernel, self._low, self._high,
            )
            and fits(self._p, members, self._kernel, self._low, self._high)
        )  # fmt: skip

    def _batches(self, members: Ints) -> bool:
        """Whether batches let the bus serve all members, who are placed; leaves them in the layout."""
        if not self._within_bounds(members):
            return False
        low, high = self._low.copy(), self._high.copy()
        batches = batches_in_time(self._p, members, self._kernel, low, high, self.expired)
        if batches is None:
            return False
        self._layout.wish[members] = batches[members]
        return True

    def _splits(self, executors: int) -> Iterator[list[tuple[int, int]]]:
        """Ways to put executors on SMs; of SMs with the same tenants, an earlier one gets no fewer than a later one."""
        layout = self._layout
        free = [self._p.slots - int(used) for used in layout.used]
        tenants = [
            sorted(zip(layout.tenant[sm, :there].tolist(), layout.tenant_executors[sm, :there].tolist(), strict=True))
            for sm, there in enumerate(layout.tenants.tolist())
        ]
        same = [
            next((before for before in range(sm - 1, -1, -1) if tenants[before] == tenants[sm]), -1)
            for sm in range(self._p.sms)
        ]
        yield from _parts(executors, 0, free, same, [])


def _parts(left: int, sm: int, free: list[int], same: list[int], before: list[int]) -> Iterator[list[tuple[int, int]]]:
    if left == 0:
        yield [(at, part) for at, part in enumerate(before) if part > 0]
        return
    if sm == len(free):
        return
    most = min(left, free[sm], before[same[sm]] if same[sm] >= 0 else left)
    for part in range(most, -1, -1):
        if left - part <= sum(free[sm + 1 :]):
            yield from _parts(left - part, sm + 1, free, same, [*before, part])


# Batches of placed SLOs: whether any within their intervals let the bus serve all in time.
#
# Which batch suits an SLO best depends on the others, where transfers recur. Of an interval, no batch has a shorter
# transfer or a later due time than the smallest, and none a longer period than the largest. A bus that cannot serve all
# SLOs with these three at once cannot serve them with any batches of the intervals, since a shorter transfer, a longer
# period or a later due time never makes anybody late. Otherwise an interval is halved. So only those batches are tried
# that can matter.


Expired = Callable[[], bool]  # whether the time is over; raises nothing


@compile_kernel
def limits(p, layout, members, executors, fewer, cases_batch, cases_most, cases_kernel, kernel, low, high):  # type: ignore[no-untyped-def]
    """Fill the kernels of the members and the intervals of their batches; False where one has none. Members without
    minibatches are at their best. Batches that `fewer` executors process are left to these."""
    for i in members:
        if layout.parts[i] == 0:
            kernel[i], low[i], high[i] = cases_kernel[i], cases_batch[i], cases_most[i]
            continue
        kernel[i] = 0.0
        for part in range(layout.parts[i]):
            alone = p.step_us[i] * layout.part_executors[i, part] + p.base_us[i]
            kernel[i] = max(kernel[i], alone + sharing(p, i, layout.part_sm[i, part], layout))
        low[i] = least_batch(p, i, kernel[i])
        high[i] = min(executors[i] * p.width, max(low[i], cases_most[i]))
        if low[i] < 0 or low[i] > executors[i] * p.width:
            return False
        if p.pinned[i] > 0 or not p.sporadic:
            high[i] = low[i]
        else:
            low[i] = max(low[i], fewer[i] * p.width + 1)
            if low[i] > high[i]:
                return False
    return True


@compile_kernel
def fits(p, members, kernel, small, large):  # type: ignore[no-untyped-def]
    """Whether the bus serves the members with the transfers and due times of one batch and the periods of another."""
    count = len(members)
    transfer, period, due = np.empty(count), np.empty(count), np.empty(count)
    for k in range(count):
        i = members[k]
        transfer[k] = p.slope_us[i] * small[i] + p.fixed_us[i]
        period[k] = large[i] * p.gap_us[i]
        due[k] = slack(p, i, small[i], kernel[i])
        if transfer[k] > due[k]:
            return False
    return in_time(p.sporadic, np.arange(count), count, transfer, period, due, count)


def batches_in_time(p: Problem, members: Ints, kernel: Floats, low: Ints, high: Ints, expired: Expired) -> Ints | None:
    """Batches with which the bus serves the members in time, by SLO; None where there are none, or the time is over."""
    open_ones = [(low, high)]
    while open_ones and not expired():
        low, high = open_ones.pop()
        if not fits(p, members, kernel, low, high):
            continue
        for batches in (low, np.maximum(low, np.minimum(high, _even(p, kernel))), high):
            if fits(p, members, kernel, batches, batches):
                return batches
        widest = members[np.argmax(high[members] / low[members])]
        if high[widest] == low[widest]:
            continue
        middle = (low[widest] + high[widest]) // 2
        upper, lower = low.copy(), high.copy()
        upper[widest], lower[widest] = middle + 1, middle
        open_ones += [(upper, high), (low, lower)]
    return None


def _even(p: Problem, kernel: Floats) -> Ints:
    """Batches whose period is half of what latency is left, the other half being the wait."""
    return ((p.latency_us - p.pre_post_us - kernel) / (2.0 * p.gap_us)).astype(np.int64)
