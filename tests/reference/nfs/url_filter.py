"""UrlFilter: blocks requests and handshakes by a list: HTTP/1 by host and path, TLS by the server name."""

import random
import re
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from itertools import pairwise

from tests.reference.nfs.headers import (
    ACK,
    DONT_FRAGMENT,
    FIN,
    RST,
    SYN,
    TCP,
    Headers,
    ipv4_header,
    l4_checksum,
)
from tests.reference.nfs.ipv6 import ipv6_checksum, ipv6_header, read_ip_headers
from tests.reference.nfs.model import Bounds, FunctionModel, Left
from tests.reference.nfs.traffic import Mix, Sent, random_payload

METHODS = (b"GET", b"HEAD", b"POST", b"PUT", b"DELETE", b"CONNECT", b"OPTIONS", b"TRACE", b"PATCH")
"""Those that HTTP itself has, so that a line without its end is taken for HTTP."""
METHOD = re.compile(rb"([A-Z]{1,20}) ")
FIRST_LINE = re.compile(rb"(.*) HTTP/1\.[0-9]", re.DOTALL)
FIELD_NAME = re.compile(rb"([^: \t]+)[ \t]*:", re.DOTALL)
SCHEME = re.compile(rb"https?://", re.IGNORECASE)
ESCAPE = re.compile(rb"%[0-9A-Fa-f]{2}")
UNRESERVED = re.compile(rb"[A-Za-z0-9._~-]")
BODY_FIELDS = (b"content-length", b"transfer-encoding")
MOST_HOSTS = 4
LONGEST_HOST, LONGEST_PATH = 253, 4096

HANDSHAKE, CLIENT_HELLO, SERVER_NAME, HOST_NAME = 22, 1, 0, 0

PATHS = ("/track", "/img/a%7Eb", "/v1/login", "/x/../promo", "/down/load/")
TTL = 64


def near_url(rng: random.Random, urls: Sequence[str]) -> tuple[bytes, bytes]:
    """A host and a path: listed or almost, with a subdomain, port, user, dots or escapes, or not at all."""
    host, _, path = (
        rng.choice(urls).encode().partition(b"/") if rng.random() < 0.8 else (b"good.example.org", b"", b"x")
    )
    host = rng.choice((b"", b"", b"", b"www.", b"a.b.", b"not", b".", b"user@")) + host
    host += rng.choice((b"", b"", b"", b"", b".", b"x", b":8080", b":"))
    near = (
        path + b"/more",
        path + b"s",
        path + b"?a=/b",
        b"x/../" + path,
        b"/./" + path,
        b"%zz%4/../" + path,
        path[1:],
    )
    escaped = b"%%%02x" % path[0] + path[1:] if path else b"%2e%2E/"
    path = b"/" + (rng.choice((*near, escaped, b"index.html")) if rng.random() < 0.5 else path)
    return host.upper() if rng.random() < 0.1 else host, path


def http_text(rng: random.Random, urls: Sequence[str]) -> bytes:
    """A request by path, absolute URL or authority, often as it should be."""
    host, path = near_url(rng, urls)
    end = b"\r\n" if rng.random() < 0.95 else b"\n"
    method = rng.choice(METHODS) if rng.random() < 0.95 else rng.choice((b"PROPFIND", b"get", b"A" * 21, b""))
    scheme = rng.choice((b"http://", b"HTTPS://"))
    target = rng.choice((scheme + host + path, scheme + host + b"?q", host, b"*")) if rng.random() < 0.25 else path
    lines = [method + b" " + target + rng.choice((b" HTTP/1.1", b" HTTP/1.1", b" HTTP/1.0", b" HTTP/2.0", b""))]
    fields = [b"Accept: */*", b"X-Host: ads-1.com", b"Content-Length: 0", b"Transfer-Encoding: chunked", b"no field"]
    lines += rng.sample(fields, rng.randrange(3))
    for _ in range(rng.choice((0, 1, 1, 1, 1, 1, 2, 6))):
        name = rng.choice((b"Host:", b"Host: ", b"hOST : ", b"Host:\t"))
        lines.insert(rng.randrange(1, len(lines) + 1), name + host + rng.choice((b"", b"", b" ")))
        host = near_url(rng, urls)[0]
    return rng.choice((b"", b"", b"", b"\r\n")) + end.join([*lines, b"", b""])


