"""UrlFilter: blocks requests and handshakes by a list of domains and URLs."""

from __future__ import annotations

import random
import struct

from placer.metacompiler.library.web_requests import METHODS, RequestKind, first_request, normal_host, normal_path
from tests.nfs.references.headers import (
    ACK,
    DONT_FRAGMENT,
    FIN,
    RST,
    SYN,
    TCP,
    Headers,
    ipv4_header,
    l4_checksum,
    read,
)
from tests.nfs.references.reference import Bounds, Reference
from tests.nfs.references.traffic import Mix, Sent, random_payload

DOMAINS = [f"{word}-{i}.{top}" for word in ("ads", "shop", "game") for i in range(60) for top in ("com", "co.uk")]
PATHS = ("/track", "/img/a%7Eb", "/v1/login", "/x/../promo", "/down/load/")
TTL = 64


def host_in(rng: random.Random) -> bytes:
    """A host: listed or not, with a subdomain, a port, a user, or a dot at its end."""
    host = rng.choice(DOMAINS).encode() if rng.random() < 0.5 else b"good.example.org"
    host = rng.choice((b"", b"", b"www.", b"a.b.", b"not", b".")) + host + rng.choice((b"", b"", b"", b".", b"x"))
    host = host.upper() if rng.random() < 0.1 else host
    return rng.choice((b"", b"", b"", b"user@")) + host + rng.choice((b"", b"", b":8080", b":"))


def target_in(rng: random.Random) -> bytes:
    """A target: a path, an absolute URL, an authority, or an asterisk."""
    path = rng.choice((*PATHS, "/", "/index.html", "/%74rack/y", "/tracks", "//./track", "/a/../img/a~b/c", "/v1"))
    path += rng.choice(("", "", "/more", "?a=/b", "/%2e%2E/z", "/%zz%4"))
    chance = rng.random()
    if chance < 0.8:
        return path.encode()
    if chance < 0.95:
        return rng.choice((b"http://", b"HTTPS://")) + host_in(rng) + rng.choice((path.encode(), b"", b"?q"))
    return host_in(rng) if chance < 0.98 else b"*"


def http_text(rng: random.Random) -> bytes:
    """A request, often as it should be."""
    end = b"\r\n" if rng.random() < 0.95 else b"\n"
    method = rng.choice(METHODS) if rng.random() < 0.95 else rng.choice((b"PROPFIND", b"get", b"A" * 21, b""))
    lines = [method + b" " + target_in(rng) + rng.choice((b" HTTP/1.1", b" HTTP/1.1", b" HTTP/1.0", b" HTTP/2.0", b""))]
    fields = [b"Accept: */*", b"X-Host: ads-1.com", b"Content-Length: 0", b"Transfer-Encoding: chunked", b"no field"]
    lines += rng.sample(fields, rng.randrange(3))
    for _ in range(rng.choice((0, 1, 1, 1, 1, 1, 2, 6))):
        name = rng.choice((b"Host:", b"Host: ", b"hOST : ", b"Host:\t"))
        lines.insert(rng.randrange(1, len(lines) + 1), name + host_in(rng) + rng.choice((b"", b"", b" ")))
    return rng.choice((b"", b"", b"", b"\r\n")) + end.join([*lines, b"", b""])


def client_hello(rng: random.Random) -> bytes:
    """A ClientHello, mostly with a server name."""
    extensions = [struct.pack("!HH", 43, 3) + b"\x02\x03\x04", struct.pack("!HH", 10, 2) + b"\0\0"]
    for _ in range(rng.choice((0, 1, 1, 1, 1))):
        name = host_in(rng)
        kind = 0 if rng.random() < 0.9 else rng.choice((1, 255))
        entry = struct.pack("!BH", kind, len(name)) + name
        body = struct.pack("!H", len(entry)) + entry
        extensions.insert(rng.randrange(3), struct.pack("!HH", 0, len(body)) + body)
    joined = b"".join(extensions)
    session = rng.randbytes(rng.choice((0, 32)))
    body = b"\x03\x03" + rng.randbytes(32) + bytes([len(session)]) + session + b"\0\x04\x13\x01\x13\x02\x01\0"
    body += struct.pack("!H", len(joined)) + joined
    message = bytes([1 if rng.random() < 0.95 else 2]) + len(body).to_bytes(3, "big") + body
    return struct.pack("!BBBH", 22, 3, rng.choice((1, 3)), len(message)) + message


