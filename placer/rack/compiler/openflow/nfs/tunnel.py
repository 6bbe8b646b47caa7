"""Tunnel: a tag is pushed; packets that have two tags are dropped."""

from collections.abc import Sequence

from placer.rack.compiler.graph import NfInstance
from placer.rack.compiler.openflow.headers import TYPE_VLAN
from placer.rack.compiler.openflow.rules import OPENFLOW_NFS, TAGS_REGISTER, NfRule, push_tag


@OPENFLOW_NFS.register("Tunnel")
def tunnel_rules(instance: NfInstance) -> Sequence[NfRule]:
    """The number of tags is what the parser found: see `rules.TAGS_REGISTER`."""
    vlan = int(instance.parameters["vlan"])
    return [NfRule(2, {TAGS_REGISTER: "2"}, None), NfRule(1, {}, push_tag(vlan, TYPE_VLAN))]
