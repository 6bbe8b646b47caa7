"""SLOs and devices: what is read, and how every fault is named."""

import gzip
import io
import json
from pathlib import Path
from typing import Any

import pytest

from placer.gpu.device import Arbitration, GpuNf
from placer.gpu.plan import LatencySlo
from placer.inputs.gpu.slos import read_device, read_slos, write_device, write_slo
from profiles import InputError
from profiles.files.json import lines_of

ONE = '{"id": "a", "nf": "ACL", "rate_kpps": 400, "latency_us": 300}'
DEVICE: dict[str, Any] = {
    "sms": 30,
    "executors_per_sm": 16,
    "packets_per_executor": 128,
    "workers": 12,
    "arbitration": "sporadic",
    "transfer_us": {"header": [0.01, 6]},
    "nfs": {"ACL": {"class": "header", "pre_post_us": 8, "kernel_us": [2.5, 22]}},
    "sharing_us": {"ACL": {"ACL": 1.5}},
}


def refused(text: str, **changed: Any) -> list[str]:
    """The faults of lines of SLOs, without the name of the file."""
    with pytest.raises(InputError) as error:
        read_slos(io.StringIO(text), ["ACL", "NIDS"])
    return [str(fault).removeprefix("<text>:") for fault in error.value.faults]


def device_file(folder: Path, text: str) -> Path:
    path = folder / "gpu.json"
    path.write_text(text, encoding="utf-8")
    return path


def test_slos_keep_the_order_of_their_lines() -> None:
    """Blank lines are skipped; a batch may be left out, or be null."""
    text = ONE + "\n\n" + '{"id": "b", "nf": "NIDS", "rate_kpps": 0.5, "latency_us": 90, "batch": 64}\n'
    text += '{"id": "c", "nf": "NIDS", "rate_kpps": 1, "latency_us": 9.5, "batch": null}'
    assert read_slos(io.StringIO(text), ["ACL", "NIDS"]) == [
        LatencySlo("a", "ACL", 400.0, 300.0),
        LatencySlo("b", "NIDS", 0.5, 90.0, 64),
        LatencySlo("c", "NIDS", 1.0, 9.5),
    ]


@pytest.mark.parametrize(
    "written", [lambda text: b"\xef\xbb\xbf" + text, lambda text: text.replace(b"\n", b"\r\n"), gzip.compress]
)
def test_equal_files_give_equal_slos(tmp_path: Path, written: Any) -> None:
    """With a byte order mark, CRLF, or gzipped."""
    (tmp_path / "slos").write_bytes(written(f"{ONE}\n".encode()))
    assert read_slos(str(tmp_path / "slos")) == [LatencySlo("a", "ACL", 400.0, 300.0)]


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        (ONE.replace("400", "0"), "1: rate_kpps: 0 is below 1e-06"),
        (ONE.replace("400", "true"), "1: rate_kpps: True is not a number"),
        (ONE.replace("400", '"400"'), "1: rate_kpps: '400' is not a number"),
        (ONE.replace("300", "-1"), "1: latency_us: -1 is below 1e-06"),
        (ONE.replace("300", "1e999"), "1: latency_us: inf is not a finite number"),
        (ONE.replace("300", "NaN"), "1: NaN is not a finite number"),
        (ONE.replace("}", ', "batch": 0}'), "1: batch: 0 is below 1"),
        (ONE.replace("}", ', "batch": 1.5}'), "1: batch: 1.5 is not a whole number"),
        (ONE.replace("}", ', "bach": 4}'), "1: bach: unknown key"),
        (ONE.replace("}", ', "nf": "ACL"}'), "1: nf: is named twice"),
        (ONE.replace('"a"', "7"), "1: id: 7 is not text"),
        (ONE.replace('"a"', '" "'), "1: id: is empty"),
        (ONE.replace('"a"', r'"a\n"'), r"1: id: 'a\n' has a line break or another control character"),
        (ONE.replace("ACL", "acl"), "1: nf: the device has no NF 'acl'"),
        ('{"id": "a", "nf": "ACL", "rate_kpps": 1}', "1: latency_us: is missing"),
        ("[1]", "1: [1] is not an object"),
        ('{"id": ', "1: column 7: is not JSON: Expecting value"),
        (f"{ONE}\n{ONE}", "2: id: 'a' is also the id of line 1"),
    ],
)
def test_each_fault_of_an_slo_is_named_with_its_line(line: str, fault: str) -> None:
    assert refused(line) == [fault]


