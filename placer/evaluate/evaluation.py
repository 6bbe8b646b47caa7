"""Evaluation: what a plan costs, and which instances violate their SLA by the ground truth."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import inf

from placer.evaluate.checks import peak_cost, peak_nics
from placer.evaluate.spare_checks import Spare
from placer.model.day import parts_of
from placer.model.fleet import Fleet
from placer.model.latency_oracle import find_promised_latencies, longer, misses_latency
from placer.model.nic import Nic, Tenant
from placer.model.nic_kind import NicKind
from placer.model.oracle import Oracle, co_location_of
from placer.model.plan import Plan, replay_plan
from placer.model.sla import LEAST_KPPS
from profiles import CoLocation
from profiles.shown import Shown


@dataclass(frozen=True)
class Stay:
    """How one instance fares during its stay.

    Parameters
    ----------
    throughput_kpps
        Its lowest throughput in any co-location of its stay; 0 where it misses a promised latency. At an offered rate
        it is what the instance carries of that.
    solo_kpps
        Its throughput alone on that NIC model; at most the offered rate.
    sla_met
        Whether the lowest throughput and the longest latency meet the SLA; None where a promised latency is not known.
    latency_us
        Where a latency is promised, the longest of that statistic; None where it is not known.
    required_kpps
        The least throughput that its SLA accepts.
    offered_kpps
        The offered rate; infinite where more is offered than it can carry.

    Where the load changes over the day, throughputs are those of the part in which it is closest to its SLA."""

    throughput_kpps: float
    solo_kpps: float
    sla_met: bool | None
    latency_us: float | None = None
    required_kpps: float = LEAST_KPPS
    offered_kpps: float = inf


@dataclass(frozen=True, repr=False)
class Evaluation(Shown):
    """A plan and its evaluation.

    Parameters
    ----------
    plan
        The plan.
    nics
        Most NICs in use at one time.
    cost
        Cost of the NICs: per kind of NIC its peak, times the cost of one.
    stays
        Per placed arrival, by id, its stay by the ground truth; None without a ground truth.
    expected
        Per placed arrival, by id, its stay as the strategy's own predictor expects it; None without a predictor.
    expected_violations_pct
        Instances expected to violate their SLA, per 100 placed, by the errors of a predictor; None where not known.
    measured_runs, measured_pct
        For a plan that was made by measuring, the runs, and the share of instances (%) all of whose co-locations were
        measured; None for other plans.
    unmeasured
        The NFs of each co-location of such a plan that was not measured.
    spare
        The empty NICs that the plan needs for failures; None where none were asked for."""

    plan: Plan
    nics: int
    cost: float
    stays: dict[str, Stay] | None
    expected: dict[str, Stay] | None
    expected_violations_pct: float | None = None
    measured_runs: int | None = None
    measured_pct: float | None = None
    unmeasured: tuple[tuple[str, ...], ...] = ()
    spare: Spare | None = None

    @property
    def spare_nics(self) -> int | None:
        """Empty NICs for failures; None where none were asked for, or the fleet has not enough of them."""
        return None if self.spare is None or self.spare.added is None else len(self.spare.added)

    @property
    def lacks_spare(self) -> bool:
        """Whether the fleet has not the NICs that failures need."""
        return self.spare is not None and self.spare.added is None

    @property
    def whole_cost(self) -> float:
        """Cost of the NICs and of those for failures."""
        return self.cost + (self.spare.cost if self.spare else 0.0)

    @property
    def violated(self) -> int | None:
        """Instances that ever violate their SLA; None without a ground truth of throughput and promised latency."""
        met = None if self.stays is None else [stay.sla_met for stay in self.stays.values()]
        return None if met is None or None in met else met.count(False)

    @property
    def violations_pct(self) -> float | None:
        """Violating instances per 100 placed; None without a ground truth."""
        if self.stays is None or self.violated is None:
            return None
        return 100.0 * self.violated / len(self.stays) if self.stays else 0.0

    @property
    def short_by_pct(self) -> float | None:
        """How far the worst instance is below the throughput of its SLA, %; None where none is, or not known.

        It is not known where an instance misses a promised latency."""
        short = []
        for placement in self.plan.placed:
            stay = (self.stays or {}).get(placement.arrival.id)
            if stay is None or stay.sla_met is not False:
                continue
            if stay.latency_us is not None or not stay.throughput_kpps:
                return None
            short.append(100.0 * (1.0 - stay.throughput_kpps / stay.required_kpps))
        return max(short, default=None)


def evaluate(
    plan: Plan, kinds: Sequence[NicKind], truth: Sequence[Oracle] | None, predicted: Sequence[Oracle] | None = None
) -> Evaluation:
    """Evaluate a plan by the ground truth, and by its own predictor.

    Parameters
    ----------
    plan
        A plan that keeps its constraints.
    kinds
        The fleet's kinds of NIC.
    truth
        Per kind, the ground truth; None when there is none.
    predicted
        Per kind, what the strategy's predictor expects; None when the strategy used none."""
    return Evaluation(
        plan=plan,
        nics=peak_nics(plan),
        cost=peak_cost(plan, kinds),
        stays=None if truth is None else _stays(plan, kinds, truth),
        expected=None if predicted is None else _stays(plan, kinds, predicted),
    )


