"""`placer chain run`: a rack that stays up between network interfaces, dies in parts, and gets new tables."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from placer.rack.compiler.directory import BUILT_FOLDER, write_files
from placer.rack.compiler.live_socket import ask_running, socket_of
from placer.rack.compiler.update import read_update
from profiles import InputError
from tests.nfs.captures import write_capture
from tests.placer.commands.conftest import refuse, run_placer
from tests.placer.rack.compiler.library.frames import UDP, ipv4_frame
from tests.placer.rack.compiler.openflow.test_openflow import require_open_vswitch

CHAINS = """slo c: 100 Mbps to 100 Gbps
chain c: ACL(rules = "edge.acl") -> Monitor -> IPv4Fwd(routes = "edge.routes")
"""
FILES = {"edge.acl": "deny udp any 192.0.2.0/24 53\npermit udp any any 54\n", "edge.routes": "0.0.0.0/0 3\n"}
RACK = """[switch]
{switch}
[[server]]
name = "s0"
cores = 4
clock_mhz = 1700
nic_mbps = 40000
smartnic = {{name = "n0", cores = 2, clock_mhz = 1700}}
[nf]
ACL = {{{acl} = {{{cost}}}}}
Monitor = {{server = {{cycles = 310}}}}
FastEncrypt = {{server = {{cycles = 3000}}}}
Encrypt = {{server = {{cycles = 3000}}}}
NAT = {{{nat} = {{{nat_cost}}}}}
IPv4Fwd = {{switch = {{blocks = 1}}}}
"""
SO_RCVBUFFORCE = 33
ESP_PORT, VECTOR_AT = 4500, 50  # of ESP in UDP
KINDS = {"pisa": "blocks_per_stage = 24", "openflow": 'kind = "openflow"\ntable_order = ["ACL", "IPv4Fwd"]'}


def make_rack(folder: Path, switch: str, acl: str = "switch", nat: str = "", middle: str = "Monitor") -> Path:
    """A compiled rack; `acl`: the kind of device that runs the ACL, `nat`: that of a NAT in place of the Monitor.

    `middle`: another NF in its place, on a server.
    """
    costs = {"switch": "blocks = 1", "server": "cycles = 900, replicable = false", "smartnic": "cycles = 900"}
    on_nat = nat or "server"
    rack = RACK.format(switch=KINDS[switch], acl=acl, cost=costs[acl], nat=on_nat, nat_cost=costs[on_nat])
    chains = CHAINS.replace("Monitor", "NAT" if nat else middle)
    for name, text in {**FILES, "c.chains": chains, "rack.toml": rack}.items():
        (folder / name).write_text(text, encoding="utf-8")
    files = ("--rack", folder / "rack.toml", "--plan", folder / "plan.json")
    assert run_placer("chain", "place", folder / "c.chains", *files).status == 0
    assert run_placer("chain", "compile", folder / "plan.json", "--out", folder / "rack").status == 0
    return folder / "rack"


class Running:
    """A rack that runs, and the far ends of its interfaces. `ended`: exit status, report and stderr, once it has."""

    names: list[str]  # of the interfaces: far and near ends

    def __init__(
        self, process: subprocess.Popen[str], sender: socket.socket, receiver: socket.socket, names: list[str]
    ) -> None:
        self.process, self._sender, self._receiver, self.names = process, sender, receiver, names

    def send(self, count: int, port: int = 53, pause_s: float = 0.0) -> None:
        """Send UDP packets, half of them to addresses that the ACL denies at port 53."""
        for at in range(count):
            time.sleep(pause_s)
            self._sender.send(ipv4_frame(0x0A000001, 0xC0000201 if at % 2 else 0x0A090909, UDP, (4000, port)))

    def send_flows(self) -> list[bytes]:
        """Send a packet of each of 20 flows; addresses and source ports of those that leave."""
        for port in range(5000, 5020):
            self._sender.send(ipv4_frame(0x0A000001, 0x0A090909, UDP, (port, 54)))
        return [frame[26:36] for frame in self.receive(20)]

    def receive(self, count: int) -> list[bytes]:
        """So many frames, which must come."""
        self._receiver.settimeout(20)
        return [self._receiver.recv(4096) for _ in range(count)]

    def pass_one(self) -> None:
        """Send packets until one comes."""
        self._receiver.settimeout(0.2)
        for _ in range(150):
            self.send(1, port=54)
            with suppress(TimeoutError):
                self._receiver.recv(4096)
                return
        raise TimeoutError

    def device(self, name: str) -> int:
        """The process that plays a device."""
        children = (
            Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text(encoding="ascii").split()
        )
        return next(int(child) for child in children if Path(f"/proc/{child}/cwd").readlink().name == name)

    def end(self) -> tuple[int, Any, str]:
        """Ask it to end; its exit status, its report, and what it said."""
        self.process.send_signal(signal.SIGTERM)
        stdout, stderr = self.process.communicate(timeout=60)
        return self.process.returncode, json.loads(stdout or "null"), stderr


def require_programs() -> None:
    """Skip the test without the programs of a rack."""
    if not (BUILT_FOLDER / "nf-switch").exists():
        pytest.skip("the programs of a rack are not built: `make deps nfs` builds them")


@contextmanager
def running(rack: Path, *more: object) -> Iterator[Running]:
    """A rack between two pairs of virtual interfaces."""
    if os.geteuid() != 0 or not shutil.which("ip"):
        pytest.skip("root and the program ip are needed to make pairs of network interfaces")
    require_programs()
    names = [f"rack{os.getpid() % 100000}{end}" for end in "abcd"]
    try:
        for pair in (names[:2], names[2:]):
            command = ["ip", "link", "add", pair[0], "type", "veth", "peer", "name", pair[1]]
            if subprocess.run(command, check=False).returncode:
                pytest.skip("no pair of network interfaces can be made here")
        for name in names:
            Path(f"/proc/sys/net/ipv6/conf/{name}/disable_ipv6").write_text("1", encoding="ascii")
            subprocess.run(["ip", "link", "set", name, "up"], check=True)
        ends = ("--in", names[1], "--out", names[3], "--format", "json", *more)
        command = [sys.executable, "-m", "placer", "chain", "run", *map(str, (rack, *ends))]
        with (
            socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0) as sender,
            socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0) as receiver,
            subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process,
        ):
            sender.bind((names[0], 0))
            receiver.bind((names[2], 3))
            receiver.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 1 << 24)
            try:
                assert process.stderr and "runs from" in (said := process.stderr.readline()), said
                yield Running(process, sender, receiver, names)
            finally:
                process.terminate()
                with suppress(subprocess.TimeoutExpired):
                    process.wait(30)
                process.kill()
    finally:
        for name in (names[0], names[2]):
            subprocess.run(["ip", "link", "del", name], check=False, stderr=subprocess.DEVNULL)


def free_port() -> int:
    with socket.socket(socket.AF_INET6) as probe:
        probe.bind(("::1", 0))
        return int(probe.getsockname()[1])


def read_metrics(port: int) -> dict[str, float]:
    with urllib.request.urlopen(f"http://[::1]:{port}/metrics") as answer:
        lines = answer.read().decode().splitlines()
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines if line[0] != "#")}


@pytest.mark.parametrize(
    "switch", ["pisa", *(pytest.param(kind, marks=pytest.mark.long) for kind in ("openflow", "ovs"))]
)
def test_a_device_that_dies_is_started_again_and_nothing_else_is_lost(tmp_path: Path, switch: str) -> None:
    """What came while it was away has waited; the end waits for what is inside."""
    if switch == "ovs":
        require_open_vswitch()
    port, ovs = free_port(), ["--openflow", "ovs"] * (switch == "ovs")
    rack = make_rack(tmp_path, "openflow" if ovs else switch)
    with running(rack, "--metrics", f"[::1]:{port}", *ovs) as live:
        live.send(40)
        assert {frame[5] for frame in live.receive(20)} == {3}
        deadline = time.monotonic() + 20
        while read_metrics(port).get('placer_chain_nf_sent_packets_total{nf="c/Monitor"}') != 20:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        os.kill(live.device("s0"), signal.SIGKILL)
        live.send(40)
        live.receive(20)
        live.send(60)
        status, report, stderr = live.end()
        live.receive(30)
    assert status == 0
    assert (report["received"], report["sent"], report["explained"]) == (140, 70, True)
    assert report["nfs"]["c/ACL"] == {"entered": 140, "sent": 70, "dropped": 70}
    assert {name for name, count in report["restarts"].items() if count} == {"s0"}
    assert "s0 was ended by signal 9, and is started again" in stderr


@pytest.mark.long
def test_a_switch_that_dies_is_started_again(tmp_path: Path) -> None:
    """Servers wait for it."""
    with running(make_rack(tmp_path, "pisa")) as live:
        os.kill(live.device("switch"), signal.SIGKILL)
        assert live.process.stderr and "switch was ended by signal 9" in live.process.stderr.readline()
        live.pass_one()
        assert live.end()[1]["sent"] > 0


def test_a_switch_that_dies_while_the_rack_ends_ends_once_it_is_back(tmp_path: Path) -> None:
    """A server that is stopped holds up the end meanwhile."""
    with running(make_rack(tmp_path, "pisa")) as live:
        server = live.device("s0")
        os.kill(server, signal.SIGSTOP)
        live.process.terminate()
        time.sleep(1)
        os.kill(live.device("switch"), signal.SIGKILL)
        assert live.process.stderr and "switch was ended by signal 9" in live.process.stderr.readline()
        os.kill(server, signal.SIGCONT)
        assert live.process.wait(60) == 0


def test_a_signal_to_all_processes_at_once_ends_the_rack(tmp_path: Path) -> None:
    """As systemd sends it."""
    with running(make_rack(tmp_path, "pisa")) as live:
        for name in ("s0", "switch"):
            os.kill(live.device(name), signal.SIGSTOP)
        live.process.terminate()
        time.sleep(1)
        for name in ("s0", "switch"):
            os.kill(live.device(name), signal.SIGTERM)
            os.kill(live.device(name), signal.SIGCONT)
        assert live.process.wait(60) == 0


def test_a_second_signal_ends_the_rack_at_once(tmp_path: Path) -> None:
    with running(make_rack(tmp_path, "pisa")) as live:
        os.kill(live.device("s0"), signal.SIGSTOP)
        live.process.terminate()
        time.sleep(1)
        live.process.terminate()
        _, stderr = live.process.communicate(timeout=30)
    assert (live.process.returncode, stderr) == (130, "interrupted\n")


def test_a_device_that_hangs_is_started_again(tmp_path: Path) -> None:
    """It would keep the rack from its orders."""
    with running(make_rack(tmp_path, "pisa")) as live:
        os.kill(live.device("s0"), signal.SIGSTOP)
        assert live.process.stderr and "s0 was ended by signal 9" in live.process.stderr.readline()
        live.send(2, port=54)
        live.receive(2)
        assert live.end()[0] == 0


@pytest.mark.parametrize(("cipher", "iv_bytes"), [("FastEncrypt", 8), ("Encrypt", 16)])
def test_initialization_vectors_do_not_come_again_after_a_death(tmp_path: Path, cipher: str, iv_bytes: int) -> None:
    """They show what two packets differ in where the key is the same."""
    vectors = []
    with running(make_rack(tmp_path, "pisa", middle=cipher)) as live:
        for _ in range(2):
            live.send(1, port=54)
            frame = live.receive(1)[0]
            assert int.from_bytes(frame[36:38]) == ESP_PORT
            vectors.append(frame[VECTOR_AT : VECTOR_AT + iv_bytes])
            os.kill(live.device("s0"), signal.SIGKILL)
    assert vectors[0] != vectors[1]


def test_an_interface_that_is_removed_ends_the_rack(tmp_path: Path) -> None:
    """It would carry nothing from then on. An interface that was only down carries packets again."""
    with running(make_rack(tmp_path, "pisa")) as live:
        for state in ("down", "up"):
            time.sleep(0.2)
            subprocess.run(["ip", "link", "set", live.names[1], state], check=True)
        live.pass_one()
        subprocess.run(["ip", "link", "del", live.names[0]], check=True)
        _, stderr = live.process.communicate(timeout=60)
    assert live.process.returncode == 1
    assert f"af_packet:{live.names[1]}: the network interface is gone" in stderr
    assert "no such network interface" in stderr


def test_a_second_run_is_refused_and_the_first_goes_on(tmp_path: Path) -> None:
    """A client that hangs up, as an interrupted update does, does not end it either."""
    rack = make_rack(tmp_path, "pisa")
    with running(rack) as live:
        assert f"{rack}: already runs\n" in refuse("chain", "run", rack, "--in", "lo", "--out", "lo")
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(socket_of(rack)))
        live.send(2, port=54)
        live.receive(2)
        status, report, _ = live.end()
    assert (status, report["sent"]) == (0, 2)


def test_what_cannot_run_is_refused(tmp_path: Path) -> None:
    """An interface that is not there, an address without a free port, and a SmartNIC without a program."""
    rack = make_rack(tmp_path, "pisa")
    ends = ("--in", "lo", "--out")
    assert "--out: there is no network interface none9\n" in refuse("chain", "run", rack, *ends, "none9")
    assert "'host' is no address with a port\n" in refuse("chain", "run", rack, *ends, "lo", "--metrics", "host")
    for text in ("127.0.0.1:0", "[::1]:65536"):
        assert f"'{text}' is no address with a port\n" in refuse("chain", "run", rack, *ends, "lo", "--metrics", text)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        command = ("chain", "run", rack, *ends, "lo", "--metrics", address)
        assert f"--metrics: {address}: Address already in use\n" in refuse(*command)
    assert f"--attach: no SmartNIC of {rack} runs a program\n" in refuse("chain", "run", rack, *ends, "lo", "--attach")


@pytest.mark.parametrize(
    ("switch", "acl"),
    [
        ("pisa", "switch"),
        *(
            pytest.param(*pair, marks=pytest.mark.long)
            for pair in (("openflow", "switch"), ("ovs", "switch"), ("pisa", "server"), ("pisa", "smartnic"))
        ),
    ],
)
def test_an_update_replaces_tables_between_two_packets(tmp_path: Path, switch: str, acl: str) -> None:
    """No packet is lost; each meets the old rules and routes, or the new ones; counts and flows stay."""
    if switch == "ovs":
        require_open_vswitch()
    rack = make_rack(tmp_path, "openflow" if switch == "ovs" else switch, acl)
    more = ["--openflow", "ovs"] * (switch == "ovs") + ["--attach"] * (acl == "smartnic")
    with running(rack, *more) as live:
        live.send(40)
        assert {frame[5] for frame in live.receive(20)} == {3}
        (tmp_path / "edge.acl").write_text("permit udp any any 53\ndeny udp any 192.0.2.0/24 55\n", encoding="utf-8")
        (tmp_path / "edge.routes").write_text("0.0.0.0/0 4\n198.51.100.0/24 9\n", encoding="utf-8")
        sender = Thread(target=live.send, args=(2000, 53, 0.0005))
        sender.start()
        status, stdout, stderr = run_placer("chain", "update", rack, "--format", "json")
        sender.join()
        assert status == 0, stderr
        document = json.loads(stdout)
        assert 0 < document["paused_ms"] < 5000 and 0 < document["prepare_ms"] < 60_000
        assert run_placer("chain", "update", rack).stdout == "No source has changed.\n"
        old = new = 0
        while new < 2 * (1000 - old):  # the old tables let half of the packets through, the new ones all
            hop = live.receive(1)[0][5]
            assert hop == 4 or (hop, new) == (3, 0)
            old, new = old + (hop == 3), new + (hop == 4)
        ended, report, _ = live.end()
    assert (ended, report["explained"], report["received"]) == (0, True, 2040)
    assert report["sent"] - 20 - old - new in (0, 1)  # one more where the old tables let one more through than not
    assert report["nfs"]["c/Monitor"]["entered"] == report["sent"]
    assert report["rules"]["c/IPv4Fwd"]["1"] == report["sent"] - 20 - old  # counted from 0 with the new tables


def test_an_update_that_the_rack_missed_comes_with_the_next(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another user's update does not reach it, and says so."""
    rack = make_rack(tmp_path, "pisa")
    with running(rack) as live:
        (tmp_path / "edge.routes").write_text("0.0.0.0/0 4\n", encoding="utf-8")
        with monkeypatch.context() as other:
            other.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("c")))  # a socket has a short path
            assert f"No rack of yours runs from {rack}.\n" in run_placer("chain", "update", rack).stdout
        assert "No source has changed.\nThe rack that runs has the new" in run_placer("chain", "update", rack).stdout
        live.send(1, port=54)
        assert live.receive(1)[0][5] == 4


