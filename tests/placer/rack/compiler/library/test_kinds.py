"""What holds for every kind of NF in the library."""

from __future__ import annotations

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
from tests.placer.rack.compiler.library.frames import ipv4_frame, random_frames
from tests.placer.rack.compiler.library.nf_run import require_nf
from tests.reference.interpret import model_of
from tests.reference.nfs.headers import internet_checksum, read_headers, update_checksum
from tests.reference.nfs.model import Contract

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
