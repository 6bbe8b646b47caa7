"""The file of a plan: ANSWER together with the chains and the rack that it is for, as JSON twins (docs/formats.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

from placer.chains.chain import Chain
from placer.chains.json_twins import written_chains
from placer.chains.plan import RackPlan, answer
from placer.chains.rack import CoreCost, NfCosts, Rack, Server


def plan_document(plan: RackPlan, chains: Sequence[Chain]) -> Mapping[str, object]:
    """A plan as one JSON object: `answer`, `chains` and `rack`."""
    return {"answer": answer(plan), "chains": written_chains(chains), "rack": written_rack(plan.rack)}


def written_rack(rack: Rack) -> Mapping[str, object]:
    """The JSON of a rack."""
    switch, overheads = rack.switch, rack.overheads
    return {
        "switch": {
            "stages": switch.stages,
            "reserved_stages": switch.reserved_stages,
            "blocks_per_stage": switch.blocks_per_stage,
            "kind": switch.kind.value,
            "table_order": list(switch.table_order),
        },
        "crossing_us": _number(rack.crossing_us),
        "servers": [_server(server) for server in rack.servers],
        "nfs": {name: _costs(costs) for name, costs in rack.costs.items()},
        "overheads": {
            "subgroup_cycles": _number(overheads.subgroup_cycles),
            "replica_cycles": _number(overheads.replica_cycles),
            "stages": overheads.stages,
        },
    }


def _server(server: Server) -> Mapping[str, object]:
    written: dict[str, object] = {
        "name": server.name,
        "cores": server.cores,
        "reserved_cores": server.reserved_cores,
        "clock_mhz": _number(server.clock_mhz),
        "nic_mbps": _number(server.nic_mbps),
    }
    if nic := server.smartnic:
        written["smartnic"] = {"name": nic.name, "cores": nic.cores, "clock_mhz": _number(nic.clock_mhz)}
    return written


def _costs(costs: NfCosts) -> Mapping[str, object]:
    written: dict[str, object] = {}
    if costs.server:
        written["server"] = _core_cost(costs.server)
    if costs.switch_blocks is not None:
        written["switch"] = {"blocks": costs.switch_blocks}
    if costs.smartnic:
        written["smartnic"] = _core_cost(costs.smartnic)
    return written


def _core_cost(cost: CoreCost) -> Mapping[str, object]:
    return {"cycles": _number(cost.cycles), "replicable": cost.replicable}


def _number(value: Fraction) -> float | int:
    return value.numerator if value.denominator == 1 else float(value)
