"""`rack.toml`: what it describes, and every fault with its line."""

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placer.rack.files.json_twins import rack_of
from placer.rack.files.rack_file import rack_of_toml, read_rack_file
from placer.rack.files.written_twins import write_rack
from placer.rack.rack import CoreCost, MatchKind, NfCosts, StageMemory, SwitchTable
from placer.rack.strategies.optimal import exact_plan
from profiles import InputError
from tests.placer.rack.compiler.racks import made_chain
from tests.placer.rack.lemur import rack as lemurs_rack

EXAMPLE = Path(__file__).parents[4] / "examples" / "rack.toml"
SOCKETS = '[[server]]\nname = "s"\nclock_mhz = 1000\nsockets = [{cores = 1}, {cores = 1}]\n'
SERVER = '[[server]]\nname = "s"\ncores = 4\nclock_mhz = 1000\nnic_mbps = 40000\n'
SECOND = SERVER.replace('"s"', '"s1"')
NF = "[nf]\nACL = {server = {cycles = 985}}\n"
WHOLE = """crossing_us = 6.5
[switch]
stages = 12
reserved_stages = 2
blocks_per_stage = 24
kind = "openflow"
table_order = ["ACL", "NAT"]
[overheads]
subgroup_cycles = 220
replica_cycles = 180
stages = 2
[[server]]
name = "s"
count = 2
cores = 16
reserved_cores = 2
clock_mhz = 1700
nic_mbps = 40_000
smartnic = {cores = 3, clock_mhz = 1000}
[[server]]
name = "big"
cores = 32
clock_mhz = 2400.5
nic_mbps = 1e5
smartnic = {name = "n9", cores = 1, clock_mhz = 800}
[nf.ACL]
server = {cycles = 985}
switch = {blocks = 3}
smartnic = {cycles = 300, replicable = false}
[nf]
NAT.switch.blocks = 1
"""
TABLES = """[nf.Firewall.switch]
blocks = 2
[[nf.Firewall.switch.tables]]
name = "rules"
match = "ternary"
key = {"ip.src" = 32, "ip.dst" = 32}
entries = 4096
writes = ["meta.drop"]
"""


def faults(text: str) -> str:
    with pytest.raises(InputError) as error:
        rack_of_toml(text, "x")
    return str(error.value)


def test_every_key_is_read() -> None:
    rack = rack_of_toml(WHOLE, "x")
    assert (rack.crossing_us, rack.switch.usable_stages, rack.switch.table_order) == (
        Fraction("6.5"),
        10,
        ("ACL", "NAT"),
    )
    assert [one.name for one in rack.devices] == ["s0", "s0-nic", "s1", "s1-nic", "big", "n9"]
    assert [one.cores for one in rack.devices] == [14, 3, 14, 3, 32, 1]
    assert rack.servers[2].clock_mhz == Fraction("2400.5") and rack.servers[2].nic_mbps == 100_000
    assert (rack.overheads.subgroup_cycles, rack.overheads.stages) == (220, 2)
    core, nic = CoreCost(Fraction(985)), CoreCost(Fraction(300), False)
    assert rack.costs == {"ACL": NfCosts(core, nic, 3), "NAT": NfCosts(switch_blocks=1)}


def test_the_written_twin_is_the_same_rack() -> None:
    rack = rack_of_toml(WHOLE, "x")
    assert rack_of(json.loads(json.dumps(write_rack(rack))), "x") == rack


GROWING = """\
[nf]
Line = {server = {cycles = 1000, rules = 200, cycles_per_rule = 2.5}}
Curve = {server = {cycles = 500, rules = 100, cycles_by_rules = [[1, 50], [100, 500], [1000, 1400]]}}
Copy = {server = {cycles = 400, packet_size = 1500, cycles_per_byte = 0.2}}
Table = {server = {cycles = 300, flows = 1000, cycles_per_flow = 0.01}}
[testbed]
flows = 6000
"""


