"""Files of operators' own data: what is read, what is refused where, and that the functions in C read the same."""

import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

from placer.rack.chain import ChainNf, OwnData
from placer.rack.compiler.library.acl import AclFilter
from placer.rack.compiler.library.nf_kind import NF_KINDS
from placer.rack.compiler.library.prefixes import ANY_PREFIX, parse_prefix
from placer.rack.compiler.own_data import OwnDataReader
from placer.rack.files.sources import SourceFolder
from profiles.faults import Fault, InputError
from tests.effort import examples
from tests.nfs.captures import write_capture
from tests.nfs.comparison import PROGRAM
from tests.placer.rack.compiler.library.frames import require_nf

Draw = Callable[[Random], str]


def read(kind: str, name: str, value: OwnData, folder: Path) -> Any:
    """Own data of an NF. Raises InputError."""
    nf = ChainNf("f", kind, {}, {name: value})
    return OwnDataReader(SourceFolder(folder)).read(
        nf, lambda within, message, hint: Fault("c", None, within, message, hint)
    )[name]


def faults(kind: str, name: str, value: OwnData, folder: Path) -> list[str]:
    """What is wrong with own data, a line each."""
    with pytest.raises(InputError) as error:
        read(kind, name, value, folder)
    return [str(fault).removeprefix(f"{folder}/") for fault in error.value.faults]


def words(rng: Random, *choices: str) -> str:
    return " ".join(rng.choice(one.split("|")) for one in choices)


ADDRESSES = (
    "10.0.0.0/8|10.1.2.3|any|192.0.2.0/24|10.0.0.1/8|10.0.0.256|0.0.0.0/0|127.1.0.0/16|10.0.0.0/33|224.0.0.1"
    "|010.0.0.1|1.2.3"
)
PORTS = "|80|1-65535|99999|7-5|0|-|5-"
DRAWN_LINES: dict[tuple[str, str, str], Draw] = {
    ("ACL", "rules", "file"): lambda rng: words(
        rng, "permit|permit|deny|Deny", "ip|tcp|udp|icmp|47|0|256|sctp", ADDRESSES, PORTS, ADDRESSES, PORTS, "||# x|y"
    ),
    ("IPv4Fwd", "routes", "file"): lambda rng: words(rng, ADDRESSES, "0|255|256|-1|x|7", "|||# x|y"),
    ("LB", "backends", "file"): lambda rng: words(rng, ADDRESSES, "|1|2|0|65536|x", "|||# x|y"),
    ("UrlFilter", "urls", "list"): lambda rng: "".join(
        (
            rng.choice(("", "http://", "HTTPS://", "ftp://")),
            rng.choice(HOSTS),
            rng.choice(PATHS),
            rng.choice(("", " # x", "#x")),
        )
    ),
}
HOSTS = (
    "a.example",
    "*.a.example",
    "a..b",
    ".a",
    "a.",
    "a..",
    "a_b-c.de",
    "ä.de",
    "x" * 64,
    "a:80",
    "u@a",
    "",
    "a b",
    ".".join(["x" * 50] * 5),
)
PATHS = ("", "/", "/a/b", "/a?b", "/a/" * 17, "/%7e", "/ü", "/a b", "/" + "x" * 4096)


@pytest.mark.parametrize(("kind", "name", "setting"), DRAWN_LINES)
def test_the_functions_in_c_refuse_the_same_lines(kind: str, name: str, setting: str, tmp_path: Path) -> None:
    """Of random files: the lines with faults are the same, and files without a fault are read by both."""
    require_nf(kind)
    rng, draw = Random(kind), DRAWN_LINES[kind, name, setting]
    capture = write_capture(tmp_path / "in.pcap", [], 10)
    refused = 0
    for at in range(examples(24)):
        lines = [draw(rng) for _ in range(rng.choice((1, 3, 6)))]
        file = tmp_path / f"{at}.own"
        file.write_text("\n".join(lines) + rng.choice(("", "\n")), encoding="utf-8", newline="")
        ours: set[int | None] = set()
        try:
            read(kind, name, file.name, tmp_path)
        except InputError as error:
            ours = {fault.line for fault in error.faults}
        more = ["--set", "table=256"] if kind == "LB" else []
        command = [PROGRAM, "--nf", kind, "--set", f"{setting}={file}", *more]
        done = subprocess.run(
            [*command, "--in", capture, "--out", tmp_path / "out.pcap"], capture_output=True, text=True, check=False
        )
        theirs = {int(line) for line in re.findall(rf"^{re.escape(str(file))}:(\d+): ", done.stderr, re.MULTILINE)}
        assert (done.returncode != 0) == bool(ours), (lines, done.stderr)
        assert theirs == ours or theirs == {0} or ours == {None}, (lines, done.stderr)
        refused += bool(ours)
    assert refused > 0


def test_rules_of_a_chain_are_filters(tmp_path: Path) -> None:
    """Ports without a protocol are those of TCP and of UDP."""
    inside = parse_prefix("10.0.0.0/8")
    rules = ({"dst_ip": "10.0.0.0/8", "drop": False}, {"src_port": 53, "dst_port": "1-9", "drop": True})
    everything = (ANY_PREFIX, (0, 65535))
    assert read("ACL", "rules", rules, tmp_path) == (
        AclFilter(True, 0, *everything, inside, (0, 65535), 1),
        AclFilter(False, 6, ANY_PREFIX, (53, 53), ANY_PREFIX, (1, 9), 2),
        AclFilter(False, 17, ANY_PREFIX, (53, 53), ANY_PREFIX, (1, 9), 2),
    )


