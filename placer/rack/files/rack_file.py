"""`rack.toml`: a rack as people write it (docs/formats/rack.md), read by way of its JSON twin."""

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from placer.rack.files.json_twins import CYCLES_BY_NUMBERS, LARGEST_FILE, cycles_by_keys, parse_json, rack_of
from placer.rack.rack import Rack, Server, SmartNic
from profiles import Fault, InputError
from profiles.faults import suggestion
from profiles.files.toml import Key, TomlLines, parse_toml
from profiles.text import read_text

MOST_SERVERS = 10_000
SERVER_KEYS = (
    *("name", "count", "cores", "reserved_cores", "clock_mhz", "nic_mbps", "smartnic"),
    *("sockets", "nics", "cross_socket_cycles", "shared_cores"),
)
CORE_KEYS = (
    *("cycles", "replicable", "testbed_nf", "testbed_parameters"),
    *(key for name in CYCLES_BY_NUMBERS for key in cycles_by_keys(name)),
)
TABLE_KEYS: dict[str, tuple[str, ...]] = {
    "": ("crossing_us", "switch", "server", "nf", "overheads", "testbed"),
    "server": SERVER_KEYS,
    "server.smartnic": ("name", "cores", "clock_mhz"),
    "server.sockets": ("cores", "reserved_cores"),
    "server.nics": ("name", "mbps", "socket"),
    "switch": ("stages", "reserved_stages", "blocks_per_stage", "kind", "table_order", "tcam", "sram"),
    "switch.tcam": ("blocks", "bits", "entries"),
    "switch.sram": ("blocks", "bits", "entries"),
    "overheads": ("subgroup_cycles", "replica_cycles", "stages"),
    "nf": ("server", "switch", "smartnic"),
    "testbed": ("spec", "flows", "mtbr"),
    "nf.server": CORE_KEYS,
    "nf.smartnic": CORE_KEYS,
    "nf.switch": ("blocks", "tables"),
    "nf.switch.tables": ("name", "key", "match", "entries", "writes"),
}
"""Of each kind of table; for hints."""
TABLE_TWINS = {"servers": "server", "nfs": "nf"}  # keys of the JSON twin, and what they are called here


def read_rack_file(path: Path) -> Rack:
    """The rack of a file: TOML, or the JSON twin, which begins with a brace. Raises InputError with every fault."""
    text, file = read_text(path, LARGEST_FILE), str(path)
    if path.suffix.lower() == ".json" or text.lstrip().startswith("{"):
        return rack_of(parse_json(text, file), file)
    return rack_of_toml(text, file)


def rack_of_toml(text: str, file: str) -> Rack:
    """A rack as people write it; faults name `file`."""
    return _RackToml(file, TomlLines(text), parse_toml(text, file)).rack()


