"""Plays the log of a state in a database, and lists what must never be in it. It knows only what fits on a NIC."""

from __future__ import annotations

import json
from collections import defaultdict

from placer.testing.strategies import CORES_BY_NF, NF_PRESSURE, NF_SENSITIVITY

CORES_OF_NIC = 8


def faults_of_log(address: str) -> list[str]:
    """Gaps, moves from where an instance is not, NICs that held too much, and tables that differ at the end."""
    import psycopg

    with psycopg.connect(address) as connection:
        log = connection.execute("SELECT number, event, answer FROM log ORDER BY number").fetchall()
        tables = dict(connection.execute("SELECT id, nic FROM tenants").fetchall())
        ((head,),) = connection.execute("SELECT number FROM head").fetchall()
        ((too_many,),) = connection.execute("SELECT count(*) FROM kinds WHERE used > count").fetchall()
    faults = [] if [row[0] for row in log] == list(range(1, head + 1)) else ["numbers have gaps"]
    faults += ["more NICs than there are"] * too_many
    where: dict[str, str] = {}
    loads: dict[str, dict[str, tuple[str, float]]] = defaultdict(dict)
    for number, event, answer in log:
        given = json.loads(event)
        for move in json.loads(answer)["moves"]:
            if where.pop(move["id"], None) != move["from"]:
                faults.append(f"event {number}: {move['id']} was not on {move['from']}")
            loads[move["from"]].pop(move["id"], None)
            if move["to"] is not None:
                where[move["id"]] = move["to"]
                loads[move["to"]][move["id"]] = given["nf"], given["sla_drop"]
                if not _fits(list(loads[move["to"]].values())):
                    faults.append(f"event {number}: {move['to']} holds too much")
    if where != tables:
        faults.append("the tables are not what the log leads to")
    return faults


def _fits(tenants: list[tuple[str, float]]) -> bool:
    pressure = sum(NF_PRESSURE[nf] for nf, _ in tenants)
    drops = [(NF_SENSITIVITY[nf] * (pressure - NF_PRESSURE[nf]), allowed) for nf, allowed in tenants]
    enough = sum(CORES_BY_NF[nf] for nf, _ in tenants) <= CORES_OF_NIC
    return enough and all(min(drop, 0.99) <= allowed + 1e-9 for drop, allowed in drops)