def test_all_faults_are_named_at_once() -> None:
    text = f"{ONE}\n{{}}\n3\n" + ONE.replace("ACL", "X")
    assert [fault.split(":")[0] for fault in refused(text)] == ["2"] * 4 + ["3", "4", "4"]


@pytest.mark.parametrize("text", ["", "\n\n"])
def test_a_file_without_slos_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="holds no SLO"):
        read_slos(io.StringIO(text))


def test_a_device_is_read_and_written(tmp_path: Path) -> None:
    """What is written again is what was read; sharing penalties may be left out."""
    device = read_device(device_file(tmp_path, json.dumps(DEVICE)))
    assert (device.sms, device.workers, device.arbitration) == (30, 12, Arbitration.SPORADIC)
    assert device.nfs == {"ACL": GpuNf("header", 8.0, (2.5, 22.0))} and write_device(device) == DEVICE
    without = {key: value for key, value in DEVICE.items() if key != "sharing_us"}
    assert read_device(device_file(tmp_path, json.dumps(without))).penalty("ACL", ["ACL"]) == 0.0


def test_an_slo_is_written_as_it_is_read() -> None:
    slos = [LatencySlo("a", "ACL", 400.0, 300.0), LatencySlo("b", "ACL", 4.5, 30.0, 7)]
    assert read_slos(io.StringIO("\n".join(json.dumps(write_slo(slo)) for slo in slos))) == slos


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ('"sms": 30', '"sms": 0', "2: sms: 0 is below 1"),
        ('"sms": 30', '"sms": 1.5', "2: sms: 1.5 is not a whole number"),
        ('"workers": 12', '"worker": 12', "1: workers: is missing"),
        ('"workers": 12', '"workers": -1', "5: workers: -1 is below 0"),
        ('"sporadic"', '"once"', "6: arbitration: 'once' is not understood"),
        ('"header"\n', '"headr"\n', "15: nfs.ACL.class: transfer_us has no class 'headr'"),
        ("6\n", "-6\n", "10: transfer_us.header.1: -6 is below 0.0"),
        ("6\n", "6, 7\n", "8: transfer_us.header: is too long: there may be at most 2"),
        ('"ACL": 1.5', '"ACl": 1.5', "26: sharing_us.ACL.ACl: nfs has no 'ACl'"),
        ('"ACL": 1.5', '"ACL": "1.5"', "26: sharing_us.ACL.ACL: '1.5' is not a number"),
        ('"ACL": 1.5', '"ACL": 1.5, "ACL": 2', "26: ACL: is named twice"),
        ('"ACL": 1.5', '"ACL": NaN', "26: NaN is not a finite number"),
        ('"ACL": 1.5', '"ACL" 1.5', "26: column 7: is not JSON: Expecting ':' delimiter"),
    ],
)
def test_each_fault_of_a_device_is_named_with_its_line(tmp_path: Path, old: str, new: str, fault: str) -> None:
    text = json.dumps(DEVICE, indent=0).replace('"class": "header",', '"class": "header"\n,')
    assert old in text
    path = device_file(tmp_path, text.replace(old, new))
    with pytest.raises(InputError) as error:
        read_device(path)
    assert f"{path}:{fault}" in [str(one) for one in error.value.faults]


def test_a_file_that_is_no_device_is_refused(tmp_path: Path) -> None:
    for text, message in (("", "is empty"), ("[]", "is not an object"), ("[" * 100_000, "is nested too deeply")):
        with pytest.raises(InputError, match=message):
            read_device(device_file(tmp_path, text))


def test_the_line_of_each_value_is_known() -> None:
    """Escaped quotes, brackets in text and empty containers do not confuse it."""
    text = '{\n"a\\"{": [1,\n{"b": []}],\n"c": {\n}, "d": "}]"\n}'
    assert lines_of(text) == {
        (): 1, ('a"{',): 2, ('a"{', 0): 2, ('a"{', 1): 3, ('a"{', 1, "b"): 3, ("c",): 4, ("d",): 5,
    }  # fmt: skip
