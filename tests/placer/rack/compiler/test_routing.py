"""Service paths and labels: each NF has one, and a label names the NF that is next. Counters of rules and branches list
what packets met."""

from collections import Counter
from pathlib import Path

import pytest

from placer.rack.compiler.branch_counts import CountedWay, count_ways
from placer.rack.compiler.compile import compile_rack
from placer.rack.compiler.graph import graph_of, identifier
from placer.rack.compiler.library.ipv4_fwd import generate_routes
from placer.rack.compiler.own_data import load_own_data
from placer.rack.compiler.routing import Label, Routing, route_graph, switch_ports
from placer.rack.files.chains_file import chains_of_text
from profiles import InputError
from tests.placer.rack.compiler.library.frames import ipv4_frame
from tests.placer.rack.compiler.openflow.test_openflow import plan_of
from tests.placer.rack.compiler.racks import made_chain, made_plan, random_plan
from tests.placer.rack.compiler.test_executed_racks import require_programs, run_rack
from tests.reference.chain_text import meaning_by_files


def _routing(nfs: list[str], places: str, edges: list[tuple[int, int, str, str]] | None = None) -> Routing:
    return route_graph(graph_of(made_plan((made_chain(nfs, edges), places)), "plan"))


def test_a_line_is_one_path_with_falling_indices() -> None:
    """The second and the third NF are on a server: only the second is entered from another device."""
    routing = _routing(["ACL", "Monitor", "ACL", "IPv4Fwd"], "switch s0 s0 switch")
    assert routing.paths == ((0, 1, 2, 3),)
    assert [routing.labels[nf] for nf in range(4)] == [Label(1, 255), Label(1, 254), Label(1, 253), Label(1, 252)]
    assert routing.entered == {1, 3}


def test_a_chain_on_the_switch_has_no_labels() -> None:
    """No packet needs one: nothing is entered from another device (Lemur, section 4.2)."""
    routing = _routing(["ACL", "LB"], "switch switch")
    assert (routing.entered, routing.exits) == (frozenset(), {})


def test_each_path_covers_an_nf_of_its_own() -> None:
    """A branch of two that merges again is two paths, and the merged NF has the label of the first."""
    edges = [(0, 1, "1/2", ""), (0, 2, "1/2", ""), (1, 3, "1", ""), (2, 3, "1", "")]
    routing = _routing(["Match", "ACL", "LB", "IPv4Fwd"], "switch s0 s1 s0", edges)
    assert routing.paths == ((0, 1, 3), (0, 2, 3))
    assert routing.labels[3] == Label(1, 253)
    assert routing.labels[2] == Label(2, 254)


def test_a_packet_that_leaves_behind_a_server_has_a_label_of_its_own() -> None:
    """The exit's label has the index behind the last NF, so that the switch knows what to do."""
    assert _routing(["ACL", "Monitor"], "switch s0").exits == {1: Label(1, 253)}


@pytest.mark.parametrize("seed", range(40))
def test_no_two_nfs_share_a_label(seed: int) -> None:
    """Labels of NFs and of exits are all different, on any rack; indices fall along each path."""
    routing = route_graph(graph_of(random_plan(seed), "plan"))
    labels = [*routing.labels.values(), *routing.exits.values()]
    assert len(set(labels)) == len(labels)
    assert set(routing.labels) == set(range(len(routing.graph.nfs)))
    for path in routing.paths:
        own = [routing.labels[nf].index for nf in path if routing.labels[nf].path == routing.paths.index(path) + 1]
        assert own == sorted(own, reverse=True)


def test_a_chain_of_more_nfs_than_indices_is_refused() -> None:
    """An index has eight bits, and 0 is no place in a path."""
    with pytest.raises(InputError, match="a path of 255 NFs is too long: 254 are most"):
        _routing(["ACL"] * 255, " ".join(["switch"] * 255))


def test_only_servers_with_nfs_have_ports() -> None:
    """Also those whose SmartNIC alone has one."""
    assert list(switch_ports(_routing(["ACL", "ACL"], "switch switch"))) == []
    assert list(switch_ports(_routing(["ACL", "ACL"], "n0 switch"))) == ["s0"]
    assert list(switch_ports(_routing(["ACL", "ACL"], "s1 switch"))) == ["s1"]


def test_different_names_have_different_identifiers() -> None:
    """Also where a name looks like the identifier of another one."""
    names = ["a/b", "a__b", "a_b", "a-b", "a_x2d_b", "a.b", "ä/b"]
    assert len({identifier(name) for name in names}) == len(names)
    assert identifier("chain1/ACL") == "chain1__ACL"
    long = [identifier(f"{'c' * 200}/{at}") for at in range(20)]
    assert len(set(long)) == len(long)
    assert max(map(len, long)) == 44


