"""`netns`: chains of real programs on this machine (docs/testbeds.md). Each runs in a network namespace of its own and
has a share of a CPU; requests pass the chain from a generator to a web server, and their answers come back.

    wrk ── nginx ── socat ── squid ── web server          last CPU: wrk and the web server; other CPUs: the chain

One request and its answer are a packet each way, so what a chain carries is in thousands of requests a second.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from profiler import testbed
from profiler.protocol.request_checks import refusals
from profiler.testbeds import TESTBEDS
from profiles import ChainLoad, Counters, InputError, Load, NfDescription, NicModel, TestbedDescription, Workload
from profiles.chain import Cores

PORT = 8080
MEASURED_S = 2  # of a run, unless the user gives another time; wrk takes whole seconds
MOST_S = 60
START_S = 10.0  # within which all programs of a chain answer
PERIOD_US = 50_000  # in which a core of a chain has its share
LEAST_QUOTA_US = 1_000  # of a period, which the kernel allows
CORES = 4
"""Each is a quarter of the CPUs that the chain has, at most one CPU, so that chains of four fit on any machine."""
MTU = 2000  # bytes: an answer of 1400 and its header are one packet
MOST_RUNNING = 32  # chains whose programs wait for further runs
NAMES = "placer-netns-"  # what the names of namespaces and groups begin with; the process follows
CGROUPS = Path("/sys/fs/cgroup")
TOOLS = {"ip": "iproute2", "nsenter": "util-linux", "taskset": "util-linux", "wrk": "wrk", "nginx": "nginx-light"}
"""Programs that every run needs, and their Debian packages."""
REPORT = """
function done(summary, latency, requests)
  io.stderr:write('{')
  local errors, counts = summary.errors, {}
  for at = 1, #latency do counts[at] = string.format('[%d, %d]', latency(at)) end
  io.stderr:write(string.format('"requests": %d, "us": %d, "failed": %d, "ended": %d, "latency": [%s]}',
    summary.requests, summary.duration, errors.status + errors.timeout + errors.connect + errors.write, errors.read,
    table.concat(counts, ', ')))
