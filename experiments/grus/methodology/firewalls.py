"""The first firewall of figures 1 and 9 beside zero to nine others."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from experiments.grus.methodology import simulated_server
from profiles import GpuWorkload

IN_TURNS = "temporal"  # NFs have the whole GPU one after another


class FirewallRun(NamedTuple):
    """What the first firewall meets."""

    beside: str  # what the others are, or how they share the GPU
    others: int  # how many
    mean_us: float
    p99_us: float
    increase_pct: float
    p99_increase_pct: float  # of its latency, against the first of the runs
    drop_pct: float  # the share of its packets that the server does not carry
    transfer_wait_us: float
    kernel_wait_us: float
    kernel_us: float

    def shown(self, names: Iterable[str], digits: int) -> dict[str, float]:
        """These fields, rounded; without negative zeros."""
        return {name: round(getattr(self, name), digits) + 0.0 for name in names}


def runs_beside(beside: str, others: Sequence[int], loads: Callable[[int], list[GpuWorkload]]) -> Iterator[FirewallRun]:
    """A run for each number of others; the firewall is the first of `loads`, and alone in the first run."""
    alone = None
    for number in others:
        mine = loads(number)
        one = simulated_server.measure(mine)[0]
        latency, stages = simulated_server.latency_of(one), simulated_server.stages_of(one)
        alone = alone or latency
        yield FirewallRun(
            beside,
            number,
            latency.mean,
            latency.p99,
            100 * (latency.mean / alone.mean - 1),
            100 * (latency.p99 / alone.p99 - 1),
            100 * (1 - one.throughput_kpps / mine[0].rate_kpps),
            stages.transfer_wait,
            stages.kernel_wait,
            stages.kernel,
        )


def schedule_firewalls(scheduler: str, others: Sequence[int]) -> Iterator[FirewallRun]:
    """Firewalls as the scheduler of the GPU places them (`temporal` or `spatial`)."""
    load = simulated_server.by_scheduler(simulated_server.FIREWALL_NF, simulated_server.FIREWALL_TRAFFIC, scheduler)
    return runs_beside(scheduler, others, lambda number: [load] * (1 + number))
