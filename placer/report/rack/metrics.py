"""The counters of a rack that is up, for Prometheus."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily
from prometheus_client.registry import Collector

if TYPE_CHECKING:
    from placer.rack.compiler.live import LiveRack


class RackMetrics(Collector):
    """What became of packets, by the last reports of devices, which are at most a second old."""

    def __init__(self, live: "LiveRack") -> None:
        self._live = live

    def collect(self) -> Iterator[Metric]:
        """What Prometheus reads."""
        counts = self._live.counts
        yield _family("received", "Packets from the outside world.", (), [((), counts.received)])
        yield _family("sent", "Packets to the outside world.", (), [((), counts.sent)])
        drops = [((reason,), count) for reason, count in counts.dropped.items()]
        yield _family("dropped", "Packets dropped outside of NFs.", ("reason",), drops)
        for what in ("entered", "sent", "dropped"):
            of_nfs = [((name,), getattr(nf, what)) for name, nf in counts.nfs.items()]
            yield _family(f"nf_{what}", f"Packets of an NF: {what}.", ("nf",), of_nfs)
        ways = [((way.nf, way.to, way.match), way.packets) for way in counts.branches if way.packets is not None]
        yield _family("branch", "Packets that took a branch.", ("nf", "to", "match"), ways)
        rules = [((nf, str(entry)), count) for nf, found in counts.rules.items() for entry, count in found.items()]
        yield _family("rule", "Packets that a rule or route decided, by its number.", ("nf", "rule"), rules)
        restarts = [((device,), count) for device, count in list(self._live.restarts.items())]
        yield _family("restarts", "Times that a device died and was started again.", ("device",), restarts)


def _family(
    name: str, text: str, labels: tuple[str, ...], values: Iterable[tuple[tuple[str, ...], int]]
) -> CounterMetricFamily:
    unit = "" if name == "restarts" else "_packets"
    family = CounterMetricFamily(f"placer_chain_{name}{unit}", text, labels=labels)
    for label, value in values:
        family.add_metric(label, value)
    return family
