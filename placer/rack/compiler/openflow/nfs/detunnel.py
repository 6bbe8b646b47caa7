"""Detunnel: the outer tag is popped, if there is one."""

from collections.abc import Sequence

from placer.rack.compiler.graph import NfInstance
from placer.rack.compiler.openflow.rules import OPENFLOW_NFS, REPARSE_ACTIONS, TAG_PRESENT, TWO_TAGS, NfRule


@OPENFLOW_NFS.register("Detunnel")
def detunnel_rules(instance: NfInstance) -> Sequence[NfRule]:
    """A packet without a tag passes as it is."""
    has_tag = {"vlan_tci": f"{TAG_PRESENT:#06x}/{TAG_PRESENT:#06x}"}
    two_tags = [NfRule(3, match, ("pop_vlan", *REPARSE_ACTIONS)) for match in TWO_TAGS]
    return [*two_tags, NfRule(2, has_tag, ("pop_vlan",)), NfRule(1, {})]
