"""The reference interpreter of chains."""

from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction

import pytest

from placer.rack.chain import Chain
from placer.rack.compiler.execute import NfCounts
from placer.rack.compiler.routing import split_limits
from profiles.faults import InputError
from tests.placer.rack.compiler.ebpf.programs import require_clang
from tests.placer.rack.compiler.library.frames import MACS, MORE_FRAGMENTS, TCP, UDP, framed, ipv4_frame, random_frames
from tests.placer.rack.compiler.rack_packets import rack_packets, timed
from tests.placer.rack.compiler.rack_runs import Coverage, compiled_or_none, emulated_outcome, require_libpcap
from tests.placer.rack.compiler.racks import ALL_KINDS, every_placement, made_chain, rack_of
from tests.reference.compare import RackOutcome, ReferenceRun
from tests.reference.interpret import Interpreter, interpret
from tests.reference.nfs.headers import read_headers, split_value
from tests.reference.peel import fields_of

ARP = framed(bytes(28), ether_type=0x806)
NSH = MACS + b"\x89\x4f\x0f\xc2\x02\x03\x00\x00\x01\xff" + ipv4_frame()


def frames_out(chains, frames):  # type: ignore[no-untyped-def]
    """Outputs and drops."""
    found = interpret(chains, [(1000 * at, frame) for at, frame in enumerate(frames)])
    return [(one.input, one.frame) for one in found.outputs], dict(found.dropped)


def test_malformed_forged_and_unclassified_frames_are_dropped_in_this_order() -> None:
    """A malformed frame with the type of NSH is malformed; a forged one is not looked at by aggregates."""
    chain = made_chain(["Match"], aggregates=["udp"])
    tcp = ipv4_frame(protocol=TCP)
    out, dropped = frames_out([chain], [b"\x02" * 13, NSH, tcp, ARP, ipv4_frame(), ipv4_frame()[:-1]])
    assert [number for number, _ in out] == [4]
    assert dropped == {"malformed": 2, "forged": 1, "unclassified": 2}


def test_the_first_chain_of_which_an_aggregate_holds_takes_a_frame() -> None:
    """Chains are tried in their order; one without aggregates takes all."""
    chains = [
        made_chain([("Tunnel", {"vlan": 1})], name="a", aggregates=["dst port 53", "icmp"]),
        made_chain([("Tunnel", {"vlan": 2})], name="b", aggregates=["udp"]),
        made_chain([("Tunnel", {"vlan": 3})], name="c"),
    ]
    frames = [ipv4_frame(), ipv4_frame(ports=(53, 9)), ipv4_frame(protocol=TCP, ports=(1, 2)), ARP]
    out, dropped = frames_out(chains, frames)
    assert [frame[15] for _, frame in out] == [1, 2, 3, 3]
    assert dropped == {}


def test_a_match_is_judged_on_the_frame_as_it_leaves_the_nf() -> None:
    """Behind a Tunnel the tag is there; without an edge for the rest it is dropped."""
    chain = made_chain(["Tunnel", "Monitor", "Detunnel"], [(0, 1, "1/2", "vlan 100"), (0, 2, "1/2", "tcp")])
    found = interpret([chain], [(0, ipv4_frame()), (1, framed(b"", (1, 2), ether_type=0x806))])
    assert found.counts == {"c/f0": NfCounts(2, 1, 1), "c/f1": NfCounts(1, 1, 0), "c/f2": NfCounts()}
    chain = made_chain(["Detunnel", "Monitor"], [(0, 1, "1", "vlan")])
    assert frames_out([chain], [ipv4_frame(tags=(5,))]) == ([], {"unmatched": 1})


def test_edges_without_match_share_the_rest_by_the_split_hash() -> None:
    """Each flow goes one way, and shares are kept."""
    edges = [(0, 1, "1/2", "udp dst port 53"), (0, 2, "1/3", ""), (0, 3, "1/6", "")]
    chain = made_chain(["Match", *(("Tunnel", {"vlan": vlan}) for vlan in (1, 2, 3))], edges)
    frames = [ipv4_frame(ports=(port, 53 if port % 4 == 0 else 99)) for port in range(4000)] + [ARP]
    out, dropped = frames_out([chain], frames)
    counts = Counter(frame[15] for _, frame in out)
    assert dropped == {} and counts[1] == 1000
    assert abs(counts[2] - 2000) < 100 and counts[2] + counts[3] == 3001
    assert out[-1][1][15] == 2


