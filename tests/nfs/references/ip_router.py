"""IPRouter: forwards by longest prefix match (RFC 1812)."""

from __future__ import annotations

import random
from ipaddress import IPv4Address, IPv4Network

from tests.nfs.references.endpoints import DESTINATION, SOURCE, with_address
from tests.nfs.references.headers import Headers, addresses, header_is_right, read, updated
from tests.nfs.references.icmp_errors import Reporter, is_host
from tests.nfs.references.reference import Reference
from tests.nfs.references.traffic import Mix, Sent, make_flows, plain

OWN_MAC = bytes.fromhex("020000000001")
HOP_MAC = bytes.fromhex("0200000100")
OWN = IPv4Address("192.0.2.254")
NET_UNREACHABLE, TTL_EXCEEDED = (3, 0), (11, 0)
SPECIAL = {
    IPv4Network("0.0.0.0/8"): "martian",
    IPv4Network("127.0.0.0/8"): "martian",
    IPv4Network("169.254.0.0/16"): "martian",
    IPv4Network("224.0.0.0/4"): "multicast",
    IPv4Network("240.0.0.0/4"): "martian",
    IPv4Network("255.255.255.255/32"): "multicast",
    IPv4Network(f"{OWN}/32"): "local",
}
"""Destinations to which nothing is forwarded (RFC 1812, section 5.3.7), and the router itself."""


class IpRouterReference(Reference):
    """Forwarded packets have one hop less to live and the addresses of router and next hop in their frame."""

    nf = "IPRouter"
    variants = (
        {"file": "{folder}/routes", "hops": "200"},
        {"file": "{folder}/routes", "hops": "200", "errors_per_s": "20", "errors_at_once": "3"},
    )

    def prepare(self) -> None:
        rng, routes = random.Random(2), dict[IPv4Network, int | str]()
        for _ in range(30000):
            depth = rng.choice((12, 13, 16, 16, 20, 22, 24, 24, 24, 24, 26, 30, 32))
            address = rng.randrange(1, 126) << 24 | rng.getrandbits(24)
            routes[IPv4Network((address, depth), strict=False)] = rng.randrange(200)
        routes[IPv4Network("60.0.0.0/6")] = 7
        lines = [f"{network} {hop}" for network, hop in routes.items() if network.network_address != OWN]
        (self.folder / "routes").write_text("\n".join([*lines, ""]), encoding="utf-8")
        self.tables: list[dict[int, int | str]] = [{} for _ in range(33)]
        for network, target in (routes | SPECIAL).items():
            self.tables[network.prefixlen][int(network.network_address)] = target
        self.known: dict[int, int | str | None] = {}
        rate = float(self.settings.get("errors_per_s", 1000)), float(self.settings.get("errors_at_once", 100))
        self.reporter = Reporter(OWN.packed, *rate)

    def mix(self) -> Mix:
        rng, mix = random.Random(3), Mix(flows=20000)
        flows = make_flows(rng, mix)
        for address in ("0.1.2.3", "127.0.0.1", "169.254.3.4", "224.0.0.5", "240.0.0.1", "255.255.255.255", str(OWN)):
            frame = plain(rng, flows[0], True, b"special", mix, 1)
            packed = IPv4Address(address).packed
            mix.own += [
                (0, with_address(frame, 14, end, int.from_bytes(packed, "big"))) for end in (SOURCE, DESTINATION)
            ]
        mix.own.append((0, b"\x01\0\x5e\0\0\x05" + plain(rng, flows[1], True, b"group", mix, 1)[6:]))
        return mix

    def hop(self, address: int) -> int | str | None:
        """The next hop by the longest prefix, or why there is none."""
        if address not in self.known:
            found = None
            for depth in range(32, -1, -1):
                found = self.tables[depth].get(address >> (32 - depth) << (32 - depth))
                if found is not None:
                    break
            self.known[address] = found
        return self.known[address]

    def rejected(self, frame: bytes, headers: Headers) -> str | None:
        """The counter of a packet that is not looked up."""
        if not headers.has_ipv4:
            return "malformed" if headers.kind == "malformed" else "other"
        if not header_is_right(frame, headers.l3):
            return "bad_checksum"
        if frame[0] & 1:
            return "multicast"
        source = addresses(frame, headers)[0]
        return None if is_host(source) and source >> 16 != 0xA9FE else "martian"

    def take(self, sent: Sent) -> tuple[list[bytes], list[bytes]]:
        frame, headers = sent.frame, read(sent.frame)
        why = self.rejected(frame, headers)
        if why:
            self.counted[why] += 1
            return [], []
        l3 = headers.l3
        hop = self.hop(addresses(frame, headers)[1])
        if isinstance(hop, str):
            self.counted[hop] += 1
            return [], []
        if hop is None or frame[l3 + 8] <= 1:
            self.counted["unroutable" if hop is None else "expired"] += 1
            kind = NET_UNREACHABLE if hop is None else TTL_EXCEEDED
            counter, errors = self.reporter.report(frame, headers, kind, sent.time_us)
            self.counted[counter] += 1
            return [], errors
        self.counted["forwarded"] += 1
        word = bytes([frame[l3 + 8] - 1, frame[l3 + 9]])
        checksum = updated(int.from_bytes(frame[l3 + 10 : l3 + 12], "big"), frame[l3 + 8 : l3 + 10], word)
        made = changed(frame, l3 + 8, word + checksum.to_bytes(2, "big"))
        return [HOP_MAC + bytes([hop]) + OWN_MAC + made[12:]], []


def changed(frame: bytes, at: int, to: bytes) -> bytes:
    """A frame with other bytes at `at`."""
    return frame[:at] + to + frame[at + len(to) :]
