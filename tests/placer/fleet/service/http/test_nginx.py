"""Behind nginx, each answer belongs to its request: nothing is smuggled through a proxy."""

import asyncio
import json
import re
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.placer.fleet.service.http.test_smuggling import ANSWERED, REFUSED
from tests.placer.fleet.service.http.toy_http import sent, serving

CONFIGURATION = """
daemon off; master_process off; pid {folder}/pid; error_log {folder}/error.log;
events {{ worker_connections 64; }}
http {{
  access_log off; client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/f; uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
  upstream service {{ server 127.0.0.1:{service}; keepalive 1; }}
  server {{
    listen 127.0.0.1:{port};
    location / {{
      proxy_pass http://service; proxy_http_version 1.1; proxy_set_header Host x;
      proxy_set_header Connection $http_connection; proxy_set_header Upgrade $http_upgrade;
    }}
    location /v1/events {{ return 403; }}
  }}
}}
"""
"""A proxy that keeps one connection, passes `Upgrade` on as for WebSocket, and lets no events through."""

ARRIVAL = json.dumps({"event": "arrive", "id": "smuggled", "nf": "a", "sla_drop": 0.9}).encode()
EVENT = b"POST /v1/events HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b" % (
    len(ARRIVAL),
    ARRIVAL,
)


@contextmanager
def nginx(folder: Path, service: int) -> Iterator[int]:
    """nginx before a service; yields its port. The test is skipped where there is none."""
    program = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
    if program is None:
        pytest.skip("no nginx is installed: requests are not sent through a proxy")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    configuration = folder / "nginx.conf"
    configuration.write_text(CONFIGURATION.format(folder=folder, service=service, port=port))
    with subprocess.Popen([program, "-p", folder, "-c", configuration, "-e", folder / "error.log"]) as process:
        try:
            yield port
        finally:
            process.terminate()


@pytest.mark.parametrize("name", [*ANSWERED, *REFUSED])
async def test_nothing_is_smuggled_through_a_proxy_and_the_next_client_gets_its_own_answer(
    tmp_path: Path, name: str
) -> None:
    """A body that is an event stays a body, whatever the request around it says."""
    whole = {**ANSWERED, **REFUSED}[name].replace(b"/first", b"/v1/first")
    if whole.endswith(b"\r\n\r\nabc"):
        whole = whole.replace(b"Content-Length: 3", b"Content-Length: %d" % len(EVENT)).replace(b"abc", EVENT)
    else:
        whole = whole.replace(b"3\r\nabc", b"%x\r\n%b" % (len(EVENT), EVENT))
    async with serving(tmp_path / "s.db") as (service, engine):
        with nginx(tmp_path, service) as port:
            for _ in range(200):
                try:
                    socket.create_connection(("127.0.0.1", port)).close()
                    break
                except ConnectionRefusedError:
                    await asyncio.sleep(0.01)
            await sent(port, whole, b"GET /after HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            found = await sent(port, b"GET /v1/events HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            assert re.findall(rb"HTTP/1\.1 (\d+)", found) == [b"403"]
            found = await sent(port, b"GET /next HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            assert re.findall(rb"HTTP/1\.1 (\d+)", found) == [b"404"] and b"no such path" in found
            assert engine.events == 0