def test_a_rack_that_cannot_be_asked_is_not_taken_for_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / ("x" * 120)))
    with pytest.raises(InputError, match="cannot be seen: AF_UNIX path too long"):
        ask_running(tmp_path, {})


@pytest.mark.long
@pytest.mark.parametrize("nat", ["server", "switch"])
def test_flows_keep_the_ports_that_a_nat_gave_them(tmp_path: Path, nat: str) -> None:
    """An update of the ACL and routes of the same devices does not touch them."""
    rack = make_rack(tmp_path, "pisa", "switch" if nat == "switch" else "server", nat)
    with running(rack) as live:
        flows = live.send_flows()
        (tmp_path / "edge.acl").write_text("permit udp any any 54\n", encoding="utf-8")
        (tmp_path / "edge.routes").write_text("0.0.0.0/0 4\n", encoding="utf-8")
        assert run_placer("chain", "update", rack).status == 0
        assert live.send_flows() == flows and len(set(flows)) == 20
        assert live.end()[1]["nfs"]["c/NAT"] == {"entered": 40, "sent": 40, "dropped": 0}


@pytest.mark.long
def test_an_update_that_a_device_refuses_changes_nothing(tmp_path: Path) -> None:
    """A chain that was compiled anew has other programs, not only other tables."""
    rack = make_rack(tmp_path, "pisa")
    with running(rack) as live:
        (tmp_path / "rack.toml").write_text((tmp_path / "rack.toml").read_text("utf-8") + "\n", encoding="utf-8")
        make_rack(tmp_path, "pisa", "server")
        (tmp_path / "edge.routes").write_text("0.0.0.0/0 4\n", encoding="utf-8")
        before = {file: file.read_bytes() for file in rack.rglob("*") if file.is_file()}
        assert "changes, not only tables" in refuse("chain", "update", rack)
        assert {file: file.read_bytes() for file in rack.rglob("*") if file.is_file()} == before
        live.send(2)
        assert live.receive(1)[0][5] == 3