def test_limits_of_shares_are_rounded_down_and_the_last_is_all() -> None:
    assert split_limits([Fraction(1, 3)] * 3) == [21845, 43690, 65536]
    assert split_limits([Fraction(1, 4)]) == [65536]
    assert split_limits([Fraction(1, 6), Fraction(1, 3)]) == [21845, 65536]


def test_the_split_hash_of_a_known_packet_never_changes() -> None:
    """Computed by hand from its definition; other platforms are tested against the same numbers."""
    frame = ipv4_frame(0x0A000001, 0xC0000207, UDP, (1000, 53))
    assert split_value(frame, read_headers(frame), 1) == reference_split(
        (0x0A000001, 0xC0000207, 1000 << 16 | 53, 17), 1
    )
    first = ipv4_frame(0x0A000001, 0xC0000207, UDP, (1000, 53), parts=MORE_FRAGMENTS)
    assert split_value(first, read_headers(first), 9) == reference_split((0x0A000001, 0xC0000207, 0, 17), 9)
    assert split_value(ARP, read_headers(ARP), 12345) == 0


def reference_split(words: tuple[int, ...], salt: int) -> int:
    """The definition, step by step."""
    h = salt
    for word in words:
        h = (h + word) % 2**32
        h = (h + h * 1024) % 2**32
        h = h ^ h // 64
    h = (h + h * 8) % 2**32
    h = h ^ h // 2048
    h = (h + h * 32768) % 2**32
    return h // 65536


def test_fields_are_those_of_the_datagram_behind_tags() -> None:
    fields = fields_of(ipv4_frame(1, 2, TCP, (3, 4), tags=(7, 8), tag_type=0x88A8))
    assert (fields.vlan, fields.ip, fields.source, fields.destination, fields.ports) == (7, True, 1, 2, (3, 4))
    assert fields_of(ipv4_frame(parts=MORE_FRAGMENTS)).ports is None
    assert fields_of(ARP) == fields_of(framed(b"", ether_type=0x86DD))


def test_every_frame_is_sent_dropped_or_counted_with_its_reason() -> None:
    """Random frames through branches and merges: what enters is what leaves and what is dropped."""
    edges = [(0, 1, "1/2", ""), (0, 2, "1/2", ""), (1, 3, "1", ""), (2, 3, "1", ""), (3, 4, "1/2", "tcp")]
    chain = made_chain(["ACL", ("Tunnel", {"vlan": 9}), "LB", "Monitor", "IPv4Fwd"], edges)
    found = interpret([chain], [(at, frame) for at, frame in enumerate(random_frames(3, 1500))])
    inside = sum(one.dropped for one in found.counts.values())
    assert found.entered == 1500 == len(found.outputs) + sum(found.dropped.values()) + inside
    assert found.counts["c/f3"].entered == found.counts["c/f1"].sent + found.counts["c/f2"].sent
    assert all(one.entered == one.sent + one.dropped for one in found.counts.values())
    assert len(found.outputs) > 100


def test_unknown_parameters_are_refused_with_the_name_of_the_nf() -> None:
    with pytest.raises(InputError, match=r"c/f0: rulez: ACL has no such parameter\nhint: did you mean rules\?"):
        Interpreter([made_chain([("ACL", {"rulez": 3})])])
    with pytest.raises(InputError, match="c/f0: table: 100 is not a power of two"):
        Interpreter([made_chain([("LB", {"table": 100})])])
    with pytest.raises(InputError, match="c/f0: vlan: 4095 is not from 0 to 4094"):
        Interpreter([made_chain([("Tunnel", {"vlan": 4095})])])