class _RackToml:
    """Turns a document into a rack; each `[[server]]` is checked once, then copied `count` times."""

    def __init__(self, file: str, lines: TomlLines, document: dict[str, Any]) -> None:
        self.file = file
        self.lines = lines
        self.document = document
        self.faults: list[Fault] = []

    def rack(self) -> Rack:
        servers = self.tables()
        counts = [self.count(number, one) for number, one in enumerate(servers)]
        once = self.validate([self.twin(number, one) for number, one in enumerate(servers)])
        if once is not None and not self.faults:
            rack = replace(once, servers=tuple(self.copies(once.servers, servers, counts)))
            self.check(rack)
        if self.faults:
            raise InputError(sorted(self.faults, key=lambda fault: fault.line or 0))
        return rack

    def tables(self) -> list[dict[str, Any]]:
        servers = self.document.get("server", [])
        if not isinstance(servers, list) or not all(isinstance(server, dict) for server in servers):
            self.fault(("server",), "servers are written as [[server]] tables")
            return []
        if not servers:
            self.faults.append(Fault(self.file, None, "server", "no [[server]] table", "write [[server]], then name ="))
        return servers

    def count(self, number: int, server: Mapping[str, Any]) -> int:
        count = server.get("count", 1)
        if isinstance(count, int) and not isinstance(count, bool) and 0 <= count <= MOST_SERVERS:
            return count
        self.fault(("server", number, "count"), f"{count!r} is not a whole number from 0 to {MOST_SERVERS:,}")
        return 0

    def twin(self, number: int, server: Mapping[str, Any]) -> dict[str, Any]:
        """A table as in the JSON twin, with a name for a SmartNIC that has none."""
        twin = {key: value for key, value in server.items() if key != "count"}
        nic = twin.get("smartnic")
        if isinstance(nic, dict) and "name" not in nic and isinstance(twin.get("name"), str):
            twin["smartnic"] = {"name": f"{twin['name']}-nic"} | nic
        return twin

    def validate(self, servers: list[dict[str, Any]]) -> Rack | None:
        """The rack with each server once. Names are made unique: copies are compared later."""
        own = {key: value for key, value in self.document.items() if key not in ("server", "nf", "servers", "nfs")}
        for key in ("servers", "nfs"):
            if key in self.document:
                self.fault((key,), "unknown key", f"did you mean {TABLE_TWINS[key]}?")
        if "nf" not in self.document:
            self.faults.append(Fault(self.file, None, "nf", "no [nf] table", "as in [nf.ACL.server], then cycles ="))
        unique = [_number(one, number) for number, one in enumerate(servers)]
        try:
            return rack_of(own | {"servers": unique, "nfs": self.document.get("nf", {})}, self.file)
        except InputError as error:
            for fault in error.faults:
                self.twin_fault(fault)
            return None

    def twin_fault(self, fault: Fault) -> None:
        """A fault of the twin, named by line and key of this file."""
        keys: list[Key] = [int(key) if re.fullmatch("[0-9]+", key) else key for key in (fault.column or "").split(".")]
        path: list[Key] = [TABLE_TWINS.get(str(keys[0]), keys[0]), *keys[1:]]
        hint = fault.hint
        if fault.message == "unknown key":
            within = [str(key) for key in path[:-1] if not isinstance(key, int)]
            table = ".".join([*within[:1], *within[2:]] if within[:1] == ["nf"] else within)
            hint = suggestion(str(path[-1]), TABLE_KEYS.get(table, ())) if table in TABLE_KEYS else hint
        self.fault(path, fault.message, hint)

    def copies(self, once: tuple[Server, ...], tables: list[dict[str, Any]], counts: list[int]) -> list[Server]:
        servers: list[Server] = []
        for server, table, count in zip(once, tables, counts, strict=True):
            nic_name = server.smartnic.name[: server.smartnic.name.rindex(NUMBER_MARK)] if server.smartnic else ""
            for copy in range(count):
                end = str(copy) if "count" in table else ""
                name = server.name[: server.name.rindex(NUMBER_MARK)]
                if nic := server.smartnic:
                    default = "name" not in table["smartnic"]
                    of_nic = f"{name}{end}-nic" if default else f"{nic_name}{end}"
                    nic = SmartNic(of_nic, nic.cores, nic.clock_mhz)
                servers.append(replace(server, name=f"{name}{end}", smartnic=nic))
        return servers

    def check(self, rack: Rack) -> None:
        """Refuse duplicate names, too many servers, none, and NFs that run nowhere."""
        if not rack.servers and self.document.get("server"):
            self.fault(("server", 0, "count"), "the rack has no server: every count is 0")
        if len(rack.servers) > MOST_SERVERS:
            self.fault(("server",), f"{len(rack.servers):,} servers are more than {MOST_SERVERS:,}")
        seen: set[str] = {"switch"}
        names = [(number, name) for number, server in enumerate(rack.servers) for name in server.names]
        for number, name in names:
            if name in seen:
                message = f"duplicate name {name!r}"
                self.fault(("server", self.table_of(number), "name"), message, "the switch is named switch")
            seen.add(name)
        for nf, costs in rack.costs.items():
            if costs.server is None and costs.smartnic is None and costs.switch_blocks is None:
                self.fault(("nf", nf), f"{nf} runs nowhere", "as in server = {cycles = 985}, or switch = {blocks = 1}")

    def table_of(self, server: int) -> int:
        """The number of the table that a server was copied from."""
        for number, table in enumerate(self.tables()):
            server -= int(table.get("count", 1))
            if server < 0:
                return number
        return 0

    def fault(self, path: tuple[Key, ...] | list[Key], message: str, hint: str | None = None) -> None:
        column = ".".join(str(key) for key in path if not isinstance(key, int))
        self.faults.append(Fault(self.file, self.lines.of(path), column, message, hint))


NUMBER_MARK = "\0"  # between a name and the number that makes it unique for the time of checking


def _number(server: dict[str, Any], number: int) -> dict[str, Any]:
    """The server with names that no other has."""
    unique = dict(server)
    if isinstance(name := unique.get("name"), str) and name:
        unique["name"] = f"{name}{NUMBER_MARK}{number}"
    if isinstance(nic := unique.get("smartnic"), dict) and isinstance(name := nic.get("name"), str) and name:
        unique["smartnic"] = nic | {"name": f"{name}{NUMBER_MARK}{number}"}
    return unique
