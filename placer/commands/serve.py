"""`placer serve`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from placer.commands import options
from placer.commands.online import Arrivals, Backup, Beginning, PlanFile, PlanStrategy, WhenFull, announce

if TYPE_CHECKING:
    from placer.fleet.state.saved import SavedState

StateFile = Annotated[
    str | None,
    options.take_option(
        "Keep the fleet in this SQLite file or PostgreSQL database, and continue from it.",
        "--state",
        metavar="FILE|postgresql://...",
    ),
]
Existing = Annotated[
    bool, typer.Option("--existing", help="Refuse a state that does not exist, instead of beginning an empty fleet.")
]
Restore = Annotated[
    Path | None,
    options.take_option(
        "Replace the state file by this copy, then serve; the former one is kept as FILE.before-restore.",
        metavar="COPY",
    ),
]
KeepLog = Annotated[
    str | None,
    options.take_option(
        "Keep only events of the last days (30d) or hours (12h), or the last N, in the log; by default all.",
        metavar="30d|N",
    ),
]
Listen = Annotated[str, typer.Option(metavar="HOST:PORT", help="The address to listen on; port 0 chooses a free port.")]
HostNames = Annotated[
    list[str] | None,
    options.take_option(
        "Without tokens, also answer requests to this name, such as that of a proxy; may be given several times.",
        "--host",
        metavar="NAME",
    ),
]
TokenFile = Annotated[
    Path | None, options.take_option("Accept only the tokens of this file (docs/how-to/serve.md).", "--tokens")
]
NewToken = Annotated[
    str | None,
    options.take_option(
        "Create a token of this name and exit: its table goes to stdout, the token itself to stderr.", metavar="NAME"
    ),
]
Scopes = Annotated[str, typer.Option(help="The scopes of a new token: ask, decide, admin; separated by commas.")]
Certificate = Annotated[
    Path | None, options.take_option("Serve HTTPS with this certificate chain.", "--tls-certificate")
]
Key = Annotated[Path | None, options.take_option("The key of the certificate.", "--tls-key")]
Anyone = Annotated[
    bool, typer.Option("--without-tokens", help="Disable authentication: every client that can connect has all rights.")
]
LogRequests = Annotated[bool, typer.Option("--log-requests", help="Log every request on stderr.")]
WebhookAddress = Annotated[
    str | None, options.take_option("Post every event and its answer to this URL, signed.", "--webhook", metavar="URL")
]
WebhookSecret = Annotated[Path | None, options.take_option("A file with the secret that signs webhooks.")]
Kubernetes = Annotated[
    str | None,
    options.take_option(
        "Act as scheduler extender of the cluster whose nodes are the NICs: in-cluster, or the address of its API"
        " server (docs/how-to/kubernetes.md).",
        metavar="API",
    ),
]
Retrain = Annotated[
    list[Path] | None,
    options.take_option(
        "Retrain the models on measurements and on this profile; as in `placer online`.", metavar="PROFILE"
    ),
]
Repair = Annotated[
    int,
    typer.Option(
        metavar="N", min=0, help="Move at most N instances below their SLA per measurement; as in `placer online`."
    ),
]


def command(
    state: StateFile = None,
    existing: Existing = False,
    restore: Restore = None,
    backup: Backup = None,
    keep_log: KeepLog = None,
    models: options.ModelsDir = None,
    fleet: options.Fleet = None,
    listen: Listen = "127.0.0.1:8080",
    host: HostNames = None,
    arrivals: Arrivals = None,
    plan: PlanFile = None,
    plan_strategy: PlanStrategy = None,
    kubernetes: Kubernetes = None,
    webhook: WebhookAddress = None,
    webhook_secret: WebhookSecret = None,
    tokens: TokenFile = None,
    new_token: NewToken = None,
    scopes: Scopes = "decide",
    without_tokens: Anyone = False,
    tls_certificate: Certificate = None,
    tls_key: Key = None,
    predictor: options.OnePredictor = "tomur",
    testbed: options.RecordedCard = None,
    rule: options.RuleName = "look-ahead",
    when_full: WhenFull = "reject",
    retrain: Retrain = None,
    repair: Repair = 0,
    budget: options.Budget = None,
    risk: options.Risk = None,
    log_requests: LogRequests = False,
    ignore_columns: options.IgnoreColumns = False,
    skip_empty_stays: options.SkipEmptyStays = False,
    quiet: options.Quiet = False,
) -> None:
    """Place NFs over HTTP, by events and questions, with a web page; the fleet is kept in a file or a database.

    It decides like `placer online`, for any number of clients. An answer is sent after its event is on disk. Without
    tokens, only clients on this machine can connect."""
    from profiles import InputError

    missing = [name for name in ("starlette", "uvicorn", "httptools", "prometheus_client") if find_spec(name) is None]
    if missing:
        raise InputError.of("serve", f"needs {', '.join(missing)}", hint="pip install 'nf-placer[serve]'")
    if new_token is not None:
        _make_token(new_token, scopes)
        return

    from placer.fleet.protocol import Reader
    from placer.fleet.queued_fleet import WHEN_FULL
    from placer.fleet.service.http.hosts import read_names
    from placer.fleet.service.http.opening_port import OpeningProgress, open_behind_port
    from placer.fleet.service.http.server import ServerSettings, bind_socket, make_writer, serve_http
    from placer.fleet.service.opening import OnlineSettings, keep_named_kinds, open_engine
    from placer.fleet.state.backup import back_up
    from placer.fleet.state.backup import restore as restore_state
    from placer.fleet.state.open_state import is_address, open_state
    from placer.fleet.state.retention import Retention
    from placer.fleet.what_if import WhatIf
    from placer.inputs.catalogue import Cards, open_online
    from placer.policy.rules import rule_of

    options.one_of("--when-full", when_full, WHEN_FULL)
    options.refuse_bad_budget(budget, risk)
    if state is None:
        raise InputError.of("--state", "is missing", hint="name a file for the fleet: --state fleet.db")
    if is_address(state):
        _refuse_copies_of_a_database(backup, restore)
    if backup is not None:
        back_up(Path(state), backup)
        return
    beginning = Beginning(arrivals, plan, plan_strategy, predictor, ignore_columns, skip_empty_stays)
    address, port = _address(listen)
    allowed, names = _tokens(tokens, address, without_tokens, host or ()), read_names(host or ())
    make_webhook = webhook_row = cluster = None
    if webhook is not None:
        from placer.fleet.service.http.webhooks import row_of, webhook_maker

        make_webhook, webhook_row = webhook_maker(webhook, webhook_secret), row_of(webhook)
    retention = Retention.read(keep_log, webhook_row)
    _refuse_half_tls(tls_certificate, tls_key)
    if not is_address(state):
        options.refuse_unwritable("--state", Path(state))
    if kubernetes is not None:
        from placer.fleet.service.kubernetes.api import KubernetesApi

        cluster = KubernetesApi(kubernetes)
    settings = ServerSettings(address, port, allowed, names, tls_certificate, tls_key, log_requests)
    decided_by, progress = (
        OnlineSettings(predictor, rule_of(rule), when_full, budget, risk, repair),
        OpeningProgress(quiet=quiet),
    )

    def open_service() -> tuple[Any, ...]:
        """The writer of the service, its questions, and what adapters add; in a thread of its own."""
        with progress.waiting("loading models"):
            cards = Cards(models, fleet, testbed, risk, budget_pct=budget)
            catalogue = open_online(cards, stack, progress.say, predictor)
        kinds = catalogue.kinds if kubernetes is None else keep_named_kinds(catalogue.kinds)
        with progress.task("reading tenants of the state") as counted:
            if restore is not None:
                restore_state(Path(state), restore, kinds, catalogue.check)
            saved = stack.enter_context(open_state(state, kinds, catalogue.check, existing=existing, counted=counted))
        progress.say(_describe(saved))
        saved.retention = retention
        said = partial(announce, catalogue, progress)
        engine = open_engine(catalogue, decided_by, saved, retrain or (), stack, progress, said, kinds)
        beginning.place(catalogue, engine, saved, progress)
        reader = Reader(catalogue.default_traffic, catalogue.check, engine.workload_of)
        writer, what_if = make_writer(engine, reader, saved, allowed), WhatIf(engine)
        background = [] if make_webhook is None else [make_webhook(writer).run]
        if cluster is None:
            return writer, what_if, [], background
        from placer.fleet.service.kubernetes.extender import extender_of

        routes, watching = extender_of(cluster, writer, what_if)
        return writer, what_if, routes, [*watching, *background]

    with ExitStack() as stack:
        listening = stack.enter_context(bind_socket(settings))
        writer, what_if, routes, background = open_behind_port(listening, settings, progress, open_service)
        serve_http(writer, what_if, settings, listening, routes, background)


def _refuse_copies_of_a_database(backup: Path | None, restore: Path | None) -> None:
    from profiles import InputError

    for option, given, tool in (("--backup", backup, "pg_dump"), ("--restore", restore, "pg_restore")):
        if given is not None:
            raise InputError.of(option, "is for a state in a file", hint=f"use {tool} for a database")


def _describe(saved: SavedState) -> str:
    """What a service begins with."""
    if saved.new:
        return f"{saved.name} is new: the fleet is empty"
    from placer.report.text.table import count_nics, count_noun

    fleet, queued = saved.fleet, f", {len(saved.waiting):,} queued" if saved.waiting else ""
    instances = count_noun(fleet.tenants, "instance")
    return (
        f"{saved.name} is continued after event {saved.events:,}: {instances} on {count_nics(len(fleet.nics))}{queued}"
    )


def _make_token(name: str, scopes: str) -> None:
    from placer.fleet.service.http.tokens import new_token

    token, table = new_token(name, [scope.strip() for scope in scopes.split(",")])
    print(table, end="")
    print(f"token of {name}, shown only now: {token}", file=sys.stderr)


def _tokens(path: Path | None, host: str, without: bool, names: Sequence[str]):  # type: ignore[no-untyped-def]
    """The tokens; without, only on the loopback address, or where that is asked for."""
    from placer.fleet.service.http.tokens import OPEN_TO_ALL, read_tokens
    from profiles import InputError

    if path is not None and without:
        raise InputError.of("--without-tokens", "is given together with --tokens", hint="give one of the two")
    if path is not None and names:
        raise InputError.of(
            "--host", "is given together with --tokens", hint="leave it out: tokens hold under any name"
        )
    if path is not None:
        return read_tokens(path)
    if host not in ("127.0.0.1", "::1", "localhost") and not without:
        hint = "make some: placer serve --new-token NAME >> tokens.toml; or give --without-tokens"
        raise InputError.of(
            "--listen", f"{host} can be reached from other machines, and there are no --tokens", hint=hint
        )
    return OPEN_TO_ALL


def _address(listen: str) -> tuple[str, int]:
    from profiles import InputError

    host, _, port = listen.rpartition(":")
    if not host or not (port.isascii() and port.isdigit() and int(port) < 65_536):
        raise InputError.of("--listen", f"'{listen}' is not HOST:PORT", hint="as in 127.0.0.1:8080")
    return host.strip("[]"), int(port)


def _refuse_half_tls(certificate: Path | None, key: Path | None) -> None:
    from profiles import InputError

    for option, path in (("--tls-certificate", certificate), ("--tls-key", key)):
        if path is None and (certificate or key):
            raise InputError.of(option, "is missing", hint="TLS needs --tls-certificate and --tls-key")
        if path is not None and not path.is_file():
            raise InputError.of(option, f"{path} does not exist")
