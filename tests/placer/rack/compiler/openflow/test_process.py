"""The emulated OpenFlow switch as a process of a rack, joined with nf-server by links."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random

import pytest

from placer.rack.chain import Chain
from placer.rack.compiler.compile import compile_rack
from placer.rack.compiler.graph import graph_of, instances_of
from placer.rack.compiler.openflow.link_end import CaptureWriter, read_capture
from placer.rack.compiler.openflow.pipeline import openflow_program, vlan_labels
from placer.rack.compiler.openflow.process import main
from placer.rack.compiler.routing import route_graph
from profiles.faults import InputError
from tests.nfs.captures import write_capture
from tests.placer.rack.compiler.library.frames import ipv4_frame
from tests.placer.rack.compiler.openflow.test_openflow import plan_of, random_places
from tests.placer.rack.compiler.racks import SAME_BYTES, made_chain, random_chain
from tests.placer.rack.compiler.test_executed_racks import require_programs, run_rack


def write_rack(folder: Path, chains: list[Chain], places: list[dict[str, str]]) -> None:
    """The rules of a switch in a folder."""
    graph = graph_of(plan_of(chains, places), "plan")
    routing = route_graph(graph)
    labels = vlan_labels(routing)
    program = openflow_program(routing, instances_of(graph), labels)
    texts = {"flows": program.flows_text(), "groups": program.groups_text(), "names": program.names_text()}
    for name, text in {**texts, "labels": labels.text(), "meters": program.meters_text()}.items():
        (folder / name).write_text(text, encoding="utf-8")


def switch_arguments(folder: Path, servers: Sequence[str]) -> list[str]:
    files = [
        word for name in ("flows", "groups", "names", "labels", "meters") for word in (f"--{name}", str(folder / name))
    ]
    links = [word for name in servers for word in ("--link", f"{name}={folder / name}.link")]
    captures = ["--in", str(folder / "in.pcap"), "--out", str(folder / "out.pcap")]
    return [*files, *links, *captures, "--report", str(folder / "switch.json")]


@pytest.mark.long
@pytest.mark.parametrize("seed", [61, 70])
def test_processes_joined_by_links_do_what_the_reference_does(seed: int, tmp_path: Path) -> None:
    """Switch and servers, each a process; frames, order, counters and drops."""
    require_programs(smartnics=False)
    random = Random(seed)
    chains = [random_chain(random, f"c{at}", SAME_BYTES, at) for at in range(2)]
    plan = plan_of(chains, [random_places(random, chain) for chain in chains])
    assert run_rack(plan, compile_rack(plan, "plan"), seed, tmp_path).differences == []


def test_a_rack_without_servers_needs_no_links(tmp_path: Path) -> None:
    """A chain wholly on the switch, from capture to capture, with a report."""
    write_rack(tmp_path, [made_chain(["Monitor", ("Tunnel", {"vlan": 5})])], [{"f0": "switch", "f1": "switch"}])
    write_capture(tmp_path / "in.pcap", [ipv4_frame(), ipv4_frame()[:20]])
    assert main(switch_arguments(tmp_path, [])) == 0
    assert [frame[12:16].hex() for _, frame in read_capture(tmp_path / "out.pcap")] == ["81000005"]
    report = json.loads((tmp_path / "switch.json").read_text(encoding="utf-8"))
    assert report["program"] == "emulated OpenFlow switch"
    assert report["dropped"] == {"malformed": 1, "forged": 0, "unknown_path": 0}
    assert {"name": "c/f0", "entered": 1, "sent": 1, "dropped": 0} in report["functions"]


def test_an_interrupted_switch_keeps_what_it_has_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The capture and the report are complete; the exit status says that it was interrupted."""

    def interrupted(path: Path) -> Iterator[tuple[int, bytes]]:
        yield 5, ipv4_frame()
        raise KeyboardInterrupt

    write_rack(tmp_path, [made_chain(["Monitor"])], [{"f0": "switch"}])
    monkeypatch.setattr("placer.rack.compiler.openflow.process.read_capture", interrupted)
    assert main(switch_arguments(tmp_path, [])) == 130
    assert list(read_capture(tmp_path / "out.pcap")) == [(5, ipv4_frame())]
    assert json.loads((tmp_path / "switch.json").read_text(encoding="utf-8"))["interrupted"]


def test_a_bad_capture_is_refused_and_nothing_is_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_rack(tmp_path, [made_chain(["Monitor"])], [{"f0": "switch"}])
    (tmp_path / "in.pcap").write_bytes(b"no capture")
    assert main(switch_arguments(tmp_path, [])) == 2
    assert capsys.readouterr().err == f"{tmp_path}/in.pcap: is no capture in the format of pcap\n"
    assert not list(tmp_path.glob("out.pcap*"))


def test_a_file_that_is_no_link_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_rack(tmp_path, [made_chain(["Monitor"])], [{"f0": "switch"}])
    write_capture(tmp_path / "in.pcap", [])
    (tmp_path / "s0.link").write_bytes(b"text")
    assert main(switch_arguments(tmp_path, ["s0"])) == 1
    assert capsys.readouterr().err == f"{tmp_path}/s0.link: is not a link\n"


def test_captures_come_back_as_they_were_written(tmp_path: Path) -> None:
    packets = [(1_700_000_000_000_001, b"a" * 60), (1_700_000_001_999_999, b"b" * 1500)]
    with CaptureWriter(tmp_path / "x.pcap") as writer:
        for time_us, frame in packets:
            writer.write(time_us, frame)
    assert list(read_capture(tmp_path / "x.pcap")) == packets
    (tmp_path / "y.pcap").write_bytes((tmp_path / "x.pcap").read_bytes()[:-1])
    with pytest.raises(InputError, match="packet 2: 1499 of 1500 bytes are there"):
        list(read_capture(tmp_path / "y.pcap"))
