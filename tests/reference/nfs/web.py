"""Requests of HTTP/1 (RFC 9112) and handshakes of TLS (RFC 8446), as far as bytes have them.

Hosts and paths are brought to forms in which equal ones have equal bytes.
"""

import re
from dataclasses import dataclass, field
from enum import Enum

METHODS = (b"GET", b"HEAD", b"POST", b"PUT", b"DELETE", b"CONNECT", b"OPTIONS", b"TRACE", b"PATCH")
"""Those that HTTP itself has, so that a line without its end is taken for HTTP."""
BLANKS = b" \t\v\f\r"
METHOD = re.compile(rb"([A-Z_-][!#$%&'*+.^_`|~0-9A-Za-z-]{0,19})[ \t\v\f\r]")
FIRST_LINE = re.compile(rb"(.*)[ \t\v\f\r]HTTP/1\.[0-9]", re.DOTALL)
FIELD_NAME = re.compile(rb"([^: \t]+)[ \t]*:", re.DOTALL)
CHUNKED = re.compile(rb"(.*[, \t\v\f\r])?chunked", re.DOTALL | re.IGNORECASE)
CHUNK_SIZE = re.compile(rb"([0-9A-Fa-f]{0,7})([; \t\v\f\r].*)?", re.DOTALL)
SCHEME = re.compile(rb"https?://", re.IGNORECASE)
ESCAPE = re.compile(rb"%[0-9A-Fa-f]{2}")
UNRESERVED = re.compile(rb"[A-Za-z0-9._~-]")
MOST_HOSTS = 4
LONGEST_HOST, LONGEST_PATH, LONGEST_METHOD, LONGEST_NUMBER = 253, 4096, 20, 18

HANDSHAKE, DATA, CLIENT_HELLO, SERVER_NAME, HOST_NAME, EARLY_DATA, RECORD = 22, 23, 1, 0, 0, 42, 5
PASSED_OVER = re.compile(rb"\x14..\x00\x01|\x15..\x00\x02", re.DOTALL)
"""Records that servers pass over before a handshake, or within: of ciphers, and alerts."""


class RequestKind(Enum):
    """What bytes begin with."""

    NONE = "none"
    HTTP = "http"
    TLS = "tls"
    INCOMPLETE = "incomplete"  # a request or handshake that goes on behind the last byte


@dataclass
class WebRequest:
    """A request: whom it is for, its target from the path on, and where the next one begins."""

    kind: RequestKind
    hosts: list[bytes] = field(default_factory=list)
    target: bytes = b""
    end: int = 0  # of its fields, or of a handshake's records
    body: int = 0  # bytes behind them
    chunked: bool = False
    named: bool = False  # the server name extension of a handshake has come
    early: bool = False  # records of early data may follow a handshake
    unclear: bool = False  # its end is ambiguous (RFC 9112, section 6.3)

    def add_host(self, host: bytes) -> None:
        """Note a host; of many, the last one is there."""
        self.hosts[MOST_HOSTS - 1 :] = [host]


NO_REQUEST = WebRequest(RequestKind.NONE)


def read_request(data: bytes, begun: bool) -> WebRequest:
    """The request at the begin of bytes; `begun`: what may be one is one that goes on."""
    may_be_tls = PASSED_OVER.match(data) if len(data) >= RECORD else begun and data[:1] in (b"\x14", b"\x15")
    return read_handshake(data, begun) if data[:1] == b"\x16" or may_be_tls else read_http(data, begun)


def read_http(data: bytes, begun: bool) -> WebRequest:
    text = data.lstrip(b"\r\n")
    method = METHOD.match(text)
    if not method:
        may_be = not text or METHOD.fullmatch(text + b" ") is not None
        return WebRequest(RequestKind.INCOMPLETE) if begun and may_be else NO_REQUEST
    line, end, rest = text.partition(b"\n")
    if not end:
        return WebRequest(RequestKind.INCOMPLETE) if begun or method[1] in METHODS else NO_REQUEST
    first = FIRST_LINE.fullmatch(line.rstrip(BLANKS), method.end() - 1)
    if not first:
        return NO_REQUEST
    request = WebRequest(RequestKind.INCOMPLETE)
    read_target(request, first[1].strip(BLANKS))
    read_fields(request, rest, len(data))
    request.unclear |= method[1] == b"CONNECT" and (request.body > 0 or request.chunked)  # of no meaning
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


