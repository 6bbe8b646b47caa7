"""The chain file of a server: entries, copies, sorting and labels."""

import zlib
from dataclasses import replace
from fractions import Fraction

import pytest

from placer.rack.compiler.compile import compile_rack
from placer.rack.compiler.server.chain_file import ServerProgram
from placer.rack.files.plan_file import PlanFile, SubgroupCores
from profiles import InputError
from tests.placer.rack.compiler.racks import made_chain, made_plan


def _server(plan: PlanFile, name: str = "s0") -> ServerProgram:
    return compile_rack(plan, "plan").servers[name]


def test_a_subgroup_is_entered_and_left_by_labels() -> None:
    """The label of its first NF in, that of the next device's NF out, each NF on its core."""
    program = _server(made_plan((made_chain(["ACL", "Monitor", "Tunnel", "LB"]), "switch s0 s0 switch")))
    assert program.chain == (
        "# server s0\n"
        "c__f1: Monitor ipv6=pass\n"
        "c__f2: Tunnel vlan=100\n"
        "c__f1 -> c__f2\n"
        "c__f2 -> nsh 1 252\n"
        "nsh 1 254 -> c__f1\n"
        "core 0: c__f1 c__f2\n"
    )
    assert program.functions == {"c__f1": "c/f1", "c__f2": "c/f2"}


def test_copies_share_the_flows_that_enter() -> None:
    """Two cores: two copies of each NF, and the salt of the split is that of the subgroup."""
    cores, salt = SubgroupCores("s0", ("f1",), 2), zlib.crc32(b"c/f1/replicas")
    program = _server(made_plan((made_chain(["ACL", "Monitor", "LB"]), "switch s0 switch"), cores=[cores]))
    assert f"nsh 1 254 -> c__f1.0 1/2\nnsh 1 254 -> c__f1.1 1/2\nsplit nsh 1 254 {salt}\n" in program.chain
    assert "core 0: c__f1.0\ncore 1: c__f1.1\n" in program.chain
    assert program.cores == 2


def test_copies_divide_what_none_may_use_twice() -> None:
    """External addresses of a NAT and the rate of a Limiter; more copies than addresses are refused."""
    cores = SubgroupCores("s0", ("f1", "f2"), 3)
    chain = made_chain(["ACL", ("NAT", {"addresses": 4}), ("Limiter", {"mbps": 600}), "LB"])
    lines = _server(made_plan((chain, "switch s0 s0 switch"), cores=[cores])).chain.splitlines()
    nats = [dict(word.split("=") for word in line.split()[2:]) for line in lines if ": NAT " in line]
    first = [int(nat["first_address"]) - int(nats[0]["first_address"]) for nat in nats]
    assert first == [0, 1, 2] and [nat["addresses"] for nat in nats] == ["1", "1", "2"]
    assert [line.split()[-1] for line in lines if ": Limiter " in line] == ["rate_mbps=200.0"] * 3
    few = made_chain(["ACL", ("NAT", {"addresses": 2}), "Limiter", "LB"])
    with pytest.raises(InputError, match="c/f1: 3 copies are more than this NAT can have, 2"):
        _server(made_plan((few, "switch s0 s0 switch"), cores=[cores]))


def test_no_two_functions_that_encrypt_share_a_seed() -> None:
    """NFs with one key, and copies, would else send packets with the same initialization vectors."""
    assert zlib.crc32(b"plumless") == zlib.crc32(b"buckeroo")
    ends = made_chain(["Encrypt", "FastEncrypt", "FastEncrypt", ("FastEncrypt", {"blocks": 1})])
    taken = {"plumless": ("udp",), "buckeroo": ("tcp",)}
    chains = [replace(ends, name=name, aggregates=filters) for name, filters in taken.items()]
    cores = [SubgroupCores("s0", ("f0", "f1", "f2", "f3"), 3)]
    plan = made_plan(*((chain, "s0 s0 s0 s0") for chain in chains))
    lines = _server(replace(plan, subgroups=dict.fromkeys(taken, cores))).chain.splitlines()
    seeds = [line.split()[-1] for line in lines if "ncrypt" in line.partition(": ")[2] and "blocks" not in line]
    assert len(seeds) == len(set(seeds)) == 18 and all(seed.startswith("seed=") for seed in seeds)
    assert not any("seed" in line for line in lines if "blocks" in line)


