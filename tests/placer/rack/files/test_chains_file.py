"""`.chains` files: what they describe, and every fault with its line and column."""

from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placer.rack.chain import UNBOUNDED_MBPS, Chain
from placer.rack.files.chains_file import chains_of_text, read_chains_file
from placer.rack.files.json_twins import chains_of
from placer.rack.files.written_twins import write_chains
from profiles import InputError
from tests.placer.rack.lemur import CHAIN_GRAPHS, chain_json

EXAMPLE = Path(__file__).parents[4] / "examples" / "edge.chains"
SLO = "slo c: 1 Gbps to 2 Gbps\n"


def chain(path: str, more: str = "") -> Chain:
    return chains_of_text(f"{SLO}{more}chain c: {path}\n", "x").chains[0]


def edges(path: str) -> set[str]:
    """Edges as `A B 1/2`, the match behind it."""
    one = chain(path)
    return {
        " ".join([one.nfs[edge.tail].id, one.nfs[edge.head].id, str(edge.share), *edge.match.split()])
        for edge in one.edges
    }


def faults(text: str) -> str:
    with pytest.raises(InputError) as error:
        chains_of_text(text, "x")
    return str(error.value)


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("A -> B -> C", "A B 1, B C 1"),
        # branches meet in the next NF
        ("A -> [1/3 B | 2/3 C -> D] -> E", "A B 1/3, A C 2/3, C D 1, B E 1, D E 1"),
        # an empty branch leads past the others
        ("A -> [0.25 B | 75 % -] -> C", "A B 1/4, A C 3/4, B C 1"),
        # inside one another they multiply where they are empty
        (
            "A -> [1/2 [1/2 B | 1/2 C] | 1/2 -] -> [1/3 D | 2/3 E]",
            "A B 1/4, A C 1/4, A D 1/6, A E 1/3, B D 1/3, B E 2/3, C D 1/3, C E 2/3",
        ),
        # a branch is repeated
        ("A -> 2 x 1/2 B -> C", "A B_1 1/2, A B_2 1/2, B_1 C 1, B_2 C 1"),
        ("A -> 2 x 1/2 (B -> C)", "A B_1 1/2, B_1 C_1 1, A B_2 1/2, B_2 C_2 1"),
        ("A -> [2 x 1/4 B -> C | 1/2 D]", "A B_1 1/4, B_1 C_1 1, A B_2 1/4, B_2 C_2 1, A D 1/2"),
    ],
)
def test_a_path_is_a_graph_of_edges(path: str, found: str) -> None:
    assert edges(path) == set(found.split(", "))


def test_branches_may_end_apart() -> None:
    one = chain("A -> [1/2 B | 1/2 C]")
    assert [one.nfs[at].id for at in one.exits] == ["B", "C"]


def test_names_are_given_or_numbered() -> None:
    """A kind that is there once keeps its name; numbers pass over names that are taken."""
    ids = [nf.id for nf in chain("A -> B -> first=A -> A -> A_2=C -> 2 x 1/2 way=D -> E").nfs]
    assert ids == ["A_1", "B", "first", "A_3", "A_2", "way_1", "way_2", "E"]


def test_parameters_and_matches_are_kept() -> None:
    one = chain('ACL(rules=1024, depth=-0.5) -> [1/2 "udp # 53" B | 1/2 "else" -] -> C')
    assert one.nfs[0].parameters == {"rules": 1024, "depth": -0.5}
    assert sorted(edge.match for edge in one.edges) == ["", "else", "udp # 53"]


def test_a_chain_has_its_slo_packets_and_aggregates() -> None:
    text = """# a comment
        slo voice, video: 1.1 Gbps to 100 Gbps, at most 45 us
slo data: exactly 500 kbps, at most 2 ms   # another
packets: 500 B
packets data: 9000 bytes
aggregate data: 10.1.0.0/16,
    udp
aggregate data: office
chain voice: A ->
    B
chain video: A
chain data: A
""".replace("        slo", "slo")
    voice, video, data = chains_of_text(text, "x").chains
    assert (voice.slo.t_min_mbps, voice.slo.t_max_mbps, voice.slo.d_max_us) == (1100, 100_000, 45)
    assert voice.slo == video.slo and [nf.id for nf in voice.nfs] == ["A", "B"]
    assert (data.slo.t_min_mbps, data.slo.t_max_mbps, data.slo.d_max_us) == (Fraction(1, 2), Fraction(1, 2), 2000)
    assert (voice.packet_size, data.packet_size) == (500, 9000)
    assert data.aggregates == ("10.1.0.0/16, udp", "office")
    assert chains_of({"chains": write_chains([data])["chains"]}, "x") == (data,)


