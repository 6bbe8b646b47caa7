"""The page when the service changes under it: another fleet, no log, no list of NFs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.placer.fleet.service.fake_service import Fake, fleet
from tests.placer.fleet.service.page_steps import wait_for

if TYPE_CHECKING:
    from playwright.sync_api import Page


def test_a_cursor_that_is_no_longer_valid_leads_to_the_first_page(opened: Page, fake: Fake) -> None:
    """When the fleet shrinks below the page that is shown."""
    opened.locator("#on").click()
    wait_for(opened, "#nics tbody th", "nic-101")
    fake.nics = fleet(8)
    fake.add_event({"event": "return", "nic": "nic-1"}, {"ok": True, "status": "returned", "moves": []})
    wait_for(opened, "#nics-count", "NICs 1 to 8.")


def test_a_service_that_starts_anew_is_followed(opened: Page, fake: Fake) -> None:
    """Its log starts again: events of the former fleet are forgotten."""
    fake.add_event({"event": "depart", "id": "former"}, {"ok": True, "status": "left", "moves": []})
    wait_for(opened, "#events li", "former")
    fake.events = []
    opened.wait_for_selector("#events li", state="detached")
    fake.add_event({"event": "depart", "id": "new"}, {"ok": True, "status": "left", "moves": []})
    wait_for(opened, "#events li", "1 new departs: left")


def test_a_service_without_a_log_is_shown(tab: Page, fake: Fake) -> None:
    """NICs are listed, and nothing is reported as failed."""
    fake.logs = False
    tab.goto(fake.url)
    tab.wait_for_selector("#nics tbody tr")
    wait_for(tab, "#state", "Up to date.")
    assert tab.inner_text("#events-none") == "None yet."


def test_any_nf_can_be_typed_where_none_are_listed(tab: Page, fake: Fake) -> None:
    """In place of the list there is a field with the same label."""
    fake.nfs = []
    tab.goto(fake.url)
    tab.wait_for_selector("#nics tbody tr")
    tab.get_by_label("NF", exact=True).fill("ACL")
    tab.keyboard.press("Enter")
    wait_for(tab, "#ask-said", "places for ACL")
    assert fake.questions[0]["nf"] == "ACL"


def test_an_empty_fleet_is_said_in_words(tab: Page, fake: Fake) -> None:
    """And so is a filter that has nothing to search."""
    fake.nics = []
    tab.goto(fake.url)
    wait_for(tab, "#nics-count", "No NIC is in use yet.")
    tab.fill("#filter-text", "nat")
    wait_for(tab, "#nics-count", "No NIC to search.")
