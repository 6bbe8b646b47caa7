"""Lemur's five chains on an emulated rack: placed, compiled, and run with packets for each chain and branch.

This is what `placer chain place`, `placer chain compile` and `placer chain exec` do, one after the other. Programs of
the rack must be built (`make deps nfs`).
"""

# %%
import json
import os
import socket
import struct
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from placer.rack.compiler.compile import compile_rack
from placer.rack.compiler.directory import write_rack
from placer.rack.compiler.execute import execute_rack
from placer.rack.files.chains_file import read_chains_file
from placer.rack.files.plan_file import read_plan
from placer.rack.files.rack_file import read_rack_file
from placer.rack.files.written_twins import plan_document
from placer.rack.strategies.optimal import best_plan
from placer.report.rack.compiled_rack import build_execution, format_compiled, format_execution, rack_document
from placer.report.rack.plan import rack_report

# %% The chains, and the rack. Linux lets only root run programs of a SmartNIC, emulated by XDP.
EXAMPLES = Path(__file__).resolve().parent
chains = read_chains_file(EXAMPLES / "lemur.chains").chains
rack = read_rack_file(EXAMPLES / "lemur-rack.toml")
if os.geteuid() != 0:
    print("Not root: the rack has no SmartNIC, and its server encrypts.\n")
    rack = replace(rack, servers=tuple(replace(server, smartnic=None) for server in rack.servers))

# %% The plan: what runs on the switch, on cores of the server, and on the SmartNIC.
plan = best_plan(chains, rack)
print(rack_report(plan, "optimal", "table"))
plan_file = Path("lemur-plan.json")
plan_file.write_text(json.dumps(plan_document(plan, chains)), encoding="utf-8")

# %% Its programs.
directory = Path("lemur")
compiled = compile_rack(read_plan(plan_file), str(plan_file), shares=None)
uses = write_rack(compiled, plan_file, directory)
print(format_compiled(rack_document(compiled, uses), directory))

# %% Packets of each chain and branch: web requests, one of them to a URL that chain 5 blocks; other TCP, with a VLAN
# tag, too; UDP; and what no chain takes.
TCP, UDP = 6, 17
SERVERS = ("198.18.0.1", "198.18.70.2", "198.51.100.3")


def checksum(data: bytes) -> int:
    """The Internet checksum (RFC 1071)."""
    total: int = sum(struct.unpack(f"!{len(data) // 2}H", data[: len(data) // 2 * 2])) + (data[-1] << 8) * (
        len(data) % 2
    )
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def frame(source: str, destination: str, protocol: int, port: int, payload: bytes, tag: bytes = b"") -> bytes:
    """An Ethernet frame with a packet to a port of TCP or UDP."""
    addresses = socket.inet_aton(source) + socket.inet_aton(destination)
    if protocol == TCP:
        head = struct.pack("!HHIIBBH", 40000, port, 1, 1, 0x50, 0x18, 8192), b"\0\0"
    else:
        head = struct.pack("!HHH", 40000, port, 8 + len(payload)), b""
    length = len(head[0]) + 2 + len(head[1]) + len(payload)
    pseudo = addresses + struct.pack("!HH", protocol, length)
    layer4 = head[0] + struct.pack("!H", checksum(pseudo + b"".join(head) + payload)) + head[1] + payload
    ip = struct.pack("!BBHHHBB", 0x45, 0, 20 + length, 1, 0, 64, protocol)
    ip += struct.pack("!H", checksum(ip + addresses)) + addresses
    return bytes.fromhex("02000000000a 02000000000b") + tag + b"\x08\x00" + ip + layer4


def packets(blocked: str) -> Iterator[bytes]:
    """Of ten clients of each chain; then strays."""
    host, _, path = blocked.partition("/")
    for chain in range(1, 6):
        for client in range(1, 11):
            ends = f"10.{chain}.0.{client}", SERVERS[client % len(SERVERS)]
            yield frame(*ends, TCP, 80, b"GET / HTTP/1.1\r\nHost: example.org\r\n\r\n")
            yield frame(*ends, TCP, 80, f"GET /{path} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
            yield frame(*ends, TCP, 443, bytes(300), tag=bytes.fromhex("8100 0007"))
            yield frame(*ends, UDP, 53, bytes(30))
    yield frame("192.168.0.1", SERVERS[0], UDP, 53, b"of no chain")
    yield bytes.fromhex("02000000000a 02000000000b 894f 0fc20203 000001ff")  # a label from outside
    yield bytes.fromhex("02000000000a 02000000000b 0800 45")  # cut off


capture, out = Path("lemur-in.pcap"), Path("lemur-out.pcap")
blocked_url = next(url for url in (directory / "servers/s0/chain5__UrlFilter.urls").read_text().split() if "/" in url)
with capture.open("wb") as file:
    file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1))
    for number, packet in enumerate(packets(blocked_url)):
        file.write(struct.pack("<IIII", 1, 10 * number, len(packet), len(packet)) + packet)

# %% One process for each device, joined by links. The counters of each NF, and why packets were dropped.
print(format_execution(build_execution(execute_rack(directory, capture, out))), end="")
