"""IPv4Fwd: forwards by longest prefix match, and nothing else."""

from __future__ import annotations

import random
from ipaddress import IPv4Network

from tests.nfs.references.headers import addresses, read, updated
from tests.nfs.references.ip_router import HOP_MAC, OWN_MAC, changed
from tests.nfs.references.reference import Reference
from tests.nfs.references.traffic import Mix, Sent


class Ipv4FwdReference(Reference):
    """Forwarded packets have one hop less to live and the addresses of switch and next hop in their frame."""

    nf = "IPv4Fwd"
    variants = ({"file": "{folder}/routes"}, {"file": "{folder}/routes", "hops": "200"})

    def prepare(self) -> None:
        rng, routes = random.Random(2), dict[IPv4Network, int]()
        for _ in range(5000):
            address = rng.randrange(1, 126) << 24 | rng.getrandbits(24)
            depth = rng.choice((7, 8, 12, 16, 24, 24, 26, 30, 32))
            network = IPv4Network((address, depth), strict=False)
            if network.network_address.packed[0]:
                routes[network] = rng.randrange(200)
        lines = [f"{network} {hop}" for network, hop in routes.items()]
        (self.folder / "routes").write_text("\n".join([*lines, ""]), encoding="utf-8")
        self.tables: list[dict[int, int]] = [{} for _ in range(33)]
        for network, target in routes.items():
            self.tables[network.prefixlen][int(network.network_address)] = target

    def mix(self) -> Mix:
        return Mix(flows=20000)

    def hop(self, address: int) -> int | None:
        """The next hop by the longest prefix."""
        for depth in range(32, -1, -1):
            found = self.tables[depth].get(address >> (32 - depth) << (32 - depth))
            if found is not None:
                return found
        return None

    def take(self, sent: Sent) -> tuple[list[bytes], list[bytes]]:
        frame, headers = sent.frame, read(sent.frame)
        if not headers.has_ipv4:
            self.counted["malformed" if headers.kind == "malformed" else "other"] += 1
            return [], []
        l3, hop = headers.l3, self.hop(addresses(frame, headers)[1])
        if hop is None or frame[l3 + 8] <= 1:
            self.counted["unroutable" if hop is None else "expired"] += 1
            return [], []
        self.counted["forwarded"] += 1
        word = bytes([frame[l3 + 8] - 1, frame[l3 + 9]])
        checksum = updated(int.from_bytes(frame[l3 + 10 : l3 + 12], "big"), frame[l3 + 8 : l3 + 10], word)
        made = changed(frame, l3 + 8, word + checksum.to_bytes(2, "big"))
        return [HOP_MAC + bytes([hop]) + OWN_MAC + made[12:]], []
