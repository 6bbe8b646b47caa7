"""FlowMonitor: counts packets, bytes and rule matches of every flow, with aging."""

from __future__ import annotations

from tests.nfs.references.flows import Flows
from tests.nfs.references.headers import flow, read
from tests.nfs.references.reference import Bounds, Reference
from tests.nfs.references.scans import Scan, scan_mix
from tests.nfs.references.traffic import Mix, Sent


class FlowMonitorReference(Reference):
    """All packets pass but malformed ones."""

    nf = "FlowMonitor"
    variants = ({"timeout_s": "2"},)

    def prepare(self) -> None:
        self.scan, self.flows = Scan(), Flows(self.seconds("timeout_s", 60))

    def mix(self) -> Mix:
        return scan_mix()

    def take(self, sent: Sent) -> tuple[list[bytes], list[bytes]]:
        headers = read(sent.frame)
        if headers.kind != "ipv4":
            malformed = headers.kind == "malformed"
            self.scan.counted["malformed" if malformed else "other"] += 1
            return [] if malformed else [sent.frame], []
        seen = self.flows.count(flow(sent.frame, headers), len(sent.frame), sent.time_us)
        if self.scan.payload(sent.frame, headers)[0] and not seen.mark:
            seen.mark = 1
            self.counted["matching_flows"] += 1
        return [sent.frame], []

    def counters(self) -> dict[str, int | Bounds]:
        return {**self.counted, **self.scan.counted, **self.flows.counters(), "failed": 0}
