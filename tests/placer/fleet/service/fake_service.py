"""A service with canned answers, for tests of the page: names as markup, long names, many NICs, errors, a token."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from placer.fleet.service.page import PAGE_HEADERS, PageFile, page_files

SCRIPT = "<script>document.title='run'</script><img src=x onerror=\"document.title='run'\">"
LONG = "a-very-long-name-" * 15
NFS = ["FlowMonitor", "NAT", "NIDS", SCRIPT]
LONGEST_WAIT_S = 0.4
FILES = page_files()


@dataclass
class Fake:
    """What the service answers. `nics`: NICs in order. `nfs`: NFs that can be asked for. `events`: the log; `add_event`
    ends waiting for it. `logs`: whether there is a log. `token`: the bearer token that is asked for; none if empty.
    `broken`: status of all answers in place of 200. `requests`: method and path of all requests so far; bodies of
    questions are in `questions`."""

    nics: list[dict[str, Any]]
    nfs: list[str] = field(default_factory=lambda: list(NFS))
    events: list[dict[str, Any]] = field(default_factory=list)
    logs: bool = True
    token: str = ""
    broken: int = 0
    requests: list[str] = field(default_factory=list)
    questions: list[dict[str, Any]] = field(default_factory=list)
    changed: threading.Condition = field(default_factory=threading.Condition)
    url: str = ""

    def add_event(self, event: dict[str, Any], answer: dict[str, Any]) -> None:
        with self.changed:
            self.events.append({"number": len(self.events) + 1, "event": event, "answer": answer})
            self.changed.notify_all()

    def answer(self, path: str, query: dict[str, list[str]], body: dict[str, Any]) -> tuple[int, Any]:
        match path.split("/")[2:]:
            case ["summary"]:
                return 200, self.summary()
            case ["nics"]:
                if int(query.get("cursor", ["0"])[0]) > len(self.nics):
                    return 400, _error("the cursor is not valid")
                return 200, self.page(int(query.get("cursor", ["0"])[0]), int(query["limit"][0]))
            case ["nics", name]:
                found = [nic for nic in self.nics if nic["nic"] == unquote(name)]
                return (200, {"version": len(self.events), **found[0]}) if found else (404, _error("no such NIC"))
            case ["tenants", name]:
                return self.tenant(unquote(name))
            case ["ask"]:
                self.questions.append(body)
                return 200, self.places(body)
            case ["log"] if self.logs:
                return 200, self.log(int(query["after"][0]))
        return 404, _error("no such path")

    def summary(self) -> dict[str, Any]:
        models = sorted({nic["nic_model"] for nic in self.nics})
        return {
            "version": len(self.events),
            "model": 3,
            "tenants": sum(len(nic["tenants"]) for nic in self.nics),
            "queued": 2,
            "violations_seen": 5,
            "nfs": self.nfs,
            "by_model": [_of_model(model, [nic for nic in self.nics if nic["nic_model"] == model]) for model in models],
        }

    def page(self, start: int, limit: int) -> dict[str, Any]:
        end = start + limit
        cursor = str(end) if end < len(self.nics) else None
        return {"version": len(self.events), "nics": self.nics[start:end], "cursor": cursor}

    def tenant(self, name: str) -> tuple[int, dict[str, Any]]:
        for nic in self.nics:
            for tenant in nic["tenants"]:
                if tenant["id"] == name:
                    return 200, {"version": 1, **tenant, "status": "placed", "nic": nic["nic"]}
        return 404, _error("no such tenant")

    def places(self, question: dict[str, Any]) -> dict[str, Any]:
        free = [nic for nic in self.nics if nic["free_cores"] >= 2 and nic["service"] == "up"]
        places: list[dict[str, Any]] = [
            {"nic": nic["nic"], "nic_model": nic["nic_model"], "opens": False, "score": 0.1284 + 0.01 * at, "cores": 2}
            for at, nic in enumerate(free[: question["top"] - 1])
        ]
        places.append({"nic": None, "nic_model": "bluefield-2", "opens": True, "score": None})
        verdicts = [
            {"nic_model": "bluefield-2", "company": ["NAT", "NIDS", "NAT"], "nics": 41, "cause": "SLA of a tenant"},
            {"nic_model": "bluefield-2", "company": ["NIDS", SCRIPT], "nics": 4, "cause": "cores"},
            {"nic_model": LONG, "company": [], "nics": 0, "cause": "none left"},
        ]
        return {"version": len(self.events), "places": places, "verdicts": verdicts}

    def log(self, after: int) -> list[dict[str, Any]]:
        with self.changed:
            self.changed.wait_for(lambda: len(self.events) > after, LONGEST_WAIT_S)
            return self.events[after:]


@contextmanager
def serving(fake: Fake) -> Iterator[Fake]:
    """The fake on a free port, in a thread."""
    server = _Server(("127.0.0.1", 0), _handler_of(fake))
    fake.url = f"http://127.0.0.1:{server.server_port}/"
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    yield fake
    server.shutdown()
    server.server_close()


def fleet(count: int) -> list[dict[str, Any]]:
    """NICs of two models in all states; some tenants are below their SLA."""
    return [_nic(number) for number in range(1, count + 1)]


def tenant(name: str, nf: str, predicted: float, required: float) -> dict[str, Any]:
    traffic = {"flows": 16000, "packet_size": 1500, "mtbr": 600}
    throughput = {"predicted_kpps": predicted, "required_kpps": required, "solo_kpps": 700.0}
    return {"id": name, "nf": nf, "traffic": traffic, "sla_drop": 0.1, **throughput}


def _nic(number: int) -> dict[str, Any]:
    model, cores = ("bluefield-3", 16) if number % 7 == 0 else ("bluefield-2", 8)
    held = 0 if number % 10 == 0 else 1 + number % (cores // 2)
    tenants = [
        tenant(f"t{number}-{at}", NFS[(number + at) % 3], 640.25 - 30 * at * (number % 3 == 0), 590 + number % 40)
        for at in range(held)
    ]
    service = "failed" if number % 45 == 0 else "draining" if number % 23 == 0 else "up"
    held_cores = 2 * len(tenants)
    load = {"offered_gbps": 7.296, "line_rate_gbps": 100.0} if number == 3 else {}
    if number == 3:
        tenants[0] |= {"rate_kpps": 600.0, "cores": 2, "sla_latency_us": 400.0, "sla_drop": 0.0}
    return {
        "nic": f"nic-{number}",
        "nic_model": model,
        "service": service,
        "cores": cores,
        "free_cores": cores - held_cores,
        **load,
        "tenants": [] if service == "failed" else tenants,
    }


def _of_model(model: str, nics: list[dict[str, Any]]) -> dict[str, Any]:
    up = [nic for nic in nics if nic["service"] == "up"]
    return {
        "nic_model": model,
        "in_use": sum(bool(nic["tenants"]) for nic in up),
        "idle": sum(not nic["tenants"] for nic in up),
        "cordoned": sum(nic["service"] == "cordoned" for nic in nics),
        "draining": sum(nic["service"] == "draining" for nic in nics),
        "failed": sum(nic["service"] == "failed" for nic in nics),
        "cores": sum(nic["cores"] for nic in nics),
        "cores_taken": sum(nic["cores"] - nic["free_cores"] for nic in nics),
        "tenants": sum(len(nic["tenants"]) for nic in nics),
    }


def _error(words: str) -> dict[str, Any]:
    return {"ok": False, "error": words}


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        """A tab that is closed no longer waits for its answer."""


def _handler_of(fake: Fake) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = 1 << 16
        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            fake.requests.append(f"{self.command} {self.path}")
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            found = FILES.get(self.path)
            if found:
                self.send(200, found, PAGE_HEADERS)
                return
            status, answer = self.judged(json.loads(body or b"{}"))
            lines = "\n".join(map(json.dumps, answer)) if isinstance(answer, list) else json.dumps(answer)
            self.send(status, PageFile("application/json", lines.encode()), {})

        do_POST = do_GET

        def judged(self, body: dict[str, Any]) -> tuple[int, Any]:
            if fake.token and self.headers.get("Authorization") != f"Bearer {fake.token}":
                return 401, _error("a token is needed")
            if fake.broken:
                return fake.broken, _error("disk is full")
            url = urlsplit(self.path)
            return fake.answer(url.path, parse_qs(url.query), body)

        def send(self, status: int, file: PageFile, headers: dict[str, str]) -> None:
            self.send_response(status)
            sent = {"Content-Type": file.media_type, "Content-Length": str(len(file.content)), **headers}
            for key, value in sent.items():
                self.send_header(key, value)
            self.end_headers()
            self.wfile.write(file.content)

        def log_message(self, *_: object) -> None:
            """Silent."""

    return Handler