def read_fields(request: WebRequest, rest: bytes, length: int) -> None:
    """Fields up to the empty line, without which the request is incomplete; folded lines go on with a value."""
    lengths: list[bytes] = []
    name = b""
    while rest:
        line, end, rest = rest.partition(b"\n")
        if not end:
            return
        line = without_return(line)
        if not line:
            request.kind = RequestKind.HTTP
            request.end = length - len(rest)
            return
        if line[:1] in (b" ", b"\t"):
            if name == b"host":
                request.add_host(line.strip(b" \t"))
            continue
        found = FIELD_NAME.match(line)
        name = found[1].lower() if found else b""
        value = line[found.end() :].strip(b" \t") if found else b""
        if name == b"host":
            request.add_host(value)
        elif name == b"content-length":
            lengths.append(value)
            digits = value if 0 < len(value) <= LONGEST_NUMBER else b""
            request.unclear |= (
                not digits.isdigit()
                or request.chunked
                or len({int(each or b"0") for each in lengths if each.isdigit()}) > 1
            )
            request.body = int(value) if digits.isdigit() else 0
        elif name == b"transfer-encoding":
            request.unclear |= bool(lengths) or request.chunked or not CHUNKED.fullmatch(value)
            request.chunked = True


def read_chunk(data: bytes) -> tuple[int, int] | None:
    """The bytes of a line with a chunk's size, 0 if it does not end, and the size; None: it is no such line."""
    line, end, _ = data.partition(b"\n")
    found = CHUNK_SIZE.fullmatch(line)
    if not found or (end and not found[1]):
        return None
    return (len(line) + 1 if end else 0), int(found[1] or b"0", 16)


def skip_trailers(data: bytes) -> int:
    """The bytes up to the empty line, and it; 0 if it has not come."""
    at = 0
    while b"\n" in data[at:]:
        line = data[at : data.index(b"\n", at)]
        at += len(line) + 1
        if not without_return(line):
            return at
    return 0


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


def read_handshake(segment: bytes, begun: bool) -> WebRequest:
    """The host names of a ClientHello, if it has any, and where its records end, if they have come."""
    message, rest, cut = b"", segment, False
    while len(rest) >= RECORD and (rest[0] == HANDSHAKE or PASSED_OVER.match(rest)):
        end = RECORD + int.from_bytes(rest[3:RECORD], "big")
        message += rest[RECORD:end] if rest[0] == HANDSHAKE else b""
        cut, rest = end > len(rest), rest[end:]
    found = WebRequest(RequestKind.INCOMPLETE)
    if not message and segment[0] != HANDSHAKE:
        return WebRequest(RequestKind.TLS) if begun else NO_REQUEST  # of no handshake so far
    if not message:
        return found
    first = True
    while message and message[0] == CLIENT_HELLO and message[1:2] <= b"\2":
        reader, first = HandshakeReader(message), False
        try:
            reader.bytes(1)
            length = 4 + reader.number(3)
            read_extensions(reader, found)
        except EndError:
            cut = True
            break
        cut |= length > len(message)
        message = message[length:]
    if first:
        return NO_REQUEST
    found.end = 0 if cut else len(segment) - len(rest)
    if found.hosts or found.named or found.end:
        found.kind = RequestKind.TLS
    return found


def read_extensions(reader: HandshakeReader, request: WebRequest) -> None:
    """Append the host names of server name extensions (RFC 6066, section 3)."""
    reader.bytes(2 + 32)  # version, random
    for size in (1, 2, 1):  # session, ciphers, compression
        reader.bytes(reader.number(size))
    left = reader.number(2)
    while left >= 4:
        kind, length = reader.number(2), reader.number(2)
        if kind == SERVER_NAME:
            names = HandshakeReader(reader.data[reader.at :])
            read_names(names, request)
            request.named = True
        request.early |= kind == EARLY_DATA
        reader.bytes(length)
        left -= 4 + length


def read_names(reader: HandshakeReader, request: WebRequest) -> None:
    """Append the host names of a list, in which other types are passed over."""
    left = reader.number(2)
    while left >= 3:
        name_type, length = reader.number(1), reader.number(2)
        if name_type != HOST_NAME and 3 + length >= left:
            return
        name = reader.bytes(length)
        if name_type == HOST_NAME:
            request.add_host(name)
        left -= 3 + length


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
