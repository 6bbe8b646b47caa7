"""UrlFilter: blocks requests and handshakes by a list: HTTP/1 by host and path, TLS by the server name."""

import random
import re
import struct
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import ClassVar

from tests.reference.nfs.headers import (
    ACK,
    DONT_FRAGMENT,
    FIN,
    ICMP,
    RST,
    SYN,
    TCP,
    UDP,
    URG,
    Flow,
    Headers,
    flow_of,
    ipv4_header,
    l4_checksum,
)
from tests.reference.nfs.ipv6 import ICMPV6, OPAQUE, ipv6_checksum, ipv6_header, read_ip_headers
from tests.reference.nfs.model import Bounds, FirstRun, FunctionModel, Left
from tests.reference.nfs.streams import Stream, Taken, stream_frames
from tests.reference.nfs.traffic import NUMBERS, Mix, Sent, random_payload
from tests.reference.nfs.web import (
    DATA,
    HANDSHAKE,
    METHODS,
    PASSED_OVER,
    RECORD,
    RequestKind,
    WebRequest,
    normal_host,
    normal_path,
    read_chunk,
    read_request,
    skip_trailers,
)

PATHS = ("/track", "/img/a%7Eb", "/v1/login", "/x/../promo", "/down/load/")
TTL = 64
MAY_BEGIN = re.compile(rb"[\r\n\x14\x15\x16A-Z_-]")
"""Bytes with which a request or a handshake may begin, or what may come before one."""


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
    others = (b"PROPFIND", b"M-SEARCH", b"Get_1", b"get", b"A" * 21, b"")
    method = rng.choice(METHODS if rng.random() < 0.95 else others)
    scheme = rng.choice((b"http://", b"HTTPS://"))
    target = rng.choice((scheme + host + path, scheme + host + b"?q", host, b"*")) if rng.random() < 0.25 else path
    lines = [method + b" " + target + rng.choice((b" HTTP/1.1", b" HTTP/1.1", b" HTTP/1.0", b" HTTP/2.0", b""))]
    fields = [b"Accept: */*", b"X-Host: ads-1.com", b"Content-Length: 0", b"Transfer-Encoding: chunked", b"no field"]
    fields += [b" folded", b"Content-Length: 11"]
    lines += rng.sample(fields, rng.randrange(3))
    for _ in range(rng.choice((0, 1, 1, 1, 1, 1, 2, 6))):
        name = rng.choice((b"Host:", b"Host: ", b"hOST : ", b"Host:\t", b"Host:\r\n "))
        lines.insert(rng.randrange(1, len(lines) + 1), name + host + rng.choice((b"", b"", b" ")))
        host = near_url(rng, urls)[0]
    return rng.choice((b"", b"", b"", b"\r\n")) + end.join([*lines, b"", b""])


