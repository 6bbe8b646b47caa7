"""Requests of HTTP/1 (RFC 9112) and handshakes of TLS (RFC 8446, RFC 6066), read from one segment."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

METHODS = (b"GET", b"HEAD", b"POST", b"PUT", b"DELETE", b"CONNECT", b"OPTIONS", b"TRACE", b"PATCH")
FIRST_LINE = re.compile(rb"([A-Z]{1,20}) (.*) HTTP/1\.[0-9]", re.DOTALL)
BEGINNING = re.compile(rb"([A-Z]{1,20}) ")
FIELD = re.compile(rb"([^: \t]+)[ \t]*:(.*)", re.DOTALL)
MOST_HOSTS = 4
HANDSHAKE, CLIENT_HELLO, SERVER_NAME, HOST_NAME = 22, 1, 0, 0
LONGEST_HOST, LONGEST_PATH = 253, 4096


@dataclass(slots=True)
class Request:
    """What a segment begins with: `none`, `http`, `tls`, or `incomplete`."""

    kind: str
    hosts: list[bytes] = field(default_factory=list)
    target: bytes = b""
    rest: bytes = b""
    """What follows a request without a body."""


def request_in(segment: bytes) -> Request:
    """The request at the beginning of a segment."""
    return handshake(segment) if segment[:1] == bytes([HANDSHAKE]) else http(segment.lstrip(b"\r\n"))


def http(segment: bytes) -> Request:
    """A request line and fields, up to the empty line."""
    beginning = BEGINNING.match(segment)
    if not beginning:
        return Request("none")
    lines = segment.split(b"\n")[:-1]
    if not lines:
        return Request("incomplete" if beginning[1] in METHODS else "none")
    first = FIRST_LINE.fullmatch(without_return(lines[0]))
    if not first:
        return Request("none")
    request = Request("incomplete")
    read_target(request, first[2].strip(b" \t"))
    has_body, read = False, len(lines[0]) + 1
    for line in lines[1:]:
        read += len(line) + 1
        text = without_return(line)
        if not text:
            request.kind = "http"
            request.rest = b"" if has_body else segment[read:]
            return request
        found = FIELD.match(text)
        name = found[1].lower() if found else b""
        if found and name == b"host" and len(request.hosts) < MOST_HOSTS:
            request.hosts.append(found[2].strip(b" \t"))
        has_body = has_body or name in (b"content-length", b"transfer-encoding")
    return request


def without_return(line: bytes) -> bytes:
    """A line without the CR before its end."""
    return line[:-1] if line.endswith(b"\r") else line


def read_target(request: Request, target: bytes) -> None:
    """The host of an absolute target or of CONNECT, and the path (RFC 9112, section 3.2)."""
    absolute = re.match(rb"https?://", target, re.IGNORECASE)
    if (not absolute and target[:1] in (b"/", b"")) or target == b"*":
        request.target = target
        return
    behind = target[absolute.end() :] if absolute else target
    host = re.match(rb"[^/?]*", behind)
    assert host
    request.hosts.append(host[0])
    request.target = behind[host.end() :]


class _EndError(Exception):
    """The segment ends before what is read."""


class _Reader:
    """Numbers and bytes of a handshake."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def bytes(self, n: int) -> bytes:
        """The next `n` bytes."""
        if self.at + n > len(self.data):
            raise _EndError
        self.at += n
        return self.data[self.at - n : self.at]

    def number(self, n: int) -> int:
        """A number of `n` bytes."""
        return int.from_bytes(self.bytes(n), "big")


def handshake(segment: bytes) -> Request:
    """The host name of a ClientHello, if it has one."""
    if len(segment) < 6 or segment[1] != 3 or segment[5] != CLIENT_HELLO:
        return Request("none")
    try:
        name = server_name(_Reader(segment))
    except _EndError:
        return Request("incomplete")
    return Request("none") if name is None else Request("tls", [name])


def server_name(reader: _Reader) -> bytes | None:
    """The host name of the server name extension; None without one (RFC 6066, section 3)."""
    reader.bytes(5 + 4 + 2 + 32)
    for size in (1, 2, 1):
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


def host_of(authority: bytes) -> bytes:
    """A host in lower case, without user, port and the dot of the root; empty if there is none."""
    host = re.sub(rb":[0-9]*\Z", b"", authority.rpartition(b"@")[2])
    host = host[:-1] if host.endswith(b".") else host
    return host.lower() if len(host) <= LONGEST_HOST else b""


def path_of(target: bytes) -> tuple[bytes, ...]:
    """The segments of a path in normal form (RFC 3986, section 6.2.2); empty for the root, or if it is too long."""
    path = target.partition(b"?")[0]
    if not path.startswith(b"/") or len(path) > LONGEST_PATH:
        return ()
    segments: list[bytes] = []
    for segment in re.sub(rb"%[0-9A-Fa-f]{2}", decoded, path).split(b"/"):
        if segment == b"..":
            segments = segments[:-1]
        elif segment not in (b"", b"."):
            segments.append(segment)
    return tuple(segments)


def decoded(escape: re.Match[bytes]) -> bytes:
    """An unreserved character, or the same escape in upper case."""
    char = bytes.fromhex(escape[0][1:].decode())
    return char if re.match(rb"[A-Za-z0-9._~-]", char) else escape[0].upper()
