"""Match on the switch: packets are sorted by the edges behind it."""

from placer.rack.compiler.graph import NfInstance
from placer.rack.compiler.switch.flow import BLOCKS, Block
from placer.rack.compiler.switch.headers import PLAIN_EDGES


@BLOCKS.register("Match")
def match_block(instance: NfInstance) -> Block:
    """Nothing but what sorts packets behind it."""
    return Block((), PLAIN_EDGES)
