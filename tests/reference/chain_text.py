"""The reference of the text of chains: where it sends packets, and what its NFs' own data means.

Nothing here reads the text, or the graph that the product makes of it: a test draws a path, writes its text, and asks
this module what packets do.
"""

import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path

from placer.rack.chain import Chain
from placer.rack.compiler.traffic.entries import parse
from tests.reference.interpret import Meaning, WaysBehind, model_of
from tests.reference.nfs import nf_models
from tests.reference.nfs.headers import read_headers, split_value
from tests.reference.nfs.model import FunctionModel
from tests.reference.peel import PacketFields, branches_behind, fields_of, holds

OwnRule = Mapping[str, str | int | bool]
OWN_SETTINGS = {"ACL": "file", "IPv4Fwd": "file", "UrlFilter": "list", "LB": "file"}
"""By kind, the setting of its model that names a file."""
OWN_NAMES = {"ACL": "rules", "IPv4Fwd": "routes", "UrlFilter": "urls", "LB": "backends"}


@dataclass(frozen=True)
class WrittenNf:
    """An NF of a text. `own`: own data by parameter: names of files, keys, prefixes, or rules."""

    id: str
    kind: str
    numbers: Mapping[str, float] = field(default_factory=dict)
    own: Mapping[str, str | Sequence[OwnRule]] = field(default_factory=dict)


@dataclass(frozen=True)
class WrittenBranch:
    """A branch: its share, its match as written (`@1` is the first expression of the NF's file), and its path."""

    share: Fraction
    match: str
    path: "WrittenPath"


WrittenPath = Sequence["WrittenNf | Sequence[WrittenBranch]"]


def write_path(path: WrittenPath, quote: str = '"') -> str:
    """The text of a path, every NF with its name."""
    parts = []
    for item in path:
        if isinstance(item, WrittenNf):
            given = [f"{name} = {value:g}" for name, value in item.numbers.items()]
            given += [f"{name} = {_write_own(value, quote)}" for name, value in item.own.items()]
            parts.append(f"{item.id}={item.kind}({', '.join(given)})" if given else f"{item.id}={item.kind}")
        else:
            branches = [
                f"{one.share} " + (f'"{one.match}" ' if one.match else "") + (write_path(one.path, quote) or "-")
                for one in item
            ]
            parts.append(f"[{' | '.join(branches)}]")
    return " -> ".join(parts)


def _write_own(value: str | Sequence[OwnRule], quote: str) -> str:
    """A text in quotes; rules in the spelling of Python with `'`, else of JSON."""
    if isinstance(value, str):
        return f"{quote}{value}{quote}"

    def word(of: str | int | bool) -> str:
        if isinstance(of, bool):
            return str(of) if quote == "'" else str(of).lower()
        return f"{quote}{of}{quote}" if isinstance(of, str) else str(of)

    rules = ["{" + ", ".join(f"{word(key)}: {word(of)}" for key, of in rule.items()) + "}" for rule in value]
    return f"[{', '.join(rules)}]"


def nfs_of(path: WrittenPath) -> list[WrittenNf]:
    """All NFs of a path."""
    found: list[WrittenNf] = []
    for item in path:
        if isinstance(item, WrittenNf):
            found.append(item)
        else:
            found += [nf for branch in item for nf in nfs_of(branch.path)]
    return found


@dataclass(frozen=True)
class TextMeaning:
    """What chains mean by their texts. `paths`: by chain. `folder`: where their files are."""

    paths: Mapping[str, WrittenPath]
    folder: Path

    def meaning(self) -> Meaning:
        """As the reference takes it."""
        return Meaning(self._model, self._ways)

    def _model(self, chain: Chain, at: int) -> FunctionModel:
        id = chain.nfs[at].id
        nf = next(nf for nf in nfs_of(self.paths[chain.name]) if nf.id == id)
        numbers = {name: value for name, value in chain.nfs[at].parameters.items() if name not in chain.nfs[at].data}
        return own_model(nf, numbers, self.folder) if nf.own else model_of(nf.kind, numbers, id)

    def _ways(self, chain: Chain, at: int) -> "TextWays":
        behind = _behind(self.paths[chain.name], chain.nfs[at].id)
        assert behind is not None
        nf = next(nf for nf in nfs_of(self.paths[chain.name]) if nf.id == chain.nfs[at].id)
        expressions = file_lines(self.folder / str(nf.own["filters"])) if "filters" in nf.own else []
        numbers = {one.id: number for number, one in enumerate(chain.nfs)}
        return TextWays(behind, expressions, numbers, zlib.crc32(f"{chain.name}/{nf.id}".encode()))


def _behind(path: WrittenPath, id: str, rest: WrittenPath = ()) -> WrittenPath | None:
    """What follows an NF in a text."""
    for at, item in enumerate(path):
        following = [*path[at + 1 :], *rest]
        if isinstance(item, WrittenNf):
            if item.id == id:
                return following
            continue
        for branch in item:
            if (found := _behind(branch.path, id, following)) is not None:
                return found
    return None


