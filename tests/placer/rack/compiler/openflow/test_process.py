"""The rules of an OpenFlow switch as a process of a rack, joined with nf-switch by a link."""

import json
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from placer.rack.chain import Chain
from placer.rack.compiler.compile import compile_rack
from placer.rack.compiler.execute import NfCounts
from placer.rack.compiler.graph import graph_of, instances_of
from placer.rack.compiler.openflow.pipeline import openflow_program, vlan_labels
from placer.rack.compiler.openflow.process import main
from placer.rack.compiler.routing import route_graph
from tests.nfs.captures import read_capture
from tests.nfs.rack.wire import PACKET, Message, Wire
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


def rules_arguments(folder: Path) -> list[str]:
    files = [
        word for name in ("flows", "groups", "names", "labels", "meters") for word in (f"--{name}", str(folder / name))
    ]
    return [*files, "--ports", "1", "--link", str(folder / "rules.link"), "--report", str(folder / "rules.json")]


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
    """A chain wholly on the switch, from capture to capture."""
    require_programs(smartnics=False)
    plan = plan_of([made_chain(["Monitor", ("Tunnel", {"vlan": 5})])], [{"f0": "switch", "f1": "switch"}])
    ran = run_rack(plan, compile_rack(plan, "plan"), 1, tmp_path, [ipv4_frame(), ipv4_frame()[:20]])
    assert [frame[12:16].hex() for frame in read_capture(tmp_path / "out.pcap")] == ["81000005"]
    assert ran.execution.dropped == {"malformed": 1}
    assert ran.execution.nfs["c/f0"] == NfCounts(entered=1, sent=1)


def test_interrupted_rules_keep_what_they_have_counted(tmp_path: Path) -> None:
    """The report is complete; the exit status says that they were interrupted."""
    write_rack(tmp_path, [made_chain(["Monitor"])], [{"f0": "switch"}])
    command = [sys.executable, "-m", "placer.rack.compiler.openflow.process", *rules_arguments(tmp_path)]
    with Wire(tmp_path / "rules.link") as wire, subprocess.Popen(command) as process:
        assert wire.send(PACKET, ipv4_frame(), 5)
        assert wire.wait() == Message(PACKET, 5, ipv4_frame())
        process.terminate()
        assert process.wait(20) == 130
    report = json.loads((tmp_path / "rules.json").read_text(encoding="utf-8"))
    assert report["interrupted"] and report["program"] == "emulated OpenFlow switch"
    assert report["functions"] == [{"name": "c/f0", "entered": 1, "sent": 1, "dropped": 0}]


def test_a_file_that_is_no_link_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_rack(tmp_path, [made_chain(["Monitor"])], [{"f0": "switch"}])
    (tmp_path / "rules.link").write_bytes(b"text")
    assert main(rules_arguments(tmp_path)) == 1
    assert capsys.readouterr().err == f"{tmp_path}/rules.link: is not a link\n"
