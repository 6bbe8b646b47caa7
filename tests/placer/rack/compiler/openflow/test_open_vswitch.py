"""Open vSwitch does with the rules of a rack what the emulated switch and the reference do."""

from collections import Counter
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from random import Random

import pytest

from placer.rack.compiler.compile import compile_rack
from placer.rack.compiler.execute import execute_rack
from placer.rack.compiler.openflow.open_vswitch import SHORTEST_TAGGED_FRAME, check_open_vswitch
from placer.rack.files.plan_file import PlanFile
from profiles.faults import InputError
from tests.effort import THOROUGH
from tests.nfs.captures import read_capture, read_frames, write_capture
from tests.placer.rack.compiler.library.frames import ipv4_frame, random_frames
from tests.placer.rack.compiler.openflow.test_openflow import plan_of, random_places
from tests.placer.rack.compiler.own_chains import draw_own_chains
from tests.placer.rack.compiler.rack_packets import rack_packets
from tests.placer.rack.compiler.racks import SAME_BYTES, made_chain, made_plan
from tests.placer.rack.compiler.test_executed_racks import ExecutedRack, require_programs, run_rack, write_rack_files


def require_open_vswitch() -> None:
    """Skip the test without what it runs."""
    require_programs(smartnics=False)
    try:
        check_open_vswitch()
    except InputError as error:
        pytest.skip(f"{error}".splitlines()[0])


def count_tags(frame: bytes) -> int:
    """The VLAN tags of a frame, at most two."""
    tagged = [frame[at : at + 2] in (b"\x81\x00", b"\x88\xa8") for at in (12, 16)]
    return tagged[0] + all(tagged)


def run(plan: PlanFile, frames: list[bytes], folder: Path, openflow: str) -> ExecutedRack:
    folder.mkdir()
    return run_rack(plan, compile_rack(plan, "plan"), 1, folder, frames, openflow=openflow)


def test_it_forwards_byte_for_byte_what_the_emulated_switch_forwards(tmp_path: Path) -> None:
    """All kinds of NFs with tables, on the switch and between servers; frames of all kinds, with a tag or none."""
    require_open_vswitch()
    nfs = [
        "Detunnel",
        ("ACL", {"rules": 30}),
        "LB",
        "Monitor",
        ("IPv4Fwd", {"routes": 20}),
        ("Tunnel", {"vlan": 7}),
        "LB",
    ]
    sorted_at = [(1, 2, "1/2", "udp"), (1, 3, "1/2", "")]
    chain = made_chain(nfs, [(0, 1, "1", ""), *sorted_at, *((at, at + 1, "1", "") for at in range(2, 6))])
    plan = plan_of([chain], [{nf.id: "s0" if nf.nf == "LB" else "switch" for nf in chain.nfs}])
    frames = [frame for frame in random_frames(3, 600) if count_tags(frame) < 2]
    ovs, emulated = (run(plan, frames, tmp_path / name, name) for name in ("ovs", "emulated"))
    assert ovs.differences == [] and ovs.execution.nfs == emulated.execution.nfs
    assert ovs.execution.dropped == emulated.execution.dropped
    assert ovs.execution.rules == emulated.execution.rules and ovs.execution.branches == emulated.execution.branches
    captures = [sorted(read_capture(tmp_path / name / "out.pcap")) for name in ("ovs", "emulated")]
    assert captures[0] == captures[1]


