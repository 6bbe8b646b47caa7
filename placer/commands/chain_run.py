"""`placer chain run`: a compiled rack that stays up, between network interfaces."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from placer.commands.chain_compile import Attach, Directory, OpenFlow
from placer.commands.chain_place import PLAN_FORMATS, Format
from placer.commands.options import Quiet, one_of, take_option
from profiles import InputError

if TYPE_CHECKING:
    from placer.rack.compiler.live import LiveRack

Incoming = Annotated[str, take_option("Where packets come from the outside world.", "--in", metavar="INTERFACE")]
Outgoing = Annotated[str, take_option("Where packets go to the outside world.", "--out", metavar="INTERFACE")]
LAST_PORT = 65535
MetricsAddress = Annotated[
    str | None,
    take_option(
        "Serve counters to Prometheus there, as in 127.0.0.1:9100; without an address, on this machine only. "
        "[default: nowhere]",
        "--metrics",
        metavar="[ADDRESS:]PORT",
    ),
]


def run(
    directory: Directory,
    source: Incoming,
    target: Outgoing,
    metrics: MetricsAddress = None,
    openflow: OpenFlow = "emulated",
    attach: Attach = False,
    format: Format = "table",
    quiet: Quiet = False,
) -> None:
    """Keep a compiled rack running between network interfaces, until SIGINT or SIGTERM; needs CAP_NET_RAW."""
    from placer.progress import Progress
    from placer.rack.compiler.execute import read_rack_file
    from placer.rack.compiler.live import heed_signals, start_live_rack
    from placer.rack.compiler.live_socket import listen_for_updates
    from placer.rack.compiler.openflow.open_vswitch import OPENFLOW_SWITCHES
    from placer.report.rack.compiled_rack import build_execution, format_execution

    one_of("--format", format, PLAN_FORMATS)
    one_of("--openflow", openflow, OPENFLOW_SWITCHES)
    address = None if metrics is None else _address_of(metrics)
    progress = Progress(quiet=quiet)
    read_rack_file(directory)
    with (
        heed_signals() as is_time,
        listen_for_updates(directory) as updates,
        _serve_metrics(address) as show_metrics,
        start_live_rack(directory, source, target, progress.say, openflow=openflow, attach=attach) as live,
    ):
        show_metrics(live)
        progress.say(f"{directory} runs from {source} to {target}")
        live.watch(is_time.is_set, updates)
        live.end()
    document = {**build_execution(live.counts), "restarts": dict(live.restarts)}
    typer.echo(json.dumps(document) + "\n" if format == "json" else format_execution(document), nl=False)


def _address_of(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not (port.isascii() and port.isdecimal()) or not 0 < int(port) <= LAST_PORT:
        raise InputError.of("--metrics", f"'{text}' is no address with a port", hint="as in 127.0.0.1:9100")
    if host.startswith("[") and host.endswith("]"):  # of IPv6
        host = host[1:-1]
    return host or "127.0.0.1", int(port)


@contextmanager
def _serve_metrics(address: tuple[str, int] | None) -> Iterator[Callable[["LiveRack"], None]]:
    """What lets the counters of a rack be seen at an address, which is taken before the rack starts."""
    if address is None:
        yield lambda live: None
        return
    from prometheus_client import CollectorRegistry, start_http_server

    from placer.report.rack.metrics import RackMetrics

    registry = CollectorRegistry()
    host, port = address
    try:
        server, _ = start_http_server(port, host, registry)
    except OSError as error:
        raise InputError.of("--metrics", f"{host}:{port}: {error.strerror or error}") from None
    try:
        yield lambda live: registry.register(RackMetrics(live))
    finally:
        server.shutdown()
        server.server_close()
