"""Traffic expressions mean the same to the reference, to a ternary table and to libpcap."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from placer.rack.compiler.traffic.entries import ExpressionError, entries_of, parse, prefixes_of
from placer.rack.compiler.traffic.pcap import pcap_filter
from tests.placer.rack.compiler.rack_runs import require_libpcap, sorted_by_libpcap
from tests.reference.peel import PacketFields, holds

ADDRESSES = [0x0A000001, 0x0A010203, 0xC0000201, 0x0A01FFFF, 0]
PORTS = [0, 53, 80, 1023, 1024, 443, 65535]


def packets() -> st.SearchStrategy[PacketFields]:
    """Packets of which tests of both outcomes are likely."""
    ports = st.tuples(st.sampled_from(PORTS), st.sampled_from(PORTS))
    vlan = st.sampled_from([None, 0, 7, 100])
    address = st.sampled_from(ADDRESSES)
    flows = st.builds(PacketFields, vlan, st.just(True), address, address, st.sampled_from([6, 17]), ports)
    others = st.builds(PacketFields, vlan, st.just(True), address, address, st.sampled_from([1, 6, 17, 50]))
    return flows | others | st.builds(PacketFields, vlan)


def texts() -> st.SearchStrategy[str]:
    """Expressions of each kind, nested."""
    end = st.sampled_from(["", "src ", "dst ", "src or dst "])
    ports = ["port 53", "port 80", "portrange 1024-65535", "portrange 53-80"]
    nets = ["host 10.0.0.1", "net 10.1.0.0/16", "net 0.0.0.0/0", "10.1.2.3"]
    test = st.sampled_from(["any", "ip", "tcp", "udp", "icmp", "proto 50", "vlan", "vlan 7", "10.0.0.0/8"])
    test |= st.builds("{}{}".format, end, st.sampled_from(ports + nets)) | st.sampled_from(
        ["udp port 53", "tcp src port 80"]
    )
    deeper = lambda inner: (  # noqa: E731
        st.builds("not ({})".format, inner)
        | st.builds("({}) and ({})".format, inner, inner)
        | st.builds("({}) or ({})".format, inner, inner)
    )
    return st.recursive(test, deeper, max_leaves=5)


def key_of(packet: PacketFields) -> dict[str, int]:
    """The key by which a table looks a packet up."""
    source_port, destination_port = packet.ports or (0, 0)
    return {
        "tagged": int(packet.vlan is not None),
        "vlan": packet.vlan or 0,
        "ip": int(packet.ip),
        "source": packet.source,
        "destination": packet.destination,
        "protocol": packet.protocol,
        "has_ports": int(packet.ports is not None),
        "source_port": source_port,
        "destination_port": destination_port,
    }


@given(st.lists(texts(), max_size=3), packets())
def test_a_ternary_table_chooses_the_first_expression_that_holds(found: list[str], packet: PacketFields) -> None:
    """The entries of several expressions name the first one that holds, or none."""
    expressions = [parse(text) for text in found]
    key = key_of(packet)
    looked_up = next(
        entry.verdict
        for entry in entries_of(expressions)
        if all(key[name] & mask == value for name, (value, mask) in entry.bits.items())
    )
    assert looked_up == next((at for at, one in enumerate(expressions) if holds(one, packet)), None)


@pytest.mark.parametrize(
    ("text", "packet", "expected"),
    [
        ("udp port 53", PacketFields(ip=True, protocol=17, ports=(1, 53)), True),
        ("udp port 53", PacketFields(ip=True, protocol=6, ports=(1, 53)), False),
        ("10.1.0.0/16, udp", PacketFields(ip=True, source=0x0A010001, protocol=17), True),
        ("src or dst net 10.1.0.0/16", PacketFields(ip=True, destination=0x0A010001), True),
        ("src net 10.1.0.0/16", PacketFields(ip=True, destination=0x0A010001), False),
        ("not tcp", PacketFields(), True),
        ("vlan 7 and tcp or icmp", PacketFields(ip=True, protocol=1), True),
        ("vlan", PacketFields(vlan=0), True),
        ("", PacketFields(), True),
        ("other", PacketFields(), True),
    ],
)
def test_an_expression_holds_where_its_words_say_so(text: str, packet: PacketFields, expected: bool) -> None:
    """Worked by hand: `and` binds more than `or`, a comma is `and`, and `other` is everything."""
    assert holds(parse(text), packet) is expected


@pytest.mark.parametrize(
    ("text", "at", "message"),
    [
        ("udp prt 53", 4, "'prt' does not belong here"),
        ("port 70000", 5, "'70000' is not a port"),
        ("net 10.1.2.3/16", 4, "'10.1.2.3/16' has bits behind its prefix"),
        ("(tcp", 0, "the '(' is not closed"),
        ("tcp and", 7, "a test is missing at the end"),
        ("host 10.0.0", 5, "'10.0.0' is no IPv4 address or prefix"),
        ("portrange 9-3", 10, "'9-3' is no range of ports"),
        ("tcp host 10.0.0.1", 4, "'host' does not belong here"),
        ("((((((((((((((((((((((((((((((((tcp))))))))))))))))))))))))))))))))", 31, "parts are nested deeper than 30"),
    ],
)
def test_a_wrong_expression_is_refused_where_it_is_wrong(text: str, at: int, message: str) -> None:
    """Each fault has its character and its message."""
    with pytest.raises(ExpressionError) as refused:
        parse(text)
    assert (refused.value.at, refused.value.message) == (at, message)


@given(st.integers(0, 65535), st.integers(0, 65535), st.integers(0, 65535))
def test_a_range_is_covered_by_its_prefixes_exactly(low: int, high: int, port: int) -> None:
    """A port is in the range exactly if it fits one of the prefixes."""
    low, high = sorted((low, high))
    assert (low <= port <= high) == any(port & mask == value for value, mask in prefixes_of(low, high))


def _frame(packet: PacketFields, options: bool) -> bytes:
    tag = b"" if packet.vlan is None else b"\x81\x00" + (packet.vlan | 0x2000).to_bytes(2, "big")
    if not packet.ip:
        return (bytes(12) + tag + b"\x08\x06").ljust(60, b"\x35")
    words = 7 if options else 5
    fragment = 0 if packet.ports else 0x2000
    addresses = packet.source.to_bytes(4, "big") + packet.destination.to_bytes(4, "big")
    header = bytes([0x40 | words, 0, 0, 48, 0, 0]) + fragment.to_bytes(2, "big") + bytes([64, packet.protocol, 0, 0])
    header += addresses + b"\x01" * (4 * words - 20)
    ports = b"".join(one.to_bytes(2, "big") for one in packet.ports or (53, 80))
    return (bytes(12) + tag + b"\x08\x00" + header + ports).ljust(90, b"\0")


@given(texts(), packets(), st.booleans())
@example("not (ip or not port 53)", PacketFields(), False)
@example("port 53 and not (tcp or udp)", PacketFields(ip=True, protocol=1), False)
@example("port 53 and not (portrange 0-99 or portrange 100-65535)", PacketFields(), False)
@example("vlan 7 and not vlan", PacketFields(vlan=7), False)
@example("any or port 53", PacketFields(), False)
def test_libpcap_holds_for_the_same_packets(text: str, packet: PacketFields, options: bool) -> None:
    """The filter that Match runs holds exactly where the expression does, also behind tags and IPv4 options."""
    require_libpcap()
    found = sorted_by_libpcap([pcap_filter(parse(text))], _frame(packet, options)) is not None
    assert found is holds(parse(text), packet)
