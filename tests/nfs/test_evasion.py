"""Filters cannot be walked around: no way of cutting or wrapping what they block brings it to a server.

Each way makes the frames of a client that sends a text to a server. All are sent through a filter at once, a flow for
each way. What leaves is joined as its server would join it, by code that is here: of a text that is to be blocked the
server must not get all bytes, and one that is to pass must arrive unless servers do not take such frames either.
"""

import contextlib
import json
import random
import ssl
import struct
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.nfs.builds import build_tested, require
from tests.nfs.captures import read_capture, write_capture, write_frames

ACK, SYN, URG, SYN_AT = 16, 2, 32, 13
Frames = list[bytes]
BEGIN = 0xFFFFFF00


class Client:
    """A client that sends a text to a server by IPv4 or IPv6."""

    def __init__(self, number: int, ipv6: bool) -> None:
        self.ipv6 = ipv6
        self.port = 1024 + number
        self.addresses = (
            (b"\x0a\0\0\1", b"\x14\0\0\7")
            if not ipv6
            else (b"\x20\1\x0d\xb8" + bytes(11) + b"\1", b"\x20\1\x0d\xb8" + bytes(11) + b"\2")
        )

    def as_ipv4(self) -> "Client":
        """The same client, with addresses of IPv4."""
        return Client(self.port - 1024, False)

    def segment(self, at: int, data: bytes, flags: int = ACK) -> bytes:
        """A segment of TCP with some bytes of the text, `at` from its begin."""
        sequence = (BEGIN + at) % (1 << 32)
        return struct.pack("!HHIIBBHHH", self.port, 80, sequence, 1, 5 << 4, flags, 65535, 0, 0) + data

    def packet(self, segment: bytes, protocol: int = 6, extensions: bytes = b"", field: int = 0) -> bytes:
        """A frame; `extensions` are those of IPv6, whose first header is `protocol`, `field` the fragment of IPv4."""
        if self.ipv6:
            header = struct.pack("!IHBB", 6 << 28, len(extensions) + len(segment), protocol, 64) + b"".join(
                self.addresses
            )
            return bytes([2] * 6 + [6] * 6) + b"\x86\xdd" + header + extensions + segment
        header = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(segment), 7, field, 64, protocol, 0) + b"".join(
            self.addresses
        )
        return bytes([2] * 6 + [6] * 6) + b"\x08\x00" + header + segment

    def opens(self) -> bytes:
        """The SYN."""
        return self.packet(self.segment(-1, b"", SYN))

    def send(self, *parts: tuple[int, bytes]) -> Frames:
        """Segments behind a SYN."""
        return [self.opens(), *(self.packet(self.segment(at, data)) for at, data in parts)]


Way = Callable[[Client, bytes], Frames]


def pieces(text: bytes, size: int) -> list[tuple[int, bytes]]:
    """A text cut into parts of a size."""
    return [(at, text[at : at + size]) for at in range(0, len(text), size)]


def in_order(size: int) -> Way:
    return lambda client, text: client.send(*pieces(text, size))


def in_two(share: float, backwards: bool) -> Way:
    """Cut somewhere, in order or not."""
    return lambda client, text: client.send(*halves(text, int(len(text) * share))[:: -1 if backwards else 1])


def halves(text: bytes, cut: int) -> list[tuple[int, bytes]]:
    return [(0, text[:cut]), (cut, text[cut:])]


