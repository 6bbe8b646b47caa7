"""Open vSwitch as the OpenFlow switch of a rack: a bridge of its userspace datapath, which runs a rack's rules.

Its ports are TAP devices, whose other ends are files of this process. So it runs in a network namespace of its own, as
`unshare --net` makes it, and writes nothing but a temporary folder.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import select
import shutil
import socket
import struct
import subprocess
import time
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType

from placer.rack.compiler.openflow.headers import is_tag, word_at
from placer.rack.compiler.openflow.link_end import LinkError
from placer.rack.compiler.openflow.pipeline import WORLD_PORT
from placer.rack.compiler.openflow.rules import FLOWS_TABLE
from placer.rack.compiler.routing import MOST_BACK_US
from profiles import InputError

OPENFLOW_SWITCHES = ("emulated", "ovs")  # what can run the rules of an OpenFlow switch
EMULATED_SWITCH = OPENFLOW_SWITCHES[0]
SCHEMA_FILE = Path("/usr/share/openvswitch/vswitch.ovsschema")
PROGRAM_PATH = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
PROGRAMS = ("ovsdb-tool", "ovsdb-server", "ovs-vswitchd", "ovs-vsctl", "ovs-ofctl", "setpriv", "unshare")
TUN_DEVICE, SET_TAP = Path("/dev/net/tun"), 0x400454CA
TAP_WITHOUT_HEAD = 0x1002  # IFF_TAP, IFF_NO_PI
SET_FLAGS, SET_MTU, IS_UP = 0x8914, 0x8922, 1
MOST_FRAME_BYTES = 4096  # more than a link takes
PATIENCE_S = 10.0
MARKER_FRAME = bytes(12) + b"\x88\xb5" + bytes(46)
OWN_TABLE_PRIORITY = 65535
MOST_WARP_MS = 86_400_000  # of the clock at once; meters are full long before
SHORTEST_TAGGED_FRAME = 20  # bytes; the kernel drops shorter ones when it takes off their tag


def check_open_vswitch() -> None:
    """Raises InputError where Open vSwitch cannot run."""
    missing = [program for program in PROGRAMS if shutil.which(program, path=PROGRAM_PATH) is None]
    if missing or not SCHEMA_FILE.exists():
        message = f"{missing[0] if missing else SCHEMA_FILE} is not installed"
        raise InputError.of("Open vSwitch", message, hint="apt-get install openvswitch-switch")
    alone = subprocess.run(["unshare", "--net", "true"], capture_output=True, check=False)
    if alone.returncode or not os.access(TUN_DEVICE, os.W_OK):
        message = f"needs root, a network namespace, and {TUN_DEVICE}"
        raise InputError.of("Open vSwitch", message, hint="or take the emulated switch")


class OpenVSwitch:
    """A running switch with the rules of a rack; frames enter and leave by numbered ports, as at the emulated switch.

    `ports`: how many. With meters, its clock goes by the times of packets from the world. Raises InputError when a
    program of Open vSwitch refuses its input.
    """

    program = "Open vSwitch"

    def __init__(self, flows: Path, groups: Path, meters: str, ports: int) -> None:
        self._metered, self._first_us, self._passed_ms = bool(meters), -1, 0
        self._too_short = 0
        self._stack = ExitStack()
        try:
            self._folder = Path(self._stack.enter_context(TemporaryDirectory(prefix="ovs-")))
            self._ports = [self._make_port(f"port{number}") for number in range(WORLD_PORT, WORLD_PORT + ports)]
            self._marker = self._make_port("marker")  # what was sent before is done when its frame comes back
            self._start(WORLD_PORT + ports)
            self._load(flows, groups, meters)
            if self._metered:
                self._ask("time/stop")
        except BaseException:
            self._stack.close()
            raise

    def _make_port(self, name: str) -> int:
        """A TAP device; what is written to the file enters the switch."""
        disabled = Path("/proc/sys/net/ipv6/conf/default/disable_ipv6")
        if disabled.exists():  # else the kernel sends packets of its own
            disabled.write_text("1", encoding="ascii")
        file = os.open(TUN_DEVICE, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        self._stack.callback(os.close, file)
        fcntl.ioctl(file, SET_TAP, struct.pack("16sH22x", name.encode(), TAP_WITHOUT_HEAD))
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
            fcntl.ioctl(control, SET_MTU, struct.pack("16si20x", name.encode(), MOST_FRAME_BYTES))
            fcntl.ioctl(control, SET_FLAGS, struct.pack("16sH22x", name.encode(), IS_UP))
        return file

    def _start(self, marker: int) -> None:
        """Start the database and the switch with all ports; they end with this process."""
        database = f"unix:{self._folder}/db.sock"
        self._run("ovsdb-tool", "create", f"{self._folder}/conf.db", str(SCHEMA_FILE))
        self._spawn("ovsdb-server", f"{self._folder}/conf.db", f"--remote=p{database}")
        self._wait_for(self._folder / "db.sock")
        change = ["ovs-vsctl", f"--db={database}", "--retry", f"--timeout={PATIENCE_S:.0f}"]
        self._run(*change, "--no-wait", "init", "--", "set", "Open_vSwitch", ".", "other_config:vlan-limit=1")
        self._spawn("ovs-vswitchd", database, "--enable-dummy")  # else its clock cannot be set
        bridge = ["--", "set", "bridge", "rack", "datapath_type=netdev", "protocols=OpenFlow13", "fail_mode=secure"]
        numbers = {f"port{number}": number for number in range(WORLD_PORT, marker)} | {"marker": marker}
        for name, number in numbers.items():
            bridge += ["--", "add-port", "rack", name, "--", "set", "interface", name, f"ofport_request={number}"]
        self._run(*change, "add-br", "rack", *bridge)

    def _load(self, flows: Path, groups: Path, meters: str) -> None:
        self._control("set-frags", "nx-match")
        self._control("add-groups", str(groups))
        for meter in meters.splitlines():
            self._control("add-meter", meter)
        self._add_rules(flows.read_text(encoding="utf-8"))

    def _add_rules(self, flows: str, before: str = "") -> None:
        """Rules, and that of the marker, in one transaction. `before`: what it begins with."""
        back = f"table=0,priority={OWN_TABLE_PRIORITY},in_port={WORLD_PORT + len(self._ports)},actions=in_port"
        file = self._folder / "flows"
        file.write_text(f"{before}{flows}{back}\n", encoding="utf-8")
        self._control("--bundle", "add-flows", str(file))

    def check_rules(self, flows: Path) -> None:
        """Raises InputError where it would refuse rules."""
        self._run("ovs-ofctl", "-O", "OpenFlow13", "parse-flows", str(flows))

    def replace_rules(self, flows: str) -> None:
        """Go on with other rules, which count from 0; what was learnt stays. No packet is inside meanwhile.

        Raises InputError where the switch refuses them: then it has those of before.
        """
        tables = {*re.findall(r"table=(\d+)", self._control("dump-flows"))} - {str(FLOWS_TABLE)}
        self._add_rules(flows, "".join(f"delete table={table}\n" for table in tables))
        self._ask("revalidator/purge")  # else packets may meet what its datapath knows of the old ones
        self._too_short = 0

    def _control(self, *command: str) -> str:
        """`command`: options, the command and its arguments."""
        at = next(at for at, word in enumerate(command, 1) if word[0] != "-")
        bridge = f"unix:{self._folder}/rack.mgmt"
        return self._run("ovs-ofctl", "-O", "OpenFlow13", *command[:at], bridge, *command[at:])

    @property
    def _environment(self) -> dict[str, str]:
        folders = dict.fromkeys(("OVS_RUNDIR", "OVS_LOGDIR", "OVS_DBDIR", "OVS_SYSCONFDIR"), str(self._folder))
        return {**os.environ, **folders, "PATH": PROGRAM_PATH}

    def _run(self, *command: str) -> str:
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=self._environment)
        if done.returncode:
            raise InputError.of(command[0], done.stderr.strip() or f"fails with {done.returncode}")
        return done.stdout

    def _spawn(self, program: str, *arguments: str) -> None:
        quiet = (f"--unixctl={self._folder}/{program}.ctl", "-vsyslog:off", "-vconsole:emer")
        command = ["setpriv", "--pdeathsig", "KILL", program, *quiet, *arguments]
        process = subprocess.Popen(command, env=self._environment, stdin=subprocess.DEVNULL)
        self._stack.callback(process.wait)
        self._stack.callback(process.kill)

    def _wait_for(self, file: Path) -> None:
        limit = time.monotonic() + PATIENCE_S
        while not file.exists():
            if time.monotonic() > limit:
                raise LinkError(f"{file}: Open vSwitch does not start")
            time.sleep(0.01)

    def process(self, frame: bytes, port: int, time_us: int = 0) -> list[tuple[int, bytes]]:
        """The ports by which a frame leaves, each with the frame as it is there; none if it is dropped.

        Raises LinkError when the switch does not answer.
        """
        if self._metered and port == WORLD_PORT:
            self._let_pass(time_us)
        if len(frame) < SHORTEST_TAGGED_FRAME and is_tag(word_at(frame, 12)):
            self._too_short += 1
            return []
        os.write(self._ports[port - WORLD_PORT], frame)
        self._pass_marker()  # may be read in the round of the switch that did not see the frame yet
        self._pass_marker()
        found = []
        for number, file in enumerate(self._ports, WORLD_PORT):
            while (made := _read(file)) is not None:
                found.append((number, made))
        return found

    def _let_pass(self, time_us: int) -> None:
        """Set the clock of the switch, which stands still, to the time of a packet; a wrong one does not stop it."""
        later_us = time_us - self._first_us - 1000 * self._passed_ms
        if self._first_us < 0 or later_us < -MOST_BACK_US:
            self._first_us, self._passed_ms, later_us = time_us, 0, 0
        if (later_ms := later_us // 1000) > 0:
            self._ask("time/warp", str(min(later_ms, MOST_WARP_MS)))
            self._passed_ms += later_ms

    def _ask(self, command: str, *arguments: str) -> None:
        """Let the switch run a command of `ovs-appctl`. Raises LinkError when it does not."""
        with socket.socket(socket.AF_UNIX) as control:
            control.settimeout(PATIENCE_S)
            control.connect(f"{self._folder}/ovs-vswitchd.ctl")
            control.sendall(json.dumps({"id": 0, "method": command, "params": arguments}).encode())
            if b'"error":null' not in (answer := control.recv(MOST_FRAME_BYTES)):
                raise LinkError(f"Open vSwitch refuses {command}: {answer.decode(errors='replace')}")

    def _pass_marker(self) -> None:
        os.write(self._marker, MARKER_FRAME)
        while _read(self._marker) is None:
            if not select.select([self._marker], [], [], PATIENCE_S)[0]:
                raise LinkError("Open vSwitch does not answer")

    def counters(self, names: str) -> Counter[str]:
        """What rules have counted, by the names of their cookies."""
        self._ask("revalidator/purge")  # counts the packets of all flows
        known = dict(line.split(maxsplit=1) for line in names.splitlines())
        found = Counter(dict.fromkeys(known.values(), 0))
        for cookie, packets in re.findall(r"cookie=(0x[0-9a-f]+),.*? n_packets=(\d+)", self._control("dump-flows")):
            if cookie in known:
                found[known[cookie]] += int(packets)
        if self._too_short:
            found["reason too_short"] = self._too_short
        if self._metered:
            found["reason rate_limit"] = sum(
                map(int, re.findall(r"^\s*0:\s+packet_count:(\d+)", self._control("meter-stats"), re.MULTILINE))
            )
        return found

    def __enter__(self) -> OpenVSwitch:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()


def _read(file: int) -> bytes | None:
    try:
        return os.read(file, 2 * MOST_FRAME_BYTES)
    except BlockingIOError:
        return None
