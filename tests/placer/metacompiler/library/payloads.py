"""Payloads that NFs look into: web requests for listed hosts and others, and bytes that occur again."""

from __future__ import annotations

import random
import struct
from collections.abc import Sequence

METHODS = (b"GET", b"POST", b"CONNECT", b"PROPFIND", b"get")


def web_payload(rng: random.Random, urls: Sequence[str]) -> bytes:
    """A request or a handshake, now and then cut off, with another one behind, or neither."""
    if rng.random() < 0.1:
        return rng.randbytes(rng.randrange(40))
    made = client_hello(rng, urls) if rng.random() < 0.35 else http_request(rng, urls)
    if rng.random() < 0.2:
        made += http_request(rng, urls)
    return made[: rng.randrange(len(made))] if rng.random() < 0.2 else made


def http_request(rng: random.Random, urls: Sequence[str]) -> bytes:
    """A request by path, by absolute URL, or broken."""
    host, path = _url(rng, urls)
    target = rng.choice((path, path, path, b"http://" + host + path, b"HTTPS://" + host + b"?q", host, b"*"))
    end = rng.choice((b"\r\n", b"\r\n", b"\n"))
    method = rng.choice(METHODS) if rng.random() < 0.3 else b"GET"
    lines = [method + b" " + target + rng.choice((b" HTTP/1.1", b" HTTP/1.1", b" HTTP/1.0", b""))]
    lines += rng.sample([b"Accept: */*", b"X-Host: a.com", b"Content-Length: 0", b"no field"], rng.randrange(3))
    for _ in range(rng.choice((0, 1, 1, 1, 2, 6))):
        lines.insert(rng.randrange(1, len(lines) + 1), rng.choice((b"Host: ", b"hOST :", b"Host:\t")) + host)
    return rng.choice((b"", b"", b"\r\n")) + end.join([*lines, b"", b""])


def client_hello(rng: random.Random, urls: Sequence[str]) -> bytes:
    """A ClientHello, mostly with a server name."""
    extensions = [struct.pack("!HH", 43, 3) + b"\x02\x03\x04", struct.pack("!HH", 10, 2) + b"\0\0"]
    if rng.random() < 0.9:
        name = _url(rng, urls)[0]
        entry = struct.pack("!BH", rng.choice((0, 0, 0, 0, 1)), len(name)) + name
        body = struct.pack("!H", len(entry)) + entry
        extensions.insert(rng.randrange(3), struct.pack("!HH", 0, len(body)) + body)
    joined = b"".join(extensions)
    session = rng.randbytes(rng.choice((0, 32)))
    body = b"\x03\x03" + rng.randbytes(32) + bytes((len(session),)) + session + b"\0\x04\x13\x01\x13\x02\x01\0"
    body += struct.pack("!H", len(joined)) + joined
    message = b"\x01" + len(body).to_bytes(3, "big") + body
    return struct.pack("!BBBH", 22, 3, 1, len(message)) + message


def repeated_payload(rng: random.Random, texts: Sequence[bytes]) -> bytes:
    """Parts of texts between other bytes; now and then zeros, or what looks encoded."""
    chance = rng.random()
    if chance < 0.1:
        return bytes(rng.randrange(400))
    if chance < 0.15:
        return b"DDUP" + rng.randbytes(rng.randrange(1800))
    made = rng.randbytes(rng.randrange(60))
    for _ in range(rng.choice((0, 1, 1, 2, 3))):
        text = rng.choice(texts)
        at = rng.randrange(len(text))
        made += text[at : at + rng.randrange(20, 700)] + rng.randbytes(rng.randrange(30))
    return made[:1900]


def _url(rng: random.Random, urls: Sequence[str]) -> tuple[bytes, bytes]:
    """A host and a path: listed, almost, or not."""
    host, _, path = rng.choice(urls).encode().partition(b"/") if rng.random() < 0.7 else (b"good.example", b"", b"x")
    host = rng.choice((b"", b"", b"www.", b"a.b.", b"not", b"user@", b".")) + host
    host += rng.choice((b"", b"", b"", b".", b":8080", b":"))
    path = b"/" + rng.choice((path, path, path + b"/more", b"x/../" + path, path + b"?a=/b", path[1:], b"%61/" + path))
    return host.upper() if rng.random() < 0.1 else host, path