def client_hello(rng: random.Random, urls: Sequence[str]) -> bytes:
    """A ClientHello, mostly with a server name."""
    extensions = [struct.pack("!HH", 43, 3) + b"\x02\x03\x04", struct.pack("!HH", 10, 2) + b"\0\0"]
    for _ in range(rng.choice((0, 1, 1, 1, 1))):
        name = near_url(rng, urls)[0]
        entry = struct.pack("!BH", 0 if rng.random() < 0.9 else rng.choice((1, 255)), len(name)) + name
        body = struct.pack("!H", len(entry)) + entry
        extensions.insert(rng.randrange(3), struct.pack("!HH", 0, len(body)) + body)
    joined = b"".join(extensions)
    session = rng.randbytes(rng.choice((0, 32)))
    body = b"\x03\x03" + rng.randbytes(32) + bytes([len(session)]) + session + b"\0\x04\x13\x01\x13\x02\x01\0"
    body += struct.pack("!H", len(joined)) + joined
    message = bytes([1 if rng.random() < 0.95 else 2]) + len(body).to_bytes(3, "big") + body
    cuts = sorted(rng.randrange(len(message)) for _ in range(rng.choice((0, 0, 0, 1, 2, 4))))
    parts = [message[begin:end] for begin, end in pairwise((0, *cuts, len(message)))]
    return b"".join(struct.pack("!BBBH", 22, 3, rng.choice((1, 3)), len(part)) + part for part in parts)


def web_payload(rng: random.Random, urls: Sequence[str]) -> bytes:
    """Requests, handshakes, both cut off anywhere, and other bytes."""
    chance = rng.random()
    if chance < 0.2:
        return random_payload(rng)
    made = client_hello(rng, urls) if chance < 0.5 else http_text(rng, urls)
    if chance > 0.9:
        made += http_text(rng, urls)
    return made[: rng.randrange(len(made))] if rng.random() < 0.2 else made


class UrlFilterModel(FunctionModel):
    """A listed domain covers its subdomains, a path what is below it. Each TCP segment is judged by itself."""

    nf = "UrlFilter"
    unknown = "drop"
    variants = (
        {"list": "{folder}/list", "reset": "1"},
        {"list": "{folder}/list", "block_incomplete": "1"},
        {"list": "{folder}/list"},
    )

    @classmethod
    def made_files(cls) -> dict[str, str]:
        rng = random.Random(4)
        domains = [
            f"{word}-{i}.{top}" for word in ("ads", "shop", "game") for i in range(60) for top in ("com", "co.uk")
        ]
        lines = [domain + rng.choice(PATHS) * (rng.random() < 0.5) for domain in domains]
        return {"list": "\n".join(["# a list", *lines, ""])}

    def prepare(self) -> None:
        self.listed = set()
        for line in self.lines_of("list"):
            host, slash, path = re.sub(rb"(?i)^https?://", b"", line.encode()).partition(b"/")
            self.listed.add((normal_host(host), normal_path(slash + path)))
        self.counted.update(dict.fromkeys(("requests", "handshakes", "incomplete", "resets"), 0))

    def mix(self) -> Mix:
        urls = self.lines_of("list")
        return Mix(flows=20000, payload=lambda rng: web_payload(rng, urls), protocols=(TCP,) * 9 + (17,), ipv6=0.5)

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
            request = read_request(segment)
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

    def take(self, sent: Sent) -> Left:
        frame, headers = sent.frame, read_ip_headers(sent.frame)
        if headers.kind not in ("ipv4", "ipv6"):
            return [frame] * self.passes(headers.kind), []
        if headers.payload and headers.protocol == TCP and self.blocks(frame[headers.payload : headers.end]):
            self.counted["blocked"] += 1
            if not self.number("reset", 0):
                return [], []
            self.counted["resets"] += 2
            return [reset(frame, headers, False)], [reset(frame, headers, True)]
        self.counted["passed"] += 1
        return [frame], []

    def counters(self) -> dict[str, int | Bounds]:
        return {**self.counted, "unbuffered": 0}


def reset(frame: bytes, headers: Headers, back: bool) -> bytes:
    """A reset to the receiver of a segment, or as of it to the sender (RFC 9293, section 3.5.2)."""
    l3, l4 = headers.l3, headers.l4
    ipv6 = headers.kind == "ipv6"
    size, first = (16, l3 + 8) if ipv6 else (4, l3 + 12)
    source, destination = frame[first : first + size], frame[first + size : first + 2 * size]
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
    checksum = (ipv6_checksum if ipv6 else l4_checksum)(source, destination, TCP, segment)
    segment = segment[:16] + checksum.to_bytes(2, "big") + segment[18:]
    if ipv6:
        return ethernet + ipv6_header(source, destination, TCP, 20, ttl=TTL) + segment
    return ethernet + ipv4_header(source, destination, TCP, 20, flags=DONT_FRAGMENT, ttl=TTL) + segment


# Requests of HTTP/1 (RFC 9112) and handshakes of TLS (RFC 8446), as far as one TCP segment has them, brought to forms
# in which equal ones have equal bytes.


class RequestKind(Enum):
    """What a segment begins with."""

    NONE = "none"
    HTTP = "http"
    TLS = "tls"
    INCOMPLETE = "incomplete"  # a request or handshake that goes on behind the segment's end


@dataclass
class WebRequest:
    """A request: whom it is for, its target from the path on, and the bytes of the requests behind it."""

    kind: RequestKind
    hosts: list[bytes] = field(default_factory=list)
    target: bytes = b""
    rest: bytes = b""


NO_REQUEST = WebRequest(RequestKind.NONE)