def in_parts(n: int, *order: int) -> Way:
    """In `n` parts, which are sent in an order."""

    def send(client: Client, text: bytes) -> Frames:
        parts = pieces(text, len(text) // n + 1)
        return client.send(*(parts[i] for i in order))

    return send


def behind(place: float, n: int) -> Way:
    """Behind bytes that the server does not get: their time to live is short, or their checksum wrong."""

    def send(client: Client, text: bytes) -> Frames:
        at = int(len(text) * place)
        first, rest = halves(text, at)
        return [*client.send(first, (at, b"x" * n)), client.packet(client.segment(*rest))]

    return send


def behind_another_byte(client: Client, text: bytes) -> Frames:
    """Of a byte within the host another copy comes first, which the server does not get."""
    (_, first), (at, rest) = halves(text, len(text) - 14)
    return client.send((0, first), (at, b"_"), (at, rest[:1]), (at + 1, rest[1:]))


def with_urgent_byte(client: Client, text: bytes) -> Frames:
    """A byte within the host is urgent, which the server leaves out."""
    at = len(text) - 14
    segment = client.segment(0, text[:at] + b"_" + text[at:], ACK | URG)
    return [client.opens(), client.packet(segment[:18] + struct.pack("!H", at + 1) + segment[20:])]


def tagged(tags: bytes) -> Way:
    return lambda client, text: [frame[:12] + tags + frame[12:] for frame in client.send(*halves(text, 40))]


def overlapping(client: Client, text: bytes) -> Frames:
    return client.send(*((at, text[at : at + 24]) for at in range(0, len(text), 16)))


def with_syn(client: Client, text: bytes) -> Frames:
    """The first half with the SYN."""
    return [client.packet(client.segment(-1, text[:40], SYN)), client.packet(client.segment(40, text[40:]))]


def with_other_syns(*others: int, flags: int = SYN) -> Way:
    """SYNs within the host, as if other streams began `others` bytes behind: servers ignore them (RFC 5961, 4)."""

    def send(client: Client, text: bytes) -> Frames:
        first, rest = halves(text, len(text) - 13)
        between = [client.packet(client.segment(rest[0] + at, b"", flags)) for at in others]
        return [*client.send(first), *between, client.packet(client.segment(*rest))]

    return send


def with_syn_behind(client: Client, text: bytes) -> Frames:
    """When a filter has blocked the rest, another stream seems to begin with it."""
    first, rest = halves(text, len(text) - 13)
    other = client.packet(client.segment(rest[0] - 1, b"", SYN))
    return [*client.send(first, rest), other, client.packet(client.segment(*rest))]


def with_skipping_syn(client: Client, text: bytes) -> Frames:
    """Another SYN comes with a request whose body seems to be all that follows."""
    fake = b"POST / HTTP/1.1\r\nHost: c.net\r\nContent-Length: 100000\r\n\r\n"
    other = client.packet(client.segment(-len(fake) - 1, fake, SYN))
    return [client.opens(), other, client.packet(client.segment(0, text))]


WAYS: dict[str, Way] = {
    **{f"in segments of {size}": in_order(size) for size in (1, 2, 7, 20, 50)},
    **{f"cut at {share}": in_two(share, False) for share in (0.1, 0.3, 0.5, 0.7, 0.9)},
    **{f"cut at {share}, the rest first": in_two(share, True) for share in (0.1, 0.3, 0.5, 0.7, 0.9)},
    "in three, backwards": in_parts(3, 2, 1, 0),
    "in four, the second last": in_parts(4, 0, 2, 3, 1),
    "in four, twice": in_parts(4, 0, 0, 1, 1, 2, 2, 3, 3),
    "in four, the first again": in_parts(4, 0, 1, 0, 2, 3),
    "overlapping": overlapping,
    "the first byte alone": lambda client, text: client.send(*halves(text, 1)),
    "the last byte alone": lambda client, text: client.send(*halves(text, len(text) - 1)),
    "with an acknowledgement between": lambda client, text: client.send((0, text[:30]), (30, b""), (30, text[30:])),
    "with a keepalive behind": lambda client, text: client.send((0, text), (len(text) - 1, b"\0")),
    "with the SYN": lambda client, text: [client.packet(client.segment(-1, text, SYN))],
    "the first half with the SYN": with_syn,
    "the SYN twice": lambda client, text: [client.opens(), *client.send(*halves(text, 40))],
    "another SYN between": with_other_syns(-1),
    "another SYN between, before the second half": with_other_syns(-10),
    "another SYN between, far behind": with_other_syns(-100_000),
    "another SYN between, far ahead": with_other_syns(100_000),
    "two other SYNs between": with_other_syns(100_000, -1),
    "two SYN-ACKs between": with_other_syns(100_000, -1, flags=SYN | ACK),
    "another SYN behind all, and the rest again": with_syn_behind,
    "a SYN with bytes that skip the rest": with_skipping_syn,
    "one byte far ahead between": lambda client, text: client.send(
        (0, text[:-13]), (900_000, b"x"), (len(text) - 13, text[-13:])
    ),
    "with an urgent byte within the host": with_urgent_byte,
    "in whole, without a SYN": lambda client, text: client.send((0, text))[1:],
    "cut, without a SYN": lambda client, text: client.send(*halves(text, 40))[1:],
    "behind other bytes at the begin": behind(0, 20),
    "behind other bytes in the middle": behind(0.3, 20),
    "behind other bytes at the end": behind(0.9, 4),
    "behind another byte, and that byte": behind_another_byte,
    "behind one tag": tagged(b"\x81\0\0\5"),
    "behind two tags": tagged(b"\x88\xa8\0\5\x81\0\0\6"),
    "behind three tags": tagged(b"\x81\0\0\5\x81\0\0\6\x81\0\0\7"),
    "behind an unknown tag": tagged(b"\x91\0\0\5"),
}
"""Ways of both versions of IP."""


def ipv4_fragments(client: Client, segment: bytes, size: int) -> Frames:
    parts = pieces(segment, size)
    return [client.packet(part, field=(0x2000 if (at, part) != parts[-1] else 0) | at // 8) for at, part in parts]


def ipv6_fragments(client: Client, data: bytes, size: int, protocol: int = 6) -> Frames:
    parts = pieces(data, size)
    return [
        client.packet(part, 44, bytes([protocol, 0]) + struct.pack("!HI", at | ((at, part) != parts[-1]), 9))
        for at, part in parts
    ]


Cut = Callable[[Client, bytes, int], Frames]


def in_fragments(cut: Cut, size: int, backwards: bool = False) -> Way:
    return lambda client, text: [
        client.opens(),
        *cut(client, client.segment(0, text), size)[:: -1 if backwards else 1],
    ]


def in_overlapping_fragments(cut: Cut) -> Way:
    """A first fragment with other bytes, before all with the right ones."""
    return lambda client, text: [
        *in_fragments(cut, 64)(client, text[:20] + b"x" * 40),
        *cut(client, client.segment(0, text), 40),
    ]


def options(following: int, units: int = 0) -> bytes:
    """A header of options, all of which are padding."""
    return bytes([following, units]) + b"\1\4" + bytes(4)


def extended(first: int, extensions: bytes) -> Way:
    """Behind extension headers."""
    return lambda client, text: [
        client.packet(client.segment(at, data, flags), first, extensions)
        for at, data, flags in ((-1, b"", SYN), *((*half, ACK) for half in halves(text, 40)))
    ]


def behind_options(client: Client, data: bytes, size: int) -> Frames:
    return ipv6_fragments(client, options(6) + data, size, 60)


WAYS_OF_IPV4: dict[str, Way] = {
    **{f"in fragments of {size}": in_fragments(ipv4_fragments, size) for size in (24, 40, 64)},
    "in fragments, backwards": in_fragments(ipv4_fragments, 40, True),
    "in overlapping fragments": in_overlapping_fragments(ipv4_fragments),
    "in IPv4 in IPv4": lambda client, text: [client.packet(frame[14:], 4) for frame in client.send((0, text))],
}
WAYS_OF_IPV6: dict[str, Way] = {
    "behind hop-by-hop options": extended(0, options(6)),
    "behind destination options": extended(60, options(6)),
    "behind a routing header": extended(43, bytes([6, 0, 0, 0]) + bytes(4)),
    "behind an authentication header": extended(51, bytes([6, 4, 0, 0]) + bytes(20)),
    "behind an atomic fragment": extended(44, bytes([6, 0, 0, 0, 0, 0, 0, 9])),
    "behind four headers": extended(0, options(60) + options(43) + bytes([60, 0, 0, 0]) + bytes(4) + options(6)),
    "behind an atomic fragment and options": extended(44, bytes([60, 0, 0, 0, 0, 0, 0, 9]) + options(6)),
    "behind options that are too late": extended(60, options(0) + options(6)),
    "behind twenty options": extended(60, options(60) * 19 + options(6)),
    "behind a mobility header": extended(135, options(6)),
    "behind a shim header": extended(140, options(6)),
    "behind an unknown header": extended(253, options(6)),
    "behind an encrypted payload": extended(50, bytes(8)),
    **{f"in fragments of {size}": in_fragments(ipv6_fragments, size) for size in (24, 40, 64)},
    "in fragments, backwards": in_fragments(ipv6_fragments, 40, True),
    "in fragments behind options": in_fragments(behind_options, 40),
    "in overlapping fragments": in_overlapping_fragments(ipv6_fragments),
    "in IPv4 in IPv6": lambda client, text: [
        client.packet(frame[14:], 4) for frame in client.as_ipv4().send((0, text))
    ],
    "in IPv6 in IPv6": lambda client, text: [client.packet(frame[14:], 41) for frame in client.send((0, text))],
    "as a jumbogram": lambda client, text: [client.opens(), jumbogram(client, client.segment(0, text))],
}


def jumbogram(client: Client, segment: bytes) -> bytes:
    """A packet with a payload length of 0 and the jumbo option (RFC 2675)."""
    extension = bytes([6, 0, 0xC2, 4]) + (8 + len(segment)).to_bytes(4, "big")
    frame = client.packet(segment, 0, extension)
    return frame[:18] + bytes(2) + frame[20:]


def server_text(frames: Frames, port: int, last: bool) -> bytes:
    """What a server may read of the frames of a port: the bytes from the begin on, of the first or `last` copy.

    It takes whatever extension headers and tags there are, packets in packets, and fragments.
    """
    found: dict[int, int] = {}
    datagrams: dict[bytes, dict[int, int]] = {}
    for frame in frames:
        for segment in segments_of(strip_tags(frame), datagrams, last):
            if len(segment) < 20 or struct.unpack_from("!H", segment)[0] != port:
                continue
            data = segment[(segment[12] >> 4) * 4 :]
            if segment[SYN_AT] & URG:
                urgent = struct.unpack_from("!H", segment, 18)[0]
                data = data[: urgent - 1] + data[urgent:]
            at = (struct.unpack_from("!I", segment, 4)[0] - BEGIN + bool(segment[SYN_AT] & SYN)) % (1 << 32)
            for i, byte in enumerate(data):
                place = (at + i) % (1 << 32)
                if last or place not in found:
                    found[place] = byte
    joined = bytearray()
    while len(joined) in found:
        joined.append(found[len(joined)])
    return bytes(joined)


def strip_tags(frame: bytes) -> bytes:
    """The packet in a frame."""
    at = 12
    while frame[at : at + 2] in (b"\x81\0", b"\x88\xa8", b"\x91\0"):
        at += 4
    return frame[at + 2 :]


def segments_of(packet: bytes, datagrams: dict[bytes, dict[int, int]], last: bool) -> Iterator[bytes]:
    """The segments in a packet, also those that it completes."""
    if packet[0] >> 4 == 4:
        length, protocol = (packet[0] & 15) * 4, packet[9]
        field, rest = struct.unpack_from("!H", packet, 6)[0], packet[length:]
        fragment = ((field & 0x1FFF) * 8, bool(field & 0x2000)) if field & 0x3FFF else None
    else:
        protocol, rest, fragment = packet[6], packet[40:], None
        while protocol in (0, 43, 44, 51, 60, 135, 139, 140, 253):
            if protocol == 44:
                field = struct.unpack_from("!H", rest, 2)[0]
                fragment = (field & 0xFFF8, bool(field & 1)) if field & 0xFFF9 else None
            length = 8 if protocol == 44 else (rest[1] + 2) * 4 if protocol == 51 else (rest[1] + 1) * 8
            before, protocol, rest = protocol, rest[0], rest[length:]
            if before == 44 and fragment:
                break
        if protocol == 50:
            protocol, rest = 6, rest[8:]
    if fragment:
        yield from joined_fragments(packet, protocol, fragment, rest, datagrams, last)
    elif protocol in (4, 41):
        yield from segments_of(rest, datagrams, last)
    elif protocol == 6:
        yield rest


def joined_fragments(
    packet: bytes,
    protocol: int,
    fragment: tuple[int, bool],
    data: bytes,
    datagrams: dict[bytes, dict[int, int]],
    last: bool,
) -> Iterator[bytes]:
    """The segment of a datagram, if all of its fragments have come."""
    known = datagrams.setdefault(packet[0].to_bytes(1, "big") + packet[8:40] * (packet[0] >> 4 == 6), {})
    for i, byte in enumerate(data):
        if last or fragment[0] + i not in known:
            known[fragment[0] + i] = byte
    whole = bytes(known[at] for at in range(len(known)) if at in known)
    if len(whole) == len(known) and whole:
        yield whole[8:] if protocol == 60 else whole


UNTAKEN = (
    "behind other bytes",
    "behind another byte",
    "an urgent byte",
    "three tags",
    "an unknown tag",
    "fragments",
    "in IPv4 in",
    "in IPv6 in",
    "too late",
    "twenty options",
    "an unknown header",
    "an encrypted payload",
    "jumbogram",
)
"""Of ways by which also what is allowed does not arrive: no server takes it, or a filter cannot look into it."""

REQUEST = b"GET /index.html HTTP/1.1\r\nUser-Agent: some browser\r\nAccept: */*\r\nHost: %s\r\n\r\n"
PIPELINED = b"POST /a HTTP/1.1\r\nHost: c.net\r\nContent-Length: 7\r\n\r\nGET / xGET / HTTP/1.1\r\nHost: %s\r\n\r\n"
CHUNKS = b"POST /a HTTP/1.1\r\nHost: c.net\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nabcd\r\n0\r\n\r\n" + (
    b"GET / HTTP/1.1\r\nHost: %s\r\n\r\n"
)
FOLDED = b"GET / HTTP/1.1\r\nAccept: text\r\n  and others\r\nHost:\r\n\t%s\r\nAccept-Language: en\r\n\r\n"


def hello(name: bytes) -> bytes:
    """A ClientHello with a key share as post-quantum ones are, before the name, in two records."""
    entry = struct.pack("!HBH", len(name) + 3, 0, len(name)) + name
    extensions = struct.pack("!HH", 51, 1216) + bytes(1216) + struct.pack("!HH", 0, len(entry)) + entry
    body = (
        b"\3\3" + bytes(32) + b"\x20" + bytes(32) + b"\0\2\x13\1\1\0" + struct.pack("!H", len(extensions)) + extensions
    )
    message = b"\1" + len(body).to_bytes(3, "big") + body
    return b"".join(b"\x16\3\1" + struct.pack("!H", len(part)) + part for _, part in pieces(message, 1000))


def record(part: bytes, version: bytes = b"\3\1", kind: int = 22) -> bytes:
    """A record of TLS."""
    return bytes([kind]) + version + struct.pack("!H", len(part)) + part


def plain_hello(
    name: bytes, kinds: tuple[int, ...] = (0,), session: int = 32, before: bytes = b"", behind: bytes = b""
) -> bytes:
    """A ClientHello, whose name is in the list once for each kind; `behind` are bytes of extensions."""
    entries = b"".join(struct.pack("!BH", kind, len(name)) + name for kind in kinds)
    extensions = before + struct.pack("!HHH", 0, len(entries) + 2, len(entries)) + entries + behind
    ciphers = b"\x13\1" * (16_000 if behind else 1)
    body = b"\3\3" + bytes(32) + bytes([session]) + bytes(session)
    body += struct.pack("!H", len(ciphers)) + ciphers + b"\1\0" + struct.pack("!H", len(extensions)) + extensions
    return b"\1" + len(body).to_bytes(3, "big") + body


ALERT, CIPHERS = record(b"\1\x5a", kind=21), record(b"\1", kind=20)
DATA = record(bytes(300), kind=23)
GOOD_HELLO = plain_hello(b"www.good.example.org")
EARLY_HELLO = plain_hello(b"www.good.example.org", before=struct.pack("!HH", 42, 0))
LONG = "of 72 kB"
"""A ClientHello that servers take, of OpenSSL up to 131,396 bytes; UrlFilter lets no more than 8,192 of it pass."""


def hellos_of(name: bytes) -> dict[str, list[bytes]]:
    """A ClientHello as servers take it, in segments."""
    message = plain_hello(name)
    first, second = record(message[:40]), record(message[40:])
    padded = plain_hello(name, behind=struct.pack("!HH", 21, 40_000) + bytes(40_000))
    return {
        "in one record": [record(message)],
        "a byte in each record": [b"".join(record(message[i : i + 1]) for i in range(len(message)))],
        "a record in each segment": [record(message[i : i + 30]) for i in range(0, len(message), 30)],
        "cut within headers of records": [first[:2], first[2:] + second[:1], second[1:4], second[4:]],
        "behind a record of nothing": [record(b"") + record(message)],
        "behind a segment of nothing": [record(b""), record(message)],
        "records of nothing between": [first + record(b"") + record(b"") + second],
        "behind an alert": [ALERT + record(message)],
        "behind an alert in its segment": [ALERT, record(message)],
        "an alert between": [first + ALERT + second],
        "an alert in its segment between": [first, ALERT, second],
        "behind a change of ciphers": [CIPHERS + record(message)],
        "a change of ciphers between": [first + CIPHERS, second],
        "records of version 0": [record(message, b"\0\0")],
        "records of version 3.4": [record(message, b"\3\4")],
        "version 0": [record(message[:4] + b"\0\0" + message[6:])],
        "a long session": [record(plain_hello(name, session=255))],
        "GREASE": [record(plain_hello(name, before=b"\x0a\x0a\0\0\x1a\x1a\0\1\0"))],
        "behind a name of another type": [record(plain_hello(name, (1, 0)))],
        "in upper case": [record(plain_hello(name.upper()))],
        "with the dot of the root": [record(plain_hello(name + b"."))],
        "behind a hello without a name": [record(plain_hello(b"")) + record(message)],
        "behind a hello for another host": [record(GOOD_HELLO) + record(message)],
        "behind another hello in its record": [record(GOOD_HELLO + message)],
        "behind another hello, cut": [record(GOOD_HELLO + message[:9]), record(message[9:])],
        "behind another hello, in two segments": [record(GOOD_HELLO), first, second],
        "behind another hello and a change of ciphers": [record(GOOD_HELLO), CIPHERS + record(message)],
        "behind another hello and early data": [record(EARLY_HELLO) + DATA[:9], DATA[9:] + first, second],
        "records of version 16.0": [record(message, b"\x10\0")],
        "a change of ciphers of version 255.255": [record(b"\1", b"\xff\xff", 20) + record(message)],
        "behind an alert of version 0": [record(b"\1\x5a", b"\0\0", 21) + record(message)],
        "behind a change of ciphers of version 15.255": [record(b"\1", b"\x0f\xff", 20) + record(message)],
        LONG: [record(padded[i : i + 1400]) for i in range(0, len(padded), 1400)],
    }


def test_names_are_found_in_records_as_servers_read_them(nf_run: Path, tmp_path: Path) -> None:
    """A ClientHello for a listed host is not completed; one for another host is, unless it is too long."""
    (tmp_path / "list").write_text("bad.example.org\n", encoding="utf-8")
    frames: Frames = []
    sent = [hellos_of(name) for name in (b"www.bad.example.org", b"www.good.example.org")]
    for number, segments in enumerate([*sent[0].values(), *sent[1].values()]):
        begins = [len(b"".join(segments[:i])) for i in range(len(segments))]
        frames += Client(number, False).send(*zip(begins, segments, strict=True))
    left = filtered(nf_run, tmp_path, frames, "--nf", "UrlFilter", "--set=list=list")
    for number, (label, segments) in enumerate([*sent[0].items(), *sent[1].items()]):
        whole = server_text(left, 1024 + number, False).startswith(b"".join(segments))
        assert whole == (number >= len(sent[0]) and label != LONG), label


def tls_flights(folder: Path, version: ssl.TLSVersion) -> list[bytes]:
    """What a client of OpenSSL sends in a handshake, and 20 kB of data."""
    subject = ("-subj", "/CN=good.example.org", "-keyout", "key.pem", "-out", "cert.pem")
    command = ("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", *subject)
    subprocess.run(command, cwd=folder, capture_output=True, check=True, timeout=60)
    ends, sides = [ssl.MemoryBIO() for _ in range(4)], (ssl.PROTOCOL_TLS_CLIENT, ssl.PROTOCOL_TLS_SERVER)
    client, server = (ssl.SSLContext(side) for side in sides)
    client.load_verify_locations(folder / "cert.pem")
    client.check_hostname, client.minimum_version, client.maximum_version = False, version, version
    server.load_cert_chain(folder / "cert.pem", folder / "key.pem")
    speaker = client.wrap_bio(ends[0], ends[1], server_hostname="www.good.example.org")
    listener = server.wrap_bio(ends[2], ends[3], server_side=True)
    flights: list[bytes] = []
    for side in (speaker, listener, speaker, listener):
        with contextlib.suppress(ssl.SSLWantReadError):
            side.do_handshake()
        if side is speaker:
            flights.append(ends[1].read())
            ends[2].write(flights[-1])
        else:
            ends[0].write(ends[3].read())
    speaker.write(bytes(20_000))
    return [*flights, ends[1].read()]


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_data_of_a_tls_client_pass(nf_run: Path, tmp_path: Path, version: ssl.TLSVersion) -> None:
    """Behind its handshake, whatever that is cut into; behind early data, too, and where a part of a request is freed.

    A client of TLS 1.3 sends a change of ciphers behind its ClientHello, which servers pass over.
    """
    require("openssl")
    (tmp_path / "list").write_text("bad.example.org\n", encoding="utf-8")
    first, second, data = tls_flights(tmp_path, version)
    early = [record(EARLY_HELLO), CIPHERS, DATA, DATA, *(data[i : i + 1400] for i in range(0, len(data), 1400))]
    sent = [early, [record(EARLY_HELLO) + CIPHERS + DATA[:9], DATA[9:], *early[3:]]]
    for size in (1400, 30, 6, 5, 1):
        later = second if size == 1400 else second[:60]
        parts = [later[i : i + size] for i in range(0, len(later), size)] + [second[len(later) :]] * (size < 1400)
        sent.append([first, *parts, *(data[i : i + 1400] for i in range(0, len(data), 1400))])
    frames: Frames = []
    for number, segments in enumerate(sent):
        frames += Client(number, False).send(
            *((sum(map(len, segments[:i])), segment) for i, segment in enumerate(segments))
        )
    for blocks in (0, 1):
        left = filtered(
            nf_run, tmp_path, frames, "--nf", "UrlFilter", "--set=list=list", f"--set=block_incomplete={blocks}"
        )
        # a message of a handshake of TLS 1.2, which is cut, may be a part of a ClientHello; so may fewer than six bytes
        n = (3 if version is ssl.TLSVersion.TLSv1_2 else 5) if blocks else len(sent)
        for number, segments in enumerate(sent[:n]):
            assert server_text(left, 1024 + number, False) == b"".join(segments), (blocks, number)


def text_with(form: bytes | None, host: bytes) -> bytes:
    """A request for a host; without a form a handshake."""
    return form % host if form else hello(host)


ALL = [
    *((name, ipv6, way) for name, way in WAYS.items() for ipv6 in (False, True)),
    *((name, False, way) for name, way in WAYS_OF_IPV4.items()),
    *((name, True, way) for name, way in WAYS_OF_IPV6.items()),
]
"""Names of all ways, whether they are of IPv6, and what they do."""


@pytest.fixture(scope="module")
def nf_run() -> Path:
    """The program."""
    require("cc")
    return build_tested("run/nf-run") / "run" / "nf-run"


def filtered(program: Path, folder: Path, frames: Frames, *arguments: str) -> Frames:
    """What leaves a filter."""
    write_capture(folder / "in.pcap", frames, gap_us=10)
    command = [str(program), *arguments, "--in", "in.pcap", "--out", "out.pcap"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True, timeout=120)
    assert json.loads(done.stdout)["received"] == len(frames)
    return read_capture(folder / "out.pcap")


def test_there_are_more_than_60_ways() -> None:
    assert len(ALL) > 60


FILTERS = {
    "UrlFilter": ("list=list",),
    "PacketFilter": ("file=rules",),
    "NIDS": ("file=rules", "dropped_class=7"),
}
"""Functions that drop what is for a host, and their settings."""


WIDE = [
    b"GET /" + b"a" * 95 + b" HTTP/1.1\r\n",
    b"CONNECT " + b"a" * 60 + b":12345 HTTP/1.0\r\n",
    b"<stream:stream " + b"a" * 118 + b"jabber:server",
    b"+OK " + b"a" * 58 + b"POP3" + b"a" * 58 + b"\r\n",
    b"ed2k://|server|" + b"a" * 78 + b"|12345678901234|",
    b"$Lock " + b"a" * 95 + b" Pk=",
    b'soapaction: "' + b"a" * 78 + b'"',
    b"set " + b"a" * 58 + b" 12345 1234567890 1234567\r\n",
    b"8.10.123" + b"a" * 58 + b"caching_sha2_password",
    b"INVITE sips:" + b"a" * 78 + b" SIP/2.0\r\n",
    b"v=0\r\no=" + b"a" * 30 + b" 1234567890123456789 1234567890123456789 IN IP6 ",
    b"<methodCall>    <methodName>" + b"a" * 38 + b"</methodName>",
]
"""Texts of the widest matches of rules."""


def test_no_wide_match_is_missed_behind_text_without_one(nf_run: Path, tmp_path: Path) -> None:
    """Where bytes in front of a segment need not be scanned again, as they are of another burst and begin no match."""
    cuts = [(text, cut) for text in WIDE for cut in range(1, len(text), 6)]
    plain = b"some words " * 30
    at = len(plain)
    stages: list[Frames] = [[], [], []]
    for number, (text, cut) in enumerate(cuts):
        stages[0] += Client(number, False).send((0, plain))
        stages[1] += Client(number, False).send((at, text[:cut]))[1:]
        stages[2] += Client(number, False).send((at + cut, text[cut:] + plain))[1:]
    left = filtered(nf_run, tmp_path, [*stages[0], *stages[1], *stages[2]], "--nf", "PacketFilter")
    assert left[: 3 * len(cuts)] == stages[0] + stages[1]
    assert left[3 * len(cuts) :] == []


CLASSES = ["[[:alpha:]]", "[^[:space:]]", "[a\\v-z]", "[]a]", "[!-~]"]
"""Classes of characters that hold `a`; in some, a bracket or an escape may be taken for their end."""


@pytest.mark.parametrize("of_class", CLASSES)
def test_no_wide_match_of_any_class_is_missed(nf_run: Path, tmp_path: Path, of_class: str) -> None:
    """Cut at any byte, with the first part in another burst than the last."""
    (tmp_path / "rules").write_text(f"web DELETE {of_class}{{1,64}} HTTP/1\n")
    text = b"DELETE " + b"a" * 64 + b" HTTP/1"
    clients = [Client(number, False) for number in range(1, len(text))]
    first = [frame for client in clients for frame in client.send((0, text[: client.port - 1024]))]
    last = [client.send((client.port - 1024, text[client.port - 1024 :]))[1] for client in clients]
    left = filtered(nf_run, tmp_path, first + last, "--nf", "PacketFilter", "--set", "file=rules")
    assert left == first


@pytest.mark.parametrize(
    "form", [REQUEST, PIPELINED, CHUNKS, FOLDED, None], ids=["request", "pipelined", "chunks", "folded", "hello"]
)
@pytest.mark.parametrize("nf", FILTERS)
def test_no_request_reaches_a_listed_host(nf_run: Path, tmp_path: Path, nf: str, form: bytes | None) -> None:
    """Whatever it is cut into and wrapped in; one for another host does."""
    (tmp_path / "list").write_text("bad.example.org\n", encoding="utf-8")
    (tmp_path / "rules").write_text("web www\\.bad\\.example\\.org\n", encoding="utf-8")
    frames: Frames = []
    for number, (_, ipv6, way) in enumerate(ALL):
        frames += way(Client(2 * number, ipv6), text_with(form, b"www.bad.example.org"))
        frames += way(Client(2 * number + 1, ipv6), text_with(form, b"www.good.example.org"))
    left = filtered(nf_run, tmp_path, frames, "--nf", nf, *(f"--set={setting}" for setting in FILTERS[nf]))
    for number, (name, ipv6, _) in enumerate(ALL):
        # a segment that is judged by itself is not read behind chunks
        unseen = nf == "UrlFilter" and name == "in whole, without a SYN" and form == CHUNKS
        label = f"{name}, IPv{6 if ipv6 else 4}"
        bad = text_with(form, b"www.bad.example.org")
        read = [server_text(left, 1024 + 2 * number, last) for last in (False, True)]
        assert unseen or not any(text.startswith(bad) for text in read), label
        text = server_text(left, 1024 + 2 * number + 1, False)
        taken = text.startswith(text_with(form, b"www.good.example.org"))
        assert taken or any(way in name for way in UNTAKEN), f"{label}: blocked"


def test_nids_raises_an_alert_for_each_way(nf_run: Path, tmp_path: Path) -> None:
    """Also where it drops nothing; it does not see fragments, and packets in others."""
    (tmp_path / "rules").write_text("web www\\.bad\\.example\\.org\n", encoding="utf-8")
    ways = [(ipv6, way) for name, ipv6, way in ALL if not any(part in name for part in UNTAKEN[1:])]
    frames: Frames = []
    for number, (ipv6, way) in enumerate(ways):
        frames += way(Client(number, ipv6), text_with(REQUEST, b"www.bad.example.org"))
    write_capture(tmp_path / "in.pcap", frames, gap_us=10)
    command = [str(nf_run), "--nf", "NIDS", "--set=file=rules", "--in", "in.pcap", "--out", "out.pcap"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True, timeout=120)
    assert json.loads(done.stdout)["functions"][0]["counters"]["alerts_web"] == len(ways) > 60
    assert len(read_capture(tmp_path / "out.pcap")) == len(frames)


S = 1_000_000
Timed = list[tuple[int, bytes]]
BAD = REQUEST % b"www.bad.example.org"
FIRST, REST = halves(BAD, len(BAD) - 13)


class Host:
    """A client with an address of its own, which opens connections and ends their requests later."""

    def __init__(self, host: int) -> None:
        self.address = bytes([10, 0, 0, host])

    def client(self, number: int) -> Client:
        client = Client(number, False)
        client.addresses = (self.address, client.addresses[1])
        return client

    def begin(self, number: int) -> Frames:
        """A request without its end, in the SYN, and a byte ahead: its stream waits for what is between."""
        client = self.client(number)
        return [client.packet(client.segment(-1, FIRST[1], SYN)), client.packet(client.segment(900, b"x"))]

    def end(self, number: int) -> Frames:
        """What is missing."""
        client = self.client(number)
        return [client.packet(client.segment(*REST))]

    def reopen(self, number: int) -> Frames:
        """A SYN as if another connection began with what is missing, and that."""
        client = self.client(number)
        return [client.packet(client.segment(REST[0] - 1, b"", SYN)), *self.end(number)]


ONE, OTHER, THIRD = Host(1), Host(2), Host(3)
EIGHT = 8
"""As many streams are followed below."""


def begin_all(host: Host, first: int, n: int = EIGHT) -> Frames:
    return [frame for number in range(first, first + n) for frame in host.begin(number)]


def left_of(
    program: Path, folder: Path, frames: Timed, nf: str, settings: tuple[str, ...]
) -> tuple[Frames, dict[str, int]]:
    """What leaves a function with few streams, and its counters."""
    (folder / "list").write_text("bad.example.org\n", encoding="utf-8")
    (folder / "rules").write_text("web www\\.bad\\.example\\.org\n", encoding="utf-8")
    write_frames(folder / "in.pcap", frames)
    arguments = [f"--set={setting}" for setting in (*settings, f"streams={EIGHT}")]
    command = [str(program), "--nf", nf, *arguments, "--in", "in.pcap", "--out", "out.pcap"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True, timeout=120)
    return read_capture(folder / "out.pcap"), json.loads(done.stdout)["functions"][0]["counters"]


def timed(*parts: tuple[float, Frames]) -> Timed:
    """Frames in groups, each from a second on."""
    return [(int(second * S) + i, frame) for second, frames in parts for i, frame in enumerate(frames)]


KEPT: dict[str, Timed] = {
    "its source opens more": timed((1, ONE.begin(0) + begin_all(ONE, 1)), (2, ONE.end(0))),
    "its source opens more, and it seems to open again": timed(
        (1, ONE.begin(0) + begin_all(ONE, 1)), (2, ONE.reopen(0))
    ),
}
"""How the first stream, whose request has half come, is kept: there is no room for more of its own source."""
LOSSES: dict[str, Timed] = {
    "others open some": timed((1, begin_all(ONE, 0) + OTHER.begin(90) + THIRD.begin(91)), (2, ONE.end(0))),
    "and it seems to open again": timed((1, begin_all(ONE, 0) + OTHER.begin(90) + THIRD.begin(91)), (2, ONE.reopen(0))),
    "it is silent": timed((1, ONE.begin(0)), (11.5, begin_all(ONE, 1)), (12, ONE.end(0))),
    "it is silent, and seems to open again": timed((1, ONE.begin(0)), (11.5, begin_all(ONE, 1)), (12, ONE.reopen(0))),
    "it is silent, 50 s later": timed((1, ONE.begin(0)), (11.5, begin_all(OTHER, 1)), (61.4, ONE.reopen(0))),
    "it is silent, six minutes later": timed((1, ONE.begin(0)), (11.5, begin_all(OTHER, 1)), (371, ONE.end(0))),
}
"""How it is lost."""


@pytest.mark.parametrize("way", [*KEPT, *LOSSES])
@pytest.mark.parametrize("nf", FILTERS)
def test_what_goes_on_of_a_lost_stream_is_refused(nf_run: Path, tmp_path: Path, nf: str, way: str) -> None:
    frames = {**KEPT, **LOSSES}[way]
    left, counters = left_of(nf_run, tmp_path, frames, nf, FILTERS[nf])
    for last in (False, True):
        assert not server_text(left, 1024, last).startswith(BAD)
    assert server_text(left, 1024, False).startswith(FIRST[1])
    # of one that is kept its own source gets no room for another, and what goes on is read: it is blocked
    refused = sum(frame not in left for _, frame in frames)
    assert counters["unfollowed"] == (1 + (nf != "UrlFilter") if way in KEPT else refused)


Parts = list[tuple[float, int, bytes]]
BAD_HELLO = record(plain_hello(b"www.bad.example.org"))
POST = b"POST / HTTP/1.1\r\nHost: c.net\r\nContent-Length: 10\r\n\r\n"
JUNK = b"z" * 600
LINE = b"GET " + b"/" * 8160 + b"\r\n"
CONNECT = b"CONNECT c.net:80 HTTP/1.1\r\nHost: c.net:80\r\n"
HEAD, HOST = BAD.split(b"Host")
REPLACED: Parts = [(1, 0, HEAD), (1, len(HEAD), b"\n"), (1, len(HEAD), b"H"), (1, len(HEAD) + 1, b"ost" + HOST)]
WALKS: dict[str, Parts] = {
    "over the last byte of a request": REPLACED,
    "behind the body of CONNECT": [
        (1, 0, CONNECT + b"Content-Length: 100000\r\n\r\n"),
        (1, len(CONNECT) + 26, BAD),
    ],
    "before the first byte": [(1, 0, JUNK), (1, -1, b"x" + BAD)],
    "before the first byte, in two": [(1, 0, JUNK), (1, -1, b"x" + BAD[:-30]), (1, len(BAD) - 30, BAD[-30:])],
    "before what is kept behind a body": [
        (1, 0, POST),
        (1, len(POST), b"0123456789"),
        (1, len(POST) + 10, JUNK),
        (1, len(POST) + 9, b"9" + BAD),
    ],
    "within what is kept": [
        (1, 0, b"xxGET "),
        (1, 2, b"GET /ads HTTP/1.1\r\n"),
        (1, 21, b"a: b\r\n\r\n"),
        (1, 29, BAD),
    ],
    "over what is kept": [(1, 0, b"STARTTLS\r\n"), (1, 10, JUNK), (1, 9, b"\n" + BAD_HELLO)],
    "over lines that passed": [
        (1, 0, b"EHLO x\r\n"),
        (1, 8, b"STARTTLS\r\n"),
        (1, 18, JUNK),
        (1, 16, b"\r\n" + BAD_HELLO[:40]),
        (1, 58, BAD_HELLO[40:]),
    ],
    "behind much that is kept": [
        *((1, at, part) for at, part in pieces(LINE + b"zzzz", 1400)),
        (1, len(LINE) + 4, FIRST[1]),
        (1, len(LINE) + 4 + REST[0], REST[1]),
    ],
    "a minute behind its begin": [(1, *FIRST), (62, 1 << 30, JUNK), (63, *REST)],
}
"""Ways around what is known of a stream, which is mostly neither HTTP nor TLS: seconds, where bytes are, and these.

What is far ahead comes with a SYN. No server gets the junk, or a first end of the request: their time to live is short.
"""


@pytest.mark.parametrize("way", WALKS)
def test_nobody_walks_around_what_is_known_of_a_foreign_stream(nf_run: Path, tmp_path: Path, way: str) -> None:
    client = ONE.client(0)
    frames = [(int(S), client.opens())]
    for second, at, data in WALKS[way]:
        segment = client.segment(at, data, SYN if at == 1 << 30 else ACK)
        frames.append((int(second * S) + len(frames), client.packet(segment)))
    left, _ = left_of(nf_run, tmp_path, frames, "UrlFilter", FILTERS["UrlFilter"])
    unheard = client.packet(client.segment(len(HEAD), b"\n")) if WALKS[way] is REPLACED else None
    taken = [frame for frame in left if JUNK not in frame and frame != unheard]
    for last in (False, True):
        text = server_text(taken, 1024, last)
        assert BAD not in text
        assert BAD_HELLO not in text


@pytest.mark.parametrize("n", [4095, 4096, 8191, 8192, 8193, 8900])
def test_a_foreign_stream_goes_on(nf_run: Path, tmp_path: Path, n: int) -> None:
    """Whatever its first segment has, also where its segments overlap and come in another order."""
    client, text = ONE.client(0), bytes(n) + JUNK * 10
    parts = [(at, text[at : at + 900]) for at in (n, n + 1600, n + 800, n + 2400, n + 2400)]
    left, _ = left_of(
        nf_run, tmp_path, timed((1, client.send((0, text[:n]), *parts))), "UrlFilter", FILTERS["UrlFilter"]
    )
    assert server_text(left, 1024, False) == text[: n + 3300]


BODIES = {
    "a body": (b"POST / HTTP/1.1\r\nHost: c.net\r\nContent-Length: 9\r\n\r\nabc", b"defghi"),
    "a chunk": (
        b"POST / HTTP/1.1\r\nHost: c.net\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nabc",
        b"defghi\r\n0\r\n\r\n",
    ),
    "chunks": (
        b"POST / HTTP/1.1\r\nHost: c.net\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"9\r\nabcdefghi\r\n0\r\n\r\n",
    ),
    "trailers": (
        b"POST / HTTP/1.1\r\nHost: c.net\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n",
        b"Trailer: 1\r\n\r\n",
    ),
}
"""A request of which a part has come, and the rest."""


@pytest.mark.parametrize("body", BODIES)
def test_a_stream_lost_within_a_body_is_refused(nf_run: Path, tmp_path: Path, body: str) -> None:
    """What would be read alone begins with the rest of the body, behind which is a listed request."""
    (begin, rest), client = BODIES[body], ONE.client(0)
    end = client.packet(client.segment(len(begin), rest + BAD))
    frames = timed((1, client.send((0, begin))), (11.5, begin_all(OTHER, 1)), (12, [end]))
    left, counters = left_of(nf_run, tmp_path, frames, "UrlFilter", FILTERS["UrlFilter"])
    assert end not in left
    assert counters["unfollowed"] == 1


@pytest.mark.parametrize("whole", [True, False])
def test_a_stream_waits_no_longer_than_for_its_body(nf_run: Path, tmp_path: Path, whole: bool) -> None:
    """Once that has come, another request may follow later, though others take its place; not where some is missing."""
    client, at = ONE.client(0), len(POST)
    begin = client.send((0, POST), *(((at, b"01234"),) if whole else ()), (at + 5, b"56789"))
    later = [client.packet(client.segment(at + 10, REQUEST % b"www.good.example.org"))]
    frames = timed((1, begin), (11.5, begin_all(OTHER, 1)), (12, later))
    left, _ = left_of(nf_run, tmp_path, frames, "UrlFilter", FILTERS["UrlFilter"])
    assert (later[0] in left) == whole


@pytest.mark.parametrize("nf", FILTERS)
def test_a_lost_stream_may_begin_again_after_a_minute(nf_run: Path, tmp_path: Path, nf: str) -> None:
    """Earlier its SYN is freed. Who has many streams does not keep others out, whose requests pass."""
    good = REQUEST % b"www.good.example.org"
    begun = begin_all(ONE, 0) + begin_all(OTHER, 90, 1)
    again = ONE.client(0).send((0, good))
    left, counters = left_of(
        nf_run,
        tmp_path,
        timed((1, begun + OTHER.client(91).send((0, good))), (60, again), (62, again)),
        nf,
        FILTERS[nf],
    )
    assert [left.count(frame) for frame in again] == [1, 1]
    assert server_text(left, 1024 + 91, False).startswith(good)
    assert counters["unfollowed"] == len(again)


def test_filters_with_random_losses_complete_no_listed_request(nf_run: Path, tmp_path: Path) -> None:
    """Of many connections, of which few are followed, and each sends its end once or more, none completes."""
    rng = random.Random(5)
    for nf in [*FILTERS] * 4:
        steps: list[tuple[float, int, Frames]] = []
        for number in range(60):
            host, at = Host(1 + min(rng.randrange(9), 4)), rng.uniform(1, 58)
            steps.append((at, 2 * number, host.begin(number)))
            ends = [rng.choice((host.end, host.reopen))(number) for _ in range(3)]
            steps.extend((rng.uniform(at, 60), 2 * number + 1, end) for end in ends)
        frames = timed(*((at, made) for at, _, made in sorted(steps)))
        left, counters = left_of(nf_run, tmp_path, frames, nf, FILTERS[nf])
        assert counters["unfollowed"] > 0
        for number in range(60):
            assert not server_text(left, 1024 + number, False).startswith(BAD), (nf, number)


TAKEN_FOR_LOST = 2
"""Of a few dozen flows: hashes are drawn anew in each run, and one flow in 800 to 6,400 is taken for a lost one."""


@pytest.mark.parametrize("nf", FILTERS)
def test_all_lost_streams_are_refused(nf_run: Path, tmp_path: Path, nf: str) -> None:
    """However many there are; their ends do not pass six minutes later either, and there is room for others."""
    seconds = (11.5, 22, 32.5, 43, 53.5, 54, 72)
    begun = [begin_all(OTHER, 10 * i) for i in range(len(seconds))]
    ends = [frame for number in range(48) if number % 10 < EIGHT for frame in OTHER.end(number)]
    frames = timed((1, begin_all(ONE, 90)), *zip(seconds, begun, strict=True), (410, ends))
    left, _ = left_of(nf_run, tmp_path, frames, nf, FILTERS[nf])
    room = [sum(frame in left for frame in frames[::2]) for frames in begun]
    assert room.pop(5) == 0 and sum(room) >= len(room) * EIGHT - TAKEN_FOR_LOST
    assert not any(end in left for end in ends)


@pytest.mark.parametrize("nf", FILTERS)
def test_who_opens_many_streams_keeps_nobody_out(nf_run: Path, tmp_path: Path, nf: str) -> None:
    """Two hosts begin some for a minute, as many as are known to be lost and more; requests of another one pass."""
    many = [(1 + i / 40, host.begin(i)) for i in range(1000) for host in (ONE, OTHER)]
    good = REQUEST % b"www.good.example.org"
    others = [(1.5 + i, THIRD.client(2000 + i).send(*halves(good, 40))) for i in range(50)]
    left, _ = left_of(nf_run, tmp_path, timed(*sorted(many + others)), nf, FILTERS[nf])
    taken = [server_text(left, 1024 + 2000 + i, False).startswith(good) for i in range(50)]
    assert sum(taken) >= len(taken) - TAKEN_FOR_LOST


LOST_AT_MOST = 8 * EIGHT
"""So many streams are lost within a minute."""


@pytest.mark.parametrize("nf", FILTERS)
def test_many_lost_streams_are_not_taken_for_others(nf_run: Path, tmp_path: Path, nf: str) -> None:
    """Ten sources in turn take the places of others for a minute; what other flows send then passes."""
    first, more, others = b"GET / HTTP/1.1\r\n", b"\r\n", []
    parts: list[tuple[float, Frames]] = []
    for turn in range(200):
        clients = [
            Host(1 + host).client(50 * turn + number)
            for host in range(EIGHT + 2)
            for number in range(4 * host, 4 * host + EIGHT // (host + 1) + (host > 0))
        ]
        parts += [
            (1 + turn / 5, [client.packet(client.segment(-1, first, SYN)), client.packet(client.segment(18, b"x"))])
            for client in clients
        ]
        # what is kept then waits no more
        parts.append((1.1 + turn / 5, [client.packet(client.segment(len(first), more)) for client in clients]))
    for number in range(200):
        client = Host(20 + number).client(number)
        others.append(client.packet(client.segment(0, b"hello")))
    left, counters = left_of(nf_run, tmp_path, timed(*parts, (42, others)), nf, FILTERS[nf])
    assert counters["unfollowed"] > 2 * LOST_AT_MOST
    assert sum(other in left for other in others) > 190


@pytest.mark.parametrize("nf", FILTERS)
def test_a_lost_stream_is_refused_no_longer_than_servers_wait(nf_run: Path, tmp_path: Path, nf: str) -> None:
    """Also where others are lost all the time: a SYN for two minutes at most, and what goes on for some."""
    losses = [(11.5 + 45 * i, begin_all(OTHER, 10 * i, 1)) for i in range(12)]
    again = ONE.client(0).send((0, REQUEST % b"www.good.example.org"))
    rest = ONE.client(1).send((900, b"hello"))[1:]
    frames = timed((1, begin_all(ONE, 0)), (11.5, begin_all(OTHER, 200)), *losses, (545, again), (1200, rest))
    left, _ = left_of(nf_run, tmp_path, frames, nf, FILTERS[nf])
    assert all(frame in left for frame in again + rest)


def test_who_sends_in_the_name_of_a_server_does_not_stop_its_answers(nf_run: Path, tmp_path: Path) -> None:
    """UrlFilter does not follow them, whatever was lost of that source."""
    server = Client(0, False)
    answers = [server.packet(server.segment(9000 + i, b"HTTP/1.1 200 OK\r\n")) for i in range(5)]
    frames = timed((1, begin_all(ONE, 1, EIGHT + 1)), (2, begin_all(OTHER, 90, 2)), (3, answers))
    left, _ = left_of(nf_run, tmp_path, frames, "UrlFilter", FILTERS["UrlFilter"])
    assert all(answer in left for answer in answers)


def test_nids_that_drops_nothing_follows_the_newest_streams(nf_run: Path, tmp_path: Path) -> None:
    """Also of a source all of whose streams wait; lost ones are followed again, and the rest of a request is seen."""
    alerts = [ONE.client(95).send(FIRST, REST), ONE.client(0).send(FIRST, REST)[1:]]
    frames = timed((1, begin_all(ONE, 0, EIGHT + 1)), (2, alerts[0] + alerts[1]))
    left, counters = left_of(nf_run, tmp_path, frames, "NIDS", ("file=rules",))
    assert counters["alerts_web"] == len(alerts)
    assert left == [frame for _, frame in frames]
