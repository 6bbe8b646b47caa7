"""Requests of HTTP/1 (RFC 9112) and handshakes of TLS (RFC 8446), as far as one TCP segment has them.

Read as `nfs/functions/url_filter/request.c` does, and brought to the forms of `url.c`, in which equal ones have equal
bytes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import Enum

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


class RequestKind(Enum):
    """What a segment begins with."""

    NONE = "none"
    HTTP = "http"
    TLS = "tls"
    INCOMPLETE = "incomplete"
    """A request or handshake that goes on behind the segment's end."""


@dataclass
class WebRequest:
    """A request: whom it is for, its target from the path on, and the bytes of the requests behind it."""

    kind: RequestKind
    hosts: list[bytes] = field(default_factory=list)
    target: bytes = b""
    rest: bytes = b""


NO_REQUEST = WebRequest(RequestKind.NONE)


def first_request(segment: bytes) -> WebRequest:
    """The request at the begin of a segment."""
    return _handshake(segment) if segment[:1] == bytes((HANDSHAKE,)) else _http(segment.lstrip(b"\r\n"))


def _http(segment: bytes) -> WebRequest:
    method = METHOD.match(segment)
    if not method:
        return NO_REQUEST
    line, end, rest = segment.partition(b"\n")
    if not end:
        return WebRequest(RequestKind.INCOMPLETE) if method[1] in METHODS else NO_REQUEST
    first = FIRST_LINE.fullmatch(_without_return(line), method.end() - 1)
    if not first:
        return NO_REQUEST
    request = WebRequest(RequestKind.INCOMPLETE)
    _read_target(request, first[1].strip(b" \t"))
    _read_fields(request, rest)
    return request


def _read_target(request: WebRequest, target: bytes) -> None:
    """The host of an absolute target or of CONNECT, and the path (RFC 9112, section 3.2)."""
    scheme = SCHEME.match(target)
    begin = scheme.end() if scheme else 0
    if not begin and (target[:1] in (b"/", b"") or target == b"*"):
        request.target = target
        return
    end = next((at for at in range(begin, len(target)) if target[at] in b"/?"), len(target))
    request.hosts.append(target[begin:end])
    request.target = target[end:]


def _read_fields(request: WebRequest, rest: bytes) -> None:
    """Fields up to the empty line; the request is incomplete without it."""
    has_body = False
    while rest:
        line, end, rest = rest.partition(b"\n")
        if not end:
            return
        line = _without_return(line)
        if not line:
            request.kind = RequestKind.HTTP
            request.rest = b"" if has_body else rest
            return
        found = FIELD_NAME.match(line)
        name = found[1].lower() if found else b""
        if found and name == b"host" and len(request.hosts) < MOST_HOSTS:
            request.hosts.append(line[found.end() :].strip(b" \t"))
        has_body = has_body or name in BODY_FIELDS


def _without_return(line: bytes) -> bytes:
    return line.removesuffix(b"\r")


class _EndError(Exception):
    """The segment ends before what is read."""


class _Reader:
    """Reads bytes of a handshake one after the other."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def bytes(self, n: int) -> bytes:
        if self.at + n > len(self.data):
            raise _EndError
        self.at += n
        return self.data[self.at - n : self.at]

    def number(self, n: int) -> int:
        return int.from_bytes(self.bytes(n), "big")


def _handshake(segment: bytes) -> WebRequest:
    """The host name of a ClientHello, if it has one."""
    if len(segment) < 6 or segment[1] != 3 or segment[5] != CLIENT_HELLO:
        return NO_REQUEST
    try:
        name = _server_name(_Reader(segment))
    except _EndError:
        return WebRequest(RequestKind.INCOMPLETE)
    return NO_REQUEST if name is None else WebRequest(RequestKind.TLS, [name])


def _server_name(reader: _Reader) -> bytes | None:
    """The host name of the server name extension (RFC 6066, section 3); None without one."""
    reader.bytes(5 + 4 + 2 + 32)  # record, message, version, random
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
    for segment in ESCAPE.sub(_decoded, path).split(b"/"):
        if segment == b"..":
            segments = segments[:-1]
        elif segment not in (b"", b"."):
            segments.append(segment)
    return tuple(segments)


def _decoded(escape: re.Match[bytes]) -> bytes:
    """An unreserved character, or the same escape in upper case."""
    char = bytes.fromhex(escape[0][1:].decode())
    return char if UNRESERVED.match(char) else escape[0].upper()
