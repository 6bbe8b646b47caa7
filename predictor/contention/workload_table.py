"""Solo behaviour of workloads as arrays with one row per distinct workload."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol
from weakref import WeakSet

import numpy as np
from numpy.typing import NDArray

from predictor.contention.execution import PIPELINE
from predictor.contention.nf_model import NfModel
from predictor.contention.solo_rows import solo_models, write_loads, write_rows
from predictor.contention.workload_columns import GIVEN_NUMBERS, WHOLE_NUMBERS, count_numbers, view_columns
from predictor.regression.packed import PackedArrays
from profiles import InputError, TrafficProfile, Workload
from profiles.arrays import Floats
from profiles.faults import suggestion

FIRST_ROWS = 65_536
"""Rows there is room for at first, so that no decision waits for a copy; they take memory when they are written."""

LEAST_RELEASED = 4_096
"""Rows from which those that nobody keeps are given to other workloads."""

MOST_UNLOADED = 4_096
"""Workloads kept as they are before what is offered scales them."""


class RowUser(Protocol):
    """Keeps rows of a `WorkloadTable`."""

    def rows_in_use(self) -> NDArray[np.int64]:
        """The rows that it keeps; equal ones may come several times."""

    def __hash__(self) -> int: ...


class WorkloadTable:
    """Solo behaviour of workloads, computed once per distinct workload.

    Arrays have a row per workload, and spare rows at the end; they are views of `numbers` and `whole`.

    Attributes
    ----------
    nf
        Position of the NF in `names`, shape (workloads,).
    pipeline
        Whether its execution pattern is pipeline, shape (workloads,).
    relative
        Whether its memory model is relative to its throughput alone, shape (workloads,).
    deviation
        Of the traffic from default, as a share of the profiled range, shape (workloads, 3).
    traffic, counters
        Shapes (workloads, 3) and (workloads, 7); counters are NaN where the NF was not measured alone. What it carries
        of an offered rate scales them; its working set stays.
    base, match_ms, modelled_solo
        `NfModel.base_kpps`, time that matches add to run-to-completion, and `NfModel.modelled_solo_kpps`, shape
        (workloads,).
    factor, alone_spread
        `NfModel.factor`, and the spread of throughput alone that it leaves, shape (workloads,).
    rate
        What is offered (kpps), in the units of `modelled_solo`; infinite for more than it can carry, shape
        (workloads,).
    presence
        How much of a neighbour it is: what it carries alone, relative to what it carries at most on its default number
        of cores, shape (workloads,).
    pressure, exposure
        As of `CoreScale`, 1 on the default number of cores, shape (workloads,).
    doubt
        How much further predictions err, relative to more being offered than it can carry on the default number of
        cores, shape (workloads,).
    queues, service
        `AcceleratorUse.requests` and service time per accelerator in `accelerators`, 0 where it is not used, shape
        (workloads, accelerators).
    measured_alone
        Whether every NF was, so that the contention that it exerts is known.
    """

    nf: NDArray[np.int64]
    pipeline: NDArray[np.int64]
    relative: NDArray[np.int64]
    traffic: Floats
    deviation: Floats
    counters: Floats
    base: Floats
    match_ms: Floats
    modelled_solo: Floats
    factor: Floats
    alone_spread: Floats
    rate: Floats
    presence: Floats
    pressure: Floats
    exposure: Floats
    doubt: Floats
    queues: Floats
    service: Floats
    measured_alone: bool

    def __init__(self, nfs: Mapping[str, NfModel]) -> None:
        self.models = nfs
        self.names = tuple(nfs)
        self.accelerators = tuple(sorted({name for model in nfs.values() for name in model.accelerators}))
        self._index = WorkloadIndex(self._add)
        self.row: Callable[[Workload], int] = self._index.number
        """The row of one workload."""
        self._users = WeakSet[RowUser]()
        self._release_from = LEAST_RELEASED
        self._fillings = 0
        self._unloaded: dict[tuple[str, TrafficProfile, int], tuple[Floats, NDArray[np.int64]]] = {}
        self.measured_alone = all(model.solo for model in nfs.values())
        self._hold(0)
        self._number_of = {name: number for number, name in enumerate(self.names)}
        solo = solo_models(list(nfs.values()), self.accelerators)
        self._packed = PackedArrays(solo)
        self._compiled: list[bool] = solo.compiled.tolist()

    def rows(self, workloads: Sequence[Workload]) -> NDArray[np.intp]:
        """The row of each workload. Raises `InputError` when an NF is not modelled."""
        return self._index.numbers(workloads)

    def solo_of(self, workloads: Sequence[Workload]) -> Floats:
        """Throughput (kpps) of each workload alone."""
        rows = self.rows(workloads)
        solo: Floats = self.modelled_solo[rows] * self.factor[rows]
        return solo

    def add_user(self, user: RowUser) -> None:
        """Let somebody keep rows from one call to another."""
        self._users.add(user)

    def release_rows(self) -> None:
        """Let rows that no user keeps be given to other workloads, where about half of them are such.

        Nobody but users may keep a row from one call to another.
        """
        if self._index.free or len(self._index) < self._release_from or not self._users:
            return
        kept = np.zeros(len(self._index), dtype=np.bool_)
        for user in self._users:
            kept[user.rows_in_use()] = True
        self._index.free = dict.fromkeys(np.flatnonzero(~kept).tolist())
        self._release_from = max(LEAST_RELEASED, 2 * int(kept.sum()))

    @property
    def solo(self) -> Floats:
        """Throughput (kpps) of each workload alone, as measured where it was, shape (workloads,)."""
        return self.modelled_solo * self.factor

    def batch(self, co_locations: Sequence[Sequence[Workload]]) -> CoLocationBatch:
        """The co-locations, their members by their rows."""
        return self._index.batch(co_locations)

    def by_nf(self, rows: NDArray[np.intp]) -> Iterator[tuple[str, NDArray[np.bool_]]]:
        """Each NF that occurs in `rows`, and where."""
        for at in np.unique(self.nf[rows]):
            yield self.names[at], self.nf[rows] == at

    def competitors(self, member: NDArray[np.intp]) -> Floats:
        """The summed counters of each member's competitors, shape (co-locations, members, 7). Raises `InputError` when
        a competitor was not measured alone, so that its counters are not known.
        """
        occupied = member >= 0
        own = (
            np.where(occupied[:, :, None], self.counters[member], 0.0) if member.size else np.zeros((*member.shape, 7))
        )
        contended = occupied.sum(axis=1) > 1
        self.refuse_unknown_contention(member[occupied & contended[:, None]])
        total: Floats = np.maximum(own.sum(axis=1, keepdims=True) - own, 0.0)
        total[~contended] = 0.0
        return total

    def refuse_unknown_contention(self, rows: NDArray[np.intp]) -> None:
        """Refuse workloads that have competitors, of NFs that were not measured alone. Raises `InputError` when there
        is one, so that the contention that it exerts is not known.
        """
        if not self.measured_alone and np.isnan(self.counters[rows]).any():
            missing = next(name for name, model in self.models.items() if not model.solo)
            raise InputError.of(
                f"{missing}/solo.csv",
                f"is missing, or holds fewer than 3 runs, so the contention that {missing} exerts is not known",
                hint="measure it alone",
            )

    def _add(self, numbers: Sequence[int], workloads: Sequence[Workload]) -> None:
        self._grow(max(numbers) + 1)
        given = zip(numbers, workloads, strict=True)
        new = [(row, workload) for row, workload in given if not self._add_at_rate(row, workload)]
        if new and (len(new) > 1 or not self._add_plain(*new[0])):
            self._refuse_unknown([workload for _, workload in new])
            self._add_any(new)

    def _add_at_rate(self, row: int, workload: Workload) -> bool:
        """Fill a row as that of the same workload at another rate; False where none was filled yet."""
        saturated = workload.is_saturated
        known = None if saturated and not workload.cores else self._unloaded.get(_without_rate(workload))
        if known is None:
            return False
        model = self.models[workload.nf]
        given_cores = workload.cores not in (0, model.cores)
        if saturated and not given_cores:
            return False
        self._fillings += 1
        self.numbers[row], self.whole[row] = known
        self.rate[row], self.whole[row, -1] = workload.rate_kpps, self._fillings
        if not given_cores:
            self.doubt[row] = model.doubt_at_loads
        write_loads(self.numbers, self.whole, np.array((row,)))
        return True

    def _add_any(self, new: Sequence[tuple[int, Workload]]) -> None:
        rest, scaled, loaded = dict[str, list[int]](), dict[tuple[str, int], list[int]](), True
        for row, workload in new:
            number, model, saturated = self._number_of[workload.nf], self.models[workload.nf], workload.is_saturated
            given_cores = workload.cores not in (0, model.cores)
            loaded = loaded and saturated and not given_cores and self._compiled[number]
            self._fillings += 1
            self._give(row, number, workload, 1.0 if saturated else model.doubt_at_loads)
            if not self._compiled[number]:
                rest.setdefault(workload.nf, []).append(row)
            if given_cores:
                scaled.setdefault((workload.nf, workload.cores), []).append(row)
        added = np.array([row for row, _ in new])
        write_rows(self._packed.address, self.numbers, self.whole, added, loaded)
        if loaded:
            return
        for nf, rows in rest.items():
            self._fill(self.models[nf], np.array(rows))
        self.presence[added] = self.modelled_solo[added]
        for (nf, cores), rows in scaled.items():
            self._scale(self.models[nf], cores, np.array(rows))
        unloaded = {_without_rate(workload): row for row, workload in new if not workload.is_saturated}
        if len(self._unloaded) + len(unloaded) > MOST_UNLOADED:
            self._unloaded.clear()
        for key, row in unloaded.items():
            self._unloaded[key] = self.numbers[row].copy(), self.whole[row].copy()
        write_loads(self.numbers, self.whole, added)

    def _add_plain(self, row: int, workload: Workload) -> bool:
        """Fill a row, as most are: saturated on the default number of cores; False where models are not compiled."""
        number = self._number_of.get(workload.nf, -1)
        if number < 0 or workload.cores or not workload.is_saturated or not self._compiled[number]:
            return False
        self._fillings += 1
        self._give(row, number, workload, 1.0)
        write_rows(self._packed.address, self.numbers, self.whole, np.array((row,)), True)
        return True

    def _give(self, row: int, number: int, workload: Workload, doubt: float) -> None:
        """Write what does not follow from other numbers of the row; the others are zero where nothing writes them."""
        model, traffic = self.models[workload.nf], workload.traffic
        factor, spread = model.alone.at(traffic) if model.alone else (1.0, 0.0)
        given = factor, spread, workload.rate_kpps, 1.0, 1.0, doubt, *traffic.as_tuple()
        self.numbers[row, :GIVEN_NUMBERS], self.whole[row] = given, (number, 0, 0, self._fillings)
        if not self._compiled[number]:
            self.numbers[row, GIVEN_NUMBERS:] = 0.0

    def _refuse_unknown(self, workloads: Sequence[Workload]) -> None:
        if unknown := [workload.nf for workload in workloads if workload.nf not in self._number_of]:
            unknown = sorted(set(unknown))
            hint = suggestion(unknown[0], self.names)
            raise InputError.of("workloads", f"no model of {', '.join(unknown)}", column="nf", hint=hint)
        for workload in [workload for workload in workloads if workload.cores]:
            if workload.cores not in (counts := self.models[workload.nf].core_counts):
                known = ", ".join(map(str, counts)) or "its default number"
                message = f"{workload.nf} is not profiled on {workload.cores} cores"
                raise InputError.of("workloads", message, column="cores", hint=f"possible: {known}")

    def _grow(self, rows: int) -> None:
        """Make room for that many rows; arrays at least double, so that growing costs little."""
        if rows <= len(self.numbers):
            return
        numbers, whole = self.numbers, self.whole
        self._hold(max(rows, 2 * len(numbers), FIRST_ROWS))
        self.numbers[: len(numbers)], self.whole[: len(whole)] = numbers, whole

    def _hold(self, rows: int) -> None:
        """Make arrays of so many rows, all of them zero."""
        # one at least, which nobody uses: Numba would compile all kernels again for arrays without a column
        self.numbers = np.zeros((rows, count_numbers(max(len(self.accelerators), 1))))
        self.whole = np.zeros((rows, WHOLE_NUMBERS), dtype=np.int64)
        self.columns = view_columns(self.numbers, self.whole)
        for name, column in self.columns._asdict().items():
            setattr(self, name, column)

    def _fill(self, model: NfModel, rows: NDArray[np.intp]) -> None:
        """Fill the rows of an NF whose models are not compiled."""
        traffic, execution = self.traffic[rows], model.execution
        self.pipeline[rows] = execution.pattern == PIPELINE
        self.relative[rows] = model.solo is not None
        self.deviation[rows] = model.error_model.scale.deviation(traffic)
        self.counters[rows] = model.solo.own_counters(traffic) if model.solo else np.nan
        self.base[rows] = base = model.base_kpps(traffic)
        unmatched = execution.pattern == PIPELINE or not execution.uses
        self.match_ms[rows] = 0.0 if unmatched else execution.match_ms(traffic)
        self.modelled_solo[rows] = model.modelled_solo_kpps(traffic, base)
        for use in execution.uses:
            column = self.accelerators.index(use.name)
            self.service[rows, column] = service = use.service(traffic)
            self.queues[rows, column] = use.requests(service)

    def _scale(self, model: NfModel, cores: int, rows: NDArray[np.intp]) -> None:
        """Change rows of the default number of cores to another one."""
        scale, traffic = model.core_scales[cores], self.traffic[rows]
        self.base[rows] *= scale.factor(traffic)
        self.modelled_solo[rows] = model.modelled_solo_kpps(traffic, self.base[rows])
        self.pressure[rows], self.exposure[rows] = scale.pressure, scale.exposure
        self.factor[rows], self.alone_spread[rows], self.doubt[rows] = 1.0, scale.spread, scale.doubt


def _without_rate(workload: Workload) -> tuple[str, TrafficProfile, int]:
    """What a row follows from before what is offered scales it."""
    return workload.nf, workload.traffic, workload.cores


# Co-locations as arrays: one row per co-location, one column per member.


EMPTY_PLACE = -1

NO_WORKLOAD = Workload("", TrafficProfile(1, 64, 0))
"""Stands where a number has no workload yet."""


@dataclass(frozen=True)
class CoLocationBatch:
    """Co-locations of at most `members` workloads, one row each."""

    member: NDArray[np.intp]
    """Number of each workload in the `WorkloadIndex`; -1 where there is none. Shape (co-locations, members)."""
    order: NDArray[np.intp]
    """Position of each member in its co-location as it was given. Shape (co-locations, members)."""
    sizes: NDArray[np.intp]
    """Workloads per co-location."""
    in_order: bool = False
    """Whether all were given in the order of the members."""

    @cached_property
    def occupied(self) -> NDArray[np.bool_]:
        """Where there is a workload, shape (co-locations, members)."""
        occupied: NDArray[np.bool_] = self.member >= 0
        return occupied

    @cached_property
    def contended(self) -> NDArray[np.bool_]:
        """Where there is a workload that has competitors, shape (co-locations, members)."""
        contended: NDArray[np.bool_] = self.occupied & (self.sizes[:, None] > 1)
        return contended

    def in_given_order(self, values: Floats) -> list[Floats]:
        """Per co-location, its values of shape (co-locations, members, ...) in the order its workloads were given."""
        given = values
        if not self.in_order:
            given = np.empty_like(values)
            given[np.arange(len(values))[:, None], self.order] = values
        return [row[:size] for row, size in zip(given, self.sizes.tolist(), strict=True)]


class WorkloadIndex:
    """Numbers distinct workloads in the order in which they first occur. `add`: called with the next numbers and the
    workloads that get them; when it raises, they get none. `free`: numbers that may be given to other workloads.
    """

    def __init__(self, add: Callable[[Sequence[int], Sequence[Workload]], None]) -> None:
        self.free: dict[int, None] = {}
        self._numbers: dict[Workload, int] = {}
        self._workloads: list[Workload] = []
        self._keys: list[tuple[str | float, ...]] = []
        self._new: list[int] = []
        self._add = add

    def __len__(self) -> int:
        return len(self._workloads)

    def number(self, workload: Workload) -> int:
        """The number of one workload, which is added if it is new."""
        known = self._numbers.get(workload)
        if known is None or known in self.free:
            known = self._number(workload, {})
            self._fill_new()
        return known

    def numbers(self, workloads: Sequence[Workload]) -> NDArray[np.intp]:
        """The number of each workload; new ones are added."""
        by_identity: dict[int, int] = {}
        numbers = [self._number(workload, by_identity) for workload in workloads]
        self._fill_new()
        return np.array(numbers, dtype=np.intp)

    def _fill_new(self) -> None:
        """Let the workloads be added that have got numbers; when that fails, they have none."""
        new, self._new = self._new, []
        if new:
            try:
                self._add(new, [self._workloads[number] for number in new])
            except Exception:
                for number in reversed(new):
                    del self._numbers[self._workloads[number]]
                    # in the place of one that was free the workload stays, without its number
                    self.free[number] = None
                raise

    def batch(self, co_locations: Sequence[Sequence[Workload]]) -> CoLocationBatch:
        """The co-locations as arrays.

        Members are sorted, whatever order they were given in, so that sums over them are the same to the last bit.
        """
        numbers = self.numbers([workload for co_location in co_locations for workload in co_location])
        sizes = np.array([len(co_location) for co_location in co_locations], dtype=np.intp)
        given = np.full((len(sizes), int(sizes.max(initial=0))), EMPTY_PLACE, dtype=np.intp)
        given[np.arange(given.shape[1]) < sizes[:, None]] = numbers
        if self._are_sorted(numbers.tolist(), sizes.tolist()):
            places = np.broadcast_to(np.arange(given.shape[1]), given.shape)
            return CoLocationBatch(given, places, sizes, in_order=True)
        distinct = sorted(set(numbers.tolist()), key=self._keys.__getitem__)
        rank = np.empty(len(self) + 1, dtype=np.intp)
        rank[[*distinct, EMPTY_PLACE]] = np.arange(len(distinct) + 1)
        order = np.argsort(rank[given], axis=1, kind="stable")
        return CoLocationBatch(np.take_along_axis(given, order, axis=1), order, sizes)

    def _are_sorted(self, numbers: Sequence[int], sizes: Sequence[int]) -> bool:
        """Whether the members of each co-location are given in their order."""
        keys, first = self._keys, 0
        for size in sizes:
            for at in range(first + 1, first + size):
                if keys[numbers[at - 1]] > keys[numbers[at]]:
                    return False
            first += size
        return True

    def _number(self, workload: Workload, by_identity: dict[int, int]) -> int:
        number = by_identity.get(id(workload))
        if number is None:
            number = self._numbers.get(workload, EMPTY_PLACE)
            if number == EMPTY_PLACE:
                number = self._numbers[workload] = self._next()
                self._workloads[number] = workload
                self._keys[number] = workload.nf, *workload.traffic.as_tuple(), workload.rate_kpps, workload.cores
                self._new.append(number)
            else:
                self.free.pop(number, None)
            by_identity[id(workload)] = number
        return number

    def _next(self) -> int:
        """A number for a workload: a free one, or the next."""
        if not self.free:
            self._workloads.append(NO_WORKLOAD)
            self._keys.append(())
            return len(self._workloads) - 1
        number, _ = self.free.popitem()
        before = self._workloads[number]
        if self._numbers.get(before) == number:
            del self._numbers[before]
        return number
