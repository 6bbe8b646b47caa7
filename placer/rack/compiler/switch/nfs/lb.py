"""LB on the switch: the hash of a flow names an entry, and the entry its backend."""

from placer.rack.compiler.graph import NfInstance
from placer.rack.compiler.library.lb import Backends
from placer.rack.compiler.switch import program
from placer.rack.compiler.switch.flow import BLOCKS, Block, hash_flow
from placer.rack.compiler.switch.headers import TO_PORTS, address_rewritten

BACKEND_ACTION = program.SwitchAction("to_backend", (program.Assign("m.address", "t.address"),), {"address": 32})


@BLOCKS.register("LB")
def lb_block(instance: NfInstance) -> Block:
    """One exact table; what is not IPv4, or not for the virtual address, passes."""
    backends: Backends = instance.data
    name = f"{instance.nf.identifier}_backends"
    mask = len(backends.table) - 1
    entries = tuple(
        program.MatchEntry(((at, mask),), program.ActionCall(BACKEND_ACTION.name, (backends.addresses[number],)))
        for at, number in enumerate(backends.table)
    )
    table = program.MatchTable(
        name,
        (program.TableKey("m.bucket", 16),),
        (BACKEND_ACTION.name,),
        program.ActionCall(BACKEND_ACTION.name, (backends.addresses[0],)),
        entries,
        len(entries),
        of=instance.nf.name,
    )
    balanced: program.Body = (
        *hash_flow(backends.seed),
        program.Assign("m.bucket", "m.hash"),
        program.Compute(program.Operation.AND, "m.bucket", mask),
        program.Apply(name),
        *address_rewritten("destination", "m.address"),
    )
    if backends.address:
        balanced = (program.If(program.FieldComparison("h.ipv4.destination", "==", backends.address), balanced),)
    body: program.Body = (program.If(program.IsValid("ipv4"), balanced),)
    return Block(body, TO_PORTS, (table,), (BACKEND_ACTION,), metadata={"bucket": 16, "address": 32})