def test_wrong_expressions_are_all_named() -> None:
    """Chain, edge, character and a hint, for each of them."""
    chain = made_chain(["Match", "ACL"], [(0, 1, "1", "udp prt 53")], aggregates=["10.0.0.0/8", "port"])
    with pytest.raises(InputError) as refused:
        graph_of(made_plan((chain, "switch switch")), "plan.json")
    text = str(refused.value)
    assert 'chain c: aggregate: "port": a port is missing at the end (at character 5)' in text
    assert "chain c: f0 -> f1: \"udp prt 53\": 'prt' does not belong here (at character 5)" in text
    assert "plan.json" in text


def ways_of(*edges: str) -> list[CountedWay]:
    """Ways as `A B match`."""
    return [CountedWay(*edge.split(), *[""] * (2 - edge.count(" "))) for edge in edges]


@pytest.mark.parametrize(
    ("edges", "sent", "dropped", "expected"),
    [
        (["A B udp", "A C tcp", "A D", "B D", "C D"], {"A": 10, "B": 3, "C": 2}, {}, [3, 2, 5, 3, 2]),
        (["A B udp", "A C", "B D", "C D"], {"A": 9, "B": 4, "C": 5}, {"malformed": 7}, [4, 5, 4, 5]),
        # of 10 packets that A sent, 2 matched nothing: what C has is known, as nothing else leads there
        (["A B udp", "A C tcp", "B C"], {"A": 10, "B": 3}, {"unmatched": 2}, [3, 5, 3]),
        # each of two NFs behind each of two others: the sums leave it open
        (["A B udp", "A C", "B D udp", "B E", "C D udp", "C E"], {"A": 9, "B": 4, "C": 5}, {}, [4, 5] + [None] * 4),
        # packets that got lost between NFs
        (["A B udp", "A C"], {"A": 9}, {"no_room": 1}, [None, None]),
    ],
)
def test_what_follows_from_sums_of_counters_is_known(
    edges: list[str], sent: dict[str, int], dropped: dict[str, int], expected: list[int | None]
) -> None:
    entered = Counter[str]()
    for way, packets in zip(ways_of(*edges), expected, strict=True):
        entered[way.to] += packets or 1
    assert count_ways(ways_of(*edges), entered, sent, dropped) == expected


OWN_RULES = """slo c: 1 Mbps to unbounded
chain c: ACL(rules = [{'dst_port': 53, 'drop': True}, {'src_ip': '10.0.0.0/8', 'drop': False}, {'drop': True}])
    -> [1/4 "tcp" - | 1/4 "src net 10.1.0.0/16" - | 1/4 "src net 10.2.0.0/16" Tunnel | 1/4 -] -> IPv4Fwd(routes = 40)
"""
OWN_PACKETS = {  # source, protocol and port: the rule that decides, and the branch
    (0x0A010001, 17, 53): (1, None),
    (0x0A010001, 6, 53): (1, None),
    (0x0A010001, 6, 80): (2, "tcp"),
    (0x0A010001, 17, 80): (2, "src net 10.1.0.0/16"),
    (0x0A010002, 17, 81): (2, "src net 10.1.0.0/16"),
    (0x0A020001, 17, 80): (2, "src net 10.2.0.0/16"),
    (0x0A030001, 17, 80): (2, ""),
    (0x0A030002, 17, 80): (2, ""),
    (0x0A030003, 17, 80): (2, ""),
    (0x0B000001, 6, 80): (3, None),
}


@pytest.mark.parametrize("device", ["switch", "openflow", "s0", "n0"])
def test_devices_count_rules_as_written_and_each_branch(device: str, tmp_path: Path) -> None:
    """A rule about ports is two entries of a table, and branches to the same NF have no other counter."""
    require_programs(smartnics=device == "n0")
    (chain,) = load_own_data(chains_of_text(OWN_RULES, "c.chains")).chains
    on = "switch" if device == "openflow" else device
    last = {"ACL": on, "Tunnel": "s1", "IPv4Fwd": on}
    plan = plan_of([chain], [last]) if device == "openflow" else made_plan((chain, " ".join(last.values())))
    routes = generate_routes(40, seed=1)
    to = routes[30].prefix.address + 1
    frames = [ipv4_frame(source, to, kind, (1000, port)) for source, kind, port in OWN_PACKETS]
    execution = run_rack(plan, compile_rack(plan, "plan"), 1, tmp_path, frames, meaning_by_files(tmp_path)).execution
    assert +execution.rules["c/ACL"] == Counter(rule for rule, _ in OWN_PACKETS.values())
    branches = Counter(branch for _, branch in OWN_PACKETS.values() if branch is not None)
    covering = [route for route in routes if to & route.prefix.mask == route.prefix.address]
    longest = max(covering, key=lambda route: route.prefix.length)
    assert +execution.rules["c/IPv4Fwd"] == {1 + routes.index(longest): branches.total()}
    assert {way.match: way.packets for way in execution.branches} == branches
