"""Chains, racks and plans as JSON (docs/formats/chains.md and rack-plan.md): what `json_twins.py` reads again."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from fractions import Fraction

from placer.rack.chain import Chain, ChainNf
from placer.rack.files.json_twins import cycles_by_keys
from placer.rack.plan import RackPlan, answer
from placer.rack.rack import SRAM_MEMORY, TCAM_MEMORY, CoreCost, NfCosts, Rack, RackTestbed, Server, SwitchTable


def plan_document(
    plan: RackPlan, chains: Sequence[Chain], sources: Mapping[str, Mapping[str, str]] | None = None
) -> Mapping[str, object]:
    """A plan as one JSON object: `answer`, `chains`, `rack`, and `sources`, the files with own data, if it has any."""
    document = {"answer": answer(plan), "chains": write_chains(chains), "rack": write_rack(plan.rack)}
    return {**document, "sources": sources} if sources else document


def write_chains(chains: Sequence[Chain]) -> Mapping[str, object]:
    """The JSON of chains."""
    return {"chains": [_write_chain(chain) for chain in chains]}


def _write_chain(chain: Chain) -> dict[str, object]:
    edges = [
        [chain.nfs[edge.tail].id, chain.nfs[edge.head].id, str(edge.share), *([edge.match] if edge.match else [])]
        for edge in chain.edges
    ]
    return {
        "name": chain.name,
        "packet_size": chain.packet_size,
        "t_min_mbps": _number(chain.slo.t_min_mbps),
        "t_max_mbps": _number(chain.slo.t_max_mbps),
        "d_max_us": None if chain.slo.d_max_us is None else _number(chain.slo.d_max_us),
        **({"aggregates": list(chain.aggregates)} if chain.aggregates else {}),
        "nfs": [_write_nf(nf) for nf in chain.nfs],
        "edges": edges,
    }


def _write_nf(nf: ChainNf) -> dict[str, object]:
    """An NF; the sizes of its own data stand beside it, so that a plan is read without the files."""
    numbers = {name: value for name, value in nf.parameters.items() if name not in nf.data}
    data = {
        name: value if isinstance(value, str) else [dict(rule) for rule in value] for name, value in nf.data.items()
    }
    sizes = {name: int(nf.parameters[name]) for name in nf.data if name in nf.parameters}
    return {
        "id": nf.id,
        "nf": nf.nf,
        **({"parameters": {**numbers, **data}} if numbers or data else {}),
        **({"sizes": sizes} if sizes else {}),
    }


def write_rack(rack: Rack) -> Mapping[str, object]:
    """The JSON of a rack."""
    switch, overheads = rack.switch, rack.overheads
    return {
        "switch": {
            "stages": switch.stages,
            "reserved_stages": switch.reserved_stages,
            "blocks_per_stage": switch.blocks_per_stage,
            "kind": switch.kind.value,
            "table_order": list(switch.table_order),
            **({} if switch.tcam == TCAM_MEMORY else {"tcam": vars(switch.tcam)}),
            **({} if switch.sram == SRAM_MEMORY else {"sram": vars(switch.sram)}),
        },
        "crossing_us": _number(rack.crossing_us),
        "servers": [_server(server) for server in rack.servers],
        "nfs": {name: _costs(costs) for name, costs in rack.costs.items()},
        "overheads": {
            "subgroup_cycles": _number(overheads.subgroup_cycles),
            "replica_cycles": _number(overheads.replica_cycles),
            "stages": overheads.stages,
        },
        **({"testbed": testbed} if (testbed := _testbed(rack.testbed)) else {}),
    }


def _testbed(testbed: RackTestbed) -> Mapping[str, object]:
    return {key: value for key, value in asdict(testbed).items() if value is not None}


def _server(server: Server) -> Mapping[str, object]:
    cores: dict[str, object] = {"cores": server.cores, "reserved_cores": server.reserved_cores}
    nic: dict[str, object] = {"nic_mbps": _number(server.nic_mbps)}
    if server.sockets:
        cores = {"sockets": [asdict(socket) for socket in server.sockets]}
    if server.nics:
        nic = {"nics": [{**asdict(card), "mbps": _number(card.mbps)} for card in server.nics]}
    written: dict[str, object] = {"name": server.name, **cores, "clock_mhz": _number(server.clock_mhz), **nic}
    if server.cross_socket_cycles:
        written["cross_socket_cycles"] = _number(server.cross_socket_cycles)
    if server.shared_cores:
        written["shared_cores"] = True
    if card := server.smartnic:
        written["smartnic"] = {"name": card.name, "cores": card.cores, "clock_mhz": _number(card.clock_mhz)}
    return written


def _costs(costs: NfCosts) -> Mapping[str, object]:
    written: dict[str, object] = {}
    if costs.server:
        written["server"] = _core_cost(costs.server)
    if costs.switch_blocks is not None:
        written["switch"] = {"blocks": costs.switch_blocks}
    if costs.switch_blocks is not None and costs.switch_tables is not None:
        written["switch"] = {
            "blocks": costs.switch_blocks,
            "tables": [_table(switch_table) for switch_table in costs.switch_tables],
        }
    if costs.smartnic:
        written["smartnic"] = _core_cost(costs.smartnic)
    return written


def _table(table: SwitchTable) -> Mapping[str, object]:
    return {
        "name": table.name,
        "key": dict(table.key),
        "match": table.match.value,
        "entries": table.entries,
        "writes": list(table.writes),
    }


def _core_cost(cost: CoreCost) -> Mapping[str, object]:
    written: dict[str, object] = {"cycles": _number(cost.cycles), "replicable": cost.replicable}
    if nf := cost.testbed_nf:
        written |= {"testbed_nf": nf.nf} | ({"testbed_parameters": dict(nf.parameters)} if nf.parameters else {})
    for name, by in cost.by.items():
        at, _, points = cycles_by_keys(name)
        written |= {at: _number(by.at), points: [[_number(number), _number(cycles)] for number, cycles in by.points]}
    return written


def _number(value: Fraction) -> float | int:
    return value.numerator if value.denominator == 1 else float(value)
