"""NIDS: alerts about flows whose payloads match rules, once per flow and class."""

from __future__ import annotations

from tests.nfs.references.flows import Flows
from tests.nfs.references.headers import flow, read
from tests.nfs.references.reference import Bounds, Reference
from tests.nfs.references.rules import CLASSES
from tests.nfs.references.scans import Scan, scan_mix
from tests.nfs.references.traffic import Mix, Sent


class NidsReference(Reference):
    """A packet that matches a rule of the class to drop is freed. A flow that is removed may raise alerts again."""

    nf = "NIDS"
    variants = ({"timeout_s": "2", "dropped_class": "7"}, {"timeout_s": "0.05", "flows": "32768"}, {"flows": "900"})

    def prepare(self) -> None:
        self.scan = Scan()
        self.flows = Flows(self.seconds("timeout_s", 60), self.number("flows", 1 << 19))
        self.counted.update({"alerts": 0, "dropped": 0, **{f"alerts_{kind}": 0 for kind in CLASSES}})

    def mix(self) -> Mix:
        return scan_mix()

    def take(self, sent: Sent) -> tuple[list[bytes], list[bytes]]:
        headers = read(sent.frame)
        if headers.kind != "ipv4":
            malformed = headers.kind == "malformed"
            self.scan.counted["malformed" if malformed else "other"] += 1
            return [] if malformed else [sent.frame], []
        seen = self.flows.count(flow(sent.frame, headers), len(sent.frame), sent.time_us)
        kinds = {rule.kind for rule in self.scan.payload(sent.frame, headers)[0]}
        for kind in kinds:
            bit = 1 << CLASSES.index(kind)
            if not seen.mark & bit:
                seen.mark |= bit
                self.counted["alerts"] += 1
                self.counted[f"alerts_{kind}"] += 1
        dropped = self.number("dropped_class", 0)
        if dropped and CLASSES[dropped - 1] in kinds:
            self.counted["dropped"] += 1
            return [], []
        return [sent.frame], []

    def counters(self) -> dict[str, int | Bounds]:
        return {**self.counted, **self.scan.counted, **self.flows.counters(), "failed": 0}