def web_payload(rng: random.Random) -> bytes:
    """Requests, handshakes, both cut off anywhere, and other bytes."""
    chance = rng.random()
    if chance < 0.2:
        return random_payload(rng)
    made = client_hello(rng) if chance < 0.5 else http_text(rng)
    if chance > 0.9:
        made += http_text(rng)
    return made[: rng.randrange(len(made))] if rng.random() < 0.2 else made


class UrlFilterReference(Reference):
    """A listed domain covers its subdomains, a path what is below it. Each TCP segment is judged by itself."""

    nf = "UrlFilter"
    variants = (
        {"list": "{folder}/list", "reset": "1"},
        {"list": "{folder}/list", "block_incomplete": "1"},
        {"list": "{folder}/list"},
    )

    def prepare(self) -> None:
        rng = random.Random(4)
        lines = [domain if rng.random() < 0.5 else domain + rng.choice(PATHS) for domain in DOMAINS]
        (self.folder / "list").write_text("\n".join(["# a list", *lines, ""]), encoding="utf-8")
        self.listed = set()
        for line in lines:
            host, slash, path = line.partition("/")
            self.listed.add((normal_host(host.encode()), normal_path((slash + path).encode())))
        self.counted.update(dict.fromkeys(("requests", "handshakes", "incomplete", "resets"), 0))

    def mix(self) -> Mix:
        return Mix(flows=20000, payload=web_payload, protocols=(TCP,) * 9 + (17,))

    def is_listed(self, host: bytes, path: tuple[bytes, ...]) -> bool:
        """Whether the list has the host or a domain above it, with the path or one above it."""
        while host:
            if any((host, path[:depth]) in self.listed for depth in range(len(path) + 1)):
                return True
            host = host.partition(b".")[2]
        return False

    def blocks(self, segment: bytes) -> bool:
        """Whether a segment is to be blocked."""
        while segment:
            request = first_request(segment)
            if request.hosts:
                self.counted["handshakes" if request.kind is RequestKind.TLS else "requests"] += 1
            path = normal_path(request.target)
            if any(self.is_listed(normal_host(host), path) for host in request.hosts):
                return True
            if request.kind is RequestKind.INCOMPLETE and not request.hosts:
                self.counted["incomplete"] += 1
                return self.number("block_incomplete", 0) == 1
            segment = request.rest
        return False

    def take(self, sent: Sent) -> tuple[list[bytes], list[bytes]]:
        frame, headers = sent.frame, read(sent.frame)
        if headers.kind == "malformed":
            self.counted["malformed"] += 1
            return [], []
        if headers.payload and headers.protocol == TCP and self.blocks(frame[headers.payload : headers.end]):
            self.counted["blocked"] += 1
            if not self.number("reset", 0):
                return [], []
            self.counted["resets"] += 2
            return [reset(frame, headers, False)], [reset(frame, headers, True)]
        self.counted["passed" if headers.kind == "ipv4" else "other"] += 1
        return [frame], []

    def counters(self) -> dict[str, int | Bounds]:
        return {**self.counted, "unbuffered": 0}


def reset(frame: bytes, headers: Headers, back: bool) -> bytes:
    """A reset to the receiver of a segment, or as of it to the sender (RFC 9293, section 3.5.2)."""
    l3, l4 = headers.l3, headers.l4
    source, destination = frame[l3 + 12 : l3 + 16], frame[l3 + 16 : l3 + 20]
    ports, sequence, acknowledged = frame[l4 : l4 + 4], frame[l4 + 4 : l4 + 8], frame[l4 + 8 : l4 + 12]
    flags, acknowledgement, ethernet = RST, bytes(4), frame[:l3]
    if back:
        source, destination, ports = destination, source, ports[2:] + ports[:2]
        ethernet = frame[6:12] + frame[:6] + frame[12:l3]
        if frame[l4 + 13] & ACK:
            sequence = acknowledged
        else:
            flags |= ACK
            counted = headers.end - headers.payload + bool(frame[l4 + 13] & SYN) + bool(frame[l4 + 13] & FIN)
            acknowledgement = ((int.from_bytes(sequence, "big") + counted) & 0xFFFFFFFF).to_bytes(4, "big")
            sequence = bytes(4)
    segment = ports + sequence + acknowledgement + bytes([5 << 4, flags]) + bytes(6)
    checksum = l4_checksum(source, destination, TCP, segment)
    segment = segment[:16] + checksum.to_bytes(2, "big") + segment[18:]
    return ethernet + ipv4_header(source, destination, TCP, 20, flags=DONT_FRAGMENT, ttl=TTL) + segment
