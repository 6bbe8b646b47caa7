"""The page of the service in a browser, over a fake service."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.placer.fleet.service.fake_service import LONG, SCRIPT, Fake, fleet, serving, tenant
from tests.placer.report.html.browser import chromium

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as started:
        yield started


@pytest.fixture
def fake() -> Iterator[Fake]:
    """300 NICs, the first of which has hostile names."""
    with serving(Fake(fleet(300))) as started:
        hostile = [tenant(SCRIPT, SCRIPT, 500.0, 600.0), tenant(LONG, LONG, 700.0, 600.0)]
        started.nics[0] |= {"nic": SCRIPT, "nic_model": LONG, "tenants": hostile}
        started.nics[0]["tenants"][1].pop("sla_drop")
        started.nics[0]["tenants"][1]["sla_min_kpps"] = 600.0
        started.add_event({"event": "arrive", "id": SCRIPT, "nf": LONG}, {"ok": True, "status": "queued", "moves": []})
        yield started


@pytest.fixture
def console() -> list[str]:
    """What the browser complained about."""
    return []


@pytest.fixture
def tab(browser: Browser, console: list[str]) -> Iterator[Page]:
    page = browser.new_page(viewport={"width": 1280, "height": 900}, color_scheme="light")
    page.set_default_timeout(8_000)
    page.on("console", lambda message: console.append(message.text))
    page.on("pageerror", lambda error: console.append(str(error)))
    yield page
    page.close()


@pytest.fixture
def opened(tab: Page, fake: Fake) -> Page:
    tab.goto(fake.url)
    tab.wait_for_selector("#nics tbody tr")
    tab.wait_for_selector("#events li")
    return tab
