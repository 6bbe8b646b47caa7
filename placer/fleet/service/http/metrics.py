"""Metrics of the service, for Prometheus."""

from __future__ import annotations

from collections import Counter as Count
from collections.abc import Callable, Iterator, Sized
from importlib.metadata import version
from typing import Protocol

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from placer.fleet.engine import Engine
from placer.fleet.event_lines import name_of
from placer.fleet.events import Decision, FleetEvent, Learned

HISTOGRAM_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0)


class Metrics:
    """Counts decisions, and shows the fleet of an engine as it is when somebody looks."""

    def __init__(self, engine: Engine) -> None:
        self.registry = CollectorRegistry()
        self._decisions = Counter("placer_decisions", "Decisions.", ["event", "status"], registry=self.registry)
        self._refused = Counter("placer_refused", "Events that were refused.", ["status"], registry=self.registry)
        self._violations = Counter("placer_violations_seen", "Measurements below an SLA.", registry=self.registry)
        self._overload = Counter("placer_overload", "Requests that were turned away.", registry=self.registry)
        self._seconds = Histogram(
            "placer_request_seconds", "From a request to its answer, the commit included.", ["route"],
            buckets=HISTOGRAM_SECONDS, registry=self.registry,
        )  # fmt: skip
        self._commits = Histogram(
            "placer_commit_seconds", "Commits.", buckets=HISTOGRAM_SECONDS, registry=self.registry
        )
        self._outages = Counter(
            "placer_state_outages", "Times that the state could not be written or reached.", registry=self.registry
        )
        self._lost = Counter(
            "placer_webhook_events_lost", "Events that a webhook did not get in time.", registry=self.registry
        )
        self._by_name: dict[tuple[type, str], Counter] = {}
        self._requests: Count[tuple[str, int]] = Count()
        self._seconds_of: dict[str, Histogram] = {}
        self.violations_seen = 0
        self.registry.register(FleetMetrics(engine))
        self.registry.register(RequestMetrics(self._requests))

    def count_decision(self, event: FleetEvent, decision: Decision) -> None:
        key = type(event), decision.status
        counter = self._by_name.get(key)
        if counter is None:
            counter = self._by_name[key] = self._decisions.labels(name_of(event), decision.status)
        counter.inc()
        if isinstance(decision, Learned):
            below = sum(instance.below_sla is True for instance in decision.instances)
            self.violations_seen += below
            self._violations.inc(below)

    def count_refusal(self, status: int) -> None:
        self._refused.labels(str(status)).inc()

    def count_overload(self) -> None:
        """Count a request that was turned away."""
        self._overload.inc()

    def count_request(self, route: str, status: int, seconds: float) -> None:
        """Count a request that is answered. `route`: its path with the names of parameters, which are few."""
        self._requests[route, status] += 1
        histogram = self._seconds_of.get(route)
        if histogram is None:
            histogram = self._seconds_of[route] = self._seconds.labels(route)
        histogram.observe(seconds)

    def count_commit(self, seconds: float) -> None:
        self._commits.observe(seconds)

    def count_outage(self) -> None:
        """Count a time that the state could not be written or reached."""
        self._outages.inc()

    def count_lost(self, events: int) -> None:
        """Count events that the log no longer has, and a webhook did not get."""
        self._lost.inc(events)

    def watch_queue(self, waiting: Sized) -> None:
        """Show how many requests wait for their decisions."""
        gauge = Gauge("placer_requests_waiting", "Requests that wait for their decisions.", registry=self.registry)
        gauge.set_function(lambda: len(waiting))

    def watch_webhook(self, lag: Callable[[], tuple[int, float]]) -> None:
        """Show how far a webhook is behind: events, and seconds since it was not."""
        events = Gauge("placer_webhook_lag_events", "Events that its receiver lacks.", registry=self.registry)
        seconds = Gauge("placer_webhook_lag_seconds", "Since when its receiver lacks some.", registry=self.registry)
        events.set_function(lambda: lag()[0])
        seconds.set_function(lambda: lag()[1])

    def watch(self, agreement: SharedCounts) -> None:
        """Show what came of sharing the fleet with other agents."""
        self.registry.register(SharingMetrics(agreement))

    def text(self) -> bytes:
        """All metrics, in Prometheus' text format."""
        return generate_latest(self.registry)


class SharedCounts(Protocol):
    """What an agent counts that shares its fleet."""

    conflicts: int
    repeated: int
    followed: int


class SharingMetrics(Collector):
    """What came of sharing a fleet with other agents."""

    def __init__(self, counts: SharedCounts) -> None:
        self._counts = counts

    def collect(self) -> Iterator[Metric]:
        """What Prometheus reads."""
        shown = {
            "placer_conflicts": ("NICs that another agent had changed before a commit.", self._counts.conflicts),
            "placer_decided_again": ("Decisions that were made again for that.", self._counts.repeated),
            "placer_followed": ("Events of other agents.", self._counts.followed),
        }
        for name, (text, count) in shown.items():
            yield CounterMetricFamily(name, text, count)


class RequestMetrics(Collector):
    """Requests by route and status, and the version of the service."""

    def __init__(self, requests: Count[tuple[str, int]]) -> None:
        self._requests = requests

    def collect(self) -> Iterator[Metric]:
        """What Prometheus reads."""
        requests = CounterMetricFamily("placer_requests", "Requests.", labels=["route", "status"])
        for (route, status), count in self._requests.items():
            requests.add_metric([route, str(status)], count)
        yield requests
        build = GaugeMetricFamily("placer_build_info", "The version of the service, as a label.", labels=["version"])
        build.add_metric([version("nf-placer")], 1)
        yield build


class FleetMetrics(Collector):
    """The fleet: NICs by model and service, tenants, the queue, and the version of the models."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def collect(self) -> Iterator[Metric]:
        """What Prometheus reads."""
        engine = self._engine
        nics = GaugeMetricFamily("placer_nics", "NICs.", labels=["nic_model", "service"])
        for (model, service), count in nics_by_service(engine).items():
            nics.add_metric([model, service], count)
        yield nics
        yield GaugeMetricFamily("placer_tenants", "Placed instances.", engine.fleet.tenants)
        yield GaugeMetricFamily("placer_queued", "Instances that wait for a NIC.", len(engine.waiting))
        yield GaugeMetricFamily("placer_events", "The number of the last event.", engine.events)
        yield GaugeMetricFamily("placer_model_version", "The version of the models that decides.", model_of(engine))


def nics_by_service(engine: Engine) -> Count[tuple[str, str]]:
    """NICs by model and service: `in use`, `idle`, `cordoned`, `draining`, `failed`."""
    found: Count[tuple[str, str]] = Count()
    for kind in engine.fleet.all_kinds:
        found[kind.model, "in use"] += engine.fleet.in_use(kind)
        found[kind.model, "idle"] += engine.fleet.idle(kind)
    for nic in list(engine.fleet.out_of_service.values()):  # a copy: a decision may change it meanwhile
        found[nic.kind.model, nic.service.value] += 1
        found[nic.kind.model, "in use"] -= bool(nic.tenants_by_id)
    return found


def model_of(engine: Engine) -> int:
    """The version of the models that decides."""
    return 1 if engine.feedback is None else engine.feedback.model
