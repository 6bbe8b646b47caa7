"""`placer chain place`, `compile` and `exec` with an operator's own data: sources, copies, and what is refused."""

import json
import multiprocessing
import os
import time
from hashlib import sha256
from pathlib import Path
from random import Random

import pytest

from placer.rack.compiler.directory import BUILT_FOLDER
from placer.rack.compiler.library.nf_kind import NF_KINDS
from placer.rack.compiler.update import read_update
from profiles.faults import InputError
from tests.nfs.captures import read_capture, write_capture
from tests.placer.commands.conftest import Placer, refuse
from tests.placer.rack.compiler.library.frames import UDP, ipv4_frame

RACK = Path(__file__).parents[3] / "examples" / "rack.toml"
CHAINS = """slo c: 100 Mbps to 100 Gbps
chain c: Match(filters = "edge.match") -> [1/2 "@2" ACL(rules = "own/edge.acl") | 1/2 -]
    -> Monitor -> IPv4Fwd(routes = "edge.routes")
"""
FILES = {
    "edge.match": "tcp\nudp port 53\n",
    "own/edge.acl": "deny udp any 192.0.2.0/24 53\n",
    "edge.routes": "0.0.0.0/0 3\n10.0.0.0/8 1\n",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The chains and their files, in one folder."""
    (tmp_path / "own").mkdir()
    for name, text in {**FILES, "c.chains": CHAINS}.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


@pytest.fixture
def rack(placer: Placer, folder: Path) -> Path:
    assert place(placer, folder)[0] == 0
    assert placer("chain", "compile", folder / "plan.json", "--out", folder / "rack").status == 0
    return folder / "rack"


def place(placer: Placer, folder: Path) -> tuple[int, str, str]:
    return placer("chain", "place", folder / "c.chains", "--rack", RACK, "--plan", folder / "plan.json")


def refused_places(folder: Path, chain: str) -> list[str]:
    """The faults that `place` names."""
    (folder / "c.chains").write_text(f"slo c: 1 Mbps to 1 Gbps\nchain c: {chain}\n", encoding="utf-8")
    lines = refuse("chain", "place", folder / "c.chains", "--rack", RACK).splitlines()
    return [line.removeprefix(f"{folder}/") for line in lines if not line.startswith("hint: ")]


def test_a_plan_names_its_sources_and_their_sizes(placer: Placer, folder: Path) -> None:
    place(placer, folder)
    document = json.loads((folder / "plan.json").read_text(encoding="utf-8"))
    assert document["sources"] == {
        name: {"path": name, "sha256": sha256(text.encode()).hexdigest()} for name, text in sorted(FILES.items())
    }
    nfs = {nf["nf"]: nf for nf in document["chains"]["chains"][0]["nfs"]}
    assert nfs["ACL"]["parameters"] == {"rules": "own/edge.acl"} and nfs["ACL"]["sizes"] == {"rules": 1}
    assert nfs["IPv4Fwd"]["sizes"] == {"routes": 2} and nfs["Match"]["sizes"] == {"filters": 2}


def test_every_fault_of_chains_and_files_is_named_with_line_and_column(folder: Path) -> None:
    (folder / "own" / "edge.acl").write_text(
        "permit ip any any\npermit tcp any 10.0.0.1/8 80\nallow\n", encoding="utf-8"
    )
    found = refused_places(
        folder,
        'Match(filters = "edge.match") -> [1/2 "@3000000000" ACL(rules = "own/edge.acl") | 1/2 -]\n'
        '    -> UrlFilter(urls = "none.urls") -> LB(backend = "b") -> Tunnel(vlan = "7")\n'
        '    -> ACL(rules = [{"dst_ip": "10.0.0.0/8", "drop": "no"}]) -> NAT(pool = "1.2.3.0/24", addresses = 3)',
    )
    assert found == [
        "own/edge.acl:2: column 16: 10.0.0.1/8: bits beyond the prefix are set, other than in 10.0.0.0/8",
        "own/edge.acl:3: column 1: allow: neither permit nor deny",
        f"c.chains:3: column 25: {folder}/none.urls: No such file or directory",
        "c.chains:3: column 54: LB has no such parameter",
        "c.chains:3: column 76: vlan of Tunnel is a number",
        "c.chains:4: column 54: no: drop is true or false",
        "c.chains:4: column 102: addresses: is given beside a pool",
        'c.chains:2: column 48: the branch "@3000000000" names expression 3000000000, of 2',
    ]


def test_numbers_and_expressions_are_checked_where_they_stand(folder: Path) -> None:
    """Also of NFs without own data: else `place` would accept what `compile` refuses."""
    chain = "ACL(rulez = 7) -> [{'vlan_tag': 4096, Tunnel(vlan = 5000)}] -> Match\n"
    aggregates = "aggregate c: udp\naggregate c:   src nett 10.0.0.0/8"
    assert refused_places(folder, f'{chain}    -> [1/2 "port" - | 1/2 -] -> IPv4Fwd\n{aggregates}') == [
        "c.chains:2: column 22: rulez: ACL has no such parameter",
        "c.chains:2: column 62: vlan: 5000 is not from 0 to 4094",
        "c.chains:2: column 29: \"vlan 4096\": '4096' is not a VLAN (at character 6)",
        'c.chains:3: column 13: "port": a port is missing at the end (at character 5)',
        "c.chains:5: column 16: \"src nett 10.0.0.0/8\": 'nett' does not belong here (at character 5)",
    ]


def test_branches_and_aggregates_that_no_packet_meets_are_refused(folder: Path) -> None:
    """A branch without a match behind one that takes all packets, and an aggregate of which no packet is."""
    chain = 'Match -> [1/2 "any" Tunnel(vlan = 5) | 1/2 -] -> Detunnel\naggregate c: udp\naggregate c: tcp and udp'
    chain += "\naggregate c: port 80 and icmp\naggregate c: not ip and port 80\naggregate c: port 80 and not tcp"
    assert refused_places(folder, chain) == [
        "c.chains:2: column 10: no packet is left for a branch without a match: the matches take them all",
        'c.chains:4: column 14: no packet fits the aggregate "tcp and udp"',
        'c.chains:5: column 14: no packet fits the aggregate "port 80 and icmp"',
        'c.chains:6: column 14: no packet fits the aggregate "not ip and port 80"',
    ]


@pytest.mark.parametrize("kind", ["pisa", "openflow"])
def test_thousands_of_addresses_are_found_too_many_in_a_sentence(kind: str, placer: Placer, folder: Path) -> None:
    """Not after minutes: a host is two entries, as source and as destination, and nothing needs their pairs."""
    hosts = " or ".join(f"host 10.0.{at // 250}.{at % 250}" for at in range(2_100))
    text = f"slo c: 1 Mbps to 1 Gbps\nchain c: ACL(rules = 4)\naggregate c: {hosts}\n"
    (folder / "c.chains").write_text(text, encoding="utf-8")
    order = 'kind = "openflow"\ntable_order = ["ACL"]\n' if kind == "openflow" else ""
    server = '[[server]]\nname = "s0"\ncores = 4\nclock_mhz = 1700\nnic_mbps = 40_000\n'
    rack = f"crossing_us = 6\n[switch]\nblocks_per_stage = 4\n{order}{server}[nf]\nACL = {{switch = {{blocks = 1}}}}\n"
    (folder / "switch.toml").write_text(rack, encoding="utf-8")
    begin = time.process_time()
    ended = placer("chain", "place", folder / "c.chains", "--rack", folder / "switch.toml")
    said = ended.stdout + ended.stderr
    assert ended.status == 0 and "switch: traffic expressions need more than 4096 table entries" in said
    assert time.process_time() - begin < 20


def test_a_word_of_a_million_letters_is_not_printed(folder: Path) -> None:
    (folder / "own/edge.acl").write_text("x" * 1_000_000, encoding="utf-8")
    ended = [*refused_places(folder, 'ACL(rules = "own/edge.acl")')]
    assert len(ended) == 1 and ended[0].startswith("own/edge.acl:1: column 1: xxx") and len(ended[0]) < 1100


def test_compile_says_which_chain_gets_no_packets(placer: Placer, folder: Path) -> None:
    """The first chain whose aggregate fits takes a packet."""
    chains = "slo c, d: 1 Mbps to 1 Gbps\nchain c: Tunnel(vlan = 5)\nchain d: Detunnel\naggregate c: ip\n"
    for aggregate, is_met in (("tcp", False), ("not ip", True)):
        (folder / "c.chains").write_text(f"{chains}aggregate d: {aggregate}\n", encoding="utf-8")
        assert place(placer, folder)[0] == 0
        stderr = placer("chain", "compile", folder / "plan.json", "--out", folder / "rack").stderr
        assert ("note: d: no packet enters: chains before it take all of its aggregates\n" in stderr) != is_met


@pytest.mark.parametrize(
    ("nf", "note"),
    [
        ('ACL(rules = "empty")', "there are no rules: every packet passes"),
        ('IPv4Fwd(routes = "empty")', "there are no routes: every packet is dropped"),
        ('UrlFilter(urls = "empty")', "there are no urls: every request passes"),
    ],
)
def test_what_an_empty_file_means_is_said(placer: Placer, folder: Path, nf: str, note: str) -> None:
    (folder / "empty").write_text("# none yet\n", encoding="utf-8")
    (folder / "c.chains").write_text(f"slo c: 1 Mbps to 1 Gbps\nchain c: {nf}\n", encoding="utf-8")
    assert place(placer, folder)[0] == 0
    assert note in placer("chain", "compile", folder / "plan.json", "--out", folder / "rack").stderr


def test_a_key_that_is_no_file_says_how_keys_are_given(folder: Path) -> None:
    (folder / "c.chains").write_text('slo c: 1 Mbps to 1 Gbps\nchain c: Encrypt(key = "0011")\n', encoding="utf-8")
    stderr = refuse("chain", "place", folder / "c.chains", "--rack", RACK)
    assert "c.chains:2: column 24: " in stderr and "hint: 32 digits, or the name of a file with them" in stderr


def test_faults_of_the_twin_name_their_parameter_once(folder: Path) -> None:
    nfs = [{"id": "f1", "nf": "ACL", "parameters": {"rulez": 3, "seed": -1}}]
    twin = folder / "t.json"
    twin.write_text(json.dumps({"chains": [{"name": "c0", "t_min_mbps": 1, "t_max_mbps": 2, "nfs": nfs}]}), "utf-8")
    stderr = refuse("chain", "place", twin, "--rack", RACK)
    assert f"{twin}: c0.f1.rulez: ACL has no such parameter\n" in stderr
    assert f"{twin}: c0.f1.seed: -1 is not from 0 to 4294967295\n" in stderr


def test_a_fault_of_no_parameter_names_the_nf(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a kind of NF of another package may make one."""

    def refuse_all(*_: object) -> None:
        raise InputError.of("", "its numbers do not fit together")

    monkeypatch.setattr(type(NF_KINDS["ACL"]), "completed", refuse_all)
    assert refused_places(folder, "ACL(seed = 7)") == ["c.chains:2: column 10: its numbers do not fit together"]


@pytest.mark.parametrize(
    ("branches", "expected"),
    [
        (
            '1/2 "udp and (" [1/2 "tcp" ACL | 1/2 Tunnel] | 1/2 -',
            ['24: "udp and (": a test is missing at the end (at character 10)'],
        ),
        (
            '1/2 "tcp)" [1/2 "udp" ACL | 1/2 Tunnel] | 1/2 -',
            ["24: \"tcp)\": ')' does not belong here (at character 4)"],
        ),
        (
            '1/2 "tcp) or (udp" [1/2 "@9" ACL | 1/2 Tunnel] | 1/2 -',
            [
                "24: \"tcp) or (udp\": ')' does not belong here (at character 4)",
                '44: the branch "@9" names expression 9, of 0',
            ],
        ),
        (
            '1/2 [1/2 "vlan" ACL | 1/2 LB] | 1/8 "udb" NAT | 1/8 "tcp" - | 1/4 "tcp" NAT',
            [
                "56: \"udb\": 'udb' is no test (at character 1)",
                '86: no packet takes the branch "tcp": it fits none, or those before it take them all',
            ],
        ),
    ],
)
def test_branches_inside_of_branches_are_checked_where_they_stand(
    folder: Path, branches: str, expected: list[str]
) -> None:
    """As they are written, each once: no other is blamed."""
    found = refused_places(folder, f"Match -> [{branches}] -> IPv4Fwd")
    assert found == [f"c.chains:2: column {fault}" for fault in expected]


def test_data_that_cannot_be_read_hides_no_other_fault(folder: Path) -> None:
    """Of numbers beside it, and of matches that name none of its expressions."""
    branches = '[1/4 "port" ACL(rules = [{"ip_proto": "99999", "drop": true}], seed = 2.5) | 1/4 "@1" LB | 1/2 -]'
    assert refused_places(folder, f'Match(filters = "none.match")\n  -> {branches} -> IPv4Fwd') == [
        f"c.chains:2: column 26: {folder}/none.match: No such file or directory",
        "c.chains:3: column 44: 99999: not a protocol: ip, icmp, tcp, udp, or 1 to 255",
        "c.chains:3: column 76: seed: 2.5 is not a whole number",
        'c.chains:3: column 11: "port": a port is missing at the end (at character 5)',
    ]


def test_an_nf_that_the_library_does_not_know_hides_no_fault_of_others(placer: Placer, folder: Path) -> None:
    """Parameters of each known NF are checked, and expressions of each chain that has no other."""
    rack = RACK.read_text(encoding="utf-8") + "\n[nf.Mystery]\nserver = {cycles = 100}\n"
    (folder / "rack.toml").write_text(rack, encoding="utf-8")
    other = 'slo c, d: 1 Mbps to 1 Gbps\naggregate d: ours\nchain d: Mystery(size = 7) -> [1/2 "ours" ACL | 1/2 -]'
    faulty = 'ACL(rulez = 7) -> Match -> [1/2 "tcp porx" ACL | 1/2 -] -> IPv4Fwd\naggregate c: udb'
    (folder / "c.chains").write_text(f"{other} -> LB(table = 12)\nchain c: {faulty}\n", encoding="utf-8")
    chains = ("chain", "place", folder / "c.chains", "--rack", folder / "rack.toml")
    lines = refuse(*chains).splitlines()
    assert [line.removeprefix(f"{folder}/") for line in lines if not line.startswith("hint: ")] == [
        "c.chains:3: column 70: table: 12 is not a power of two",
        "c.chains:4: column 22: rulez: ACL has no such parameter",
        "c.chains:4: column 42: \"tcp porx\": 'porx' does not belong here (at character 5)",
        "c.chains:5: column 14: \"udb\": 'udb' is no test (at character 1)",
    ]
    (folder / "c.chains").write_text(f"{other} -> LB\nchain c: ACL -> IPv4Fwd\n", encoding="utf-8")
    assert placer(*chains).status == 0


@pytest.mark.parametrize(
    ("branches", "unmet"),
    [
        ('1/2 "udp port 53" ACL | 1/4 "port 53, udp" LB | 1/4 NAT', ["port 53, udp"]),
        ('1/4 "@2" ACL | 1/4 "tcp or vlan" - | 1/4 "@1" NAT | 1/4 "@02" -', ["@1", "@02"]),
        (
            '1/3 "portrange 0-1023" ACL | 1/3 "src net 10.1.0.0/16, dst port 80" LB | 1/3 -',
            ["src net 10.1.0.0/16, dst port 80"],
        ),
        ('1/3 "src net 10.1.0.0/16" ACL | 1/3 "src net 10.0.0.0/8" LB | 1/3 -', []),
        ('1/2 [1/2 "vlan" ACL | 1/2 LB] | 1/2 "vlan" NAT', ["vlan, not vlan"]),
    ],
)
def test_a_branch_that_no_packet_takes_is_refused(
    placer: Placer, folder: Path, branches: str, unmet: list[str]
) -> None:
    chain = f'Match(filters = "edge.match") -> [{branches}] -> Monitor'
    (folder / "c.chains").write_text(f"slo c: 1 Mbps to 1 Gbps\nchain c: {chain}\n", encoding="utf-8")
    if unmet:
        why = "it fits none, or those before it take them all"
        columns = [f"chain c: {chain}".index(f'"{match.removesuffix(", not vlan")}"') + 1 for match in unmet]
        assert refused_places(folder, chain) == [
            f'c.chains:2: column {column}: no packet takes the branch "{match}": {why}'
            for column, match in zip(columns, unmet, strict=True)
        ]
    else:
        assert place(placer, folder)[0] == 0


@pytest.mark.parametrize(
    ("chain", "fault"),
    [
        ("ACL(rules = [{'dst_ip': '10.0.0.0/8', 'drop': no}])", "c.chains:2: column 56: a value is missing here"),
        (
            "ACL(rules = [{'dst_ip': '10.0.0.0/8' 'drop': True}])",
            "c.chains:2: column 47: ''drop'' does not belong here",
        ),
        ("ACL(rules = [{'drop': True, 'drop': True}])", "c.chains:2: column 38: the key 'drop' is given twice"),
        ("ACL(rules = [{'drop' True}])", "c.chains:2: column 24: the key 'drop' has no value"),
        ("ACL(rules = [{'drop': True)", "c.chains:2: column 36: ')' does not belong here"),
        ('ACL(rules = "")', "c.chains:2: column 22: the text is empty"),
        ("Limiter(mbps = 'x')", "c.chains:2: column 25: mbps of Limiter is a number"),
    ],
)
def test_text_that_is_no_parameter_is_named_by_its_column(folder: Path, chain: str, fault: str) -> None:
    assert refused_places(folder, chain) == [fault]


def test_the_spellings_of_json_and_python_and_the_twin_are_the_same(placer: Placer, folder: Path) -> None:
    """Programs of all are equal, byte for byte."""
    rules = '[{"dst_ip": "10.0.0.0/8", "drop": false}, {"dst_port": 53, "drop": true}]'
    spellings = (rules, rules.replace('"', "'").replace("false", "False").replace("true", "True"))
    texts = [f"slo c: 1 Mbps to 1 Gbps\nchain c: ACL(rules={spelling})\n" for spelling in spellings]
    nfs = [{"id": "ACL", "nf": "ACL", "parameters": {"rules": json.loads(rules)}}]
    twin = {"name": "c", "t_min_mbps": 1, "t_max_mbps": 1000, "nfs": nfs}
    texts.append(json.dumps({"chains": [twin]}))
    entries = set()
    for text in texts:
        (folder / "c.chains").write_text(text, encoding="utf-8")
        place(placer, folder)
        placer("chain", "compile", folder / "plan.json", "--out", folder / "rack")
        entries.add((folder / "rack" / "switch" / "switch.entries").read_text(encoding="utf-8"))
    assert len(entries) == 1 and "" not in entries


def test_compile_copies_sources_and_refuses_those_that_changed(placer: Placer, folder: Path, rack: Path) -> None:
    """Sources that changed since the chains were placed; the old programs stay."""
    assert {file.name: file.read_text(encoding="utf-8") for file in (rack / "sources").iterdir()} == {
        Path(name).name: text for name, text in FILES.items()
    }
    (folder / "edge.routes").write_text("0.0.0.0/0 4\n", encoding="utf-8")
    (folder / "edge.match").unlink()
    stderr = refuse("chain", "compile", folder / "plan.json", "--out", rack)
    assert f"c/IPv4Fwd: routes: {folder}/edge.routes: has changed since the chains were placed\n" in stderr
    assert f"c/Match: filters: {folder}/edge.match: No such file or directory\n" in stderr
    assert "names expression" not in stderr
    assert (rack / "sources" / "edge.routes").read_text(encoding="utf-8") == FILES["edge.routes"]


def test_a_directory_compiles_again_from_its_own_plan(placer: Placer, folder: Path, rack: Path) -> None:
    """With nothing but its copies; it may be moved."""
    rack.rename(folder / "moved")
    for name in FILES:
        (folder / name).unlink()
    assert placer("chain", "compile", folder / "moved" / "plan.json", "--out", folder / "again").status == 0
    first, second = ((folder / name / "switch" / "switch.entries").read_bytes() for name in ("moved", "again"))
    assert first == second


def test_a_directory_that_compiles_again_still_knows_the_files(placer: Placer, folder: Path, rack: Path) -> None:
    """Not only its copies, which never change."""
    assert placer("chain", "compile", rack / "plan.json", "--out", rack).status == 0
    (folder / "edge.routes").write_text("0.0.0.0/0 4\n", encoding="utf-8")
    assert "edge.routes" in placer("chain", "update", rack).stdout


def test_nobody_else_reads_keys_of_chains(placer: Placer, folder: Path) -> None:
    """In a plan, a certificate, and a compiled rack, also after an update."""
    key = f'Encrypt(key = "{"0f" * 16}") -> IPv4Fwd(routes = "edge.routes")'
    (folder / "c.chains").write_text(f"slo c: 1 Mbps to 1 Gbps\nchain c: {key}\n", encoding="utf-8")
    plan, proof, rack = folder / "plan.json", folder / "proof.json", folder / "rack"
    chains = ("chain", "place", folder / "c.chains", "--rack", RACK)
    assert placer(*chains, "--plan", plan, "--certificate", proof).status == 0
    assert placer("chain", "compile", plan, "--out", rack).status == 0
    (folder / "edge.routes").write_text("0.0.0.0/0 4\n", encoding="utf-8")
    assert placer("chain", "update", rack).status == 0
    readable = [file.name for file in (plan, proof, *rack.rglob("*")) if file.is_file() and file.stat().st_mode & 0o77]
    holding = [name for name in readable if b"0f0f0f" in next(folder.rglob(name)).read_bytes()]
    assert holding == [] and "plan.json" not in readable and "proof.json" not in readable


def test_a_pipe_is_no_source(folder: Path) -> None:
    """Nothing waits for it."""
    os.mkfifo(folder / "pipe.acl")
    found = refused_places(folder, 'ACL(rules = "pipe.acl")')
    assert found == [f"c.chains:2: column 22: {folder}/pipe.acl: is no regular file"]


def test_exec_refuses_a_changed_copy(folder: Path, rack: Path) -> None:
    """Before it starts anything."""
    (rack / "sources" / "edge.acl").write_text("permit ip any any\n", encoding="utf-8")
    (rack / "sources" / "edge.match").unlink()
    capture = write_capture(folder / "in.pcap", [])
    stderr = refuse("chain", "exec", rack, "--in", capture, "--out", folder / "out.pcap")
    assert f"{rack}/sources/edge.acl: is not the copy that programs were made of\n" in stderr
    assert f"{rack}/sources/edge.match: No such file or directory\n" in stderr


def test_packets_meet_the_rules_of_the_files(placer: Placer, folder: Path, rack: Path) -> None:
    """DNS to 192.0.2.0/24 is denied; all else leaves by its route."""
    if not (BUILT_FOLDER / "nf-switch").exists():
        pytest.skip("the programs are not built: `make nfs` builds them")
    frames = [
        ipv4_frame(0x0A000001, 0xC0000201, UDP, (4000, 53)),
        ipv4_frame(0x0A000001, 0xC0000201, UDP, (4000, 54)),
        ipv4_frame(0x0A000001, 0x0A090909, UDP, (4000, 53)),
    ]
    capture = write_capture(folder / "in.pcap", frames)
    status, stdout, _ = placer("chain", "exec", rack, "--in", capture, "--out", folder / "out.pcap", "--format", "json")
    assert status == 0
    assert [frame[:6].hex() for frame in read_capture(folder / "out.pcap")] == ["020000010003", "020000010001"]
    assert json.loads(stdout)["nfs"]["c/ACL"] == {"entered": 2, "sent": 1, "dropped": 1}


def test_a_certificate_holds_for_chains_with_own_data(placer: Placer, folder: Path) -> None:
    """`placer verify` reads the chains with their files."""
    files = ("--rack", RACK, "--certificate", folder / "proof.json")
    assert placer("chain", "place", folder / "c.chains", *files).status == 0
    assert placer("verify", folder / "proof.json", "--chains", folder / "c.chains", "--rack", RACK).status == 0


def test_update_writes_new_tables(placer: Placer, folder: Path, rack: Path) -> None:
    """It says what differs; the directory is as if the chains were placed and compiled again."""
    (folder / "edge.routes").write_text("0.0.0.0/0 4\n", encoding="utf-8")
    dry = placer("chain", "update", rack, "--dry-run")
    assert (dry.status, "Nothing was written.\n" in dry.stdout) == (0, True)
    status, stdout, _ = placer("chain", "update", rack)
    assert status == 0
    assert "edge.routes  c/IPv4Fwd routes        1       2\n" in stdout
    assert stdout.endswith(
        "  switch/switch.entries\n  switch/switch.names\n  switch/switch.p4\n"
        f"Written to {rack}.\nNo rack of yours runs from {rack}.\n"
    )
    place(placer, folder)
    placer("chain", "compile", folder / "plan.json", "--out", folder / "again")
    for file in (folder / "again").rglob("*"):
        if file.is_file() and file.name != "plan.json":
            assert (rack / file.relative_to(folder / "again")).read_bytes() == file.read_bytes(), file
    assert placer("chain", "update", rack).stdout == "No source has changed.\n"


def test_a_directory_that_cannot_be_written_gives_a_rack_no_new_tables(
    folder: Path, rack: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rack that runs has what its directory has."""

    def fail(*_: object) -> None:
        raise OSError("the disk is full")

    (folder / "edge.routes").write_text("0.0.0.0/0 4\n", encoding="utf-8")
    asked: list[object] = []
    monkeypatch.setattr("placer.rack.compiler.update.ask_running", lambda *given: asked.append(given))
    monkeypatch.setattr("placer.rack.compiler.directory.copy_sources", fail)
    with pytest.raises(OSError, match="the disk is full"):
        read_update(rack).write()
    assert not asked


@pytest.mark.parametrize("kills", [4, pytest.param(50, marks=pytest.mark.slow)])
def test_a_killed_update_leaves_the_old_rack_or_the_new_one(
    placer: Placer, folder: Path, rack: Path, kills: int
) -> None:
    """Killed at random moments while it writes; what it wrote aside is gone after the next update."""

    def content() -> dict[str, bytes]:
        return {f"{file.relative_to(rack)}": file.read_bytes() for file in rack.rglob("*") if file.is_file()}

    def update() -> None:
        read_update(rack).write()

    racks, random, processes = [content()], Random(kills), multiprocessing.get_context("fork")
    for routes in ("0.0.0.0/0 4\n", FILES["edge.routes"]):
        (folder / "edge.routes").write_text(routes, encoding="utf-8")
        begin = time.monotonic()
        update()
        racks.append(content())
    took = time.monotonic() - begin
    killed = 0
    for at in range(kills):
        now = racks.index(content())
        (folder / "edge.routes").write_text((FILES["edge.routes"], "0.0.0.0/0 4\n")[now % 2 == 0], encoding="utf-8")
        process = processes.Process(target=update)
        process.start()
        process.join(took * random.random())
        killed += process.is_alive()
        process.kill()
        process.join()
        assert content() in racks, at
    assert killed > kills // 4
    update()
    assert sorted(path.name for path in folder.iterdir()) == [
        "c.chains",
        *sorted(FILES)[0:2],
        "own",
        "plan.json",
        "rack",
    ]


def test_a_comment_changes_a_copy_and_no_table(placer: Placer, folder: Path, rack: Path) -> None:
    (folder / "edge.routes").write_text("# ours\n" + FILES["edge.routes"], encoding="utf-8")
    assert "none: the entries are the same\nWritten to " in placer("chain", "update", rack).stdout
    assert (rack / "sources" / "edge.routes").read_text(encoding="utf-8").startswith("# ours\n")


def test_an_update_that_does_not_fit_is_refused_whole(folder: Path, rack: Path) -> None:
    """The tables stay as they are."""
    before = {file: file.read_bytes() for file in rack.rglob("*") if file.is_file()}
    (folder / "edge.routes").write_text("127.0.0.0/8 1\n", encoding="utf-8")
    (folder / "edge.match").write_text("tcp\n", encoding="utf-8")
    for more in ((), ("--dry-run",)):
        stderr = refuse("chain", "update", rack, *more)
        assert f"{rack}/../edge.routes:1: column 1: 127.0.0.0/8: routers forward nothing there" in stderr
        assert 'c.Match.branch 1: the branch "@2" names expression 2, of 1\n' in stderr
    assert {file: file.read_bytes() for file in rack.rglob("*") if file.is_file()} == before


def test_an_update_that_breaks_an_slo_is_refused(folder: Path, rack: Path) -> None:
    """As if new data made an NF slower: the cores of the plan carry less than t_min."""
    document = json.loads((rack / "plan.json").read_text(encoding="utf-8"))
    document["rack"]["nfs"]["Monitor"]["server"]["cycles"] = 10**9
    (rack / "plan.json").write_text(json.dumps(document), encoding="utf-8")
    (folder / "edge.routes").write_text("0.0.0.0/0 4\n", encoding="utf-8")
    assert "c: carries " in (stderr := refuse("chain", "update", rack))
    assert "Mbps with its new data, and t_min is 100.0\nhint: run `placer chain place`" in stderr


def test_there_is_nothing_to_update_without_files(placer: Placer, folder: Path) -> None:
    (folder / "c.chains").write_text("slo c: 1 Mbps to 1 Gbps\nchain c: ACL(rules=4)\n", encoding="utf-8")
    place(placer, folder)
    placer("chain", "compile", folder / "plan.json", "--out", folder / "rack")
    assert "its chains name no files of your own\n" in refuse("chain", "update", folder / "rack")


def test_the_size_of_a_file_decides_cycles_and_devices(placer: Placer, folder: Path) -> None:
    """More rules cost more cycles, where the rack says how; too many for a SmartNIC stay off it."""
    (folder / "rack.toml").write_text(
        """[[server]]
name = "s0"
cores = 1
clock_mhz = 1000
nic_mbps = 100000
smartnic = {cores = 1, clock_mhz = 1000}
[nf.ACL]
server = {cycles = 1000, rules = 10, cycles_per_rule = 10}
smartnic = {cycles = 100}
""",
        encoding="utf-8",
    )
    found = []
    for rules in (10, 200, 800):
        (folder / "c.chains").write_text('slo c: 1 Mbps to 100 Gbps\nchain c: ACL(rules = "r")\n', encoding="utf-8")
        lines = [f"permit tcp any 10.{at // 250}.{at % 250}.0/24 80\n" for at in range(rules)]
        (folder / "r").write_text("".join(lines), encoding="utf-8")
        files = ("--rack", folder / "rack.toml", "--plan", folder / "plan.json", "--format", "json")
        answer = json.loads(placer("chain", "place", folder / "c.chains", *files).stdout)
        found.append((answer["chains"][0]["placement"]["ACL"], answer["chains"][0]["rate_mbps"]))
        assert placer("chain", "compile", folder / "plan.json", "--out", folder / "rack").status == 0
    assert [on for on, _ in found] == ["s0-nic", "s0-nic", "s0"]
    assert found[2][1] == pytest.approx(12000 / 8.9)
