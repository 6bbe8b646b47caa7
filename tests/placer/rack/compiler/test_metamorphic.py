"""Where NFs run changes nothing: every placement of a chain gives the same frames, counters and drops."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import pytest

from placer.rack.chain import Chain
from placer.rack.compiler.execute import NfCounts
from tests.placer.rack.compiler.ebpf.kernel import require_clang
from tests.placer.rack.compiler.made_chains import made_chain
from tests.placer.rack.compiler.rack_packets import rack_packets, timed
from tests.placer.rack.compiler.rack_runs import Coverage, compiled_or_none, emulated_outcome, require_libpcap
from tests.placer.rack.compiler.random_racks import ALL_KINDS, every_placement, rack_of
from tests.reference.compare import RackOutcome, ReferenceRun

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
    chain = made_chain([ACL, "Tunnel"], [(0, 1, "1/2", "tcp")])
    assert run_placements(chain, [True]).pairs == 3 * 3


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
