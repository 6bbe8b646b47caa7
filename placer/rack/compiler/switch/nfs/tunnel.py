"""Tunnel on the switch: puts a VLAN tag on packets; those that have two are dropped."""

from placer.rack.compiler.graph import NfInstance
from placer.rack.compiler.switch.flow import BLOCKS, DROP_BODY, Block
from placer.rack.compiler.switch.headers import PLAIN_EDGES, VLAN_TYPE
from placer.rack.compiler.switch.program import Assign, Body, If, IsValid, SetValid


@BLOCKS.register("Tunnel")
def tunnel_block(instance: NfInstance) -> Block:
    """The tag that a packet has becomes the inner one."""
    vlan = int(instance.parameters["vlan"])
    inner: Body = (
        SetValid("inner_tag"),
        Assign("h.inner_tag.control", "h.tag.control"),
        Assign("h.inner_tag.type", "h.tag.type"),
    )
    push: Body = (
        If(IsValid("tag"), inner),
        SetValid("tag"),
        Assign("h.tag.control", vlan),
        Assign("h.tag.type", "h.ethernet.type"),
        Assign("h.ethernet.type", VLAN_TYPE),
        Assign("m.tagged", 1),
        Assign("m.vlan", vlan),
    )
    return Block((If(IsValid("inner_tag"), DROP_BODY, push),), PLAIN_EDGES)
