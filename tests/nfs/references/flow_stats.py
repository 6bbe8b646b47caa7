"""FlowStats: counts packets and bytes of every flow, with aging."""

from __future__ import annotations

from tests.nfs.references.flows import Flows
from tests.nfs.references.headers import flow, read
from tests.nfs.references.reference import Bounds, Reference
from tests.nfs.references.traffic import Mix, Sent


class FlowStatsReference(Reference):
    """All packets pass but malformed ones; a flow is one direction of addresses, protocol and ports."""

    nf = "FlowStats"
    variants = ({"timeout_s": "2"}, {"timeout_s": "0.05", "flows": "32768"}, {"flows": "900"})

    def prepare(self) -> None:
        self.flows = Flows(self.seconds("timeout_s", 60), self.number("flows", 1 << 19))

    def mix(self) -> Mix:
        return Mix(flows=30000)

    def take(self, sent: Sent) -> tuple[list[bytes], list[bytes]]:
        headers = read(sent.frame)
        if headers.kind == "malformed":
            self.counted["malformed"] += 1
            return [], []
        if headers.kind == "ipv4":
            self.flows.count(flow(sent.frame, headers), len(sent.frame), sent.time_us)
        else:
            self.counted["other"] += 1
        return [sent.frame], []

    def counters(self) -> dict[str, int | Bounds]:
        return {**self.counted, **self.flows.counters()}