@pytest.mark.parametrize(
    ("rule", "fault"),
    [
        ({"dst": "10.0.0.0/8", "drop": True}, "c: rules.0.dst: a rule has no 'dst'"),
        ({"dst_ip": "10.0.0.1/8", "drop": True}, "c: rules.0.dst_ip: 10.0.0.1/8: bits beyond the prefix are set"),
        ({"dst_ip": "10.0.0.0/8"}, "c: rules.0.drop: the rule has no 'drop'"),
        ({"drop": 1}, "c: rules.0.drop: 1: drop is true or false"),
        ({"dst_port": 0, "drop": True}, "c: rules.0.dst_port: 0 means any port in BESS"),
        ({"dst_port": 70000, "drop": True}, "c: rules.0.dst_port: 70000: ports are from 0 to 65535"),
        ({"ip_proto": "icmp", "dst_port": 7, "drop": True}, "c: rules.0.dst_port: only tcp and udp have ports"),
        ({"ip_proto": 300, "drop": True}, "c: rules.0.ip_proto: 300: not a protocol"),
    ],
)
def test_a_wrong_rule_is_named_by_its_key(rule: dict[str, str | int | bool], fault: str, tmp_path: Path) -> None:
    """Beside all others: of another rule, and of another key of this one."""
    others = {"src_ip": "x", **rule}, {"ip_proto": "x", "drop": True}
    first, *found = faults("ACL", "rules", others, tmp_path)
    assert any(line.startswith(fault) for line in (first, *found))
    assert len(found) == 2 and found[-1].startswith("c: rules.1.ip_proto: x: not a protocol")


@pytest.mark.parametrize(
    ("kind", "name", "content", "found"),
    [
        (
            "ACL",
            "rules",
            "permit ip any any\n  deny tcp any 99999 any\n",
            ["f:2: column 16: 99999: ports are from 0 to 65535, the lower one first"],
        ),
        ("ACL", "rules", "permit ip any any x\0\n", ["f:1: a zero byte: this is not a text file"]),
        ("IPv4Fwd", "routes", "any 1\n\n0.0.0.0/0 2\n", ["f:3: column 1: the prefix has a route already, in line 1"]),
        (
            "IPv4Fwd",
            "routes",
            "10.0.0.0/8 # 1\n10.0.0.0/8 via 3\n",
            ["f:1: column 11: 1 word instead of 2", "f:2: column 16: 3 words instead of 2"],
        ),
        ("LB", "backends", "# none\n", ["f: no backends"]),
        ("LB", "backends", "1.2.3.4\n1.2.3.4 2\n", ["f:2: column 1: the backend is there already, in line 1"]),
        ("Match", "filters", "udp\n  tcp prot 5\n", ["f:2: column 7: 'prot' does not belong here"]),
        ("UrlFilter", "urls", "a.b\n *.c\n", ["f:2: column 2: a wildcard: a domain covers its subdomains by itself"]),
        ("Encrypt", "key", "00112233\n4455\n", ["f:2: 12 hexadecimal digits, not 32"]),
        ("Encrypt", "key", "0011 22x3\n", ["f:1: column 8: 'x' is no hexadecimal digit"]),
    ],
)
def test_each_fault_of_a_file_has_its_line_and_column(
    kind: str, name: str, content: str, found: list[str], tmp_path: Path
) -> None:
    (tmp_path / "f").write_text(content, encoding="utf-8")
    assert faults(kind, name, "f", tmp_path) == found


def test_a_key_is_its_digits_or_a_file_with_them(tmp_path: Path) -> None:
    key = bytes(range(16))
    (tmp_path / "k").write_text(f"# a key\n{key.hex()[:8]} {key.hex()[8:]}\n", encoding="utf-8")
    assert read("Encrypt", "key", key.hex(), tmp_path) == read("Encrypt", "key", "k", tmp_path) == key
    assert faults("Encrypt", "key", key.hex()[:30], tmp_path) == ["c: key: 30 hexadecimal digits, not 32"]


def test_a_pool_has_at_most_256_addresses(tmp_path: Path) -> None:
    assert read("NAT", "pool", "203.0.113.0/28", tmp_path) == parse_prefix("203.0.113.0/28")
    assert faults("NAT", "pool", "203.0.0.0/16", tmp_path) == [
        "c: pool: 203.0.0.0/16: 65,536 addresses are more than 256"
    ]
    assert faults("NAT", "pool", "a.pool", tmp_path) == ["c: pool: a.pool: not an IPv4 address"]


def test_weights_are_shares_of_the_table(tmp_path: Path) -> None:
    """Each backend has an entry; another line of the file moves few entries of others."""
    (tmp_path / "b").write_text("192.0.2.1 3\n192.0.2.2\n", encoding="utf-8")
    (tmp_path / "c").write_text("192.0.2.9 4\n192.0.2.1 3\n192.0.2.2\n", encoding="utf-8")
    kind = NF_KINDS["LB"]
    tables = []
    for name in ("b", "c"):
        own = {"backends": read("LB", "backends", name, tmp_path)}
        data = kind.data_of(kind.completed({"backends": len(own["backends"])}, "f", own), own)
        tables.append([data.addresses[number] for number in data.table])
    first, second = (int.from_bytes(bytes((192, 0, 2, last)), "big") for last in (1, 2))
    assert (tables[0].count(first), tables[0].count(second)) == (192, 64)
    assert (tables[1].count(first), tables[1].count(second)) == (96, 32)
    moved = sum(before != after for before, after in zip(*tables, strict=True) if after in (first, second))
    assert moved < 40
