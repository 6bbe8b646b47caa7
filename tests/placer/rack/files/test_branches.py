"""Branches: the graph of a chain takes each packet where its text says, by an interpreter of the text."""

import random
from collections.abc import Sequence
from fractions import Fraction

import pytest

from placer.rack.compiler.traffic.entries import parse
from placer.rack.files.chain_graph import ChainGraph, parse_graph
from placer.rack.files.chain_text import TextError
from tests.effort import examples
from tests.placer.rack.compiler.library.frames import ipv4_frame
from tests.reference.chain_text import WrittenBranch, WrittenNf, WrittenPath, write_path
from tests.reference.peel import PacketFields, fields_of, holds

MATCHES = ("src net 10.0.0.0/8", "src net 10.1.0.0/16", "src net 10.1.1.0/24 or vlan 7", "vlan", "not vlan", "any")
REFUSALS = ("packets are shared out", "nothing takes the packets", "empty branches lead from", "ends without an NF")
PACKETS = [
    fields_of(ipv4_frame(source, tags=tags))
    for source in (0x0A010101, 0x0A010201, 0x0A020101, 0x0B000001)
    for tags in ((), (7,), (8,))
]


def draw_path(draw: random.Random, names: list[str], depth: int = 0) -> WrittenPath:
    path: list[WrittenNf | Sequence[WrittenBranch]] = []
    for _ in range(draw.randint(1, 2)):
        if depth < 2 and draw.random() < 0.5:
            count = draw.randint(1, 3)
            empty = draw.random() < 0.6
            fork = []
            for _ in range(count):
                match = draw.choice(MATCHES) if draw.random() < 0.6 else ""
                inside = [] if empty and draw.random() < 0.5 else draw_path(draw, names, depth + 1)
                fork.append(WrittenBranch(Fraction(1, count), match, inside))
            path.append(fork)
        else:
            names.append(f"n{len(names)}")
            path.append(WrittenNf(names[-1], "ACL"))
    return path


def ways_of(path: WrittenPath, packet: PacketFields) -> set[tuple[str, ...]]:
    """The NFs that a packet may pass by the text: the first branch whose match holds, else any without a match."""
    if not path:
        return {()}
    first, rest = path[0], path[1:]
    if isinstance(first, WrittenNf):
        return {(first.id, *way) for way in ways_of(rest, packet)}
    for branch in first:
        if branch.match and holds(parse(branch.match), packet):
            return ways_of([*branch.path, *rest], packet)
    others = [branch.path for branch in first if not branch.match]
    return set().union(*(ways_of([*inside, *rest], packet) for inside in others)) if others else {("dropped",)}


def ways_in(graph: ChainGraph, at: int, packet: PacketFields) -> set[tuple[str, ...]]:
    """The same by the graph, whose edges are tried in their order."""
    edges = [edge for edge in graph.edges if edge.tail == at]
    found = next((edge for edge in edges if edge.match and holds(parse(edge.match), packet)), None)
    goals = [found] if found else [edge for edge in edges if not edge.match]
    if not edges:
        return {(graph.nfs[at].id,)}
    ways = set().union(*(ways_in(graph, edge.head, packet) for edge in goals)) if goals else {("dropped",)}
    return {(graph.nfs[at].id, *way) for way in ways}


def test_packets_go_where_the_text_says() -> None:
    accepted, branching = 0, 0
    for seed in range(examples(2_000)):
        draw = random.Random(seed)
        path = [WrittenNf("n0", "ACL"), *draw_path(draw, ["n0"]), WrittenNf("end", "ACL")]
        graph = parse_graph(write_path(path))
        if graph.faults:
            assert all(any(map(fault.message.__contains__, REFUSALS)) for fault in graph.faults), write_path(path)
            continue
        accepted += 1
        branching += len({edge.tail for edge in graph.edges if edge.match}) > 0
        for packet in PACKETS:
            assert ways_in(graph, 0, packet) == ways_of(path, packet), write_path(path)
    assert min(accepted, branching) > examples(2_000) // 4


HINT = "put an NF before these branches: it sorts its packets by itself"