def read_request(segment: bytes) -> WebRequest:
    """The request at the begin of a segment."""
    return read_handshake(segment) if segment[:1] == bytes((HANDSHAKE,)) else read_http(segment.lstrip(b"\r\n"))


def read_http(segment: bytes) -> WebRequest:
    method = METHOD.match(segment)
    if not method:
        return NO_REQUEST
    line, end, rest = segment.partition(b"\n")
    if not end:
        return WebRequest(RequestKind.INCOMPLETE) if method[1] in METHODS else NO_REQUEST
    first = FIRST_LINE.fullmatch(without_return(line), method.end() - 1)
    if not first:
        return NO_REQUEST
    request = WebRequest(RequestKind.INCOMPLETE)
    read_target(request, first[1].strip(b" \t"))
    read_fields(request, rest)
    return request


def read_target(request: WebRequest, target: bytes) -> None:
    """The host of an absolute target or of CONNECT, and the path (RFC 9112, section 3.2)."""
    scheme = SCHEME.match(target)
    begin = scheme.end() if scheme else 0
    if not begin and (target[:1] in (b"/", b"") or target == b"*"):
        request.target = target
        return
    end = next((at for at in range(begin, len(target)) if target[at] in b"/?"), len(target))
    request.hosts.append(target[begin:end])
    request.target = target[end:]


def read_fields(request: WebRequest, rest: bytes) -> None:
    """Fields up to the empty line; the request is incomplete without it."""
    has_body = False
    while rest:
        line, end, rest = rest.partition(b"\n")
        if not end:
            return
        line = without_return(line)
        if not line:
            request.kind = RequestKind.HTTP
            request.rest = b"" if has_body else rest
            return
        found = FIELD_NAME.match(line)
        name = found[1].lower() if found else b""
        if found and name == b"host" and len(request.hosts) < MOST_HOSTS:
            request.hosts.append(line[found.end() :].strip(b" \t"))
        has_body = has_body or name in BODY_FIELDS


def without_return(line: bytes) -> bytes:
    return line.removesuffix(b"\r")


class EndError(Exception):
    """The segment ends before what is read."""


class HandshakeReader:
    """Reads bytes of a handshake one after the other."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def bytes(self, n: int) -> bytes:
        if self.at + n > len(self.data):
            raise EndError
        self.at += n
        return self.data[self.at - n : self.at]

    def number(self, n: int) -> int:
        return int.from_bytes(self.bytes(n), "big")


def read_handshake(segment: bytes) -> WebRequest:
    """The host name of a ClientHello, if it has one."""
    message, rest = b"", segment
    while len(rest) >= 5 and rest[:2] == bytes((HANDSHAKE, 3)):
        size = int.from_bytes(rest[3:5], "big")
        message, rest = message + rest[5 : 5 + size], rest[5 + size :]
    if segment[1:2] not in (b"", b"\3"):
        return NO_REQUEST
    if not message:
        return WebRequest(RequestKind.INCOMPLETE)
    if message[0] != CLIENT_HELLO:
        return NO_REQUEST
    try:
        name = read_server_name(HandshakeReader(message))
    except EndError:
        return WebRequest(RequestKind.INCOMPLETE)
    return NO_REQUEST if name is None else WebRequest(RequestKind.TLS, [name])


def read_server_name(reader: HandshakeReader) -> bytes | None:
    """The host name of the server name extension (RFC 6066, section 3); None without one."""
    reader.bytes(4 + 2 + 32)  # message, version, random
    for size in (1, 2, 1):  # session, ciphers, compression
        reader.bytes(reader.number(size))
    left = reader.number(2)
    while left >= 4:
        kind, length = reader.number(2), reader.number(2)
        if kind == SERVER_NAME:
            reader.number(2)
            name_type, name_length = reader.number(1), reader.number(2)
            return reader.bytes(name_length) if name_type == HOST_NAME else None
        reader.bytes(length)
        left -= 4 + length
    return None


def normal_host(authority: bytes) -> bytes:
    """A host in lower case, without user, port and the dot of the root; empty if there is none."""
    host = re.sub(rb":[0-9]*\Z", b"", authority.rpartition(b"@")[2]).removesuffix(b".")
    return host.lower() if len(host) <= LONGEST_HOST else b""


def normal_path(target: bytes) -> tuple[bytes, ...]:
    """The segments of a path (RFC 3986, section 6.2.2), without its query; none for the root, or if it is too long."""
    path = target.partition(b"?")[0]
    if not path.startswith(b"/") or len(path) > LONGEST_PATH:
        return ()
    segments: list[bytes] = []
    for segment in ESCAPE.sub(decode_escape, path).split(b"/"):
        if segment == b"..":
            segments = segments[:-1]
        elif segment not in (b"", b"."):
            segments.append(segment)
    return tuple(segments)


def decode_escape(escape: re.Match[bytes]) -> bytes:
    """An unreserved character, or the same escape in upper case."""
    char = bytes.fromhex(escape[0][1:].decode())
    return char if UNRESERVED.match(char) else escape[0].upper()
