"""The comparison with the reference catches faults of the programs of a rack: one change of the texts at a time."""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from typing import NamedTuple

import pytest

from placer.rack.chain import Chain
from placer.rack.compiler.compile import CompiledRack, compile_rack
from placer.rack.files.plan_file import PlanFile
from tests.placer.rack.compiler.ebpf.programs import require_clang
from tests.placer.rack.compiler.rack_packets import rack_packets, timed
from tests.placer.rack.compiler.rack_runs import emulated_outcome, require_libpcap
from tests.placer.rack.compiler.racks import ALL_KINDS, SAME_BYTES, every_placement, made_chain, rack_of, random_plan
from tests.reference.compare import ReferenceRun
from tests.reference.emulate import RackTexts, texts_of

TAGS = made_chain(
    ["Match", "Detunnel", "Tunnel", "Monitor", "ACL"],
    [
        (0, 1, "1", "vlan"),
        (0, 2, "1", ""),
        *((tail, at, "1/2", "vlan" * (at == 3)) for tail in (1, 2) for at in (3, 4)),
    ],
    aggregates=["vlan", "udp"],
)
PORTS = made_chain(
    ["Match", "Tunnel", "Monitor", "LB"],
    [(0, 1, "1/3", "tcp dst portrange 1024-40000"), (0, 2, "1/3", "udp src port 53"), (0, 3, "1/3", "")],
)
MADE = {-1: TAGS, -2: PORTS}  # chains on the switch, as far as that is possible, for what random ones rarely have
SWITCHES = (*MADE, 0, 1, 2, 4, 5, 7, 11, 13)
SMARTNICS = (100, 101, 103)


class MadeRack(NamedTuple):
    """The programs of a plan, with packets, and what the reference makes of them."""

    rack: CompiledRack
    frames: Sequence[bytes]
    reference: ReferenceRun

    def is_right(self, texts: RackTexts) -> bool:
        """Whether programs do what the reference does, and do not fail."""
        try:
            outcome = emulated_outcome(self.rack, self.frames, texts)
        except (AssertionError, LookupError, TypeError, ValueError):
            return False
        return not self.reference.differences(outcome)


@cache
def rack_of_seed(seed: int) -> MadeRack:
    kinds = ALL_KINDS if seed % 5 == 4 else SAME_BYTES
    if seed in MADE:
        plan = placed_on_switch(MADE[seed])
    else:
        plan = random_plan(seed, kinds, smartnics=float(seed >= SMARTNICS[0]))
    frames = rack_packets(plan.chains, seed)
    return MadeRack(compile_rack(plan, "plan"), frames, ReferenceRun(plan.chains, timed(frames)))


def placed_on_switch(chain: Chain) -> PlanFile:
    """The placement with the most NFs on the switch."""
    plans = every_placement(chain, rack_of([False], ALL_KINDS))
    return max(plans, key=lambda plan: sum(nf.on == "switch" for nf in plan.places[chain.name].values()))


Change = str | Callable[[re.Match[str]], str]
NOTHING = "mov m.port m.port"  # an instruction of the pipeline that does nothing


def number(add: int = 0, times: int = 1, end: int = 0) -> Change:
    """A number becomes another one: what stands before it is the first group of the pattern."""

    def changed(found: re.Match[str]) -> str:
        value = int(found[2], 0) * times // (end or 1) + add
        return f"{found[1]}{value:#x}" if found[2].startswith("0x") else f"{found[1]}{value}"

    return changed


def swapped(one: str, other: str) -> Change:
    """The two texts that the pattern finds become each other."""
    return lambda found: found[0].replace(found[1], {one: other, other: one}[found[1]])


def short_mask(found: re.Match[str]) -> str:
    value, mask = int(found[1], 16), int(found[2], 16)
    return f"{value & mask << 1:#x}/{mask << 1 & mask:#x}"


def complement(found: re.Match[str]) -> str:
    return f"{int(found[2]) - int(found[1])}/{found[2]}"