def test_what_it_cannot_run_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rack with another switch, and a machine without Open vSwitch."""
    write_rack_files(compile_rack(made_plan((made_chain(["ACL"]), "switch")), "plan"), tmp_path / "rack")
    source = write_capture(tmp_path / "in.pcap", [])
    with pytest.raises(InputError, match="its switch is no OpenFlow switch"):
        execute_rack(tmp_path / "rack", source, tmp_path / "out.pcap", openflow="ovs")
    monkeypatch.setattr("placer.rack.compiler.openflow.open_vswitch.PROGRAM_PATH", "")
    with pytest.raises(
        InputError, match="Open vSwitch: ovsdb-tool is not installed\nhint: apt-get install openvswitch"
    ):
        check_open_vswitch()


def test_packets_with_two_tags_are_dropped_where_it_does_not_see_behind_them(tmp_path: Path) -> None:
    """Those of the world, and those to NFs that read addresses; not those to Tunnel, Detunnel, or back to the world."""
    require_open_vswitch()
    places = {"f0": "s0", "f1": "switch", "f2": "s0", "f3": "switch"}
    frames = [ipv4_frame(), ipv4_frame(tags=(5,)), ipv4_frame(tags=(5, 6))]
    for kinds, by_acl in ((["Tunnel", "Detunnel", "Match", "ACL"], 0), (["Tunnel", "ACL", "Match", "Detunnel"], 1)):
        chain = made_chain([kinds[0], (kinds[1], {}), *kinds[2:]])
        found = run(plan_of([chain], [places]), frames, tmp_path / kinds[1], "ovs")
        assert found.execution.is_explained and found.execution.dropped == {"too_many_tags": 1}
        assert (found.execution.sent, found.execution.dropped_by_nfs) == (2 - by_acl, by_acl)


@pytest.mark.long
@pytest.mark.parametrize("part", range(5 if THOROUGH else 1))
def test_random_chains_with_own_rules_do_what_the_text_says(part: int, tmp_path: Path) -> None:
    """Ten chains; no shares on the switch: Open vSwitch deals flows out by a hash of its own."""
    require_open_vswitch()
    on_switch, runs, seed = Counter[str](), 0, 1000 * part
    while runs < 10:
        seed, folder = seed + 1, tmp_path / str(seed)
        folder.mkdir()
        try:
            chains = draw_own_chains(seed, folder, kinds=(*SAME_BYTES, "ACL", "ACL", "IPv4Fwd"))
        except InputError:  # what no list of ways can say
            continue
        random, own = Random(seed), chains.plan.chains
        # no packet gets a second tag, behind which the switch would not see
        if (tunnels := max(sum(nf.nf == "Tunnel" for nf in chain.nfs) for chain in own)) > 1:
            continue
        places = [random_places(random, chain) for chain in own]
        for chain, on in zip(own, places, strict=True):
            for at, nf in enumerate(chain.nfs):
                if sum(not edge.match for edge in chain.edges_from(at)) > 1:
                    on[nf.id] = "s0"
        plan = replace(plan_of(list(own), places), sources=chains.plan.sources)
        rack = compile_rack(plan, "plan")
        drawn = rack_packets(chains.matched, seed, of_each=2, others=40)
        most_tags = 1 - tunnels
        frames = [one for one in drawn if count_tags(one) <= most_tags and len(one) >= SHORTEST_TAGGED_FRAME]
        found = run_rack(plan, rack, seed, folder, frames, chains.meaning.meaning(), "ovs")
        assert found.differences == [], chains.text
        on_switch.update(nf.kind for nf in rack.routing.graph.nfs if nf.place.name == "switch")
        runs += 1
    assert set(on_switch) >= {"ACL", "IPv4Fwd"}


@pytest.mark.parametrize("seconds", [2, pytest.param(10, marks=pytest.mark.slow)])
def test_meters_keep_t_max(seconds: int, tmp_path: Path) -> None:
    """Of 3 Mbps, 1 passes, by the stamps of the capture; NFs count what has passed the meter."""
    require_open_vswitch()
    chain = made_chain(["Monitor", "Match"])
    chain = replace(chain, slo=replace(chain.slo, t_max_mbps=Fraction(1)))
    write_rack_files(compile_rack(plan_of([chain], [{"f0": "switch", "f1": "s0"}]), "plan"), tmp_path / "rack")
    frame = ipv4_frame(payload=bytes(1458))
    source = write_capture(tmp_path / "in.pcap", [frame] * (250 * (1 + seconds)), gap_us=4000)
    run = execute_rack(tmp_path / "rack", source, tmp_path / "out.pcap", openflow="ovs")
    passed = sum(len(out) for time_us, out in read_frames(tmp_path / "out.pcap") if time_us >= 2_000_000)
    assert 8 * passed / (1e6 * seconds) == pytest.approx(1, rel=0.02)
    assert run.is_explained and run.dropped == {"rate_limit": run.received - run.sent}
    assert run.nfs["c/f0"].entered == run.nfs["c/f1"].entered == run.sent