ACL = ("ACL", {"rules": 12, "seed": 3})
FORWARD = ("IPv4Fwd", {"routes": 40, "seed": 1})
LB = ("LB", {"backends": 3, "table": 32, "seed": 2})
LIGHT = ("FastEncrypt", {"blocks": 1})
DIAMOND = ((0, 1, "1/3", "udp"), (0, 2, "2/3", ""), (1, 3, "1", ""), (2, 3, "1", ""))
SHARED = ((0, 1, "1/4", ""), (0, 2, "1/4", ""), (0, 3, "1/2", ""), (1, 3, "1", ""), (2, 3, "1", ""))
FIVE = ((0, 1, "1/2", "tcp"), (0, 2, "1/4", ""), (0, 3, "1/4", ""), (1, 4, "1", ""), (2, 4, "1", ""), (3, 4, "1", ""))

Result = tuple[Counter[bytes], Mapping[str, NfCounts], Counter[str]]


def result_of(outcome: RackOutcome) -> Result:
    """What must be equal: frames, counters of NFs, and drops."""
    return Counter(outcome.frames), dict(outcome.counts or {}), Counter(outcome.dropped)


def run_placements(chain: Chain, smartnics: Sequence[bool]) -> Coverage:
    """Compare all placements on a rack with the reference, and those of a chain without contracts with one another."""
    coverage, results = Coverage(), list[Result]()
    frames = rack_packets([chain], 1, of_each=2, others=10)
    reference = ReferenceRun([chain], timed(frames))
    for plan in every_placement(chain, rack_of(smartnics, ALL_KINDS)):
        rack = compiled_or_none(plan, coverage)
        if rack is None:
            continue
        outcome = emulated_outcome(rack, frames)
        coverage.add(rack.routing, reference)
        where = {name: nf.on for name, nf in plan.places[chain.name].items()}
        assert reference.differences(outcome) == [], where
        results.append(result_of(outcome))
        assert results[-1] == results[0] or reference.expected.uncertain or _has_contract(chain), where
    return coverage


def _has_contract(chain: Chain) -> bool:
    return any(nf.nf in ("NAT", "Encrypt", "Dedup", "Limiter") for nf in chain.nfs)


@pytest.mark.parametrize(
    "chain",
    [
        made_chain([ACL, "Tunnel", FORWARD], aggregates=["10.0.0.0/9", "udp"]),
        made_chain(["Match", "Detunnel", "Tunnel", "Monitor"], DIAMOND),
        made_chain(["Tunnel", ACL, LB, FORWARD], SHARED),
        made_chain(["NAT", "Tunnel", FORWARD], aggregates=["net 10.0.0.0/8"]),
    ],
    ids=["line", "diamond", "shared", "nat"],
)
def test_placements_on_switch_and_server_are_equal(chain: Chain) -> None:
    require_libpcap()
    coverage = run_placements(chain, [False])
    assert coverage.pairs == 2 ** sum(nf.nf != "Monitor" for nf in chain.nfs)
    assert coverage.idle == 0


def test_placements_with_a_smartnic_are_equal() -> None:
    require_libpcap()
    require_clang()
    assert run_placements(made_chain([ACL, "Tunnel"], [(0, 1, "1/2", "tcp")]), [True]).pairs == 3 * 3


@pytest.mark.slow
@pytest.mark.parametrize("smartnics", [[False, False], [True]], ids=["two servers", "SmartNIC"])
@pytest.mark.parametrize(
    "chain",
    [
        made_chain(["Match", ACL, "Tunnel", LB, FORWARD], FIVE),
        made_chain(["Tunnel", "Detunnel", LB, ACL, FORWARD], FIVE, aggregates=["udp", "10.0.0.0/9"]),
        made_chain(["NAT", "Dedup", "Encrypt", "Tunnel", "Monitor"], FIVE),
        made_chain(["LB", "Tunnel", LIGHT, "UrlFilter", "Limiter"], FIVE),
    ],
    ids=["sorted", "tagged", "contracts", "light"],
)
def test_all_placements_of_five_nfs_are_equal(chain: Chain, smartnics: list[bool]) -> None:
    require_libpcap()
    require_clang()
    coverage = run_placements(chain, smartnics)
    print(f"\n{coverage.text()}")
    assert coverage.refused <= coverage.pairs // 20
