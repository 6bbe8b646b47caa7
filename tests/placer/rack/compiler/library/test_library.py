"""What holds for every kind of NF in the library."""

import random
import re
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placer.rack.compiler.library.nf_kind import NF_KINDS
from profiles.faults import InputError
from tests.effort import examples
from tests.nfs.comparison import PROGRAM
from tests.placer.rack.compiler.library.frames import TCP, UDP, in_c, in_model, ipv4_frame, random_frames, require_nf
from tests.reference.interpret import model_of
from tests.reference.nfs.dedup import DedupModel, repeated_payload
from tests.reference.nfs.headers import internet_checksum, read_headers, update_checksum
from tests.reference.nfs.model import Contract
from tests.reference.nfs.url_filter import web_payload

TABLE_3 = {
    "Encrypt": {"server"},
    "Decrypt": {"server"},
    "FastEncrypt": {"server", "smartnic"},
    "Dedup": {"server"},
    "Tunnel": {"server", "switch", "smartnic", "openflow"},
    "Detunnel": {"server", "switch", "smartnic", "openflow"},
    "IPv4Fwd": {"server", "switch", "smartnic", "openflow"},
    "Limiter": {"server"},
    "UrlFilter": {"server"},
    "Monitor": {"server", "openflow"},
    "NAT": {"server", "switch"},
    "LB": {"server", "switch", "smartnic"},
    "Match": {"server", "switch", "smartnic"},
    "ACL": {"server", "switch", "smartnic", "openflow"},
}


def test_the_14_kinds_run_where_table_3_of_lemur_says() -> None:
    assert {name: set(kind.platforms) for name, kind in NF_KINDS.items()} == TABLE_3
    fast = NF_KINDS["FastEncrypt"]
    assert fast.runs_on(fast.completed({}, "f")) == {"server"}
    assert fast.runs_on(fast.completed({"blocks": 2}, "f")) == {"server", "smartnic"}


@pytest.mark.parametrize("name", TABLE_3)
def test_data_depends_on_the_parameters_alone(name: str) -> None:
    """Each platform gets the same, whenever it is made; another seed gives other data."""
    kind = NF_KINDS[name]
    parameters = kind.completed({}, "f")
    assert kind.data(parameters) == kind.data(dict(parameters))
    if "seed" in parameters:
        assert kind.data({**parameters, "seed": 2.0}) != kind.data(parameters)


@pytest.mark.parametrize("name", TABLE_3)
def test_settings_are_those_that_the_function_in_c_has(name: str) -> None:
    require_nf(name)
    kind = NF_KINDS[name]
    parameters = kind.completed({}, "f")
    files = dict.fromkeys(kind.server_files(kind.data(parameters)), "FILE")
    listed = subprocess.run([PROGRAM, "--list", "--nf", name], capture_output=True, text=True, check=True).stdout
    known = set(re.findall(r"^  (\w+) .*\(.*\)$", listed, re.MULTILINE))
    assert set(kind.server_settings(parameters, files)) <= known


@pytest.mark.parametrize("name", TABLE_3)
def test_models_take_any_bytes(name: str) -> None:
    """Nothing that a network may bring ends them; what they send has an Ethernet header."""
    model = model_of(name, {}, "f")

    @settings(max_examples=examples(60))
    @given(st.binary(max_size=120), st.integers(0, 2**40))
    def takes(frame: bytes, time_us: int) -> None:
        assert all(len(out) >= 14 or out == frame for out in model.process(frame, time_us))

    takes()
    for frame in random_frames(17, 150):
        for at in range(0, len(frame), 7):
            model.process(frame[:at], 0)


def test_contracts_are_those_of_what_is_encrypted_translated_encoded_or_limited() -> None:
    contracts = {name: model_of(name, {}, name).contract for name in NF_KINDS}
    assert {name: one for name, one in contracts.items() if one is not Contract.BYTES} == {
        "Encrypt": Contract.ESP,
        "FastEncrypt": Contract.ESP,
        "Dedup": Contract.DEDUP,
        "NAT": Contract.NAT,
        "Limiter": Contract.RATE,
    }


def test_all_wrong_parameters_are_refused_at_once() -> None:
    with pytest.raises(InputError) as error:
        NF_KINDS["LB"].completed({"backends": 0, "seed": 1.5, "tabel": 8}, "c/lb")
    assert str(error.value).splitlines() == [
        "c/lb: tabel: LB has no such parameter",
        "c/lb: backends: 0 is not from 1 to 4096",
        "c/lb: seed: 1.5 is not a whole number",
        "hint: did you mean table?",
    ]


@given(st.binary(min_size=2, max_size=60), st.data())
def test_a_changed_checksum_is_that_of_the_changed_bytes(data: bytes, draw: st.DataObject) -> None:
    """RFC 1624, but for the two zeros of ones' complement."""
    data += bytes(len(data) % 2)
    at = 2 * draw.draw(st.integers(0, len(data) // 2 - 1))
    new = draw.draw(st.binary(min_size=2, max_size=2))
    changed = data[:at] + new + data[at + 2 :]
    assert (
        update_checksum(internet_checksum(data), data[at : at + 2], new) % 0xFFFF == internet_checksum(changed) % 0xFFFF
    )


def test_headers_of_a_frame_with_tags_and_options_are_found() -> None:
    headers = read_headers(ipv4_frame(protocol=6, payload=b"abc", options=bytes(8), tags=(1, 2)) + bytes(3))
    assert (headers.l3, headers.l4, headers.payload, headers.end) == (22, 50, 70, 73)
    assert not headers.fragment and headers.has_ports


def test_a_folder_of_files_is_enough_to_run_an_nf(tmp_path: Path) -> None:
    """Each file has a suffix of its own, so that names in a server's folder never meet."""
    for kind in NF_KINDS.values():
        files = kind.server_files(kind.data(kind.completed({}, "f")))
        assert all(text.endswith("\n") and suffix.isalpha() for suffix, text in files.items())


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
        source = 0x0A000001 + at  # a stream each
        parts = at % 97 == 0 and 0x2000
        frames.append(ipv4_frame(source, protocol=protocol, payload=web_payload(rng, urls), parts=parts))
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