@pytest.mark.parametrize(
    ("nf", "parameters", "cycles"),
    [
        ("Line", {}, 1000),  # as measured
        ("Line", {"rules": 200}, 1000),
        ("Line", {"rules": 1000}, 3000),
        ("Line", {"rules": 0}, 500),
        ("Curve", {"rules": 1}, 50),
        ("Curve", {"rules": 550}, 950),
        ("Curve", {"rules": 10_000}, 10_400),  # beyond the last point as before it
        ("Copy", {}, 200),  # of packets of 500 bytes
        ("Table", {}, 350),
    ],
)
def test_cycles_follow_numbers(nf: str, parameters: dict[str, float], cycles: int) -> None:
    rack = rack_of_toml(SERVER + GROWING, "x")
    for on in (rack, rack_of(json.loads(json.dumps(write_rack(rack))), "x")):
        cost = on.cost_on(replace(made_chain([(nf, parameters)]), packet_size=500), 0, on.devices[0])
        assert cost is not None and cost.cycles == cycles


@pytest.mark.parametrize(
    ("cost", "fault"),
    [
        ("rules = 200", "rules goes with cycles_per_rule or cycles_by_rules"),
        ("cycles_per_rule = 2", "and either with rules"),
        ("rules = 1, cycles_by_rules = [[2, 1], [1, 2]]", "with ascending rules"),
    ],
)
def test_half_of_how_cycles_follow_rules_is_refused(cost: str, fault: str) -> None:
    assert fault in faults(f"{SERVER}[nf]\nA = {{server = {{cycles = 1, {cost}}}}}\n")


def test_more_rules_give_another_plan() -> None:
    """A packet takes 1,000 cycles, with 10,000 rules 25,500."""
    rack = rack_of_toml(f"{SERVER}{GROWING}", "x")
    few, many = (
        exact_plan([replace(made_chain([("Line", {"rules": rules})]), packet_size=1500)], rack)
        for rules in (200, 10_000)
    )
    assert few.chains[0].rate_mbps > 10 * many.chains[0].rate_mbps
    assert many.chains[0].layout.subgroups[0].rate(1, rack.devices[0], 12_000) == Fraction(1000 * 12_000, 25_500)


def test_a_hundred_equal_servers_are_one_table() -> None:
    rack = rack_of_toml(SERVER.replace("cores", "count = 100\ncores", 1) + NF, "x")
    assert [one.name for one in rack.servers] == [f"s{number}" for number in range(100)]
    assert len({one.cores for one in rack.servers}) == 1


def test_the_example_is_lemurs_rack() -> None:
    """With a SmartNIC's cost for FastEncrypt and an ACL of 1,024 rules more."""
    rack, lemurs = read_rack_file(EXAMPLE), lemurs_rack()
    assert rack.servers == lemurs.servers and rack.crossing_us == lemurs.crossing_us
    assert rack.switch.usable_stages is lemurs.switch.usable_stages is None
    for nf, costs in lemurs.costs.items():
        assert (rack.costs[nf].server, rack.costs[nf].switch_blocks) == (costs.server, costs.switch_blocks)
    assert set(rack.costs) - set(lemurs.costs) == {"ACL_1024"}


def test_tables_and_memory_are_read() -> None:
    """As in the JSON twin."""
    rack = rack_of_toml(f"[switch]\ntcam = {{blocks = 10, bits = 40, entries = 256}}\n{SERVER}{NF}{TABLES}", "x")
    key = {"ip.src": 32, "ip.dst": 32}
    assert rack.costs["Firewall"].switch_tables == (SwitchTable("rules", key, MatchKind.TERNARY, 4096, ("meta.drop",)),)
    assert rack.costs["ACL"].switch_tables is None and rack.switch.tcam == StageMemory(10, 40, 256)


