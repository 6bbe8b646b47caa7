"""Mirror: every packet passes, and a copy of it goes back to where it came from."""

from tests.reference.nfs.model import FunctionModel, Left
from tests.reference.nfs.traffic import Mix, Sent

BUFFER = 2048  # bytes of a frame that fit a buffer of the function in C


class MirrorModel(FunctionModel):
    """What fits no buffer passes without a copy. Nothing in a packet is looked at."""

    nf = "Mirror"
    variants = ({}, {"queues": "8", "window": "2"})
    keeps_order = True

    def mix(self) -> Mix:
        return Mix(flows=2000, jumbo=0.01)

    def take(self, sent: Sent) -> Left:
        if len(sent.frame) > BUFFER:
            self.counted["unbuffered"] += 1
            return [sent.frame], []
        self.counted["mirrored"] += 1
        self.counted["bytes"] += len(sent.frame)
        return [sent.frame], [sent.frame]