def to_buy(plan: Plan, kinds: Sequence[NicKind], spare: Spare | None = None) -> dict[str, int]:
    """By model, the NICs that the plan needs at the peak and for failures, and that are not paid for; 0 for a model
    with enough."""
    needed = dict.fromkeys((kind.model for kind in kinds), 0)
    added = spare.added if spare and spare.added else ()
    for kind in kinds:
        needed[kind.model] += max(peak_nics(plan, kind) + added.count(kind) - (kind.owned or 0), 0)
    return needed


def _stays(plan: Plan, kinds: Sequence[NicKind], oracles: Sequence[Oracle]) -> dict[str, Stay]:
    """Per placed arrival its lowest throughput over all its co-locations; one batch of queries per kind."""
    changes = [
        (nic.kind.index, co_location_of(tenant.workload for tenant in tenants), tenants)
        for nic in _changes(plan, kinds)
        for tenants in parts_of(nic.tenants)
    ]
    formed: set[tuple[int, CoLocation]] = {(index, co_location) for index, co_location, _ in changes}
    for kind in kinds:
        oracles[kind.index].throughput(sorted(co_location for index, co_location in formed if index == kind.index))
    changing = {placement.arrival.id for placement in plan.placed if placement.arrival.day}
    lowest: dict[str, tuple[tuple[float, float], float, Tenant]] = {}
    longest: dict[str, float | None] = {}
    for index, co_location, tenants in changes:
        oracle = oracles[index]
        throughputs, latencies = oracle.by_workload(co_location), find_promised_latencies(oracle, co_location)
        for tenant in tenants:
            kpps = throughputs[tenant.workload]
            order = kpps, 0.0
            if tenant.id in changing:  # where a measurement is all that is offered, the part with most of it
                required = tenant.required_kpps(oracle.solo(tenant.workload))
                order = round(kpps / required, 9), -required
            if tenant.id not in lowest or order < lowest[tenant.id][0]:
                lowest[tenant.id] = order, kpps, tenant
            if tenant.workload in latencies:
                longest[tenant.id] = longer(latencies[tenant.workload], longest.get(tenant.id, 0.0))
    stays = {}
    for placement in plan.placed:
        if placement.kind is not None:
            _, throughput, tenant = lowest[placement.arrival.id]
            oracle, workload = oracles[placement.kind.index], tenant.workload
            solo, latency = oracle.solo(workload), longest.get(tenant.id)
            required = tenant.required_kpps(solo)
            met: bool | None = throughput >= required and not misses_latency(workload, latency)
            unknown = met and latency is None and workload.promises_latency
            offered = workload.rate_kpps  # a prediction is of what could be carried
            stays[tenant.id] = Stay(
                min(throughput, offered), min(solo, offered), None if unknown else met, latency, required, offered
            )
    return stays


def _changes(plan: Plan, kinds: Sequence[NicKind]) -> Iterator[Nic]:
    """Each NIC that changed at a moment and has tenants, with its co-location after that moment."""
    for _, changed in replay_plan(plan, Fleet(kinds)):
        yield from (nic for nic in changed if nic.tenants)
