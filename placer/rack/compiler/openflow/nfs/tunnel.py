"""Tunnel: a tag is pushed; packets that have two tags are dropped."""

from collections.abc import Sequence

from placer.rack.compiler.graph import NfInstance
from placer.rack.compiler.openflow.headers import TYPE_VLAN
from placer.rack.compiler.openflow.rules import OPENFLOW_NFS, TAGS_REGISTER, TWO_TAGS, NfRule, push_tag


@OPENFLOW_NFS.register("Tunnel")
def tunnel_rules(instance: NfInstance) -> Sequence[NfRule]:
    """The emulated switch counts tags (`rules.TAGS_REGISTER`), Open vSwitch sees the type of the second one."""
    vlan = int(instance.parameters["vlan"])
    two_tags = [NfRule(2, match, None) for match in ({TAGS_REGISTER: "2"}, *TWO_TAGS)]
    return [*two_tags, NfRule(1, {}, push_tag(vlan, TYPE_VLAN))]
