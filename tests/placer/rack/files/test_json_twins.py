"""The JSON of chains and racks: a faulty one is refused whole, with every fault."""

import json
from pathlib import Path
from typing import Any

import pytest

from placer.rack.files.chains_file import read_chains_file
from placer.rack.files.json_twins import chains_of, rack_of
from placer.rack.files.rack_file import read_rack_file
from placer.rack.files.written_twins import write_chains
from profiles import InputError
from tests.placer.rack import lemur
from tests.placer.rack.small import ON_SERVER, ON_SWITCH, Json, chain, rack, server


def messages(error: InputError) -> list[str]:
    return [str(fault) for fault in error.faults]


def faults_of_chains(*chains: Json) -> list[str]:
    with pytest.raises(InputError) as refused:
        chains_of({"chains": list(chains)}, "x.json")
    return messages(refused.value)


def faults_of_rack(content: object) -> list[str]:
    with pytest.raises(InputError) as refused:
        rack_of(content, "r.json")
    return messages(refused.value)


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"edges": [["f0", "g1", 1]]}, "edges.0: there is no NF 'g1'"),
        ({"edges": [["f0", "f1", 1], ["f1", "f2", 1], ["f2", "f1", 1]]}, "edges: there is a cycle: f1, f2"),
        ({"edges": [["f0", "f1", 1], ["f1", "f2", 1], ["f2", "f0", 1]]}, "edges: there is a cycle: f0, f1, f2"),
        ({"edges": [["f0", "f0", 1]]}, "edges: there is a cycle: f0"),
        ({"edges": [["f0", "f2", 1], ["f1", "f2", 1]]}, "edges: a chain has one entry, not 2: f0, f1"),
        (
            {"edges": [["f0", "f1", 0.5], ["f0", "f1", 0.5], ["f1", "f2", 1]]},
            "edges: there are parallel edges from f0 to f1",
        ),
        (
            {"edges": [["f0", "f1", "1/3"], ["f0", "f2", "1/3"]]},
            "edges: the shares that leave f0 add up to 0.666667, not to 1",
        ),
        ({"edges": [["f0", "f1", 0.999], ["f1", "f2", 1]]}, "edges: the shares that leave f0 add up to 0.999, not to"),
        ({"edges": [["f0", "f1", "1/0"]]}, "edges.0: '1/0' is not a number"),
        ({"edges": [["f0", "f1", True]]}, "edges.0: True is not a number"),
        ({"edges": [["f0", "f1", 0]]}, "edges.0: the share 0 is not above 0 and at most 1"),
        ({"edges": [["f0", "f1", "4/3"]]}, "edges.0: the share 4/3 is not above 0 and at most 1"),
        ({"edges": [["f0", 1, 1]]}, "edges.0: an edge is [from, to]"),
        ({"edges": [["f0"]]}, "edges.0: an edge is [from, to]"),
        ({"edges": [["f0", "f1", 1, "dst 10/8", 2]]}, "edges.0: an edge is [from, to]"),
        ({"t_min_mbps": 700, "t_max_mbps": 600}, "t_min_mbps: 700 is above t_max_mbps"),
        ({"nfs": [{"id": "f0", "nf": "X"}] * 2, "edges": []}, "nfs: duplicate name 'f0'"),
    ],
)
def test_a_fault_of_a_chain_is_named(changes: Json, fault: str) -> None:
    """With the file, the chain and the key."""
    found = faults_of_chains(chain("a", "X"), chain("b", "XXX") | changes)
    assert [one for one in found if one.startswith(f"x.json: chains.1.{fault}")], found