def test_where_an_nf_is_put_before_the_branches_that_are_named_the_text_is_accepted() -> None:
    """All faults of a text are named at once, so that those who follow their hints are not refused for these again."""
    followed = 0
    for seed in range(examples(2_000)):
        draw = random.Random(seed)
        text = write_path([WrittenNf("n0", "ACL"), *draw_path(draw, ["n0"]), WrittenNf("end", "ACL")])
        places = {fault.at for fault in parse_graph(text).faults if fault.hint == HINT}
        for place in sorted(places, reverse=True):
            text = f"{text[:place]}Match -> {text[place:]}"
        followed += len(places) > 0
        assert not any(fault.hint == HINT for fault in parse_graph(text).faults), text
    assert followed > examples(2_000) // 10


def edges_of(text: str) -> list[tuple[str, str, str]]:
    graph = parse_graph(text)
    assert not graph.faults
    return [(graph.nfs[edge.tail].id, graph.nfs[edge.head].id, edge.match) for edge in graph.edges]


def test_an_empty_branch_is_tried_in_its_place() -> None:
    text = 'Match -> [1/2 "src net 10.1.0.0/16" - | 1/2 "src net 10.0.0.0/8" Tunnel] -> IPv4Fwd'
    assert [edge for edge in edges_of(text) if edge[0] == "Match"] == [
        ("Match", "IPv4Fwd", "src net 10.1.0.0/16"),
        ("Match", "Tunnel", "src net 10.0.0.0/8"),
    ]


def test_empty_branches_with_different_matches_are_edges_side_by_side() -> None:
    assert edges_of('A -> [1/2 "vlan 1" - | 1/4 "vlan 2" - | 1/4 B] -> C')[:2] == [
        ("A", "C", "vlan 1"),
        ("A", "C", "vlan 2"),
    ]


def test_lemurs_branches_are_read() -> None:
    """Packets that fit no condition pass by; shares are equal."""
    text = "ACL -> [{'vlan_tag': 0x1, Encrypt}, {'src_ip': '10.0.0.0/8', 'dst_port': 53, NAT -> LB}] -> IPv4Fwd"
    assert [edge for edge in edges_of(text) if edge[0] == "ACL"] == [
        ("ACL", "Encrypt", "vlan 1"),
        ("ACL", "NAT", "src net 10.0.0.0/8, dst port 53"),
        ("ACL", "IPv4Fwd", ""),
    ]
    assert {edge.share for edge in parse_graph(text).edges if edge.tail == 0} == {Fraction(1, 3)}


@pytest.mark.parametrize(
    ("text", "at", "message"),
    [
        ("A -> [{'vlan': 1, B}] -> C", 7, "a branch has no condition 'vlan'"),
        ("A -> [{'vlan_tag': 'x', B}] -> C", 19, "'x' is no vlan_tag"),
        ("A -> [{'vlan_tag': 1}] -> C", 20, "the NFs of the branch are missing here"),
        ("A -> [{B}] -> C", 6, "the branch has no condition"),
        ("A -> [{'dst_port': 5, B] -> C", 23, "']' does not belong here"),
    ],
)
def test_a_wrong_branch_of_lemurs_is_named(text: str, at: int, message: str) -> None:
    with pytest.raises(TextError) as error:
        parse_graph(text)
    assert (error.value.fault.at, error.value.fault.message) == (at, message)


@pytest.mark.parametrize(
    ("text", "message", "mended"),
    [
        (
            'A -> [1/2 "ip" [1/2 B | 1/2 C] | 1/2 D] -> E',
            "shared out behind a match",
            'A -> [1/2 "ip" Match -> [1/2 B | 1/2 C] | 1/2 D] -> E',
        ),
        (
            'A -> [1/2 [1/2 "ip" B | 1/2 C] | 1/2 D] -> E',
            "shared out before a match",
            'A -> [1/2 Match -> [1/2 "ip" B | 1/2 C] | 1/2 D] -> E',
        ),
        (
            'A -> [1/2 "ip" [1/2 "udp" B | 1/2 "tcp" C] | 1/2 D] -> E',
            "nothing takes the packets",
            'A -> [1/2 "ip" [1/2 "udp" B | 1/2 C] | 1/2 D] -> E',
        ),
        ('A -> [1/2 "ip" - | 1/2 "ip" -] -> E', "2 empty branches", 'A -> [1 "ip" -] -> E'),
    ],
)
def test_what_one_list_of_ways_cannot_say_is_refused(text: str, message: str, mended: str) -> None:
    """The text that the hint leads to is accepted."""
    assert any(message in fault.message for fault in parse_graph(text).faults)
    assert not parse_graph(mended).faults