@dataclass(frozen=True)
class TextWays:
    """Where packets go behind an NF: into the first branch whose match holds, else by the split hash."""

    behind: WrittenPath
    expressions: Sequence[str]
    numbers: Mapping[str, int]
    salt: int
    look_at_source: bool = True

    def target(self, frame: bytes) -> int | None:
        """The number of the next NF of a frame."""
        ways = self._ways(self.behind, fields_of(frame))
        total, reached = sum(share for share, _ in ways), Fraction(0)
        value = split_value(frame, read_headers(frame), self.salt) if len(ways) > 1 else 0
        for share, id in ways:
            reached += share
            if value < int(65536 * reached / total):
                return self.numbers[id]
        return None

    def _ways(self, path: WrittenPath, fields: PacketFields) -> list[tuple[Fraction, str]]:
        first, rest = path[0], path[1:]
        if isinstance(first, WrittenNf):
            return [(Fraction(1), first.id)]
        for branch in first:
            if branch.match and holds(parse(self._expression(branch.match)), fields):
                return self._ways([*branch.path, *rest], fields)
        return [
            (branch.share * share, id)
            for branch in first
            if not branch.match
            for share, id in self._ways([*branch.path, *rest], fields)
        ]

    def _expression(self, match: str) -> str:
        return re.sub("@([0-9]+)", lambda found: f"({self.expressions[int(found[1]) - 1]})", match)


def file_lines(path: Path) -> list[str]:
    """The entries of a file of own data."""
    lines = [re.sub(r"(^|\s)#.*", "", line).strip() for line in path.read_text(encoding="utf-8").split("\n")]
    return [line for line in lines if line]


def own_model(nf: WrittenNf, numbers: Mapping[str, float], folder: Path) -> FunctionModel:
    """The model of an NF with own data, by the files themselves."""
    settings = {name: f"{value:.15g}" for name, value in numbers.items()}
    files: dict[str, str] = {}
    if nf.kind in OWN_NAMES:
        given = nf.own[OWN_NAMES[nf.kind]]
        lines = (
            file_lines(folder / given)
            if isinstance(given, str)
            else [line for rule in given for line in rule_lines(rule)]
        )
        files["data"] = "".join(f"{line}\n" for line in lines)
        settings[OWN_SETTINGS[nf.kind]] = "data"
    if nf.kind == "ACL":
        settings["ipv6"] = "pass" if _passes_ipv6(files["data"].splitlines()) else "drop"
    if nf.kind == "LB":
        settings = {"table": "256"} | settings
    if nf.kind == "NAT":
        address, _, length = str(nf.own["pool"]).partition("/")
        first = int.from_bytes(bytes(map(int, address.split("."))), "big")
        settings |= {"first_address": str(first), "addresses": str(1 << 32 - int(length)), "host_ports": "64512"}
    for name in {"key", "hmac_key"} & set(nf.own):
        text = str(nf.own[name])
        settings[name] = "".join("".join(file_lines(folder / text)).split()) if (folder / text).is_file() else text
    if nf.kind in ("Encrypt", "Decrypt", "FastEncrypt"):
        settings = {"in_udp": "1"} | settings
    return nf_models()[nf.kind](settings, files)


def _passes_ipv6(lines: Sequence[str]) -> bool:
    """Whether all of IPv6 passes a list: it meets the lines that are about any address, and no ICMP of IPv4."""
    for action, protocol, *ends in map(str.split, lines):
        prefixes = [word for word in ends if not re.fullmatch("[0-9-]+", word)]
        is_about_ipv6 = prefixes == ["any", "any"] and protocol not in ("icmp", "1")
        if is_about_ipv6 and (action == "deny" or protocol == "ip"):
            return action == "permit"
    return True


def rule_lines(rule: OwnRule) -> list[str]:
    """A rule in the chain as lines of a list: of TCP and of UDP where it has ports alone."""
    has_ports = "src_port" in rule or "dst_port" in rule
    protocols = [str(rule["ip_proto"])] if "ip_proto" in rule else ["tcp", "udp"] if has_ports else ["ip"]
    action = "deny" if rule["drop"] else "permit"
    source = f"{rule.get('src_ip', 'any')} {rule.get('src_port', '')}"
    destination = f"{rule.get('dst_ip', 'any')} {rule.get('dst_port', '')}"
    return [f"{action} {protocol} {source} {destination}" for protocol in protocols]


def meaning_by_files(folder: Path) -> Meaning:
    """What chains mean whose edges are as they must be: own data by the files in a folder."""

    def model(chain: Chain, at: int) -> FunctionModel:
        nf = chain.nfs[at]
        numbers = {name: value for name, value in nf.parameters.items() if name not in nf.data}
        if not nf.data or nf.nf == "Match":
            return model_of(nf.nf, numbers, nf.id)
        return own_model(WrittenNf(nf.id, nf.nf, {}, nf.data), numbers, folder)

    def ways(chain: Chain, at: int) -> WaysBehind:
        given = chain.nfs[at].data.get("filters")
        expressions = file_lines(folder / str(given)) if given else []
        edges = tuple(
            replace(edge, match=re.sub("@([0-9]+)", lambda found: expressions[int(found[1]) - 1], edge.match))
            for edge in chain.edges_from(at)
        )
        return branches_behind(replace(chain, edges=edges), at)

    return Meaning(model, ways)
