"""ACL: the first filter that matches permits or denies a packet; without a match it passes."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from placer.rack.chain import OwnRule
from placer.rack.compiler.library import nf_kind
from placer.rack.compiler.library.given_data import DataParameter, GivenData
from placer.rack.compiler.library.prefixes import ANY_PREFIX, INSIDE_PREFIX, OUTSIDE_PREFIXES, Prefix, table_prefix
from profiles.faults import Fault, InputError, suggestion
from profiles.files.table_lines import TableForm, TableLine, TableWord, WordError

ANY_PROTOCOL = 0
ANY_PORT = (0, 65535)
ICMP, TCP, UDP = 1, 6, 17
PROTOCOL_NAMES = {ANY_PROTOCOL: "ip", ICMP: "icmp", TCP: "tcp", UDP: "udp"}
SERVICE_PORTS = (22, 25, 53, 80, 110, 123, 143, 161, 389, 443, 993, 1433, 3306, 5060, 8080)
HIGH_PORTS = (1024, 65535)
MOST_FILTERS = 100_000  # in a file
FILTER_FORM = "permit|deny PROTOCOL SOURCE [PORTS] DESTINATION [PORTS], as `permit tcp 10.0.0.0/8 any 443`"
RULE_KEYS = {
    "src_ip": '"10.0.0.0/8"',
    "dst_ip": '"10.1.2.3"',
    "src_port": "53",
    "dst_port": '"1024-65535"',
    "ip_proto": '"tcp"',
    "drop": "false",
}
"""Keys of the rules that stand in a chain, as Lemur writes them, with an example of each."""
RULE_DEFAULTS = {"ip_proto": "ip", "src_ip": "any", "dst_ip": "any", "src_port": "0-65535", "dst_port": "0-65535"}
RULE_HINT = 'as in "{}": {}'


@dataclass(frozen=True)
class AclFilter:
    """Conditions on a packet, and whether it is permitted.

    Fragments other than the first, and protocols without ports, match as if both ports were 0. `protocol`: 0: any.
    `source_ports`, `destination_ports`: the lowest and the highest port; of UDP and TCP only, any for others. `rule`:
    the number of the rule in a chain that it is a part of, from 1; 0: it is a rule by itself.
    """

    permit: bool
    protocol: int
    source: Prefix
    source_ports: tuple[int, int]
    destination: Prefix
    destination_ports: tuple[int, int]
    rule: int = 0

    def __str__(self) -> str:
        words = ["permit" if self.permit else "deny", PROTOCOL_NAMES.get(self.protocol, str(self.protocol))]
        words += [_prefix_word(self.source), *_port_words(self.source_ports)]
        words += [_prefix_word(self.destination), *_port_words(self.destination_ports)]
        return " ".join(words)


class AclNf(nf_kind.NfKind[tuple[AclFilter, ...]]):
    """An access list on addresses, protocol and ports."""

    name = "ACL"
    parameters = (nf_kind.ParameterRange("rules", "filters in the list", 0, 10000, 64), nf_kind.SEED_PARAMETER)
    own = (DataParameter("rules", "a file of filters, or rules", lambda given: read_filters(given)),)
    empty_means = "every packet passes"
    platforms = nf_kind.ALL_PLATFORMS

    def data(self, parameters: Mapping[str, float]) -> tuple[AclFilter, ...]:
        random = nf_kind.SplitMix(int(parameters["seed"]))
        return tuple(next_filter(random) for _ in range(int(parameters["rules"])))

    def data_of(self, parameters: Mapping[str, float], own: Mapping[str, Any]) -> tuple[AclFilter, ...]:
        filters: tuple[AclFilter, ...] = own["rules"]
        return filters

    def server_files(self, data: tuple[AclFilter, ...]) -> dict[str, str]:
        return {"filters": "".join(f"{rule}\n" for rule in data)}

    def server_settings(self, parameters: Mapping[str, float], files: Mapping[str, str]) -> dict[str, str]:
        return {"file": files["filters"], "default_permit": "1", "ipv6": _ipv6_setting(self.data(parameters))}

    def own_settings(self, own: Mapping[str, Any]) -> dict[str, str]:
        return {"ipv6": _ipv6_setting(own["rules"])}

    def rule_numbers(self, data: tuple[AclFilter, ...]) -> Sequence[int]:
        return [acl_filter.rule for acl_filter in data if acl_filter.rule]


def _ipv6_setting(filters: Sequence[AclFilter]) -> str:
    return "pass" if passes_ipv6(filters) else "drop"


def passes_ipv6(filters: Sequence[AclFilter]) -> bool:
    """Whether IPv6 passes a list, all of it: cards and switches do not look behind its extension headers.

    Filters for any address are of both families. One that denies a protocol of IPv6 therefore denies all.
    """
    for acl_filter in filters:
        if acl_filter.source == acl_filter.destination == ANY_PREFIX and acl_filter.protocol != ICMP:
            if not acl_filter.permit:
                return False
            if acl_filter.protocol == ANY_PROTOCOL:
                return True
    return True


def next_filter(random: nf_kind.SplitMix) -> AclFilter:
    """A random filter: from any address or clients to servers or clients, one of four denies.

    Ranges of ports are few prefixes each, so that tables with masks hold a filter in few entries.
    """
    protocol = random.one_of((TCP,) * 9 + (UDP,) * 6 + (ICMP,) + (ANY_PROTOCOL,) * 4)
    permit = random.below(4) > 0
    source = ANY_PREFIX if random.below(2) else INSIDE_PREFIX.within(random, random.one_of((8, 9, 10, 12, 16)))
    destination = random.one_of((INSIDE_PREFIX, *OUTSIDE_PREFIXES, *OUTSIDE_PREFIXES)).within(
        random, random.one_of((8, 10, 16, 24, 25, 26, 28))
    )
    source_ports, destination_ports = ANY_PORT, ANY_PORT
    if protocol in (TCP, UDP):
        destination_ports = _service(random)
        source_ports = HIGH_PORTS if random.below(8) == 0 else ANY_PORT
    return AclFilter(permit, protocol, source, source_ports, destination, destination_ports)


def _service(random: nf_kind.SplitMix) -> tuple[int, int]:
    kind = random.below(10)
    if kind < 4:
        return ANY_PORT
    if kind < 6:
        return HIGH_PORTS
    if kind < 7:
        first = random.below(512) << 7
        return first, first | 127
    port = random.one_of(SERVICE_PORTS)
    return port, port


def read_filters(given: GivenData) -> tuple[AclFilter, ...]:
    """The filters of a file, in the format of `nfs/tables/filter_file.c`, or those of rules in the chain.

    Raises InputError with every fault.
    """
    if isinstance(given.value, str):
        return given.table(TableForm(_filter_of_line, FILTER_FORM, "filters", MOST_FILTERS))
    filters: list[AclFilter] = []
    faults: list[Fault] = []
    for number, rule in enumerate(given.value):
        for key, message, hint in _faults_of_rule(rule):
            faults.append(given.fault(f"{given.name}.{number}.{key}", message, hint))
        filters += [] if faults else _filters_of_rule(rule, number + 1)
    if faults:
        raise InputError(faults)
    return tuple(filters)


def _filter_of_line(line: TableLine) -> AclFilter:
    action = line.take("no action")
    if action.text not in ("permit", "deny"):
        raise WordError(action.at, f"{action.text}: neither permit nor deny")
    protocol_word = line.take("no protocol")
    if line.next is None:
        raise WordError(line.end, "no source")
    protocol = _protocol(protocol_word)
    source, source_ports = _end_of_line(line, protocol)
    destination, destination_ports = _end_of_line(line, protocol)
    line.refuse_rest()
    return AclFilter(action.text == "permit", protocol, source, source_ports, destination, destination_ports)


def _protocol(word: TableWord) -> int:
    named = {name: number for number, name in PROTOCOL_NAMES.items()}
    number = named.get(word.text, word.number(1, 255))
    if number is None:
        raise WordError(word.at, f"{word.text}: not a protocol: {', '.join(named)}, or 1 to 255")
    return number


def _end_of_line(line: TableLine, protocol: int) -> tuple[Prefix, tuple[int, int]]:
    prefix = table_prefix(line.take("no destination"))
    word = line.next
    if word is None or not re.fullmatch(r"[0-9-]+", word.text):
        return prefix, ANY_PORT
    line.take()
    if protocol not in (TCP, UDP):
        raise WordError(word.at, f"{word.text}: only tcp and udp have ports")
    return prefix, _ports(word)


def _ports(word: TableWord) -> tuple[int, int]:
    first, hyphen, last = word.text.partition("-")
    low = TableWord(first, 0).number(0, ANY_PORT[1])
    high = TableWord(last if hyphen else first, 0).number(low or 0, ANY_PORT[1])
    if low is None or high is None:
        raise WordError(word.at, f"{word.text}: ports are from 0 to {ANY_PORT[1]}, the lower one first")
    return low, high


def _faults_of_rule(rule: OwnRule) -> Iterator[tuple[str, str, str | None]]:
    """What is wrong with a rule in a chain: a key, a message and a hint each."""
    if "drop" not in rule:
        yield "drop", "the rule has no 'drop': does it drop packets?", RULE_HINT.format("drop", RULE_KEYS["drop"])
    for key in rule:
        if key not in RULE_KEYS:
            yield key, f"a rule has no '{key}'", suggestion(key, RULE_KEYS)
            continue
        try:
            _read_key(rule, key)
        except WordError as error:
            yield key, str(error), RULE_HINT.format(key, RULE_KEYS[key])


def _read_key(rule: OwnRule, key: str) -> Any:
    """The value of a key, or what it is where the rule has none. Raises WordError."""
    value = rule.get(key, RULE_DEFAULTS.get(key, ""))
    if key == "drop":
        if not isinstance(value, bool):
            raise WordError(0, f"{value}: drop is true or false")
        return value
    if isinstance(value, bool):
        raise WordError(0, f"{value} is neither a text nor a number")
    word = TableWord(str(value), 0)
    if key == "ip_proto":
        return _protocol(word)
    if key.endswith("_ip"):
        return table_prefix(word)
    if value == 0:
        raise WordError(0, "0 means any port in BESS, and port 0 here: leave it out, or write 0-0")
    if key in rule and _protocol_or_none(rule) not in (None, ANY_PROTOCOL, TCP, UDP):
        raise WordError(0, "only tcp and udp have ports")
    return _ports(word)


def _protocol_or_none(rule: OwnRule) -> int | None:
    try:
        protocol: int = _read_key(rule, "ip_proto")
    except WordError:
        return None
    return protocol


def _filters_of_rule(rule: OwnRule, number: int) -> list[AclFilter]:
    """The filters that a rule is: two where it has ports and no protocol, since TCP and UDP have ports."""
    protocol, source, destination, source_ports, destination_ports = (
        _read_key(rule, key) for key in ("ip_proto", "src_ip", "dst_ip", "src_port", "dst_port")
    )
    has_ports = "src_port" in rule or "dst_port" in rule
    protocols = (TCP, UDP) if has_ports and protocol == ANY_PROTOCOL else (protocol,)
    return [
        AclFilter(not rule["drop"], protocol, source, source_ports, destination, destination_ports, number)
        for protocol in protocols
    ]


def _prefix_word(prefix: Prefix) -> str:
    return "any" if prefix == ANY_PREFIX else str(prefix)


def _port_words(ports: tuple[int, int]) -> list[str]:
    if ports == ANY_PORT:
        return []
    return [str(ports[0])] if ports[0] == ports[1] else [f"{ports[0]}-{ports[1]}"]


nf_kind.NF_KINDS.register(AclNf.name)(AclNf())