end
"""
"""What wrk writes at its end: a brace at once; times in us, the connections that ended without an answer, and how many
answers took so long, after its correction."""
MOST_WAITING = 1.1
"""Requests that wait on average, by their number and latency, for each connection: more than one are none that were
measured. The first and last requests of a run make the difference."""
LEAST_SERVED = 0.8  # of the connections, below which some are never served


def measured_latency(corrected: Sequence[Sequence[int]], requests: int, us: int, flows: int) -> testbed.PacketLatency:
    """The latency of the requests that were made. wrk takes connections for clients that send at the mean interval of a
    connection: for an answer that took longer than two, it adds answers that took an interval less, two less and so on,
    down to one. In a closed loop, there are none of these; they are taken away again, from the longest on. `corrected`:
    times and their numbers. Raises `TestbedError` where the rest is not what was measured."""
    counts = np.zeros(corrected[-1][0] + 1, dtype=np.int64)
    counts[[time for time, _ in corrected]] = [count for _, count in corrected]
    if rounds := requests // flows:
        interval = us // rounds
        for longest in range(len(counts) - 1, 2 * interval - 1, -1):
            if counts[longest]:
                counts[longest - interval : interval : -interval] -= counts[longest]
    waiting = float(counts @ np.arange(len(counts))) / us
    if counts.min() < 0 or counts.sum() != requests or waiting > MOST_WAITING * flows:
        raise testbed.TestbedError(
            f"testbed netns: wrk reports {counts.sum()} latencies of {requests} requests, and that {waiting:.3g} of"
            f" them wait on average on {flows} connections"
        )
    ends = np.cumsum(counts)
    p50, p95, p99 = (float(np.searchsorted(ends, part * requests)) for part in (0.5, 0.95, 0.99))
    return testbed.PacketLatency(waiting * us / requests, p50, p99, len(counts) - 1.0, p95)


# The programs, each a file of settings and a command. They listen on PORT and pass requests on to `to`.


@dataclass(frozen=True, slots=True)
class VnfProgram:
    """A program as a network function: the Debian package, its settings, and its command in the foreground."""

    package: str
    settings: Callable[[str], str]  # from the address and port of the next one
    command: Callable[[str, str], list[str]]  # from the file of settings, and that address
    closes: bool = False  # connections after an answer, without saying so
    relays: bool = False  # connections and not requests: they end where the next one ends them


NGINX = """daemon off; worker_processes 1; pid nginx.pid; error_log stderr crit; events { worker_connections 1024; }
http { access_log off; keepalive_requests 1000000000; """
"""How the settings of nginx begin, of a stage and of the web server."""


def _nginx(to: str) -> str:
    return f"""{NGINX}upstream next {{ server {to}; keepalive 256; }} server {{ listen {PORT}; location / {{
proxy_pass http://next; proxy_http_version 1.1; proxy_set_header Connection ""; }} }} }}
"""


def _web_server(folder: str) -> str:
    return f"{NGINX}open_file_cache max=100; server {{ listen {PORT}; root {folder}; }} }}"


def _haproxy(to: str) -> str:
    """It sends requests again, since tinyproxy closes connections without saying so. It acknowledges at once, since
    tinyproxy sends a request in two parts: each would take 40 ms."""
    return f"""global
  nbthread 1
defaults
  mode http
  timeout connect 10s
  timeout client 60s
  timeout server 60s
  http-reuse always
  retries 20
  retry-on all-retryable-errors
  no option tcp-smart-accept
frontend f
  bind :{PORT}
  default_backend b
backend b
  server next {to}
"""


def _tinyproxy(to: str) -> str:
    return f"""Port {PORT}
MaxClients 1024
Timeout 60
LogLevel Critical
ReversePath "/" "http://{to}/"
ReverseOnly Yes
DisableViaHeader Yes
"""


SQUID_WITHOUT_DNS = "url_rewrite_extras none\nstore_id_extras none\n"
"""Else squid asks for the name of each connection's client, since both contain it unless they are set. Nobody answers
in a namespace, and each question is compared with all that wait: chains that open many connections collapse."""


def _squid(to: str) -> str:
    host, port = to.split(":")
    return f"""http_port {PORT} accel defaultsite=next no-vhost
cache_peer {host} parent {port} 0 no-query originserver no-digest name=next
http_access allow all
cache deny all
cache_mem 0 MB
pid_filename none
access_log none
cache_log /dev/null
logfile_rotate 0
pinger_enable off
shutdown_lifetime 0 seconds
visible_hostname netns
{SQUID_WITHOUT_DNS}"""


def _nginx_command(file: str, to: str) -> list[str]:
    return ["nginx", "-p", str(Path(file).parent), "-c", file]


def _socat_command(file: str, to: str) -> list[str]:
    """It takes each connection in a process of its own, and without `backlog`, five connections wait at most."""
    return ["socat", f"TCP-LISTEN:{PORT},fork,reuseaddr,nodelay,backlog=1024", f"TCP:{to},nodelay"]


PORT_SETTINGS = "echo 1 >/proc/sys/net/ipv4/tcp_tw_reuse; echo 1024 65535 >/proc/sys/net/ipv4/ip_local_port_range"
"""So that programs that open a connection for each request, such as tinyproxy, do not run out of ports."""
VNFS: Mapping[str, VnfProgram] = {
    "nginx": VnfProgram("nginx-light", _nginx, _nginx_command),
    "haproxy": VnfProgram("haproxy", _haproxy, lambda file, to: ["haproxy", "-db", "-f", file]),
    "tinyproxy": VnfProgram("tinyproxy-bin", _tinyproxy, lambda file, to: ["tinyproxy", "-d", "-c", file], closes=True),
    "squid": VnfProgram("squid", _squid, lambda file, to: ["squid", "-N", "-f", file]),
    "socat": VnfProgram("socat", lambda to: "", _socat_command, relays=True),
}  # fmt: skip
"""Programs that can stand in a chain: HTTP proxies, a caching proxy whose cache is off, and a relay of TCP."""


class NetnsTestbed(testbed.Testbed):
    """Chains of programs in network namespaces of this machine, one chain at a time, measured in a closed loop of
    `flows` connections whose answers have `packet_size` bytes. Its cores are parts of CPUs. Up to 32 chains wait for
    further runs of them. `seconds`: the time of a run. Raises `InputError` where programs or rights lack."""

    def __init__(self, seconds: int = MEASURED_S, timeout: float = 60.0) -> None:
        self._seconds, self._timeout = seconds, timeout
        missing = [name for name in TOOLS if not _path_of(name)]
        self._vnfs = {name: vnf for name, vnf in VNFS.items() if _path_of(name)}
        if missing or not self._vnfs:
            packages = sorted({TOOLS[name] for name in missing} | {vnf.package for vnf in VNFS.values()})
            raise InputError.of(
                "--testbed",
                f"netns: not installed: {', '.join(missing or VNFS)}",
                hint=f"apt-get install {' '.join(packages)}",
            )
        self._cpus = sorted(os.sched_getaffinity(0))
        if len(self._cpus) < 2:
            raise InputError.of("--testbed", "netns: needs two CPUs, one of them for the generator and the web server")
        if os.geteuid() != 0:
            raise InputError.of("--testbed", "netns: network namespaces need root", hint="run it as root")
        _remove_abandoned()
        self._core = min((len(self._cpus) - 1) / CORES, 1.0)
        self._running: dict[tuple[Sequence[str], Cores], RunningChain] = {}
        self._started = 0

    def describe(self) -> TestbedDescription:
        processor = testbed.processor_fields().get("model name", "unknown CPU")
        return TestbedDescription(
            name="netns",
            nic=NicModel(model=f"{self._core:.3g} of {processor}", cores=CORES, kind="server"),
            attributes={"flows": (1.0, 64.0), "packet_size": (64.0, 1400.0)},
            default_traffic={"flows": 16.0, "packet_size": 512.0},
            nfs=tuple(NfDescription(name=name, cores=1) for name in self._vnfs),
            chains=True,
        )

    def run(self, loads: Sequence[Load], *, noise: bool = True, seed: int | None = None) -> testbed.Run:
        if faults := refusals(self.describe(), loads) or self._refusals(loads):
            raise testbed.RunRefused(f"testbed netns: {'; '.join(faults)}")
        load = loads[0]
        chain = ChainLoad.of([load.nf], [[0]], load.traffic) if isinstance(load, Workload) else load
        assert isinstance(chain, ChainLoad)
        began = time.monotonic()
        reached = self._started_chain(chain).measure(chain, self._core, self._seconds)
        if not isinstance(load, ChainLoad):
            reached = replace(reached, stages=())
        return testbed.Run((reached,), time.monotonic() - began)

    def _started_chain(self, chain: ChainLoad) -> RunningChain:
        """Its programs; those of other chains wait for their next run, which takes no CPU."""
        names = tuple(stage.nf for stage in chain.stages)
        if (key := (names, chain.cores)) not in self._running:
            if len(self._running) == MOST_RUNNING:
                self._running.pop(next(iter(self._running))).close()
            self._started += 1
            self._running[key] = RunningChain(self._started, names, chain.cores, self._cpus, self._timeout)
        return self._running[key]

    def close(self) -> None:
        while self._running:
            self._running.popitem()[1].close()

    def _refusals(self, loads: Sequence[Load]) -> list[str]:
        """What this testbed does not do, though its description does not say so."""
        if len(loads) != 1 or not isinstance(loads[0], ChainLoad | Workload):
            return ["it runs one chain at a time"]
        if not isinstance(load := loads[0], ChainLoad):
            return []
        faults = ["it offers no rate: a connection sends when its last answer has come"] if load.rate_kpps else []
        least = LEAST_QUOTA_US / PERIOD_US / self._core
        return faults + [f"share {share:g} is below {least:.2g}" for share in load.shares if share < least]


class RunningChain:
    """The programs of a chain in their namespaces, until closed. Raises `TestbedError` when one does not start."""

    def __init__(self, number: int, names: Sequence[str], cores: Cores, cpus: Sequence[int], timeout: float) -> None:
        self._name, self._names, self._cores, self._timeout = f"{NAMES}{os.getpid()}-{number}", names, cores, timeout
        self._chain_cpus, self._load_cpu = ",".join(map(str, cpus[:-1])), str(cpus[-1])
        self._left = ExitStack()  # what is undone at the end, the last first
        try:
            self._start()
        except BaseException:
            self.close()
            raise

    def _start(self) -> None:
        self._folder = Path(self._left.enter_context(tempfile.TemporaryDirectory(prefix=NAMES)))
        self._folder.chmod(0o755)  # programs that drop root read their settings
        (self._folder / "report.lua").write_text(REPORT, encoding="utf-8")
        self._processes: list[tuple[str, subprocess.Popen[bytes]]] = []
        self._spaces = [f"{self._name}-{number}" for number in range(len(self._names) + 2)]
        for space in self._spaces:
            _ip("netns", "add", space)
            self._left.callback(_remove_space, space)
            _ip("-n", space, "link", "set", "lo", "up")
            _ip("netns", "exec", space, "sh", "-c", PORT_SETTINGS)
        for number, (space, following) in enumerate(zip(self._spaces, self._spaces[1:], strict=False)):
            _ip("link", "add", "next", "netns", space, "type", "veth", "peer", "name", "last", "netns", following)
            for end, name, host in ((space, "next", 1), (following, "last", 2)):
                _ip("-n", end, "addr", "add", f"10.77.{number}.{host}/30", "dev", name)
                _ip("-n", end, "link", "set", name, "mtu", str(MTU), "up")
        self._groups = [CpuGroup(f"{self._name}-{number}") for number in range(len(self._cores))]
        self._load_group = CpuGroup(f"{self._name}-load")
        for group in (*self._groups, self._load_group):
            self._left.callback(group.remove)
        self._left.callback(self._end_programs)
        of_stage = {stage: group for core, group in zip(self._cores, self._groups, strict=True) for stage in core}
        web = self._settings("web", _web_server(str(self._folder)))
        self._begin("web", _inside(self._spaces[-1], _nginx_command(web, ""), self._load_cpu, self._load_group))
        for stage, name in reversed(list(enumerate(self._names))):
            to, vnf = f"10.77.{stage + 1}.2:{PORT}", VNFS[name]
            file = self._settings(f"{stage}-{name}", vnf.settings(to))
            self._begin(
                name, _inside(self._spaces[stage + 1], vnf.command(file, to), self._chain_cpus, of_stage[stage])
            )
        (self._folder / "0").write_bytes(b"")
        until = time.monotonic() + START_S
        while not self._generate("0", 1, 1).get("requests"):
            for name, process in self._processes:
                if process.poll() is not None:
                    said = (self._folder / f"{name}.log").read_text(errors="replace").strip()[-300:]
                    raise testbed.TestbedError(f"testbed netns: {name} ended with status {process.returncode}: {said}")
            if time.monotonic() > until:
                raise testbed.TestbedError(
                    f"testbed netns: {','.join(self._names)} does not answer within {START_S:g} s"
                )

    def measure(self, chain: ChainLoad, core: float, seconds: int) -> testbed.Measurement:
        """A run of the chain. `core`: what a core has of a CPU. Raises `TestbedError` when no request is answered or
        some fail."""
        for group, share in zip(self._groups, chain.shares or (1.0,) * len(self._cores), strict=True):
            group.limit(share * core)
        size, flows = round(chain.traffic.packet_size), round(chain.traffic.flows)
        (self._folder / str(size)).write_bytes(b"x" * size)
        reached = self._generate(str(size), flows, seconds)
        if not reached.get("requests"):
            raise testbed.TestbedError(f"testbed netns: {','.join(self._names)} answered no request within {seconds} s")
        first = next((VNFS[name] for name in self._names if not VNFS[name].relays), None)
        after_answers = reached["requests"] if first and first.closes else 0
        if failed := reached["failed"] + max(0, reached["ended"] - after_answers):
            raise testbed.TestbedError(
                f"testbed netns: {','.join(self._names)}: {failed} requests failed beside"
                f" {reached['requests']} that were answered"
            )
        kpps = 1e3 * reached["requests"] / reached["us"]
        of_stage = {stage: part for stages, part in zip(self._cores, reached["cpu"], strict=True) for stage in stages}
        stages = [
            testbed.StageMeasurement(kpps, 0.0, round(100 * part / core, 1)) for _, part in sorted(of_stage.items())
        ]
        latency = measured_latency(reached["latency"], reached["requests"], reached["us"], flows)
        served = latency.mean * reached["requests"] / max(reached["us"] - latency.max, 1.0)
        if served < LEAST_SERVED * flows:
            names = ",".join(self._names)
            print(f"netns: {names} serves about {served:.0f} of {flows} connections", file=sys.stderr, flush=True)
        return testbed.Measurement(kpps, Counters(), tuple(stages), latency)

    def _generate(self, path: str, flows: int, seconds: int) -> dict[str, Any]:
        """Requests from `flows` connections for that time; what wrk reports, empty where it could not connect, and what
        each core used of a CPU."""
        command = ["wrk", "-t", "1", "-c", str(flows), "-d", str(seconds), "--timeout", f"{START_S:g}s"]
        command += ["-s", str(self._folder / "report.lua"), f"http://10.77.0.2:{PORT}/{path}"]
        words = _inside(self._spaces[0], command, self._load_cpu, self._load_group)
        began, before = time.monotonic(), [group.used_us() for group in self._groups]
        with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as wrk:
            assert wrk.stderr
            ended, _, _ = select.select([wrk.stderr], [], [], seconds + self._timeout)
            lasted, after = time.monotonic() - began, [group.used_us() for group in self._groups]
            try:
                _, report = wrk.communicate(timeout=self._timeout if ended else 0)
            except subprocess.TimeoutExpired:
                wrk.kill()
                raise testbed.TestbedError(f"testbed netns: wrk does not end {self._timeout:g} s after a run") from None
        report = report[report.find(b"{") :]
        answered: dict[str, Any] = json.loads(report) if report.startswith(b"{") else {}
        return answered | {"cpu": [(end - us) / 1e6 / lasted for us, end in zip(before, after, strict=True)]}

    def _settings(self, name: str, text: str) -> str:
        folder = self._folder / name
        folder.mkdir()
        file = folder / "settings.conf"
        file.write_text(text, encoding="utf-8")
        return str(file)

    def _begin(self, name: str, words: list[str]) -> None:
        with (self._folder / f"{name}.log").open("ab") as log:
            process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
        self._processes.append((name, process))

    def _end_programs(self) -> None:
        for _, process in self._processes:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        for space in self._spaces:
            _kill_in(space)

    def close(self) -> None:
        """End all programs and remove namespaces, groups and files."""
        self._left.close()


class CpuGroup:
    """A control group whose processes share a part of the time of the CPUs, before other work; version 1 or 2."""

    def __init__(self, name: str) -> None:
        first = CGROUPS / "cpu"
        self._of_version_1 = first.is_dir()
        parents = [first, CGROUPS / "cpuacct"] if self._of_version_1 else [CGROUPS]
        self._folders = [parent / name for parent in parents]  # limits of time, and what was used
        self._folder = self._folders[0]
        try:
            if not self._of_version_1:
                (CGROUPS / "cgroup.subtree_control").write_text("+cpu", encoding="ascii")
            for folder in self._folders:
                folder.mkdir(exist_ok=True)
            file, weight = ("cpu.shares", "262144") if self._of_version_1 else ("cpu.weight", "10000")
            (self._folder / file).write_text(weight, encoding="ascii")  # the most: others on the machine wait
        except OSError as error:
            hint = "run it where control groups can be written, as on a host or in a privileged container"
            raise InputError.of("--testbed", f"netns: {error.filename}: {error.strerror}", hint=hint) from None

    @property
    def processes(self) -> list[str]:
        """The files that a process joins by."""
        return [str(folder / "cgroup.procs") for folder in self._folders]

    def used_us(self) -> float:
        """The time of CPUs that its processes have used."""
        if self._of_version_1:
            return int((self._folders[-1] / "cpuacct.usage").read_text()) / 1e3
        return int((self._folder / "cpu.stat").read_text().split()[1])

    def limit(self, share: float) -> None:
        """Give its processes this share of the time of one CPU."""
        quota = round(share * PERIOD_US)
        if self._of_version_1:
            (self._folder / "cpu.cfs_period_us").write_text(str(PERIOD_US), encoding="ascii")
            (self._folder / "cpu.cfs_quota_us").write_text(str(quota), encoding="ascii")
        else:
            (self._folder / "cpu.max").write_text(f"{quota} {PERIOD_US}", encoding="ascii")

    def remove(self) -> None:
        """Remove the group; its processes have ended."""
        for folder in self._folders:
            if folder.is_dir():
                _remove_group(folder)


def _path_of(program: str) -> str | None:
    return shutil.which(program, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")


def _inside(space: str, command: Sequence[str], cpus: str, group: CpuGroup) -> list[str]:
    """The command in a namespace, on these CPUs and in a group, which a shell joins before it becomes the program."""
    program = _path_of(command[0])
    assert program
    words = ["taskset", "-c", cpus, "nsenter", f"--net=/run/netns/{space}", program, *command[1:]]
    joining = " && ".join(f"echo $$ > {file}" for file in group.processes)
    return ["sh", "-c", f'{joining} && exec "$0" "$@"', *words]


def _ip(*words: str) -> str:
    done = subprocess.run([_path_of("ip") or "ip", *words], capture_output=True, text=True, check=False)
    if done.returncode:
        raise testbed.TestbedError(f"testbed netns: ip {' '.join(words)}: {done.stderr.strip()}")
    return done.stdout


def _kill_in(space: str) -> None:
    """Kill what still runs in a namespace, such as children that a program started in a session of their own."""
    with suppress(testbed.TestbedError):
        for number in _ip("netns", "pids", space).split():
            with suppress(ProcessLookupError):
                os.kill(int(number), signal.SIGKILL)


def _remove_space(space: str) -> None:
    with suppress(testbed.TestbedError):
        _ip("netns", "delete", space)


def _remove_abandoned() -> None:
    """Remove what processes left that were killed."""
    spaces = [line.split()[0] for line in _ip("netns", "list").splitlines() if line.startswith(NAMES)]
    for space in spaces:
        if not _is_alive(space):
            _kill_in(space)
            _remove_space(space)
    for folder in [folder for parent in ("cpu", "cpuacct", ".") for folder in (CGROUPS / parent).glob(f"{NAMES}*")]:
        if not _is_alive(folder.name):
            _remove_group(folder)


def _remove_group(folder: Path) -> None:
    for _ in range(200):  # the kernel keeps a killed process in its group a moment longer
        if not folder.is_dir():  # as where `cpuacct` is a link to the group of `cpu`
            return
        with suppress(OSError):
            folder.rmdir()
            return
        time.sleep(0.01)


def _is_alive(name: str) -> bool:
    """Whether the process that a name of a namespace or group has still runs."""
    return Path("/proc", name.removeprefix(NAMES).split("-")[0]).is_dir()


@TESTBEDS.register("netns")
def open_netns(argument: str, timeout: float) -> testbed.Testbed:
    """The testbed of `netns` or `netns:SECONDS`, the time of a run."""
    if not (argument.isdecimal() and 1 <= int(argument) <= MOST_S) and argument:
        raise InputError.of(
            "--testbed", f"netns:{argument}: a run takes 1 to {MOST_S} seconds", hint="netns or netns:5"
        )
    return NetnsTestbed(int(argument or MEASURED_S), timeout)
