"""One packet on its way through a switch, a SmartNIC and a server, with the bytes that travel on each link.

This is what `placer chain exec` does, but in one process: interpreters run the programs that `placer chain compile`
writes, so neither root nor programs of the rack are needed. clang must be installed (`make deps`).
"""

# %%
import json
import sys
from pathlib import Path

from placer.rack.compiler.compile import compile_rack
from placer.rack.compiler.ebpf.limits import compile_source
from placer.rack.files.chains_file import read_chains_file
from placer.rack.files.plan_file import read_plan
from placer.rack.files.rack_file import read_rack_file
from placer.rack.files.written_twins import plan_document
from placer.rack.strategies.optimal import best_plan

# %% The interpreters are the references that the project's tests run.
EXAMPLES = Path(__file__).resolve().parent
sys.path.insert(0, str(EXAMPLES.parent))
from tests.reference.ebpf.machine import PASS, TX  # noqa: E402
from tests.reference.emulate import EmulatedRack, texts_of  # noqa: E402

# %% Lemur's chain 5, placed on all three: ACL on the switch, UrlFilter on the server, FastEncrypt on the SmartNIC.
chains = read_chains_file(EXAMPLES / "lemur.chains").chains[4:]
plan_file = Path("chain5-plan.json")
plan = best_plan(chains, read_rack_file(EXAMPLES / "lemur-rack.toml"))
plan_file.write_text(json.dumps(plan_document(plan, chains)), encoding="utf-8")
rack = compile_rack(read_plan(plan_file), str(plan_file))


def no_filters(filters: object, frame: bytes) -> None:
    """Chain 5 sorts nothing on its server."""


emulation = EmulatedRack(rack, texts_of(rack), compile_source, no_filters)
switch, server, nic = emulation.switch, emulation.servers["s0"], emulation.nics["s0"]
WORLD, TO_SERVER = 0, 1
NOW_US = 1_000_000


labels = {(one.path, one.index): rack.routing.graph.nfs[nf].name for nf, one in rack.routing.labels.items()}


def show(link: str, frame: bytes) -> None:
    """Print a frame, 16 bytes a line, and what its label says."""
    print(f"{link}: {len(frame)} bytes", end="")
    if frame[12:14] == b"\x89\x4f":
        path, index = int.from_bytes(frame[18:21], "big"), frame[21]
        print(f", path {path}, index {index}: {labels[path, index]} is next", end="")
    print()
    for at in range(0, len(frame), 16):
        line = frame[at : at + 16]
        text = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in line)
        print(f"  {at:04x}  {line.hex(' '):<47}  |{text}|")
    print()


# %% A web request of a client of chain 5.
packet = (
    bytes.fromhex(
        "02000000000a 02000000000b 0800"  # Ethernet
        "4500004d 00010000 4006aa91 0a050001 c6120001"  # IPv4: from 10.5.0.1 to 198.18.0.1, time to live 64
        "9c400050 00000001 00000001 50182000 d4530000"  # TCP: from port 40000 to port 80
    )
    + b"GET / HTTP/1.1\r\nHost: example.org\r\n\r\n"
)
show("world -> switch", packet)

# %% The switch finds the chain, and ACL permits the packet; a label says that UrlFilter is next.
port, packet = switch.process(packet, WORLD) or (None, b"")
assert port == TO_SERVER
show("switch -> n0", packet)

# %% FastEncrypt is not next, so the SmartNIC passes the packet on as it is.
action, packet = nic.run(packet)
assert action == PASS
show("n0 -> s0", packet)

# %% UrlFilter passes it; the label now names FastEncrypt.
(packet,) = server.receive(packet, NOW_US)
show("s0 -> n0", packet)

# %% The SmartNIC encrypts the first 64 bytes of the payload; the label names IPv4Fwd.
action, packet = nic.run(packet)
assert action == TX
show("n0 -> switch", packet)

# %% The switch takes the label off and forwards: other MAC addresses, a time to live of 63, a new checksum.
port, packet = switch.process(packet, TO_SERVER) or (None, b"")
assert port == WORLD
show("switch -> world", packet)