@pytest.mark.parametrize(
    ("switch", "file", "line", "message"),
    [
        ("pisa", "switch/switch.names", "rules 99999999 c/ACL 1", "the program has no place 99999999"),
        ("ovs", "openflow/flows", "table=0,priority=9,actions=group:77", "OFPBAC_BAD_OUT_GROUP"),
    ],
)
def test_tables_that_the_switch_refuses_change_nothing(
    tmp_path: Path, switch: str, file: str, line: str, message: str
) -> None:
    """Nor does a device die; right ones are taken then."""
    if switch == "ovs":
        require_open_vswitch()
    rack = make_rack(tmp_path, "openflow" if switch == "ovs" else switch)
    with running(rack, *["--openflow", "ovs"] * (switch == "ovs")) as live:
        (tmp_path / "edge.routes").write_text("0.0.0.0/0 4\n", encoding="utf-8")
        texts = write_files(read_update(rack).rack)
        with pytest.raises(InputError, match=message):
            ask_running(rack, {**texts, file: f"{texts[file]}{line}\n"})
        live.send(1, port=54)
        assert live.receive(1)[0][5] == 3
        assert ask_running(rack, texts)
        live.send(1, port=54)
        assert live.receive(1)[0][5] == 4
        status, report, stderr = live.end()
    assert (status, stderr) == (0, "") and not any(report["restarts"].values())