ONE_TAG = r"\|\|\(\(ether\[12:2\]=0x8100\|\|ether\[12:2\]=0x88a8\)&&\(ether\[16:2\][^;]*?(?=\|\|len<=0)"
SWITCH_MUTANTS: tuple[tuple[str, str, str, Change], ...] = (
    # the program of the switch
    ("packets that come back keep their label", "spec", r"(action resume .*\n)(\tinvalidate .*\n)+", r"\1"),
    ("packets leave the rack with their label", "spec", r"(action leave .*\n)(\tinvalidate .*\n)+", r"\1"),
    ("packets for other devices get no label", "spec", r"\bvalidate h\.(outer|nsh)", NOTHING),
    ("the label stands behind the Ethernet header", "spec", r"(\temit h\.outer\n\temit h\.nsh\n)(.*\n)", r"\2\1"),
    ("forged labels are taken for those of the rack", "spec", r"regadd reasons 0 0x1\n\tmov m\.drop 0x1", NOTHING),
    ("what fits no entry is not dropped", "spec", r"\tjmpneq \w+ m\.found 0\n.*\n\tmov m\.drop 0x1\n", ""),
    ("limits of the split hash are halved", "spec", r"(jmpgt \w+ m\.hash )(\d+)", number(end=2)),
    ("shares of a split are taken in the other order", "spec", r"(jmpgt \w+ m\.hash )(\d+)", number(65535, -1)),
    ("the split hash of the switch has another salt", "spec", r"(mov m\.hash )(0x[1-9a-f]\w+)", number(1)),
    ("a balancer takes another salt", "spec", r"(mov m\.hash )(0x[1-9a-f]$)", number(1)),
    ("the split hash ignores ports", "spec", r"(mov|or) m\.word h\.\w+\.\w+_port", NOTHING),
    ("fragments are hashed with ports", "spec", r"(and m\.fragment )(0x3fff)", number(times=0)),
    ("what an NF dropped goes on to the next one", "spec", r"jmpneq \w+ m\.drop 0(?=\n\tregadd sent)", NOTHING),
    ("NFs run whatever is next", "spec", r"jmpneq \w+ m\.node \d+$", NOTHING),
    ("no packet comes to the NF that is next", "spec", r"mov m\.node 0x[1-9a-f]\w*", NOTHING),
    ("source and destination port are swapped", "spec", r"(?<=_port h\.tcp\.)(source|destination)",
     swapped("source", "destination")),
    ("the IPv4 checksum is not updated", "spec", r"add h\.ipv4\.checksum .*", NOTHING),
    ("checksums are not updated for new addresses", "spec", r"ck(add|sub) .*", NOTHING),
    ("the time to live stays", "spec", r"sub h\.ipv4\.ttl 0x1", NOTHING),
    ("packets go on at the end of their time to live", "spec", r"(jmpgt \w+ h\.ipv4\.ttl )(1)", number(-1)),
    ("packets are dropped before the end of their time to live", "spec", r"(jmpgt \w+ h\.ipv4\.ttl )(1)", number(1)),
    ("Detunnel leaves the note of the tag", "spec", r"mov m\.tagged 0x0", NOTHING),
    ("Tunnel makes no note of the tag", "spec", r"mov m\.tagged 0x1", NOTHING),
    ("Tunnel forgets the tag that was there", "spec", r"\bvalidate h\.inner_tag", NOTHING),
    ("NAT gives the same endpoint to all", "spec", r"regrd m\.taken .*", "mov m.taken 0x0"),
    ("the switch counts what left as what entered", "spec", r"regadd (entered|sent)", swapped("entered", "sent")),
    ("the switch counts all packets for its first NF", "spec", r"(regadd entered )(\d+)", number(times=0)),
    ("the switch does not look behind a second tag", "spec", r"\tjmpeq PARSE_INNER_TAG_.*\n", ""),
    ("the switch finds no ports behind IPv4 options", "spec", r"(extract h\.options m\.length\n)([^}]*?(PARSED_\d+))",
     r"\1\tjmp \3\n\2"),
    ("no table is asked where packets of the world go", "spec", r"^\t(\w+ : )?table classify$", rf"\t\1{NOTHING}"),
    # its entries
    ("the switch writes a service index that is one too low", "entries", r"(to_device label )(0x\w+)", number(-1)),
    ("the switch writes the label of the first NF of the path", "entries", r"(to_device label 0x\w+)\w\w", r"\1ff"),
    ("packets leave with the label of the NF that they passed", "entries", r"(steer match )(0x\w+)(?= action leave)",
     number(1)),
    ("no label for packets from device to device over the switch", "entries", r"^steer .* action relay .*\n", ""),
    ("no label for packets that come back to the switch", "entries", r"^steer .* action resume .*\n", ""),
    ("no label for packets that leave the rack", "entries", r"^steer .* action leave\n", ""),
    ("packets go to the port of the next server", "entries", r"(port )(0x\w+)", number(1)),
    ("ways of a branch are swapped", "entries", r"(_branch .* action )(.*)(\n\w+_branch .* action )(.*)",
     r"\1\4\3\2"),
    ("the first entry of each branch takes all", "entries", r"(\w+_branch match )(.*)(priority 0 .*)",
     lambda found: f"{found[1]}{re.sub(r'0x[0-9a-f]+', '0x0', found[2])}{found[3]}"),
    ("the entries of NFs are lost", "entries", r"^c\d__.*\n", ""),
    ("entries with masks are in the other order", "entries", r"(priority )(\d+)", number(9999, -1)),
    ("masks lack their last bit", "entries", r"(0x\w+)/(0x\w+)", short_mask),
    ("filters of an ACL permit what they deny", "entries", r"_rules .*(pass_rule|drop_rule)",
     swapped("pass_rule", "drop_rule")),
    # chain files of servers, and the filters of their functions
    ("the service index is the same for all NFs of a path", "servers", r"nsh (\d+) \d+", r"nsh \1 255"),
    ("a server writes a service index that is one too low", "servers", r"(-> nsh \d+ )(\d+)$", number(-1)),
    ("a server sends what leaves it back to the NF that it left", "servers", r"(-> nsh \d+ )(\d+)$", number(1)),
    ("a server writes the next service path", "servers", r"(-> nsh )(\d+)", number(1)),
    ("no packet enters a server", "servers", r"^nsh .*\n", ""),
    ("gates of what sorts packets are swapped", "servers", r"\[(0|1)\] ->", swapped("0", "1")),
    ("only the first edge behind a function is written", "servers", r"^((\S+) -> .*\n)(\2 -> .*\n)+", r"\1"),
    ("splits of servers have no salt", "servers", r"^split .*\n", ""),
    ("splits of servers have another salt", "servers", r"^(split .* )(\d+)$", number(1)),
    ("shares of a server's split are taken in the other order", "servers", r"(\d+)/(\d+)$", complement),
    ("what no filter matches is dropped where it should pass", "servers", r"drop_unmatched=(0|1)", swapped("0", "1")),
    ("filters are in the other order", "servers", r"filters=(\S+)",
     lambda found: "filters=" + ";".join(found[1].split(";")[::-1])),
    ("settings of Tunnel are not written", "servers", r"(: Tunnel) .*", r"\1"),
    ("settings of LB are not written", "servers", r"(: LB) .*", r"\1"),
    ("filters look behind one tag only", "servers", ONE_TAG, ""),
    ("filters look for ports of fragments", "servers", "&0x3fff=0", "&0x1fff=0"),
    ("filters take source for destination", "servers", r"ether\[(26|30):4\]", swapped("26", "30")),
    ("filters forget that it is IPv4", "servers", r"ether\[\d+:2\]=0x0800", "len>=0"),
)  # fmt: skip
NIC_MUTANTS: tuple[tuple[str, str, str, Change], ...] = (
    ("a SmartNIC writes a service index that is one too low", "nics", r"(label = )(0x\w+)(?=;)", number(-1)),
    ("a SmartNIC confuses switch and host", "nics", r"XDP_(TX|PASS)", swapped("TX", "PASS")),
    ("a SmartNIC writes no label", "nics", r"label = 0x\w+;", "label = 0;"),
    ("a SmartNIC keeps the label that a packet came with", "nics", r"if \(!nsh_pop\(ctx\)\)\n.*", ""),
    ("a SmartNIC lets nothing pass to the host", "nics", r"return XDP_PASS", "return XDP_DROP"),
    ("a SmartNIC lets nothing pass to the switch", "nics", r"return XDP_TX", "return XDP_DROP"),
    ("splits of a SmartNIC have another salt", "nics", r"(split_hash\(&headers, )(0x\w+)", number(1)),
    ("limits of a SmartNIC's splits are halved", "nics", r"(hash < )(\d+)", number(end=2)),
    ("conditions of a SmartNIC are turned round", "nics", r"if \((\(.*fields\..*\))\)\n", r"if (!(\1))\n"),
    ("packets enter a SmartNIC behind the NF that is next", "nics", r"return NEXT_\w+;(?=\n\tcase|\n\tdefault)",
     "return EXIT_0;"),
    ("a SmartNIC counts what left as what entered", "nics", r"\bcount\((\d+)\);",
     lambda found: f"count({int(found[1]) ^ 1});"),
    ("what an NF of a SmartNIC dropped goes on", "nics", r"if \(!(\w+\(ctx[^\n]*\))\)\n\t\treturn DROPPED;", r"\1;"),
)  # fmt: skip


