"""Detunnel on the switch: takes the outer VLAN tag off packets; those without one pass."""

from placer.rack.compiler.graph import NfInstance
from placer.rack.compiler.switch.flow import BLOCKS, Block, load_tag
from placer.rack.compiler.switch.headers import PLAIN_EDGES
from placer.rack.compiler.switch.program import Assign, Body, If, IsValid, SetValid


@BLOCKS.register("Detunnel")
def detunnel_block(instance: NfInstance) -> Block:
    """The inner tag becomes the outer one."""
    outer: Body = (
        Assign("h.tag.control", "h.inner_tag.control"),
        Assign("h.tag.type", "h.inner_tag.type"),
        SetValid("inner_tag", False),
    )
    pop: Body = (
        Assign("h.ethernet.type", "h.tag.type"),
        If(IsValid("inner_tag"), outer, (SetValid("tag", False),)),
        *load_tag(),
    )
    return Block((If(IsValid("tag"), pop),), PLAIN_EDGES)
