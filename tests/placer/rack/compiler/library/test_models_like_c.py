"""Models of NFs send what the functions in C send, byte for byte."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from placer.rack.compiler.library.nf_kind import NF_KINDS
from tests.placer.rack.compiler.library.frames import TCP, UDP, ipv4_frame, random_frames
from tests.placer.rack.compiler.library.nf_run import in_c, in_model
from tests.reference.nfs.dedup import DedupModel, repeated_payload
from tests.reference.nfs.url_filter import web_payload

CASES: tuple[tuple[str, dict[str, float]], ...] = (
    ("ACL", {}),
    ("ACL", {"rules": 300, "seed": 5}),
    ("ACL", {"rules": 0}),
    ("Tunnel", {}),
    ("Tunnel", {"vlan": 4094}),
    ("Detunnel", {}),
    ("IPv4Fwd", {}),
    ("IPv4Fwd", {"routes": 2000, "seed": 9}),
    ("LB", {}),
    ("LB", {"backends": 3, "table": 65536, "seed": 77}),
    ("LB", {"address": 0xC0000207, "backends": 16, "table": 16}),
    ("Match", {}),
    ("Monitor", {}),
    ("Encrypt", {}),
    ("Encrypt", {"in_udp": 0}),
    ("FastEncrypt", {}),
    ("FastEncrypt", {"in_udp": 0}),
    ("FastEncrypt", {"blocks": 1}),
    ("FastEncrypt", {"blocks": 3}),
    ("Limiter", {"mbps": 0.5}),
    ("Limiter", {"mbps": 1}),
)


@pytest.mark.parametrize(("nf", "parameters"), CASES)
def test_random_and_stray_frames_leave_as_from_the_function_in_c(
    nf: str, parameters: dict[str, float], tmp_path: Path
) -> None:
    """The same frames leave, in the same order, and the same are dropped."""
    frames = random_frames(1, 2500)
    sent = in_c(nf, parameters, frames, tmp_path).out
    expected = in_model(nf, parameters, frames)
    assert len(sent) == len(expected) > 100
    assert [(one.hex(), other.hex()) for one, other in zip(sent, expected, strict=True) if one != other][:3] == []


@pytest.mark.parametrize("in_udp", [0, 1])
def test_decrypt_opens_what_encrypt_sealed_and_drops_the_rest(in_udp: int, tmp_path: Path) -> None:
    """Sealed frames, every tenth of them damaged in one bit, between others."""
    rng = random.Random(2)
    frames = []
    for frame in random_frames(3, 1500):
        sealed = in_model("Encrypt", {"in_udp": in_udp}, [frame]) or [frame]
        at = rng.randrange(12, len(sealed[0])) if rng.random() < 0.1 and len(sealed[0]) > 12 else None
        frames += sealed if at is None else [sealed[0][:at] + bytes([sealed[0][at] ^ 4]) + sealed[0][at + 1 :]]
        frames += [frame] if rng.random() < 0.1 else []
    sent = in_c("Decrypt", {"in_udp": in_udp}, frames, tmp_path).out
    assert len(sent) > 700
    assert sent == in_model("Decrypt", {"in_udp": in_udp}, frames)


def test_url_filter_drops_the_requests_that_the_function_in_c_drops(tmp_path: Path) -> None:
    """HTTP and TLS for hosts of the list and others, cut off anywhere, at any port."""
    rng = random.Random(4)
    kind = NF_KINDS["UrlFilter"]
    urls = kind.data(kind.completed({"urls": 200, "seed": 3}, "f"))
    frames = random_frames(5, 200)
    for at in range(2500):
        protocol = TCP if at % 10 else UDP
        frames.append(ipv4_frame(protocol=protocol, payload=web_payload(rng, urls), parts=at % 97 == 0 and 0x2000))
    sent = in_c("UrlFilter", {"urls": 200, "seed": 3}, frames, tmp_path).out
    expected = in_model("UrlFilter", {"urls": 200, "seed": 3}, frames)
    assert 600 < len(expected) < 2300
    assert sent == expected


def test_generated_urls_are_those_of_the_function_in_c(tmp_path: Path) -> None:
    """The same seed gives the same list: no file is needed to see that requests for it are dropped."""
    kind = NF_KINDS["UrlFilter"]
    urls = kind.data(kind.completed({"seed": 8}, "f"))
    frames = [
        ipv4_frame(
            protocol=TCP, payload=b"GET /" + path.encode() + b" HTTP/1.1\r\nHost: " + host.encode() + b"\r\n\r\n"
        )
        for host, _, path in (url.partition("/") for url in urls)
    ]
    assert in_c("UrlFilter", {}, frames, tmp_path, {"list": "", "urls": "1000", "seed": "8"}).out == []


def test_dedup_encodes_as_the_function_in_c(tmp_path: Path) -> None:
    """Repeated bytes in UDP and TCP, segments sent again, payloads of all lengths."""
    rng = random.Random(6)
    texts = [rng.randbytes(rng.randrange(100, 1500)) for _ in range(40)]
    frames = random_frames(7, 100)
    for at in range(700):
        payload = repeated_payload(rng, texts)
        frame = ipv4_frame(protocol=(TCP, UDP)[at % 2], ports=(at % 7, 9), payload=payload, identification=at)
        if at % 2 == 0:  # the sequence number, with its checksum wrong: it is not looked at
            frame = frame[:38] + (at * 400).to_bytes(4, "big") + frame[42:]
        frames += [frame, frame] if rng.random() < 0.05 else [frame]
    sent = in_c("Dedup", {}, frames, tmp_path)
    expected = in_model("Dedup", {}, frames)
    assert sent.counters["encoded"] > 200
    assert [at for at, (one, other) in enumerate(zip(sent.out, expected, strict=True)) if one != other] == []


def test_dedup_restores_what_it_encoded() -> None:
    """Whatever the order: references name payloads by their hash."""
    rng = random.Random(8)
    texts = [rng.randbytes(900) for _ in range(5)]
    frames = [ipv4_frame(payload=repeated_payload(rng, texts), identification=at) for at in range(300)]
    model = DedupModel({}, {})
    pairs = [(frame, out) for frame in frames for out in model.process(frame, 0)]
    rng.shuffle(pairs)
    assert sum(frame != out for frame, out in pairs) > 100
    assert all(model.restore_sent(out) == frame for frame, out in pairs)
