"""`switch`: the software switch of compiled racks, DPDK's SWX pipeline, on one core of this machine. Its NFs are
programs that are generated for each run from the components of P4 that a sweep varies: headers that are parsed,
match-action tables, their entries and the bytes of their keys, and recirculations (Scholz et al., section IV)."""

import io
import os
import random
import struct
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import pandas as pd

from profiler.protocol.request_checks import refusals
from profiler.testbed import Measurement, Run, RunRefused, Testbed, TestbedError, processor_fields
from profiler.testbeds import TESTBEDS
from profiler.testbeds.host import BUILD_COMMAND
from profiles import (
    ConfiguredWorkload,
    Counters,
    InputError,
    Load,
    NfDescription,
    NicModel,
    TestbedDescription,
    Workload,
)

PROGRAM = Path(__file__).resolve().parents[2] / "build" / "nfs" / "rack" / "nf-switch-bench"
ROUNDS = 401  # of 256 packets
WORD_BYTES, MOST_WORDS = 4, 8  # of the field that keys are made of
EXACT, TERNARY = "SwitchExact", "SwitchTernary"
COMPONENTS: Mapping[str, tuple[float, float, float]] = {
    "headers": (0, 8, 1),
    "tables": (0, 8, 1),
    "entries": (1, 10_000, 1_000),
    "key_bytes": (WORD_BYTES, WORD_BYTES * MOST_WORDS, WORD_BYTES),
    "recirculations": (0, 4, 0),
}
"""The least, the most and the default: headers of 4 bytes between Ethernet and the key; tables that each packet is
looked up in; entries of each, which DPDK adds in a time that grows with their square; bytes of a key, in words of 4;
how often a packet passes the program again."""
ETHERTYPE = 0x88B5  # for local experiments (IEEE 802)


