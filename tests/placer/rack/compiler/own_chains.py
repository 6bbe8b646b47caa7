"""Random chains as text with operators' own data, and the files that they name."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path
from random import Random

from placer.rack.chain import Chain
from placer.rack.compiler.library.match import name_expressions
from placer.rack.compiler.own_data import load_own_data
from placer.rack.files.chains_file import read_chains_file
from placer.rack.files.plan_file import PlanFile
from tests.placer.rack.compiler.racks import AGGREGATES, ALL_KINDS, MATCHES, PARAMETERS, placed_at_random, rack_of
from tests.reference.chain_text import (
    OWN_NAMES,
    OwnRule,
    TextMeaning,
    WrittenBranch,
    WrittenNf,
    WrittenPath,
    file_lines,
    nfs_of,
    write_path,
)

NETWORKS = ("10.0.0.0/9", "10.128.0.0/9", "10.0.0.0/28", "192.0.2.0/24", "198.18.0.0/15", "8.8.8.8/32", "10.0.0.3/32")
PORT_RANGES = ("53", "80", "443", "1024-40000", "0-1023", "5000-5007", "40001")
URLS = ("ads.example.org", "fast-game7.com/login3", "HTTP://www.lucky-click12.net/img1/", "example.com", "a.b.c/x/../y")
OWN_KINDS = (*ALL_KINDS, "ACL", "ACL", "ACL", "IPv4Fwd", "LB", "LB", "NAT", "Match")


@dataclass(frozen=True)
class OwnChains:
    """Chains with own data, placed at random. `matched`: with expressions in place of their names, to make packets."""

    text: str
    plan: PlanFile
    matched: Sequence[Chain]
    meaning: TextMeaning
    urls: Sequence[str]
    kinds: Sequence[str]  # of NFs with own data


def draw_own_chains(seed: int, folder: Path, *, smartnics: float = 0.4, kinds: Sequence[str] = OWN_KINDS) -> OwnChains:
    """One or two chains of one to eight NFs, most of them with own data where their kind has any.

    Raises InputError where the text says what no list of ways can.
    """
    rng = Random(seed)
    names = [f"c{at}" for at in range(rng.choice((1, 1, 2)))]
    drawing = _Drawing(rng, folder, kinds)
    paths: dict[str, WrittenPath] = {}
    lines = [f"slo {', '.join(names)}: 1 Mbps to 100 Gbps"]
    for at, name in enumerate(names):
        paths[name] = drawing.chain()
        lines.append(f"chain {name}: {write_path(paths[name], rng.choice(QUOTES))}")
        if at == 0 and (len(names) > 1 or rng.random() < 0.5):
            lines.append(f"aggregate {name}: {rng.choice(AGGREGATES)}")
    text = "".join(f"{line}\n" for line in lines)
    (folder / "own.chains").write_text(text, encoding="utf-8")
    read = load_own_data(read_chains_file(folder / "own.chains"))
    rack = rack_of([rng.random() < smartnics for _ in range(rng.choice((1, 1, 2)))], kinds)
    plan = replace(placed_at_random(rng, read.chains, rack), sources=read.recorded)
    every = [nf for path in paths.values() for nf in nfs_of(path)]
    urls = [
        url.partition("://")[2] or url
        for nf in every
        if "urls" in nf.own
        for url in file_lines(folder / str(nf.own["urls"]))
    ]
    matched = [_with_expressions(chain, paths[chain.name], folder) for chain in read.chains]
    return OwnChains(text, plan, matched, TextMeaning(paths, folder), urls, [nf.kind for nf in every if nf.own])


QUOTES = ('"', "'")


def redraw_files(seed: int, folder: Path) -> None:
    """Give the files of own data other entries, where both ends of a link need not have the same."""
    drawing = _Drawing(Random(seed), folder, ())
    for path in sorted(folder.iterdir()):
        kind = path.suffix[1:]
        if kind in (*OWN_NAMES, "Match"):
            lines = drawing.lines(kind)
            if kind == "Match":  # branches name all that there were
                lines = drawing.rng.sample(MATCHES, k=max(len(lines), len(file_lines(path))))
            drawing.write(path.name, lines)


def _with_expressions(chain: Chain, path: WrittenPath, folder: Path) -> Chain:
    of = {nf.id: file_lines(folder / str(nf.own["filters"])) for nf in nfs_of(path) if "filters" in nf.own}
    edges = [
        replace(edge, match=name_expressions(edge.match, of.get(chain.nfs[edge.tail].id, ()), lambda message: None))
        for edge in chain.edges
    ]
    return replace(chain, edges=tuple(edges))


class _Drawing:
    """Draws NFs, branches and files."""

    def __init__(self, rng: Random, folder: Path, kinds: Sequence[str]) -> None:
        self.rng, self.folder, self.kinds = rng, folder, kinds
        self.links = [(rng.randbytes(16).hex(), rng.randbytes(32).hex()) for _ in range(2)]
        self.files = 0
        self.nfs = 0

    def chain(self) -> WrittenPath:
        """An NF first, and one behind all branches."""
        return [self.nf(), *self.path(0), self.nf()]

    def path(self, depth: int) -> WrittenPath:
        items: list[WrittenNf | Sequence[WrittenBranch]] = []
        for _ in range(self.rng.randint(1, 2)):
            if depth < 2 and self.rng.random() < 0.45:
                own = self.nf("Match") if self.rng.random() < 0.7 else None
                items += [own] if own else []
                expressions = file_lines(self.folder / str(own.own["filters"])) if own and own.own else []
                items.append(self.branches(depth, expressions))
            else:
                items.append(self.nf())
        return items

    def branches(self, depth: int, expressions: Sequence[str]) -> Sequence[WrittenBranch]:
        count = self.rng.randint(1, 3)
        branches = []
        free = dict(zip(MATCHES, MATCHES, strict=True))  # a match by its expression, each for one branch
        free |= {expression: f"@{number}" for number, expression in enumerate(expressions, 1)}
        for at in range(count):
            match = ""
            if self.rng.random() < (0.85 if at < count - 1 else 0.3):
                own = [expression for expression in free if expression in expressions]
                match = free.pop(self.rng.choice(own if own and self.rng.random() < 0.8 else list(free)))
            empty = self.rng.random() < 0.33
            branches.append(WrittenBranch(Fraction(1, count), match, [] if empty else self.path(depth + 1)))
        return branches

    def nf(self, kind: str | None = None) -> WrittenNf:
        kind = kind or self.rng.choice(self.kinds)
        self.nfs += 1
        numbers = dict(PARAMETERS[kind](self.rng)) if kind in PARAMETERS else {}
        own = self.own(kind, numbers) if self.rng.random() < 0.85 else {}
        for name in (*own, *(("addresses",) if "pool" in own else ())):
            numbers.pop(name, None)
        return WrittenNf(f"n{self.nfs}", kind, numbers, own)

    def own(self, kind: str, numbers: dict[str, float]) -> Mapping[str, str | Sequence[OwnRule]]:
        """Own data of an NF; its files are written."""
        rng = self.rng
        match kind:
            case "ACL" if rng.random() < 0.4:
                return {"rules": [self.rule() for _ in range(rng.randint(0, 4))]}
            case "ACL" | "IPv4Fwd" | "UrlFilter" | "LB" | "Match":
                if kind == "LB":
                    numbers["table"] = float(rng.choice((32, 256)))
                return {OWN_NAMES.get(kind, "filters"): self.file(kind, self.lines(kind))}
            case "NAT":
                return {
                    "pool": str(
                        IPv4Network((int(IPv4Address("203.0.113.0")) + 64 * self.nfs, rng.choice((28, 30, 32))))
                    )
                }
            case "Encrypt" | "Decrypt":  # a key for integrity, too: else garbage passes where its padding is right
                return dict(zip(("key", "hmac_key"), map(self.key, rng.choice(self.links)), strict=True))
            case "FastEncrypt":
                return {"key": self.key(rng.randbytes(36).hex())}
        return {}

    def lines(self, kind: str) -> list[str]:
        """Entries of a file for a kind of NF."""
        rng = self.rng
        match kind:
            case "ACL":
                return [self.filter() for _ in range(rng.randint(0, 12))]
            case "IPv4Fwd":
                networks = rng.sample(NETWORKS, k=rng.randint(1, len(NETWORKS)))
                networks += ["0.0.0.0/0"] if rng.random() < 0.7 else []
                return [f"{network} {rng.randrange(256)}" for network in networks]
            case "UrlFilter":
                return rng.sample(URLS, k=rng.randint(1, len(URLS)))
            case "LB":
                addresses = [IPv4Address(rng.getrandbits(32) | 1 << 24) for _ in range(rng.randint(1, 5))]
                return [f"{address}{rng.choice(('', ' 1', ' 2', ' 5'))}" for address in addresses]
        return rng.sample(MATCHES, k=rng.randint(1, 4))

    def key(self, digits: str) -> str:
        """The digits themselves, or a file with them."""
        return digits if self.rng.random() < 0.5 else self.file("key", [digits[:20], digits[20:]])

    def filter(self) -> str:
        rng = self.rng
        protocol = rng.choice(("tcp", "udp", "ip", "icmp", "47"))
        words = [rng.choice(("permit", "deny")), protocol]
        for _ in range(2):
            words.append(rng.choice(("any", "any", *NETWORKS)).removesuffix("/32"))
            words += [rng.choice(PORT_RANGES)] if protocol in ("tcp", "udp") and rng.random() < 0.5 else []
        return " ".join(words)

    def rule(self) -> OwnRule:
        rng = self.rng
        rule: dict[str, str | int | bool] = {}
        for key in ("src_ip", "dst_ip"):
            if rng.random() < 0.5:
                rule[key] = rng.choice(NETWORKS).removesuffix("/32")
        if rng.random() < 0.4:
            rule["ip_proto"] = rng.choice(("tcp", "udp", 6, 17))
        for key in ("src_port", "dst_port"):
            if rng.random() < 0.4:
                ports = rng.choice(PORT_RANGES)
                rule[key] = int(ports) if ports.isdigit() and rng.random() < 0.5 else ports
        return {**rule, "drop": rng.random() < 0.5}

    def file(self, kind: str, lines: Sequence[str]) -> str:
        """A new file, with comments and empty lines."""
        self.files += 1
        name = f"{self.files}.{kind}"
        self.write(name, lines)
        return name

    def write(self, name: str, lines: Sequence[str]) -> None:
        rng = self.rng
        end = rng.choice(("\n", "\r\n"))
        written = [
            rng.choice(("", "# a comment", "")) + end + line + rng.choice(("", " # why", "  ")) for line in lines
        ]
        (self.folder / name).write_text(
            f"# own data{end}" + "".join(f"{one}{end}" for one in written), encoding="utf-8", newline=""
        )
