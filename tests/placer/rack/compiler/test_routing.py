"""Service paths and labels: each NF has one, and a label names the NF that is next."""

import pytest

from placer.rack.compiler.graph import graph_of, identifier
from placer.rack.compiler.routing import Label, Routing, route_graph, switch_ports
from profiles import InputError
from tests.placer.rack.compiler.racks import made_chain, made_plan, random_plan


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
