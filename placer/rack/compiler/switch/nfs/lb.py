"""LB on the switch: the hash of a flow names an entry, and the entry its backend."""

from placer.rack.compiler.graph import NfInstance
from placer.rack.compiler.library.lb import Backends
from placer.rack.compiler.switch.flow import BLOCKS, Block, hash_flow
from placer.rack.compiler.switch.headers import TO_PORTS, address_rewritten
from placer.rack.compiler.switch.program import (
    ActionCall,
    Apply,
    Assign,
    Body,
    Compute,
    FieldComparison,
    If,
    IsValid,
    MatchEntry,
    MatchTable,
    Operation,
    SwitchAction,
    TableKey,
)

BACKEND_ACTION = SwitchAction("to_backend", (Assign("m.address", "t.address"),), {"address": 32})


@BLOCKS.register("LB")
def lb_block(instance: NfInstance) -> Block:
    """One exact table; what is not IPv4, or not for the virtual address, passes."""
    backends: Backends = instance.data
    name = f"{instance.nf.identifier}_backends"
    mask = len(backends.table) - 1
    entries = tuple(
        MatchEntry(((at, mask),), ActionCall(BACKEND_ACTION.name, (backends.addresses[number],)))
        for at, number in enumerate(backends.table)
    )
    table = MatchTable(
        name,
        (TableKey("m.bucket", 16),),
        (BACKEND_ACTION.name,),
        ActionCall(BACKEND_ACTION.name, (backends.addresses[0],)),
        entries,
        len(entries),
        of=instance.nf.name,
    )
    balanced: Body = (
        *hash_flow(backends.seed),
        Assign("m.bucket", "m.hash"),
        Compute(Operation.AND, "m.bucket", mask),
        Apply(name),
        *address_rewritten("destination", "m.address"),
    )
    if backends.address:
        balanced = (If(FieldComparison("h.ipv4.destination", "==", backends.address), balanced),)
    body: Body = (If(IsValid("ipv4"), balanced),)
    return Block(body, TO_PORTS, (table,), (BACKEND_ACTION,), metadata={"bucket": 16, "address": 32})
