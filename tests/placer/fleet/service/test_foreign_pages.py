"""Pages of other sites, in a browser on the machine of a service without tokens: they change and read nothing."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import pytest

from tests.placer.report.html.browser import chromium

if TYPE_CHECKING:
    from playwright.sync_api import Browser

ARRIVAL = json.dumps({"event": "arrive", "id": "evil", "nf": "a", "sla_drop": 0.9})
QUESTION = json.dumps({"nf": "a", "sla_drop": 0.9})

ATTEMPTS = """
async ([service, arrival, question]) => {
  const found = [];
  const attempt = async (path, options) => {
    try {
      const answer = await fetch(service + path, options);
      if (answer.ok && answer.type !== "opaque") found.push([path, await answer.text()]);
    } catch { /* the browser or the service refuses it */ }
  };
  const json = { "Content-Type": "application/json" }, text = { "Content-Type": "text/plain" };
  for (const mode of ["cors", "no-cors"]) {
    for (const headers of [json, text]) {
      for (const path of ["/v1/events", "/v1/events:batch"]) {
        await attempt(path, { method: "POST", mode, headers, body: arrival });
      }
      await attempt("/v1/ask", { method: "POST", mode, headers, body: question });
    }
    for (const path of ["/v1/nics", "/v1/summary", "/v1/log", "/metrics", "/"]) await attempt(path, { mode });
  }
  navigator.sendBeacon(service + "/v1/events", arrival);
  const frame = document.createElement("iframe");
  frame.name = "sent";
  const form = document.createElement("form");
  Object.assign(form, { action: service + "/v1/events", method: "post", enctype: "text/plain", target: "sent" });
  const field = document.createElement("input");
  [field.name, field.value] = [arrival.slice(0, -1) + ', "x": "', '"}'];
  form.append(field);
  document.body.append(frame, form);
  form.submit();
  await new Promise((resolve) => { frame.onload = resolve; setTimeout(resolve, 1000); });
  return found;
}
"""
"""What a page can try at the address of a service; returns what it could read."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium("--host-resolver-rules=MAP *.example 127.0.0.1") as started:
        yield started


@contextmanager
def toy_service(path: Path) -> Iterator[httpx.Client]:
    """A service over toy NICs in a process of its own; yields a client of it."""
    code = "from tests.histories.toy_server import *; serve_toy(Path('/dev/stderr'), sys.argv[1], '0', 'tenants', '')"
    command = [sys.executable, "-c", code, str(path)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            address = next(found[1] for line in process.stderr if (found := re.search(r'"address": "([^"]+)"', line)))
            with httpx.Client(base_url=address, timeout=30) as client:
                yield client
        finally:
            process.kill()


@contextmanager
def foreign_site() -> Iterator[int]:
    """A site of somebody else; yields its port."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(b"<!doctype html><body>")

        def log_message(self, *of: object) -> None:
            """Nothing is logged."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as site:
        threading.Thread(target=site.serve_forever, daemon=True).start()
        yield site.server_port
        site.shutdown()


@pytest.mark.long
def test_a_page_of_another_site_changes_and_reads_nothing(browser: Browser, tmp_path: Path) -> None:
    with toy_service(tmp_path / "s.db") as client, foreign_site() as site:
        page = browser.new_page()
        page.goto(f"http://evil.example:{site}/")
        assert page.evaluate(ATTEMPTS, [f"http://127.0.0.1:{client.base_url.port}", ARRIVAL, QUESTION]) == []
        assert client.get("/v1/summary").json()["version"] == 0
        page.close()


@pytest.mark.long
def test_a_page_whose_name_leads_to_the_service_changes_and_reads_nothing(browser: Browser, tmp_path: Path) -> None:
    """To the browser it is the same origin (DNS rebinding); its page is loaded from a path that has any name."""
    with toy_service(tmp_path / "s.db") as client:
        page = browser.new_page()
        page.goto(f"http://evil.example:{client.base_url.port}/healthz")
        assert page.evaluate(ATTEMPTS, ["", ARRIVAL, QUESTION]) == []
        assert client.get("/v1/summary").json()["version"] == 0
        page.close()


@pytest.mark.long
def test_the_own_page_of_the_service_can_do_everything(browser: Browser, tmp_path: Path) -> None:
    """By both local names: so the attempts of the others would succeed if they were not refused."""
    with toy_service(tmp_path / "s.db") as client:
        for number, name in enumerate(("127.0.0.1", "localhost"), start=1):
            page = browser.new_page()
            page.goto(f"http://{name}:{client.base_url.port}/")
            found = dict(page.evaluate(ATTEMPTS, ["", ARRIVAL.replace("evil", name), QUESTION]))
            assert json.loads(found["/v1/events"])["status"] == "placed"
            assert client.get("/v1/summary").json()["version"] == number
            page.close()