@pytest.mark.parametrize(
    ("changes", "place"),
    [
        ({"t_min_mbps": "600"}, "t_min_mbps: '600' is not a number"),
        ({"t_min_mbps": -1}, "t_min_mbps: "),
        ({"t_max_mbps": 0}, "t_max_mbps: "),
        ({"t_max_mbps": 1e13}, "t_max_mbps: 10000000000000.0 is too large"),
        ({"t_max_mbps": True}, "t_max_mbps: True is not a number"),
        ({"d_max_us": 0}, "d_max_us: "),
        ({"packet_size": 0}, "packet_size: "),
        ({"packet_size": 1500.5}, "packet_size: "),
        ({"nfs": []}, "nfs: "),
        ({"nfs": [{"id": "", "nf": "X"}]}, "nfs.0.id: "),
        ({"nfs": [{"id": "f0"}]}, "nfs.0.nf: "),
        ({"edges": "none"}, "edges: "),
        ({"colour": "red"}, "colour: "),
    ],
)
def test_a_wrong_kind_is_named(changes: Json, place: str) -> None:
    """Numbers that are texts, too large or below their least, missing and unknown keys."""
    found = faults_of_chains(chain("a", "X") | changes)
    assert [one for one in found if one.startswith(f"x.json: chains.0.{place}")], found


def test_all_faults_are_named_at_once() -> None:
    """Of all chains, and several of one."""
    found = faults_of_chains(
        chain("a", "XX", t_min_mbps=9, t_max_mbps=8, edges=[["f0", "f7"], ["f0", "f1", "x"]]),
        chain("a", "XXX", edges=[["f1", "f2"], ["f2", "f1"]]),
        chain("c", "XXX", edges=[["f0", "f1", 0.2], ["f0", "f2", 0.2]]),
    )
    assert [one.removeprefix("x.json: ") for one in found] == [
        "chains: duplicate name 'a'",
        "chains.0.t_min_mbps: 9 is above t_max_mbps",
        "chains.0.edges.0: there is no NF 'f7'",
        "chains.0.edges.1: 'x' is not a number",
        "chains.1.edges: there is a cycle: f1, f2",
        "chains.2.edges: the shares that leave f0 add up to 0.4, not to 1",
    ]


PORT: Json = {"name": "a", "mbps": 1000, "socket": 1}
SEVERAL: Json = {
    "name": "s0",
    "clock_mhz": 1700,
    "sockets": [{"cores": 2}, {"cores": 2}],
    "nics": [PORT, {"name": "b", "mbps": 1000}],
}


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"servers": [server("s0"), server("s0")]}, "servers: duplicate name 's0'"),
        (
            {"servers": [server("s0", smartnic={"name": "s0", "cores": 1, "clock_mhz": 1000})]},
            "servers: duplicate name 's0'",
        ),
        ({"servers": [server("switch")]}, "servers: 'switch' is how plans name the switch, and no device"),
        ({"switch": {"table_order": ["X", "X"]}}, "switch.table_order: duplicate name 'X'"),
        ({"switch": {"tcam": {"blocks": 1, "bits": 0, "entries": 1}}}, "switch.tcam.bits: "),
        ({"servers": [server("s0", cores=-1)]}, "servers.0.cores: "),
        ({"servers": [server("s0", clock_mhz=0)]}, "servers.0.clock_mhz: "),
        ({"servers": [server("s0", nic_mbps="40 Gbps")]}, "servers.0.nic_mbps: '40 Gbps' is not a number"),
        ({"nfs": {"X": {"server": {"cycles": 1, "replicable": 1}}}}, "nfs.X.server.replicable: "),
        ({"nfs": {"X": {"gpu": {"cycles": 1}}}}, "nfs.X.gpu: "),
        ({"crossing_us": -6}, "crossing_us: "),
        ({"servers": [server("s0", sockets=[{"cores": 2}])]}, "servers.0.sockets: goes without cores"),
        ({"servers": [server("s0", nics=[{"name": "a", "mbps": 1}])]}, "servers.0.nics: goes without nic_mbps"),
        ({"servers": [SEVERAL | {"sockets": []}]}, "servers.0.sockets: is too short"),
        ({"servers": [SEVERAL | {"sockets": [{"cores": -1}]}]}, "servers.0.sockets.0.cores: -1 is below 0"),
        ({"servers": [SEVERAL | {"nics": [PORT | {"socket": 2}]}]}, "servers.0.nics.0.socket: there is no socket 2"),
        ({"servers": [SEVERAL | {"nics": [PORT, PORT]}]}, "servers.0.nics: duplicate name 'a'"),
        (
            {"servers": [SEVERAL | {"smartnic": {"name": "n", "cores": 1, "clock_mhz": 1}}]},
            "servers.0.nics: a server with a SmartNIC has no other NIC",
        ),
        ({"servers": [SEVERAL | {"cross_socket_cycles": -1}]}, "servers.0.cross_socket_cycles: -1 is below 0"),
        ({"servers": [SEVERAL | {"shared_cores": 1}]}, "servers.0.shared_cores: 1 is not true or false"),
        ({"servers": [SEVERAL, server("s0 socket 1")]}, "servers: duplicate name 's0 socket 1'"),
    ],
)
def test_a_fault_of_a_rack_is_named(changes: Json, fault: str) -> None:
    """Repeated names, `switch` among them, and wrong kinds."""
    found = faults_of_rack(rack({"X": ON_SERVER}) | changes)
    assert [one for one in found if one.startswith(f"r.json: {fault}")], found