def test_a_largest_rate_may_be_unbounded() -> None:
    """As in JSON, where it is null."""
    (read,) = chains_of_text("slo a: 2 Gbps to unbounded, at most 45 us\nchain a: A\n", "x").chains
    assert (read.slo.t_min_mbps, read.slo.t_max_mbps, read.slo.d_max_us) == (2000, UNBOUNDED_MBPS, 45)
    twin = write_chains([read])["chains"]
    assert isinstance(twin, list)
    assert chains_of({"chains": [{**twin[0], "t_max_mbps": None}]}, "x") == (read,)


def test_the_example_holds_lemurs_chains() -> None:
    """NFs, edges, shares and rates are those of the JSON twin."""
    read = read_chains_file(EXAMPLE).chains
    for number, one in enumerate(read, start=1):
        (twin,) = chains_of({"chains": [chain_json(number, 0.5)]}, "x")
        assert [nf.nf for nf in one.nfs] == [nf.nf for nf in twin.nfs]
        same = {(edge.tail, edge.head, edge.share) for edge in one.edges}
        assert same == {(edge.tail, edge.head, edge.share) for edge in twin.edges}
        assert (one.packet_size, one.slo) == (twin.packet_size, twin.slo)
    assert len(read) == len(CHAIN_GRAPHS) - 1


def test_the_json_twin_is_read_too(tmp_path: Path) -> None:
    import json

    path = tmp_path / "edge.chains"
    path.write_text(json.dumps(write_chains([chain("A -> B")])), encoding="utf-8")
    assert read_chains_file(path).chains == (chain("A -> B"),)


@pytest.mark.parametrize(
    ("path", "fault"),
    [
        ("", "column 9: an NF is missing at the end"),
        ("A ->", "column 14: an NF is missing at the end"),
        ("A -> -> B", "column 15: an NF is missing before '->'"),
        ("A -> - -> B", "column 15: an NF is missing before '-'"),
        ("A B", "column 12: 'B' does not belong here"),
        ("A -> B]", "column 16: ']' does not belong here"),
        ("A -> [1/2 B | 1/2 C", "column 15: the '[' is not closed"),
        ("A -> 2 x 1/2 (B -> C", "column 23: the '(' is not closed"),
        ("A -> [1/2 B | 1/4 -] -> C", "column 15: the shares 1/2 + 1/4 add up to 3/4, not to 1"),
        ("A -> 3 x 1/2 B", "column 15: the shares 3 x 1/2 add up to 3/2, not to 1"),
        ("A -> [1/2 B | C]", "column 24: the branch has no share"),
        ("A -> [3/2 B | 1/2 C]", "column 16: a share is above 0 and at most 1"),
        ("A -> [1/0 B | 1/2 C]", "column 16: '1/0' divides by 0"),
        ("A -> 1/2 B", "column 15: a share stands outside of brackets"),
        ("A -> 2.5 x 1/2 B", "column 15: '2.5' is not a whole number from 1 to 200"),
        ("A -> 2 x B", "column 19: the branches have no share"),
        ('A -> [2 x 1/4 "udp" B | 1/2 C]', "column 24: copies of a branch with a match: only the first would get"),
        ('A -> 2 x 1/2 "udp" (B)', "column 23: copies of a branch with a match"),
        ("[1/2 A | 1/2 B]", "column 10: a chain begins with one NF"),
        ("A -> [1/2 B | 1/2 -]", "column 10: a branch that leaves A ends without an NF"),
        ("A -> [1/4 - | 1/4 - | 1/2 B] -> C", "column 42: 2 empty branches lead from A to C"),
        ("A -> x=B -> x=C", "column 22: duplicate name 'x'"),
        ("A(r)", "column 12: the parameter r has no value"),
        ("A(r=1, r=2)", "column 17: the parameter r is given twice"),
        ("A(r=x)", "column 14: a value is missing here"),
        ('A -> [1/2 "x B | 1/2 C]', "column 20: '\"' does not belong here"),
        ("A -> B; C", "column 16: ';' does not belong here"),
        ("A -> 200 x 1/200 (B -> C)", "column 9: the chain has more than 200 NFs"),
        ("A -> 200 x 1/200 (200 x 1/200 -)", "column 40: an NF is missing here"),
        ("A -> " + "[1 " * 40 + "B" + "]" * 40, "branches are nested deeper than 30"),
    ],
)
def test_a_bad_path_is_named_with_line_and_column(path: str, fault: str) -> None:
    found = faults(f"{SLO}chain c: {path}\n")
    assert fault in found and found.startswith("x:2: column ")


def test_columns_of_continued_lines_are_their_own() -> None:
    assert "x:4: column 5: 'C' does not belong here" in faults(f"{SLO}chain c: A\n  -> B\n    C\n")