def test_the_json_twin_is_read_too(tmp_path: Path) -> None:
    path = tmp_path / "rack"
    path.write_text(json.dumps(write_rack(rack_of_toml(WHOLE, "x"))), encoding="utf-8")
    assert read_rack_file(path) == rack_of_toml(WHOLE, "x")


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (f"crossing_us = -6\n{SERVER}{NF}", "x:1: crossing_us: -6 is below 0"),
        (f"colour = 3\n{SERVER}{NF}", "x:1: colour: unknown key\nhint: one of crossing_us, switch"),
        (f"[switch]\nstages = 1.5\n{SERVER}{NF}", "x:2: switch.stages: 1.5 is not a whole number"),
        (f'[switch]\nkind = "p4"\n{SERVER}{NF}', "x:2: switch.kind: 'p4' is not one of pisa, openflow"),
        (f'[switch]\ntable_order = ["B"]\n{SERVER}{NF}', "x:2: switch.table_order: 'B' is no NF of the rack"),
        (f"[switch]\nstage = 1\n{SERVER}{NF}", "x:2: switch.stage: unknown key\nhint: did you mean stages?"),
        (SERVER.replace("4", '"many"', 1) + NF, "x:3: server.cores: 'many' is not a whole number"),
        (SERVER.replace("cores", "core") + NF, "x:3: server.core: unknown key\nhint: did you mean cores?"),
        (SERVER.replace("cores", "core") + NF, "x:1: server.cores: is missing"),
        (SERVER.replace("1000", "nan") + NF, "x:4: server.clock_mhz: nan is not a number"),
        (SERVER.replace('"s"', '""') + NF, "x:2: server.name: is empty"),
        (f"{SERVER}smartnic = {{cores = 1}}\n{NF}", "x:6: server.smartnic.clock_mhz: is missing"),
        (f"{SERVER}count = -1\n{NF}", "x:6: server.count: -1 is not a whole number from 0 to 10,000"),
        (f"{SERVER}count = true\n{NF}", "x:6: server.count: True is not a whole number"),
        (f"{SERVER}count = 0\n{NF}", "x:6: server.count: the rack has no server: every count is 0"),
        (f"{SERVER}count = 9000\n{SERVER}count = 9000\n{NF}", "18,000 servers are more than 10,000"),
        (f"{SERVER}{SERVER}{NF}", "x:7: server.name: duplicate name 's'"),
        (SERVER.replace('"s"', '"switch"') + NF, "x:2: server.name: duplicate name 'switch'"),
        (f"{SERVER}count = 2\n{SECOND}{NF}", "x:8: server.name: duplicate name 's1'"),
        (NF, "x: server: no [[server]] table"),
        (f"server = 3\n{NF}", "x:1: server: servers are written as [[server]] tables"),
        (SERVER, "x: nf: no [nf] table"),
        (f"{SERVER}sockets = [{{cores = 1}}]\n{NF}", "x:6: server.sockets: goes without cores"),
        (
            f"{SOCKETS}nics = [{{name = 'a', mbps = 1, socket = 2}}]\n{NF}",
            "x:5: server.nics.socket: there is no socket 2",
        ),
        (
            f"{SOCKETS}nics = [{{name = 'a', mbit = 1}}]\n{NF}",
            "x:5: server.nics.mbit: unknown key\nhint: one of name, mbps, socket",
        ),
        (f"{SOCKETS}{NF}", "x:1: server.nic_mbps: is missing"),
        (f"{SERVER}[nf]\nACL = {{}}\n", "x:7: nf.ACL: ACL runs nowhere"),
        (f"{SERVER}[nf]\nACL = {{server = {{cycle = 1}}}}\n", "x:7: nf.ACL.server.cycle: unknown key"),
        (f"{SERVER}[nf.ACL.server]\ncycles = -1\n", "x:7: nf.ACL.server.cycles: -1 is below 0"),
        (f"{SERVER}{NF}[servers]\n", "x:8: servers: unknown key\nhint: did you mean server?"),
        (f"{SERVER}[nf\n", "x:6: is not TOML"),
        (SERVER + TABLES.replace("ternary", "range"), "x:10: nf.Firewall.switch.tables.match: "),
        (SERVER + TABLES.replace("4096", "0"), "x:12: nf.Firewall.switch.tables.entries: "),
        (SERVER + TABLES.replace("entries = 4096", "size = 1"), "x:12: nf.Firewall.switch.tables.size: unknown key"),
        (SERVER + TABLES.replace('"rules"', '""'), "x:9: nf.Firewall.switch.tables.name: "),
        (SERVER + TABLES + TABLES[TABLES.index("[[") :], "duplicate name 'rules'"),
    ],
)
def test_a_fault_is_named_with_line_and_key(text: str, fault: str) -> None:
    assert fault in faults(text)


def test_all_faults_of_a_file_are_named_at_once() -> None:
    text = f"crossing_us = -6\n{SERVER.replace('1000', '0')}count = 1.5\n[nf.ACL]\nserver = {{}}\n"
    assert [line.split(": ")[0] for line in faults(text).splitlines()] == ["x:1", "x:5", "x:7", "x:9"]


@given(st.lists(st.sampled_from([*WHOLE.splitlines(), "[[nf]]", "[server]", "cores = {}", 'name = "s"', "nf = 1"])))
def test_any_toml_is_read_or_refused(lines: list[str]) -> None:
    """Nothing but InputError is raised."""
    try:
        rack_of_toml("\n".join(lines), "x")
    except InputError as error:
        assert error.faults
