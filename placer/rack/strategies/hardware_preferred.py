"""Hardware preferred: as many NFs as possible on the switch (Lemur, section 5.1)."""

from collections.abc import Sequence

from placer.rack.chain import Chain
from placer.rack.heuristics.fixed_layouts import most_on_hardware, plan_with_even_cores
from placer.rack.plan import RackPlan
from placer.rack.rack import Rack
from placer.rack.strategies import Notify, register


@register("hardware-preferred")
def hardware_preferred(chains: Sequence[Chain], rack: Rack, *, time_limit: float, notify: Notify) -> RackPlan:
    """A core for each subgroup; spare cores evenly among chains with a replicable subgroup, to its slowest."""
    return plan_with_even_cores(chains, rack, most_on_hardware, time_limit, notify)