def mutate(texts: RackTexts, which: str, pattern: str, change: Change) -> RackTexts:
    def changed(text: str) -> str:
        return re.sub(pattern, change, text, flags=re.MULTILINE)

    if which == "servers":
        return replace(texts, servers={name: changed(text) for name, text in texts.servers.items()})
    if which == "nics":
        return replace(texts, nics={at: (name, changed(text)) for at, (name, text) in texts.nics.items()})
    return replace(texts, **{which: changed(getattr(texts, which))})


def catches(seeds: Sequence[int], which: str, pattern: str, change: Change) -> bool:
    """Whether the changed programs of some rack do something else than the reference."""
    for seed in seeds:
        made = rack_of_seed(seed)
        texts = texts_of(made.rack)
        mutant = mutate(texts, which, pattern, change)
        if mutant != texts and not made.is_right(mutant):
            return True
    return False


@pytest.mark.parametrize("seeds", [SWITCHES, SMARTNICS], ids=["switches", "SmartNICs"])
def test_what_the_generator_writes_passes(seeds: Sequence[int]) -> None:
    require_libpcap()
    require_clang()
    assert all(rack_of_seed(seed).is_right(texts_of(rack_of_seed(seed).rack)) for seed in seeds)


@pytest.mark.parametrize(("fault", "which", "pattern", "change"), [*SWITCH_MUTANTS, *NIC_MUTANTS])
def test_a_fault_is_caught(fault: str, which: str, pattern: str, change: Change) -> None:
    require_libpcap()
    if which == "nics":
        require_clang()
    assert catches(SMARTNICS if which == "nics" else SWITCHES, which, pattern, change), fault
