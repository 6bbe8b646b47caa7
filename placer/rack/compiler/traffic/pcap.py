"""Traffic expressions as filters of libpcap, which Match runs on servers.

Bytes are named by their offsets from the begin of the frame, for no VLAN tag, one and two: the words of pcap-filter(7)
look behind a tag only after `vlan`, and take the first fragment of a datagram for a whole one. There are no blanks: a
filter is one word of a chain file.
"""

from placer.rack.compiler.traffic.expression import (
    And,
    End,
    Everything,
    Expression,
    HasAddress,
    HasPort,
    HasProtocol,
    HasTag,
    IsIp,
    Not,
    Or,
)

IPV4_TYPE = 0x0800
TYPE_OFFSET = 12
TAG_BYTES = 4
MOST_TAGS = 2
ALWAYS_TRUE, NEVER_TRUE = "len>=0", "len<=0"


def pcap_filter(expression: Expression) -> str:
    """The filter; it holds for the same packets, malformed ones left aside.

    libpcap refuses a filter that it finds can never hold, unless that depends on the length of the packet.
    """
    ways = [f"({_shift_tags(tags)}&&({_at(expression, tags)}))" for tags in range(MOST_TAGS + 1)]
    return "||".join([*ways, NEVER_TRUE])


def _shift_tags(tags: int) -> str:
    """Whether a frame has this number of tags; more than the most count as the most."""
    wanted = [_is_tag(TYPE_OFFSET + TAG_BYTES * tag) for tag in range(tags)]
    if tags < MOST_TAGS:
        wanted.append(f"!{_is_tag(TYPE_OFFSET + TAG_BYTES * tags)}")
    return "&&".join(wanted)


def _is_tag(at: int) -> str:
    return f"(ether[{at}:2]=0x8100||ether[{at}:2]=0x88a8)"


def _at(expression: Expression, tags: int) -> str:
    """An expression for frames with this number of tags."""
    at = TYPE_OFFSET + TAG_BYTES * tags + 2
    ip = f"ether[{at - 2}:2]={IPV4_TYPE:#06x}"
    match expression:
        case Everything():
            return ALWAYS_TRUE
        case IsIp():
            return ip
        case HasTag(vlan):
            if tags == 0:
                return NEVER_TRUE
            return ALWAYS_TRUE if vlan is None else f"ether[{TYPE_OFFSET + 2}:2]&0xfff={vlan}"
        case HasProtocol(protocol):
            return f"({ip}&&ether[{at + 9}]={protocol})"
        case HasAddress(end, prefix, _):
            tests = [f"ether[{at + 12 + 4 * tag}:4]&{expression.mask:#x}={prefix:#x}" for tag in _ends(end)]
            return f"({ip}&&({'||'.join(tests)}))"
        case HasPort():
            return f"({ip}&&{_port(expression, at)})"
        case Not(of):
            return f"!({_at(of, tags)})"
        case And(parts):
            return f"({'&&'.join(_at(part, tags) for part in parts)})"
        case Or(parts):
            return f"({'||'.join(_at(part, tags) for part in parts)})"


def _port(test: HasPort, at: int) -> str:
    whole = f"ether[{at + 6}:2]&0x3fff=0&&(ether[{at + 9}]=6||ether[{at + 9}]=17)"
    ports = [f"ether[{at}+((ether[{at}]&0xf)<<2)+{2 * end}:2]" for end in _ends(test.end)]
    if test.low == test.high:
        tests = [f"{port}={test.low}" for port in ports]
    else:
        tests = [f"({port}>={test.low}&&{port}<={test.high})" for port in ports]
    return f"({whole}&&({'||'.join(tests)}))"


def _ends(end: End) -> tuple[int, ...]:
    return {End.SOURCE: (0,), End.DESTINATION: (1,)}.get(end, (0, 1))
