"""Rules for an OpenFlow switch, run by the emulated one and by Open vSwitch, do what the reference does."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import count
from pathlib import Path
from random import Random

import numpy as np
import pytest

from placer.rack.chain import Chain
from placer.rack.compiler.compile import compile_rack
from placer.rack.compiler.execute import execute_rack
from placer.rack.compiler.graph import graph_of
from placer.rack.compiler.openflow.emulated_switch import read_groups, read_rules
from placer.rack.compiler.openflow.headers import TYPE_NSH
from placer.rack.compiler.openflow.open_vswitch import SHORTEST_TAGGED_FRAME, check_open_vswitch
from placer.rack.compiler.openflow.pipeline import VlanLabels, vlan_labels, with_service_header, with_vlan_label
from placer.rack.compiler.openflow.rules import FLOWS_TABLE
from placer.rack.compiler.routing import Label
from placer.rack.files.plan_file import PlanFile
from placer.rack.rack import CoreCost, NfCosts, Rack, Server, Switch, SwitchKind
from placer.rack.replanning.moves import PlacedNf
from profiles.faults import InputError
from tests.effort import examples
from tests.nfs.captures import LAST_SECOND, read_capture, read_frames, write_capture, write_frames
from tests.placer.rack.compiler.library.frames import ipv4_frame, random_frames
from tests.placer.rack.compiler.openflow.labelled_rack import LabelledRack
from tests.placer.rack.compiler.own_chains import OwnChains, draw_own_chains
from tests.placer.rack.compiler.rack_packets import rack_packets
from tests.placer.rack.compiler.racks import SAME_BYTES, made_chain, made_plan, random_chain, random_subgroups
from tests.placer.rack.compiler.test_executed_racks import ExecutedRack, require_programs, run_rack, write_rack_files
from tests.placer.rack.compiler.test_own_chains import update_after_redrawing
from tests.reference.compare import ReferenceRun
from tests.reference.interpret import Interpreter
from tests.reference.nfs.monitor import MonitorModel

ORDER = ("Detunnel", "ACL", "Monitor", "IPv4Fwd", "Tunnel")
SERVERS = ("s0", "s1")


def plan_of(chains: list[Chain], places: list[dict[str, str]], order: tuple[str, ...] = ORDER) -> PlanFile:
    """Chains on a rack with an OpenFlow switch and two servers."""
    costs = NfCosts(CoreCost(Fraction(100)), None, 1)
    servers = tuple(Server(name, 8, Fraction(2000), Fraction(40000)) for name in SERVERS)
    rack = Rack(
        Switch(kind=SwitchKind.OPENFLOW, table_order=order), servers, Fraction(6), dict.fromkeys(SAME_BYTES, costs)
    )
    placed = {
        chain.name: {nf.id: PlacedNf(nf.nf, on[nf.id]) for nf in chain.nfs}
        for chain, on in zip(chains, places, strict=True)
    }
    subgroups = {
        chain.name: random_subgroups(Random(1), chain, rack, {at: on[nf.id] for at, nf in enumerate(chain.nfs)})
        for chain, on in zip(chains, places, strict=True)
    }
    return PlanFile(tuple(chains), rack, placed, subgroups)


def random_places(random: Random, chain: Chain) -> dict[str, str]:
    """Servers anywhere, the switch where the order of its tables allows."""
    on: dict[int, str] = {}
    for at in chain.order:
        kind = chain.nfs[at].nf
        before = [chain.nfs[edge.tail].nf for edge in chain.edges_into(at) if on[edge.tail] == "switch"]
        allowed = kind in ORDER and all(ORDER.index(one) < ORDER.index(kind) for one in before)
        on[at] = "switch" if allowed and random.random() < 0.7 else random.choice(SERVERS)
    return {chain.nfs[at].id: where for at, where in on.items()}


def rack_of(plan: PlanFile) -> LabelledRack:
    return LabelledRack(graph_of(plan, "plan"))


@pytest.mark.parametrize("seed", range(examples(45)))
def test_random_chains_do_what_the_reference_does(seed: int) -> None:
    """Branches, merges, strays, several chains; frames, order, counters and drops; labels become service headers."""
    random = Random(seed)
    chains = [random_chain(random, f"c{at}", SAME_BYTES, at) for at in range(random.choice((1, 2, 3)))]
    rack = rack_of(plan_of(chains, [random_places(random, chain) for chain in chains]))
    packets = [(1000 * at, frame) for at, frame in enumerate(random_frames(seed, 120))]
    assert ReferenceRun(chains, packets).differences(rack.outcome(packets)) == []


def draw_chains(seeds: Iterable[int], tmp_path: Path) -> Iterator[tuple[int, Path, OwnChains]]:
    """Chains with own data, each with its seed and the folder of its files; without those that no list of ways says."""
    for seed in seeds:
        folder = tmp_path / str(seed)
        folder.mkdir()
        try:
            chains = draw_own_chains(seed, folder, kinds=(*SAME_BYTES, "ACL", "ACL", "IPv4Fwd"))
        except InputError:
            continue
        yield seed, folder, chains


def test_rules_and_routes_of_files_do_what_the_text_says(tmp_path: Path) -> None:
    """Own data on an OpenFlow switch, and on the servers behind it."""
    on_switch = Counter[str]()
    for seed, _, chains in draw_chains(range(examples(40)), tmp_path):
        random, own = Random(seed), chains.plan.chains
        plan = plan_of(list(own), [random_places(random, chain) for chain in own])
        graph = graph_of(replace(plan, sources=chains.plan.sources), "plan")
        on_switch.update(nf.kind for nf in graph.nfs if nf.own and nf.place.name == "switch")
        packets = [(1000 * at, one) for at, one in enumerate(rack_packets(chains.matched, seed, of_each=2, others=40))]
        reference = ReferenceRun(own, packets, chains.meaning.meaning())
        assert reference.differences(LabelledRack(graph).outcome(packets)) == [], chains.text
    assert set(on_switch) == {"ACL", "IPv4Fwd"}


@pytest.mark.long
@pytest.mark.parametrize(
    ("nf", "parameters"),
    [
        ("ACL", {"rules": 150, "seed": 2}),
        ("ACL", {"rules": 150, "seed": 3}),
        ("IPv4Fwd", {"routes": 150, "seed": 2}),
        ("Tunnel", {"vlan": 4094}),
        ("Detunnel", {}),
    ],
)
def test_each_kind_alone_does_what_its_model_does(nf: str, parameters: dict[str, float]) -> None:
    """Long lists, all kinds of frames."""
    chain = made_chain([(nf, parameters)])
    rack = rack_of(plan_of([chain], [{"f0": "switch"}]))
    packets = list(enumerate(random_frames(31, 1500)))
    assert ReferenceRun([chain], packets).differences(rack.outcome(packets)) == []


def test_packets_keep_tags_of_their_own_behind_the_label() -> None:
    """Two tags of its own and the label: each comes back as it was."""
    chain = made_chain(["Monitor", "Match", "Monitor"])
    rack = rack_of(plan_of([chain], [{"f0": "switch", "f1": "s0", "f2": "switch"}]))
    frame = ipv4_frame(tags=(0xF123, 0x0456), tag_type=0x88A8)
    [(port, labelled)] = rack.switch.process(frame, 1)
    assert port == 2 and len(labelled) == len(frame) + 4
    assert labelled[12:16] == b"\x88\xa8\x00\x01" and labelled[16:] == frame[12:]
    assert rack.enter(frame, 0) == [frame]


@pytest.mark.parametrize("first", ["switch", "s0"])
@pytest.mark.parametrize("size", [pytest.param(60, marks=pytest.mark.long), 1500])
def test_a_chain_carries_its_t_max_and_no_more(first: str, size: int) -> None:
    """Offered five times as much, in bytes of frames without checksums, over 10 s after the first second."""
    chain = made_chain(["Monitor", "Match"])
    chain = replace(chain, slo=replace(chain.slo, t_max_mbps=Fraction(1, 2) if size == 60 else Fraction(2)))
    rack = rack_of(plan_of([chain], [{"f0": first, "f1": "s0"}]))
    frame, rate = ipv4_frame(payload=bytes(size - 42)), float(chain.slo.t_max_mbps)
    assert len(frame) == size
    times = np.arange(0, 11e6, 8 * size / (5 * rate)).astype(int)
    sent = sum(len(out) for time_us in times for out in rack.enter(frame, int(time_us)) if time_us >= 1e6)
    assert 8 * sent / 10e6 == pytest.approx(rate, rel=0.02)


def test_a_meter_is_written_as_ovs_ofctl_reads_it() -> None:
    """2.5 Gbps, and a burst of 10 ms of it; where the chain begins on a server, its Limiter keeps the rate."""
    chain = made_chain(["Monitor", "Match"])
    chain = replace(chain, slo=replace(chain.slo, t_max_mbps=Fraction(2500)))
    program = rack_of(plan_of([chain], [{"f0": "switch", "f1": "s0"}])).program
    assert program.meters_text() == "meter=1,kbps,burst,bands=type=drop,rate=2500000,burst_size=25000\n"
    assert "actions=meter:1,load:0" in program.flows_text()
    assert rack_of(plan_of([chain], [{"f0": "s0", "f1": "s0"}])).program.meters_text() == ""


def test_rules_are_written_as_ovs_ofctl_reads_them() -> None:
    """A chain of three tables: the tables are in order, and each packet carries the next NF in its metadata."""
    chain = made_chain(
        [("ACL", {"rules": 1, "seed": 4}), "IPv4Fwd", ("Tunnel", {"vlan": 7})],
        [(0, 1, "1/3", ""), (0, 2, "2/3", "")],
        aggregates=["udp port 53, vlan 3"],
    )
    rack = rack_of(plan_of([chain], [dict.fromkeys(("f0", "f1", "f2"), "switch")]))
    lines = rack.program.flows_text().splitlines()
    assert lines[0].startswith("# ovs-ofctl -O OpenFlow13 add-flows")
    assert (
        "cookie=0x1,table=0,priority=4,in_port=1,udp,ip_frag=no,vlan_tci=0x1003/0x1fff,tp_src=0x35/0xffff "
        "actions=load:0->NXM_OF_IN_PORT[],write_metadata:0x1,goto_table:3"
    ) in lines
    assert any(
        line.endswith("actions=push_vlan:0x8100,set_field:0x1007->vlan_vid,set_field:0->vlan_pcp,goto_table:10")
        for line in lines
    )
    [group] = rack.program.groups_text().splitlines()
    assert group.startswith("group_id=1,type=select,selection_method=hash,selection_method_param=")
    assert "bucket=bucket_id:0,weight:21845,actions=set_field:0x2->metadata,resubmit(,7)" in group
    assert "bucket=bucket_id:1,weight:43691,actions=set_field:0x3->metadata,resubmit(,9)" in group
    assert len(read_rules(rack.program.flows_text())) == len(rack.program.rules)
    assert read_groups(rack.program.groups_text())[1].buckets[1][0] == 43691


def test_no_two_rules_of_a_table_with_one_priority_fit_the_same_packets() -> None:
    """OpenFlow leaves open which of them would run. Rules of different NFs differ in their metadata."""
    chain = made_chain(["Detunnel", ("ACL", {"rules": 20}), "Monitor", "IPv4Fwd", "Tunnel"])
    rack = rack_of(plan_of([chain], [dict.fromkeys(("f0", "f1", "f2", "f3", "f4"), "switch")]))
    rules = [(rule.table, rule.priority, tuple(rule.match.items())) for rule in rack.program.rules]
    assert len(set(rules)) == len(rules)
    assert [rule for rule in rack.program.rules if rule.priority == 0 and rule.match] == []


def test_an_nf_whose_table_is_not_behind_that_of_the_one_before_is_refused() -> None:
    chain = made_chain(["Tunnel", "Detunnel", "LB"])
    with pytest.raises(InputError, match="c/f1: it follows c/f0, but its table is not behind that of Tunnel"):
        rack_of(plan_of([chain], [{"f0": "switch", "f1": "switch", "f2": "s0"}]))
    with pytest.raises(InputError, match="c/f0: the OpenFlow switch has no table for Tunnel"):
        rack_of(plan_of([chain], [{"f0": "switch", "f1": "s0", "f2": "s0"}], order=("Detunnel",)))


def test_only_labels_that_travel_take_a_vlan_and_too_many_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    chain = made_chain(["ACL", "LB", "Match", "LB", "Tunnel"])
    places = {"f0": "switch", "f1": "s0", "f2": "s0", "f3": "s1", "f4": "switch"}
    rack = rack_of(plan_of([chain], [places]))
    assert sorted(rack.labels.vlans.values()) == [1, 2, 3]
    monkeypatch.setattr("placer.rack.compiler.openflow.pipeline.MOST_LABELS", 2)
    with pytest.raises(InputError, match="3 labels are too many for an OpenFlow switch: a VLAN tag names 2"):
        vlan_labels(rack.routing)


def test_a_label_becomes_a_service_header_and_comes_back() -> None:
    """What stands between an OpenFlow switch and a server that knows service headers."""
    labels = VlanLabels({Label(3, 254): 9})
    frame = ipv4_frame(tags=(5,))
    tagged = frame[:12] + b"\x88\xa8\x00\x09" + frame[12:]
    served = with_service_header(tagged, labels)
    assert served is not None and served[12:14] == TYPE_NSH.to_bytes(2, "big")
    assert served[:12] == frame[:12] and served[14:22].hex() == "0fc20203000003fe" and served[22:] == frame
    assert with_vlan_label(served, labels) == tagged
    assert with_service_header(frame, labels) is None
    assert with_vlan_label(frame, labels) is None
    assert with_vlan_label(served, VlanLabels({})) is None
    assert labels.text() == "9 3 254\n"


def test_the_monitor_counts_packets_and_bytes_of_each_flow() -> None:
    """The rules that the switch learns have the counts of the model."""
    chain = made_chain(["Monitor", ("Tunnel", {"vlan": 9})])
    rack = rack_of(plan_of([chain], [{"f0": "switch", "f1": "switch"}]))
    frames = random_frames(21, 400) + [ipv4_frame(payload=bytes(at)) for at in range(5)]
    interpreter = Interpreter([chain])
    for at, frame in enumerate(frames):
        rack.enter(frame, at)
        interpreter.enter(frame, at)
    model = interpreter.models["c/f0"]
    assert isinstance(model, MonitorModel)
    learnt = rack.switch.learnt(FLOWS_TABLE)
    names = ("nw_src", "nw_dst", "nw_proto", "tp_src", "tp_dst")
    found = {tuple(int(rule.match.get(name, 0)) for name in names): (rule.packets, rule.bytes) for rule in learnt}
    assert found == {flow: (packets, model.bytes[flow]) for flow, packets in model.packets.items()}
    assert max(packets for packets, _ in found.values()) >= 5


def test_a_rule_learns_as_ovs_ofctl_writes_it() -> None:
    rack = rack_of(plan_of([made_chain(["Monitor"])], [{"f0": "switch"}]))
    assert (
        "metadata=0x1,udp actions=learn(table=250,priority=1,OXM_OF_METADATA[],eth_type=0x0800,nw_proto=17,"
        "NXM_OF_IP_SRC[],NXM_OF_IP_DST[],NXM_OF_UDP_SRC[],NXM_OF_UDP_DST[]),resubmit(,250),goto_table:6"
    ) in rack.program.flows_text()


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
@pytest.mark.parametrize("part", [0, 1, *(pytest.param(part, marks=pytest.mark.slow) for part in (2, 3, 4))])
def test_random_chains_with_own_rules_do_what_the_text_says(part: int, tmp_path: Path) -> None:
    """Ten chains, before and after an update; no shares on the switch: Open vSwitch has a hash of its own."""
    require_open_vswitch()
    on_switch, runs, updates = Counter[str](), 0, 0
    for seed, folder, chains in draw_chains(count(1000 * part + 1), tmp_path):
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
        if plan.sources and (update := update_after_redrawing(seed, folder, replace(chains, plan=plan))):
            found = run_rack(plan, update.rack, seed, folder, frames, chains.meaning.meaning(), "ovs")
            assert found.differences == [], chains.text
            updates += 1
        on_switch.update(nf.kind for nf in rack.routing.graph.nfs if nf.place.name == "switch")
        runs += 1
        if runs == 10:
            break
    assert set(on_switch) >= {"ACL", "IPv4Fwd"} and updates > 3


@pytest.mark.parametrize("seconds", [2, pytest.param(10, marks=pytest.mark.slow)])
def test_meters_keep_t_max(seconds: int, tmp_path: Path) -> None:
    """Of 3 Mbps, 1 passes, by the stamps of the capture, one of them wrong; NFs count what has passed the meter."""
    require_open_vswitch()
    chain = made_chain(["Monitor", "Match"])
    chain = replace(chain, slo=replace(chain.slo, t_max_mbps=Fraction(1)))
    write_rack_files(compile_rack(plan_of([chain], [{"f0": "switch", "f1": "s0"}]), "plan"), tmp_path / "rack")
    frame = ipv4_frame(payload=bytes(1458))
    times = [1_000_000 + 4000 * at for at in range(250 * (1 + seconds))]
    times.insert(100, LAST_SECOND * 1_000_000)
    source = write_frames(tmp_path / "in.pcap", [(time_us, frame) for time_us in times])
    run = execute_rack(tmp_path / "rack", source, tmp_path / "out.pcap", openflow="ovs")
    passed = sum(len(out) for time_us, out in read_frames(tmp_path / "out.pcap") if 2 <= time_us / 1e6 < LAST_SECOND)
    assert 8 * passed / (1e6 * seconds) == pytest.approx(1, rel=0.02)
    assert run.is_explained and run.dropped == {"rate_limit": run.received - run.sent}
    assert run.nfs["c/f0"].entered == run.nfs["c/f1"].entered == run.sent