@pytest.mark.parametrize(
    ("slo", "fault"),
    [
        ("1 Gbit to 2 Gbps", "column 10: the unit 'Gbit' is not known"),
        ("1 gbps to 2 Gbps", "did you mean Gbps?"),
        ("1 to 2 Gbps", "column 10: '1' has no unit"),
        ("1 Gbps", "column 14: the largest useful rate is missing"),
        ("about 1 Gbps", "column 8: 'about' is no rate"),
        ("", "column 7: the rate is missing here"),
        ("3 Gbps to 2000 Mbps", "column 8: the least rate is above the largest"),
        ("0 Mbps to 0 Mbps", "column 8: the largest rate is 0"),
        ("1 Gbps to 2 Gbps, at most 45", "column 36: '45' has no unit"),
        ("1 Gbps to 2 Gbps, at most 45 Gbps", "column 37: the unit 'Gbps' is not known"),
        ("1 Gbps to 2 Gbps, at most 0 us", "column 34: a latency is above 0"),
        ("1 Gbps to 2 Gbps at least", "column 25: 'at' does not belong here"),
        ("1.2.3 Gbps to 2 Gbps", "'1.2.3' is no rate"),
        ("1 Gbps to 99999999 Tbps", "column 18: '99999999 Tbps' is too large"),
    ],
)
def test_a_bad_slo_is_named_with_line_and_column(slo: str, fault: str) -> None:
    found = faults(f"chain c: A\nslo c: {slo}\n")
    assert fault in found and found.startswith("x:2: column ")


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "x: holds no chain"),
        ("chain c: A\n", "x:1: column 7: c has no SLO\nhint: write slo c: 1 Gbps to 10 Gbps"),
        (f"{SLO}slo d: 1 Gbps to 2 Gbps\nchain c: A\n", "x:2: column 5: 'slo' of d, which is no chain"),
        (f"{SLO}chain c: A\nchain c: B\n", "x:3: column 7: duplicate 'chain c'\nhint: it is in line 2, too"),
        (f"{SLO}{SLO}chain c: A\n", "x:2: column 5: duplicate 'slo c'"),
        (f"{SLO}packets: 1 B\npackets: 2 B\nchain c: A\n", "x:3: column 1: duplicate 'packets'"),
        (f"{SLO}packets: 1 kB\nchain c: A\n", "x:2: column 12: the unit 'kB' is not known"),
        (f"{SLO}packets: 0 B\nchain c: A\n", "x:2: column 10: a packet has a whole number of bytes from 1 to 65,535"),
        (f"{SLO}aggregate c:\nchain c: A\n", "x:2: column 13: the aggregate is empty"),
        (f"{SLO}chains c: A\n", "x:2: column 1: 'chains' does not begin a statement"),
        (f"{SLO}chain c A\n", "x:2: column 10: 'chain' has no colon"),
        (f"{SLO}chain : A\n", "x:2: column 6: 'chain' names no chain"),
        (f"{SLO}chain c, d: A\n", "x:2: column 10: a chain has one name"),
        (f"{SLO}chain c d: A\n", "x:2: column 7: 'c d' is no name of a chain"),
    ],
)
def test_what_does_not_belong_together_is_named(text: str, fault: str) -> None:
    assert fault in faults(text)


def test_all_faults_of_a_file_are_named_at_once() -> None:
    found = faults("slo a: 1 Gb to 2 Gbps\nchain a: A -> [1/2 B\nchain b: A -> [1/2 B | 1/4 -] -> x=C -> x=D\n")
    places = [line.split(": ")[0] for line in found.splitlines() if line.startswith("x:")]
    assert places == ["x:1", "x:2", "x:3", "x:3", "x:3"]


@pytest.mark.long
@given(st.text(alphabet='ABx=()[]|-> 123/.%"#,:\n\tchainslopacketsGb', max_size=80))
def test_any_text_is_read_or_refused(text: str) -> None:
    """Nothing but InputError is raised."""
    for content in (text, f"{SLO}chain c: {text}", f"chain c: A\nslo c: {text}"):
        try:
            chains_of_text(content, "x")
        except InputError as error:
            assert error.faults


@given(st.data())
def test_shares_that_leave_an_nf_add_up_to_1(data: st.DataObject) -> None:
    """And all packets reach the last NF, for any nesting of branches."""

    def path(depth: int) -> str:
        items = []
        for _ in range(data.draw(st.integers(1, 2))):
            if depth == 0 or data.draw(st.booleans()):
                items.append("A")
            else:
                parts = data.draw(st.integers(2, 3))
                branches = [path(depth - 1) for _ in range(parts - 1)] + ["-" if data.draw(st.booleans()) else "B"]
                items.append(f"[{' | '.join(f'1/{parts} {branch}' for branch in branches)}]")
        return " -> ".join(items)

    text = f"A -> {path(2)} -> Z"
    try:
        one = chain(text)
    except InputError as error:
        assert "empty branches" in str(error)
        return
    for at in range(len(one.nfs) - 1):
        assert sum(edge.share for edge in one.edges_from(at)) == 1
    assert one.reach[-1] == 1 and one.exits == (len(one.nfs) - 1,)