def client_hello(rng: random.Random, urls: Sequence[str]) -> bytes:
    """A ClientHello, mostly with a server name."""
    extensions = [struct.pack("!HH", 43, 3) + b"\x02\x03\x04", struct.pack("!HH", 10, 2) + b"\0\0"]
    for _ in range(rng.choice((0, 1, 1, 1, 1))):
        name = near_url(rng, urls)[0]
        kinds = (0,) if rng.random() < 0.9 else rng.choice(((1,), (255, 0), (0, 1)))
        entry = b"".join(struct.pack("!BH", kind, len(name)) + name for kind in kinds)
        body = struct.pack("!H", len(entry)) + entry
        extensions.insert(rng.randrange(3), struct.pack("!HH", 0, len(body)) + body)
    joined = b"".join(extensions)
    session = rng.randbytes(rng.choice((0, 32, 33)))
    version = rng.choice((b"\x03\x03", b"\x03\x03", b"\0\0"))
    body = version + rng.randbytes(32) + bytes([len(session)]) + session + b"\0\x04\x13\x01\x13\x02\x01\0"
    body += struct.pack("!H", len(joined)) + joined
    claimed = len(body) if rng.random() < 0.95 else rng.choice((0x10000, 0x2FFFF, 0x30000))
    message = bytes([1 if rng.random() < 0.95 else 2]) + claimed.to_bytes(3, "big") + body
    cuts = sorted(rng.randrange(len(message)) for _ in range(rng.choice((0, 0, 0, 1, 2, 4))))
    parts = [message[begin:end] for begin, end in pairwise((0, *cuts, len(message)))]
    others = (b"",) * 10 + (b"\x15\3\3\0\2\1\x5a", b"\x15\0\0\0\2\1\x5a", b"\x14\3\3\0\1\1", b"\x17\3\3\0\1\0")
    outer = rng.choice((0x301, 0x303, 0x303, 0, 0x1000))
    return b"".join(rng.choice(others) + struct.pack("!BHH", 22, outer, len(part)) + part for part in parts)


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
    """A listed domain covers its subdomains, a path what is below it.

    Streams are followed from their SYN on, or from a request on that its segment does not end; others, what is neither
    HTTP nor TLS, and all with `streams` 0, are judged segment by segment. No stream is given up for another one: there
    are fewer than `streams`.
    """

    nf = "UrlFilter"
    unknown = "drop"
    variants: ClassVar[tuple[dict[str, str], ...]] = (
        {"list": "{folder}/list", "reset": "1"},
        {"list": "{folder}/list", "block_incomplete": "1"},
        {"list": "{folder}/list", "streams": "0"},
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
        names = ("requests", "handshakes", "incomplete", "resets", "unclear", "differing", "outside", "overlong")
        self.counted.update(dict.fromkeys((*names, "fragments"), 0))
        self.streams: dict[Flow, Stream] = {}
        self.others = False  # whether other bytes than those of requests were read
        self.follows = self.number("streams", 4096) > 0

    def mix(self) -> Mix:
        urls = self.lines_of("list")
        payload = lambda rng: web_payload(rng, urls)  # noqa: E731
        return Mix(flows=1000, payload=payload, protocols=(TCP,) * 9 + (17,), ipv6=0.5)

    def traffic(self, seed: int, n: int, run: FirstRun) -> Iterator[Sent]:
        return stream_frames(seed, n, self.mix())

    def is_listed(self, host: bytes, path: tuple[bytes, ...]) -> bool:
        """Whether the list has the host or a domain above it, with the path or one above it."""
        while host:
            if any((host, path[:depth]) in self.listed for depth in range(len(path) + 1)):
                return True
            host = host.partition(b".")[2]
        return False

    def count(self, request: WebRequest) -> None:
        if request.hosts:
            self.counted["handshakes" if request.kind is RequestKind.TLS else "requests"] += 1

    def blocks(self, request: WebRequest) -> bool:
        """Whether a request is listed, or incomplete where that is not to pass."""
        path = normal_path(request.target)
        if any(self.is_listed(normal_host(host), path) for host in request.hosts):
            return True
        if request.kind is not RequestKind.INCOMPLETE or request.hosts:
            return False
        self.counted["incomplete"] += 1
        return self.number("block_incomplete", 0) == 1

    def judge_alone(self, key: Flow, sequence: int, segment: bytes, follows: bool) -> str:
        """The counter of a segment that is judged by itself; the request that it does not end is followed."""
        at, request = 0, WebRequest(RequestKind.HTTP)
        while at < len(segment):
            request = read_request(segment[at:], False)
            if request.kind is RequestKind.NONE:
                behind = len(segment) - len(segment[at:].lstrip(b"\r\n"))  # empty lines of what was before
                if behind == at:
                    return "passed"
                at = behind
                continue
            self.count(request)
            if self.blocks(request):
                return "blocked"
            if request.kind is not RequestKind.HTTP or request.chunked or request.unclear:
                break
            at = min(at + request.end + request.body, len(segment))
        if not follows or request.kind is not RequestKind.INCOMPLETE or len(segment) - at > Stream.ROOM:
            return "passed"
        stream = self.streams.get(key)
        if stream and stream.hole_at + len(segment) - at > Stream.ROOM:
            return "overlong"
        if stream:
            stream.move(sequence + at)
        else:
            stream = self.streams[key] = Stream(sequence + at, self.now_us)
        stream.text += segment[at:]
        stream.mode, stream.counted = "", bool(request.hosts)
        return "passed"

    def read_chunks(self, stream: Stream, unread: bytes) -> str | None:
        """Go behind a chunk's size or the trailers; what ends the reading, if anything does."""
        if stream.mode == "trailers":
            end, size = skip_trailers(unread), 0
        else:
            found = read_chunk(unread)
            if found is None:
                self.counted["unclear"] += 1
                return "blocked"
            end, size = found
        if not end:
            return "waits"
        stream.read += end
        if stream.mode == "trailers":
            stream.mode = ""
        elif size == 0:
            stream.mode = "trailers"
        else:
            stream.leave_out(size + 2)
        return None

    def read_stream(self, stream: Stream) -> str:
        """Read the requests of a stream: `waits` for more, or `blocked`."""
        while stream.read < len(stream.text):
            unread = stream.text[stream.read :]
            if stream.mode in ("chunks", "trailers"):
                ended = self.read_chunks(stream, unread)
                if ended:
                    return ended
                continue
            early = stream.mode == "early" and unread[0] == DATA
            if early and len(unread) < RECORD:
                return "waits"
            if early or PASSED_OVER.match(unread):
                stream.read += RECORD
                stream.leave_out(int.from_bytes(unread[3:RECORD], "big"))
                continue
            request = read_request(unread, stream.begun and not stream.foreign)
            if request.kind is RequestKind.NONE:
                stream.set_foreign()
                stream.mode, stream.counted, self.others = "", False, True
                return "waits"
            if not stream.counted:
                self.count(request)
            stream.counted = bool(request.hosts)
            if self.blocks(request):
                return "blocked"
            if request.kind is RequestKind.INCOMPLETE or not request.end:
                return "waits"
            if request.unclear or request.body > (1 << 30) - 1:
                self.counted["unclear"] += 1
                return "blocked"
            stream.read += request.end
            stream.counted = False
            stream.mode = "chunks" if request.chunked else "early" if request.early else ""
            stream.leave_out(0 if request.chunked else request.body)
        return "waits"

    def judge_segment(self, key: Flow, sequence: int, segment: bytes, opens: bool) -> str:
        """The counter of a segment of TCP."""
        stream = self.streams.get(key)
        if opens and not (stream and stream.origin == sequence):
            if stream and stream.ignores(sequence, self.now_us):
                return "outside"
            stream = self.streams[key] = Stream(sequence, self.now_us, begun=True)
        if not stream:
            return self.judge_alone(key, sequence, segment, True)
        if stream.stopped:
            return "blocked"
        no_room = stream.hole_at + len(segment) > Stream.ROOM
        if segment and (no_room or not MAY_BEGIN.match(segment)) and stream.pass_over(sequence, segment):
            stream.last_us = self.now_us
            return self.judge_alone(key, sequence, segment, False)
        return self.judge_followed(key, stream, sequence, segment)

    def judge_followed(self, key: Flow, stream: Stream, sequence: int, segment: bytes) -> str:
        """The counter of a segment of a stream that is followed."""
        foreign, passed = stream.foreign, stream.has_passed(sequence, segment)
        before = (sequence - stream.first) % NUMBERS >= NUMBERS // 2
        self.others = False
        taken = stream.take(sequence, segment, self.read_stream)
        named_hello = stream.counted and stream.text[stream.read : stream.read + 1] == bytes([HANDSHAKE])
        if taken is Taken.OVERLONG and (not stream.begun or stream.foreign or named_hello):
            stream.set_foreign()
            stream.mode, stream.counted = "", False
            taken = stream.take(sequence, segment, self.read_stream)
        if taken is Taken.PASSED:
            stream.last_us = self.now_us
        if taken is Taken.BLOCKED:
            stream.stopped = True
        if taken is Taken.OUTSIDE and not (stream.begun and (before or not stream.foreign)):
            skips = stream.is_foreign and not before and self.now_us - stream.last_us >= Stream.WAIT_US
            if skips:
                stream.move(sequence + len(segment))
            return self.judge_alone(key, sequence, segment, skips)
        if taken is Taken.PASSED and (self.others or passed):
            kept = (stream.first + stream.hole_at - sequence) % NUMBERS if foreign else 0
            if kept < NUMBERS // 2:  # the bytes that are kept are judged
                sequence, segment = sequence + kept, segment[kept:]
            return self.judge_alone(key, sequence, segment, foreign and stream.is_foreign)
        return str(taken.value)

    def judge_packet(self, frame: bytes, headers: Headers) -> str:
        """The counter of an IP packet."""
        if headers.fragment:
            return "passed" if headers.protocol in (UDP, ICMP, ICMPV6) else "fragments"
        if headers.protocol != TCP:
            return "passed"
        flags = frame[headers.l4 + 13]
        opens = self.follows and flags & (SYN | ACK) == SYN
        segment = frame[headers.payload : headers.end]
        if not segment and not opens:
            return "passed"
        key = flow_of(frame, headers)
        sequence = int.from_bytes(frame[headers.l4 + 4 : headers.l4 + 8], "big") + bool(flags & SYN)
        if not self.follows or flags & RST:
            return self.judge_alone(key, sequence, segment, False)
        if not flags & (SYN | ACK) or flags & URG:
            return "outside"
        return self.judge_segment(key, sequence % (1 << 32), segment, opens)

    def take(self, sent: Sent) -> Left:
        frame, headers = sent.frame, read_ip_headers(sent.frame)
        self.now_us = sent.time_us
        if headers.kind not in ("ipv4", "ipv6") or headers.protocol in OPAQUE:
            return [frame] * self.passes(headers.kind), []
        counter = self.judge_packet(frame, headers)
        self.counted[counter] += 1
        if counter == "passed":
            return [frame], []
        if counter != "blocked" or not self.number("reset", 0):
            return [], []
        self.counted["resets"] += 2
        return [reset(frame, headers, False)], [reset(frame, headers, True)]

    def counters(self) -> dict[str, int | Bounds]:
        return {**self.counted, "unbuffered": 0, "unfollowed": 0}


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