def test_null_is_as_absent() -> None:
    """For sockets and NICs as for a SmartNIC; cycles that follow a number need a line or points."""
    nothing: Json = {"sockets": None, "nics": None, "smartnic": None}
    assert rack_of(rack({"X": ON_SERVER}, server("s0", **nothing)), "r") == rack_of(rack({"X": ON_SERVER}), "r")
    cost = {"cycles": 1, "rules": 1, "cycles_by_rules": None}
    assert any("rules goes with cycles_per_rule" in fault for fault in faults_of_rack(rack({"X": {"server": cost}})))


def test_all_faults_of_a_rack_are_named_at_once() -> None:
    """Of its switch and of its servers."""
    content = rack({"X": ON_SWITCH}, server("s0"), server("s0"), switch={"kind": "p4", "table_order": ["Y", "Z"]})
    assert len(faults_of_rack(content)) == 4


@pytest.mark.parametrize("content", [[], 1, {}, {"chains": {}}, {"chains": []}, {"chains": [3]}, None])
def test_what_is_no_file_of_chains_is_refused(content: Any) -> None:
    """Whatever JSON it is."""
    with pytest.raises(InputError):
        chains_of(content, "x.json")


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("{", "is not JSON"),
        ("[" * 100_000, "is nested too deeply"),
        ('{"chains": [{"t_min_mbps": NaN}]}', "NaN is not a finite number"),
    ],
)
def test_what_is_no_json_is_refused(tmp_path: Path, text: str, fault: str) -> None:
    """By both readers, with the file's name."""
    path = tmp_path / "x.json"
    path.write_text(text, encoding="utf-8")
    for read in (read_chains_file, read_rack_file):
        with pytest.raises(InputError, match=fault) as refused:
            read(path)
        assert str(path) in str(refused.value)


def test_shares_and_rates_are_exact() -> None:
    """A third is a third, and a decimal number is what is written."""
    (one,) = chains_of(
        {"chains": [chain("a", "XXX", t_min_mbps=0.1, edges=[["f0", "f1", "1/3"], ["f0", "f2", "2/3"]])]}, "x.json"
    )
    assert [str(edge.share) for edge in one.edges] == ["1/3", "2/3"]
    assert str(one.slo.t_min_mbps) == "1/10"


def test_shares_may_miss_one_by_what_a_decimal_number_misses() -> None:
    """Three times 0.3333333333 is a billionth short at most."""
    edges = [["f0", f"f{at}", 0.3333333333] for at in (1, 2, 3)]
    assert len(chains_of({"chains": [chain("a", "XXXX", edges=edges)]}, "x.json")) == 1
    assert faults_of_chains(chain("a", "XXXX", edges=[[*edge[:2], 0.333] for edge in edges]))


@pytest.mark.parametrize("number", lemur.CHAIN_GRAPHS)
def test_chains_are_read_as_they_were_written(number: int) -> None:
    """Lemur's chains, twice through JSON."""
    chains = chains_of({"chains": [lemur.chain_json(number, 0.5)]}, "x.json")
    assert chains_of(json.loads(json.dumps(write_chains(chains))), "x.json") == chains