@pytest.mark.long
def test_rules_of_a_device_that_died_before_an_update_count_no_more(tmp_path: Path) -> None:
    """The new ones have the same numbers."""
    rack = make_rack(tmp_path, "pisa", "server")
    with running(rack) as live:
        live.send(4)
        live.receive(2)
        time.sleep(2)  # for a report
        os.kill(live.device("s0"), signal.SIGKILL)
        live.pass_one()
        (tmp_path / "edge.acl").write_text("permit udp any any 54\n", encoding="utf-8")
        assert run_placer("chain", "update", rack).status == 0
        live.send(1, port=54)
        live.receive(1)
        _, report, _ = live.end()
    assert report["rules"]["c/ACL"] == {"1": 1} and report["nfs"]["c/ACL"]["dropped"] == 2


@pytest.mark.parametrize(
    ("switch", "acl"),
    [
        ("pisa", "server"),
        ("pisa", "switch"),
        *(pytest.param(*pair, marks=pytest.mark.long) for pair in (("pisa", "smartnic"), ("openflow", "switch"))),
    ],
)
def test_rules_count_alike_on_all_devices(tmp_path: Path, switch: str, acl: str) -> None:
    """Packets that each rule of an ACL decided; those without a match are none of a rule."""
    require_programs()
    rack = make_rack(tmp_path, switch, acl)
    frames = [ipv4_frame(0x0A000001, 0xC0000201 + at % 2 * 256, UDP, (4000, 53 + at % 3)) for at in range(60)]
    capture = write_capture(tmp_path / "in.pcap", frames)
    ended = run_placer("chain", "exec", rack, "--in", capture, "--out", tmp_path / "out.pcap", "--format", "json")
    assert ended.status == 0, ended.stderr
    rules = json.loads(ended.stdout)["rules"]
    assert rules == {"c/ACL": {"1": 10, "2": 20}, "c/IPv4Fwd": {"1": 50}}
