"""What the service answers is what its OpenAPI document says."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from placer.service.http.openapi import described
from tests.placer.commands.test_serve import serving
from tests.placer.service.http.toy_http import service

CONFIGURATION = Path(__file__).with_name("schemathesis.toml")


def test_every_route_is_described_and_every_description_has_its_route(tmp_path: Path) -> None:
    """Paths of the document answer something else than 404 to their method."""
    with service(tmp_path / "s.db") as one:
        one.arrive("x")
        for path, methods in described()["paths"].items():
            for method in methods:
                address = re.sub(r"\{(\w+)\}", lambda found: {"nic": "nic-1", "id": "x"}[found[1]], path)
                answer = one.client.request(method, address, json={})
                assert answer.status_code in (200, 422), (path, answer.text)


@pytest.mark.slow
def test_schemathesis_finds_nothing(tmp_path: Path) -> None:
    """Requests that are made of the document, and some that are not as it says."""
    command = shutil.which("st", path=str(Path(sys.executable).parent)) or shutil.which("st")
    if command is None:
        pytest.skip("there is no schemathesis")
    with serving(tmp_path / "s.db") as (_, client):
        address = f"{client.base_url}/openapi.json".replace("//openapi", "/openapi")
        # schemathesis cannot write lines of JSON
        options = ["--max-examples", "200", "--seed", "1", "--exclude-path", "/v1/events:batch"]
        found = subprocess.run(
            [command, "--config-file", str(CONFIGURATION), "run", address, *options],
            capture_output=True, text=True, timeout=300,
        )  # fmt: skip
    assert found.returncode == 0, found.stdout[-6000:]