@dataclass(frozen=True, slots=True)
class ComponentProgram:
    """The components of a program."""

    match: str  # `exact` or `wildcard`
    headers: int
    tables: int
    entries: int
    words: int  # of a key
    recirculations: int

    def spec(self) -> str:
        """The program, in DPDK's text."""
        tables = range(self.tables)
        parts = [
            _struct("ethernet_h", {"destination": 48, "source": 48, "type": 16}),
            "header ethernet instanceof ethernet_h",
            _struct("tag_h", {"value": 16, "type": 16}),
            *(f"header tag{number} instanceof tag_h" for number in range(self.headers)),
            _struct("key_h", {f"word{number}": 32 for number in range(MOST_WORDS)}),
            "header key instanceof key_h",
            _struct("metadata_t", {"port": 32, "found": 32, "passed": 32}),
            "metadata instanceof metadata_t",
            _struct("find_a", {"value": 32}),
            "action find args instanceof find_a {\n\tadd m.found t.value\n\treturn\n}",
            "action miss args none {\n\treturn\n}",
            *(self._table(number) for number in tables),
        ]
        headers = ["ethernet", *(f"tag{number}" for number in range(self.headers)), "key"]
        steps = ["rx m.port", "mov m.found 0"]
        steps += [f"extract h.{name}" for name in headers] + [f"table table{number}" for number in tables]
        steps += ["mov h.ethernet.source m.found", *(f"emit h.{name}" for name in headers)]
        if self.recirculations:
            steps += ["recircid m.passed", f"jmpgt LAST m.passed {self.recirculations - 1}", "recirculate"]
            steps += ["tx m.port", "LAST : tx m.port"]
        else:
            steps.append("tx m.port")
        body = "".join(f"\t{step}\n" for step in steps)
        return "\n\n".join(parts) + f"\n\napply {{\n{body}}}\n"

    def _table(self, number: int) -> str:
        key = "".join(f"\t\th.key.word{word} {self.match}\n" for word in range(self.words))
        return (
            f"table table{number} {{\n\tkey {{\n{key}\t}}\n\tactions {{\n\t\tfind\n\t\tmiss\n\t}}\n"
            f"\tdefault_action miss args none\n\tsize {max(self.entries, 2)}\n}}"
        )

    def keys(self) -> list[tuple[int, ...]]:
        """A key of each entry; the first word differs."""
        drawn = random.Random(self.entries)
        first = drawn.sample(range(1 << 30), self.entries)
        return [(word, *(drawn.getrandbits(32) for _ in range(MOST_WORDS - 1))) for word in first]

    def entries_text(self, keys: Sequence[tuple[int, ...]]) -> str:
        """The entries of every table."""
        mask, order = ("/0xffffffff", " priority 0") if self.match == "wildcard" else ("", "")
        lines = []
        for value, key in enumerate(keys):
            words = " ".join(f"0x{word:x}{mask}" for word in key[: self.words])
            lines.append(f"match {words}{order} action find value {value % 1000 + 1}\n")
        return "".join(f"table{number} {line}" for number in range(self.tables) for line in lines)

    def frames(self, keys: Sequence[tuple[int, ...]], flows: int, size: int) -> Iterator[bytes]:
        """A packet of each flow; their keys are spread evenly over the entries."""
        tags = b"".join(struct.pack("!HH", number, ETHERTYPE) for number in range(self.headers))
        head = bytes.fromhex("020000000a01020000000b02") + struct.pack("!H", ETHERTYPE) + tags
        for flow in range(flows):
            key = keys[flow * len(keys) // flows if flows < len(keys) else flow % len(keys)]
            yield (head + struct.pack(f"!{MOST_WORDS}I", *key)).ljust(size, b"\0")


def _struct(name: str, bits_of: Mapping[str, int]) -> str:
    return f"struct {name} {{\n" + "".join(f"\tbit<{bits}> {field}\n" for field, bits in bits_of.items()) + "}"


class SwitchTestbed(Testbed):
    """Programs of the software switch, one at a time. Throughput is that of one core at the described clock, by the
    cycles per packet that are measured. Raises `InputError` when the switch is not built."""

    def __init__(self, timeout: float = 60.0) -> None:
        self._timeout = timeout
        if not PROGRAM.is_file():
            raise InputError.of("--testbed", "switch: its program is not built", hint=BUILD_COMMAND)
        processor = processor_fields()
        if "cpu MHz" not in processor:
            raise InputError.of("--testbed", "switch: the kernel does not say the clock of the processor")
        self._clock_mhz, model = float(processor["cpu MHz"]), processor.get("model name", os.uname().machine)
        nfs = [
            NfDescription(
                name=name,
                cores=1,
                parameters={part: (least, most) for part, (least, most, _) in COMPONENTS.items()},
                default_parameters={part: default for part, (_, _, default) in COMPONENTS.items()},
            )
            for name in (EXACT, TERNARY)
        ]
        self._description = TestbedDescription(
            name="switch",
            nic=NicModel(model=model, cores=1, kind="server", clock_mhz=self._clock_mhz),
            attributes={"flows": (1.0, 4096.0), "packet_size": (96.0, 1500.0)},
            default_traffic={"flows": 2048.0, "packet_size": 128.0},
            nfs=tuple(nfs),
        )

    def describe(self) -> TestbedDescription:
        return self._description

    def run(self, loads: Sequence[Load], *, noise: bool = True, seed: int | None = None) -> Run:
        if faults := refusals(self._description, loads):
            raise RunRefused(f"testbed switch: {'; '.join(faults)}")
        (load,) = loads
        workload, given = (load.workload, load.parameters) if isinstance(load, ConfiguredWorkload) else (load, ())
        assert isinstance(workload, Workload)  # all others are refused
        name = workload.nf
        of_nf = self._description.nf(name).default_parameters | dict(given)
        parts = {part: round(value) for part, value in of_nf.items()}
        words = parts.pop("key_bytes") // WORD_BYTES
        program = ComponentProgram(match="exact" if name == EXACT else "wildcard", words=words, **parts)
        traffic = workload.traffic
        cycles = self._cycles(program, round(traffic.flows), round(traffic.packet_size))
        return Run((Measurement(1e3 * self._clock_mhz / cycles, Counters()),))

    def _cycles(self, program: ComponentProgram, flows: int, size: int) -> float:
        """Cycles per packet, the mean of two measurements of the program beside itself."""
        with TemporaryDirectory() as name:
            folder, keys = Path(name), program.keys()
            (folder / "p.spec").write_text(program.spec(), encoding="ascii")
            (folder / "p.entries").write_text(program.entries_text(keys), encoding="ascii")
            with (folder / "in.pcap").open("wb") as capture:
                capture.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1))
                for at, frame in enumerate(program.frames(keys, flows, size)):
                    capture.write(struct.pack("<IIII", 0, at, len(frame), len(frame)) + frame)
            words = [str(PROGRAM), "--in", "in.pcap", *["--program", "p.spec,p.entries"] * 2, "--rounds", str(ROUNDS)]
            try:
                ended = subprocess.run(
                    words, cwd=folder, capture_output=True, text=True, timeout=self._timeout, check=False
                )
            except subprocess.TimeoutExpired:
                raise TestbedError(f"testbed switch: no answer within {self._timeout:g} s") from None
        if ended.returncode:
            raise TestbedError(f"testbed switch: {ended.stderr.strip()[-500:]}")
        return float(pd.read_csv(io.StringIO(ended.stdout))["cycles_per_packet"].mean())


@TESTBEDS.register("switch")
def open_switch(argument: str, timeout: float) -> Testbed:
    """The software switch; `argument` is empty."""
    if argument:
        raise InputError.of("--testbed", f"switch:{argument}: it has no options", hint="switch")
    return SwitchTestbed(timeout)