def test_packets_are_sorted_by_matches_before_shares() -> None:
    """Behind an NF that is no Match stands one that sorts; its last gate has the shares of the rest."""
    edges = [(0, 1, "1/2", "udp"), (0, 2, "1/4", ""), (0, 3, "1/4", "")]
    program = _server(made_plan((made_chain(["Monitor", "ACL", "LB", "Tunnel"], edges), "s0 switch s0 s0")))
    lines = program.chain.splitlines()
    assert "c__f0 -> c__f0__sort" in lines
    assert "c__f0__sort[0] -> nsh 1 254" in lines
    assert [one for one in lines if "sort[1]" in one] == ["c__f0__sort[1] -> c__f2 1/2", "c__f0__sort[1] -> c__f3 1/2"]
    assert any(line.startswith("split c__f0__sort ") for line in lines)
    assert " drop_unmatched=0" in next(line for line in lines if line.startswith("c__f0__sort: Match filters="))


def test_a_match_sorts_itself() -> None:
    """It is the function that has the filters; without other edges it drops what matches none."""
    edges = [(0, 1, "1/2", "udp"), (0, 2, "1/2", "tcp")]
    program = _server(made_plan((made_chain(["Match", "ACL", "LB"], edges), "s0 switch switch")))
    assert "c__f0: Match filters=" in program.chain
    assert "drop_unmatched=1" in program.chain
    assert "c__f0[0] -> nsh 1 254\nc__f0[1] -> nsh 2 254\n" in program.chain


def test_the_largest_rate_of_a_chain_is_kept_where_it_enters_a_server() -> None:
    """A Limiter stands before the first NF if the NIC carries more than t_max."""
    chain = made_chain(["Monitor", "LB"])
    slow = replace(chain, slo=replace(chain.slo, t_max_mbps=Fraction(2500)))
    assert (
        "c__f0__limit: Limiter rate_mbps=2500 burst_bytes=3125000 checksums=0\n"
        in _server(made_plan((slow, "s0 switch"))).chain
    )
    assert "nsh 1 255 -> c__f0__limit\nc__f0__limit -> c__f0\n" in _server(made_plan((slow, "s0 switch"))).chain
    assert "Limiter" not in _server(made_plan((chain, "s0 switch"))).chain


def test_functions_read_the_files_of_their_nf() -> None:
    """The filters of the ACL that runs there, one a line."""
    chain = made_chain([("ACL", {"rules": 3.0}), ("ACL", {"rules": 5.0})])
    program = _server(made_plan((chain, "s0 s0")))
    assert {name: len(text.splitlines()) for name, text in program.files.items()} == {
        "c__f0.filters": 3,
        "c__f1.filters": 5,
    }
    assert "c__f1: ACL file=c__f1.filters default_permit=1 ipv6=pass\n" in program.chain


def test_a_core_of_many_functions_has_several_lines() -> None:
    """The chain runtime reads few words of a line."""
    program = _server(made_plan((made_chain(["ACL", *["Monitor"] * 17, "LB"]), f"switch{' s0' * 17} switch")))
    lines = [line.split() for line in program.chain.splitlines() if line.startswith("core 0:")]
    assert [len(words) for words in lines] == [18, 3]


def test_what_the_chain_runtime_cannot_take_is_refused() -> None:
    """Thirty-three ways behind one NF, by shares: nf-server reads 32."""
    chain = made_chain(["Monitor"] * 34, [(0, at, "1/33", "") for at in range(1, 34)])
    with pytest.raises(InputError, match="33 ways behind one NF, by shares, are more than the chain runtime takes, 32"):
        _server(made_plan((chain, " ".join(["s0"] * 34))))
