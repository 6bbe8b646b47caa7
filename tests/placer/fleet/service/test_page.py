"""The page of the service in a browser: by keyboard, with hostile names, errors and a token. The files of the page: all
are served, load nothing from elsewhere, and have colours with contrast."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from placer.fleet.service.page import page_files
from tests.placer.fleet.service.fake_service import SCRIPT, Fake, fleet

if TYPE_CHECKING:
    from playwright.sync_api import Page

HIDDEN = """value => {
  Object.defineProperty(document, "visibilityState", { value, configurable: true });
  document.dispatchEvent(new Event("visibilitychange"));
}"""


@pytest.mark.long
@pytest.mark.parametrize("width", [1280, 360])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_everything_fits_and_is_readable(tab: Page, fake: Fake, console: list[str], width: int, theme: str) -> None:
    """In both themes, wide and narrow: nothing is cut off, text has contrast, and no name runs as a script."""
    asked: list[str] = []
    tab.on("request", lambda request: asked.append(request.url))
    tab.set_viewport_size({"width": width, "height": 800})
    tab.emulate_media(color_scheme="dark" if theme == "dark" else "light")
    tab.goto(fake.url)
    wait_for(tab, "#events li", SCRIPT)
    tab.click("#ask button[type=submit]")
    wait_for(tab, "#ask-answer li", SCRIPT)
    assert tab.evaluate("document.documentElement.scrollWidth") <= width and tab.evaluate(LOW_CONTRAST) == []
    tab.locator("#nics tbody button").first.click()
    wait_for(tab, "#nic-answer td", "below SLA")
    assert tab.locator("#nic").evaluate("dialog => dialog.scrollWidth <= dialog.clientWidth")
    assert tab.evaluate(LOW_CONTRAST) == [] and tab.title() == "Fleet - nf-placer" and console == []
    assert [url for url in asked if not url.startswith(fake.url)] == []


LOW_CONTRAST = """() => {
  const parts = (colour) => colour.match(/[\\d.]+/g).map(Number);
  const light = (colour) => parts(colour).slice(0, 3)
    .map((part) => part / 255).map((part) => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4)
    .reduce((sum, part, at) => sum + part * [0.2126, 0.7152, 0.0722][at], 0);
  const ground = (element) => {
    const colour = getComputedStyle(element).backgroundColor;
    return parts(colour)[3] === 0 && element.parentElement ? ground(element.parentElement) : colour;
  };
  const found = [];
  for (const element of document.querySelectorAll("body *")) {
    const words = [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
    if (!words || !element.checkVisibility()) continue;
    const [one, other] = [light(getComputedStyle(element).color), light(ground(element))];
    const ratio = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
    if (ratio < 4.5) found.push(`${element.outerHTML.slice(0, 80)}: ${ratio}`);
  }
  return found;
}"""


def test_the_summary_adds_up_the_fleet(opened: Page, fake: Fake) -> None:
    """Tiles have the sums over all NIC models, and the models are listed."""
    tiles = dict(
        zip(
            opened.locator("#tiles dt").all_text_contents(),
            opened.locator("#tiles dd").all_text_contents(),
            strict=True,
        )
    )
    assert tiles["NICs failed"] == str(sum(nic["service"] == "failed" for nic in fake.nics)) == "6"
    assert tiles["Queued"] == "2" and tiles["SLA violations seen"] == "5"
    assert tiles["Model version"] == "3"
    assert opened.locator("#models tbody tr").count() == 3
    assert opened.locator("#nics-count").text_content() == "NICs 1 to 100 of 300."


@pytest.mark.long
def test_nics_are_paged_by_keyboard(opened: Page) -> None:
    """Next follows the cursor to the last page and keeps the focus; Previous returns."""
    opened.locator("#on").focus()
    for shown in ("101 to 200", "201 to 300"):
        opened.keyboard.press("Enter")
        wait_for(opened, "#nics-count", f"NICs {shown} of 300.")
    assert focused(opened) == "on"
    assert opened.locator("#on").get_attribute("aria-disabled") == "true"
    opened.locator("#back").press("Enter")
    wait_for(opened, "#nics tbody th", "nic-101")


@pytest.mark.long
def test_the_filter_searches_the_whole_fleet(opened: Page) -> None:
    """By NIC on a later page, by NF, by state and by SLA."""
    opened.fill("#filter-text", "NIC-283")
    wait_for(opened, "#nics-count", "1 match among NICs 1 to 300.")
    assert opened.locator("#nics tbody th").all_text_contents() == ["nic-283"]
    opened.fill("#filter-text", "failed")
    wait_for(opened, "#nics-count", "6 matches")
    assert set(opened.locator("#nics tbody td:nth-child(3)").all_text_contents()) == {"✕ failed"}
    opened.fill("#filter-text", "below sla")
    wait_for(opened, "#nics tbody td", "of 4 below SLA")
    opened.fill("#filter-text", "no such NF")
    wait_for(opened, "#nics-count", "0 matches among NICs 1 to 300.")


@pytest.mark.long
def test_a_nic_is_opened_and_closed_by_keyboard(opened: Page) -> None:
    """Its tenants are listed, those below their SLA in words; then the focus is where it was."""
    button = opened.locator("#nics button", has_text="nic-3").first
    button.focus()
    opened.keyboard.press("Enter")
    wait_for(opened, "#nic-said", "2 of 4 tenants are below their SLA.")
    assert focused(opened) == "nic-title"
    rows = opened.locator("#nic-answer tbody tr").all_inner_texts()
    assert [("below SLA" in row, "met" in row) for row in rows] == [(False, True), (False, True)] + [(True, False)] * 2
    assert "580.3" in rows[2] and "16,000 flows" in rows[2]
    opened.keyboard.press("Escape")
    assert focused(opened) == "nic-3"


@pytest.mark.long
def test_places_are_asked_for(opened: Page, fake: Fake) -> None:
    """The form sends what was filled in; places, a new NIC and reasons are shown; a place opens its NIC."""
    opened.select_option("#ask-nf", "NAT")
    opened.fill("#ask-flows", "4000")
    opened.fill("#ask-drop", "12.5")
    opened.fill("#ask-rate", "600")
    opened.fill("#ask-latency", "400")
    opened.locator("#ask-top").press("Enter")
    wait_for(opened, "#ask-said", "5 places for NAT; the best is")
    load = {"rate_kpps": 600, "sla_latency_us": 400}
    sent = {"nf": "NAT", "traffic": {"flows": 4000}, **load, "sla_drop": 0.125, "count": 1, "top": 5, "explain": True}
    assert fake.questions == [sent]
    assert opened.locator("#ask-answer tbody tr").first.inner_text().split("\t")[2:4] == ["no", "2"]
    assert opened.locator("#ask-answer tbody tr").last.inner_text().split("\t") == [
        "a new NIC",
        "bluefield-2",
        "yes",
        "-",
        "-",
    ]
    assert "the SLA of a tenant would be violated: 41 NICs (bluefield-2) with 2 NAT, 1 NIDS" in opened.inner_text(
        "#ask-answer"
    )
    opened.locator("#ask-answer button").nth(1).click()
    wait_for(opened, "#nic-answer caption", "Tenants")


@pytest.mark.long
def test_load_cores_and_promised_latency_are_shown(opened: Page) -> None:
    """Of a NIC in the list, and of its tenants; those without a rate are offered more than they carry."""
    row = opened.locator("#nics tbody tr", has=opened.get_by_role("button", name="nic-3", exact=True))
    assert row.locator("td:nth-child(5)").inner_text() == "7.3 of 100 Gb/s"
    row.locator("button").click()
    wait_for(opened, "#nic-answer dd", "7.3 of 100 Gb/s")
    rows = opened.locator("#nic-answer tbody tr").all_inner_texts()
    assert "loss up to 0 %, 99 % of packets within 400 us" in rows[0]
    assert "600 kpps on 2 cores" in rows[0]
    assert "more than it carries" in rows[1]
    opened.keyboard.press("Escape")
    opened.fill("#tenant-id", "t3-0")
    opened.locator("#tenant-id").press("Enter")
    wait_for(opened, "#tenant-answer dd", "600 kpps on 2 cores")


@pytest.mark.long
def test_a_tenant_is_found(opened: Page) -> None:
    """By its id, with its NIC; an unknown one is reported in words, and so is a hostile one."""
    opened.fill("#tenant-id", "t3-2")
    opened.keyboard.press("Enter")
    wait_for(opened, "#tenant-said", "t3-2 is placed on nic-3.")
    assert "below SLA" in opened.inner_text("#tenant-answer")
    opened.fill("#tenant-id", "x?/#")
    opened.keyboard.press("Enter")
    wait_for(opened, "#tenant-said", "No tenant x?/# is placed or queued.")
    opened.fill("#tenant-id", SCRIPT)
    opened.keyboard.press("Enter")
    wait_for(opened, "#tenant-said", f"{SCRIPT} is placed on {SCRIPT}.")


@pytest.mark.long
def test_an_event_updates_the_page(opened: Page, fake: Fake) -> None:
    """It is listed first and announced, the NICs are read again, and the focused NIC keeps the focus."""
    opened.locator("#nics button", has_text="nic-5").first.focus()
    fake.nics[4]["service"] = "draining"
    moves = [{"id": "t5-0", "from": "nic-5", "to": "nic-8"}]
    fake.add_event({"event": "drain", "nic": "nic-5"}, {"ok": True, "status": "draining", "moves": moves})
    wait_for(opened, "#nics tr:has(button:focus) td", "draining")
    assert opened.locator("#events li").first.inner_text() == "2 nic-5 is drained: draining, 1 tenant moved"
    wait_for(opened, "#events-said", "1 new event. The last: nic-5 is drained")


@pytest.mark.long
def test_the_token_is_asked_for(tab: Page, fake: Fake) -> None:
    """On 401, again for a wrong one; it is kept for the tab. Without one, the page says so and can try again."""
    fake.token = "right"
    tab.goto(fake.url)
    wait_for(tab, "#token-why", "The service asks for a token.")
    assert focused(tab) == "token-text"
    tab.keyboard.press("Escape")
    wait_for(tab, "#state", "none was given")
    tab.locator("#again").press("Enter")
    for typed, words in (("wrong", "did not accept"), ("right", "")):
        tab.locator("#token-text").fill(typed)
        tab.keyboard.press("Enter")
        wait_for(tab, "#token-why" if words else "#state", words or "Up to date.")
    tab.wait_for_selector("#nics tbody tr")
    assert not tab.locator("#token").is_visible()
    tab.reload()
    tab.wait_for_selector("#nics tbody tr")
    assert tab.evaluate("localStorage.length") == 0


@pytest.mark.long
def test_failures_are_said_in_words(opened: Page, fake: Fake) -> None:
    """A failing service is reported with its error, an unreachable one too; the next try brings the page back."""
    fake.broken = 500
    wait_for(opened, "#state", "The service failed (500): disk is full Trying again in 2 seconds.")
    opened.click("#ask button[type=submit]")
    wait_for(opened, "#ask-said", "The service failed (500): disk is full")
    opened.route("**/v1/**", lambda route: route.abort())
    opened.click("#again")
    wait_for(opened, "#state", "The service cannot be reached. Trying again in 2 seconds.")
    assert opened.locator("#nics tbody tr").count() == 100
    opened.unroute("**/v1/**")
    fake.broken = 0
    opened.click("#again")
    wait_for(opened, "#state", "Up to date.")
    assert focused(opened) == "pause"


@pytest.mark.long
def test_nothing_is_asked_while_hidden_or_paused(opened: Page, fake: Fake) -> None:
    """A hidden tab and a paused one send no requests; when shown again, it goes on."""
    opened.evaluate(HIDDEN, "hidden")
    opened.wait_for_timeout(100)
    before = len(fake.requests)
    opened.wait_for_timeout(1_500)
    assert len(fake.requests) == before
    opened.locator("#pause").press("Space")
    opened.evaluate(HIDDEN, "visible")
    wait_for(opened, "#state", "Updates are paused.")
    assert len(fake.requests) == before
    fake.nics[2]["service"] = "failed"
    fake.add_event({"event": "fail", "nic": "nic-3"}, {"ok": True, "status": "failed", "moves": []})
    opened.locator("#pause").press("Space")
    wait_for(opened, "#nics tr:has(button:text-is('nic-3')) td", "failed")


@pytest.mark.long
def test_the_page_is_structured_for_screen_readers(opened: Page) -> None:
    """The first stop skips to the content; sections, tables and fields have names, headers have a scope."""
    opened.keyboard.press("Tab")
    assert opened.evaluate("document.activeElement.textContent") == "Skip to the content"
    opened.click("#ask button[type=submit]")
    opened.wait_for_selector("#ask-answer table")
    assert [opened.locator(landmark).count() for landmark in ("h1", "main", "header")] == [1, 1, 1]
    unnamed = "section:not([aria-labelledby]), table:not(:has(caption)), th:not([scope]), dialog:not([aria-labelledby])"
    assert opened.locator(unnamed).count() == 0
    fields = opened.locator("input, select")
    assert fields.evaluate_all("all => all.filter(one => !one.labels.length).map(one => one.id)") == ["ask-nf-text"]
    assert opened.locator("[role=status]").count() >= 5


def test_text_cannot_become_markup(opened: Page) -> None:
    """The policy of the page forbids it, whatever a script tries."""
    script = "() => { try { document.body.innerHTML = '<b>'; } catch (error) { return error.name; } }"
    assert opened.evaluate(script) == "TypeError"


if TYPE_CHECKING:
    from playwright.sync_api import Page


@pytest.mark.long
def test_a_cursor_that_is_no_longer_valid_leads_to_the_first_page(opened: Page, fake: Fake) -> None:
    """When the fleet shrinks below the page that is shown."""
    opened.locator("#on").click()
    wait_for(opened, "#nics tbody th", "nic-101")
    fake.nics = fleet(8)
    fake.add_event({"event": "return", "nic": "nic-1"}, {"ok": True, "status": "returned", "moves": []})
    wait_for(opened, "#nics-count", "NICs 1 to 8.")


@pytest.mark.long
def test_a_service_that_starts_anew_is_followed(opened: Page, fake: Fake) -> None:
    """Its log starts again: events of the former fleet are forgotten."""
    fake.add_event({"event": "depart", "id": "former"}, {"ok": True, "status": "left", "moves": []})
    wait_for(opened, "#events li", "former")
    fake.events = []
    opened.wait_for_selector("#events li", state="detached")
    fake.add_event({"event": "depart", "id": "new"}, {"ok": True, "status": "left", "moves": []})
    wait_for(opened, "#events li", "1 new departs: left")


@pytest.mark.long
def test_a_service_without_a_log_is_shown(tab: Page, fake: Fake) -> None:
    """NICs are listed, and nothing is reported as failed."""
    fake.logs = False
    tab.goto(fake.url)
    tab.wait_for_selector("#nics tbody tr")
    wait_for(tab, "#state", "Up to date.")
    assert tab.inner_text("#events-none") == "None yet."


@pytest.mark.long
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


def wait_for(page: Page, selector: str, words: str) -> None:
    page.locator(selector, has_text=words).first.wait_for()


def focused(page: Page) -> str:
    return str(page.evaluate("document.activeElement.id || document.activeElement.textContent"))


THEMES = ("light", "dark")
WORDS = ("ink", "soft", "accent", "bad", "warn", "good")
GROUNDS = ("ground", "raised")


def text(path: str) -> str:
    return page_files()[path].content.decode()


def colours(theme: str) -> dict[str, str]:
    light, dark = re.findall(r":root \{(.*?)\}", text("/page/page.css"), flags=re.DOTALL)
    return dict(re.findall(r"--([\w-]+): (#\w{6});", light if theme == "light" else dark))


def luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(one: str, other: str) -> float:
    low, high = sorted(map(luminance, (one, other)))
    return (high + 0.05) / (low + 0.05)


def test_contrast_is_computed_as_defined() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.478, abs=1e-3)


@pytest.mark.parametrize("theme", THEMES)
def test_words_have_contrast(theme: str) -> None:
    """4.5 for text; 3 for edges of fields and for bars (WCAG AA)."""
    named = colours(theme)
    pairs = [(word, ground, 4.5) for word in WORDS for ground in GROUNDS]
    pairs += [("on-accent", "accent", 4.5), ("full", "track", 3), ("edge", "ground", 3), ("edge", "raised", 3)]
    found = {(one, other): contrast(named[one], named[other]) for one, other, _ in pairs}
    assert {pair: found[pair[:2]] for pair in pairs if found[pair[:2]] < pair[2]} == {}


def test_both_themes_have_the_same_colours() -> None:
    assert colours("light").keys() == colours("dark").keys()
    assert set(re.findall(r"var\(--([\w-]+)\)", text("/page/page.css"))) == colours("light").keys()


def test_every_file_that_is_named_is_served() -> None:
    """Scripts and styles of the page and imports of scripts; nothing is served that is not used."""
    named = {f"/{path}" for path in re.findall(r'(?:href|src)="(page/[^"]+)"', text("/"))}
    for path in [path for path in page_files() if path.endswith(".js")]:
        named |= {f"/page/{name}" for name in re.findall(r'from "\./([\w.]+)"', text(path))}
    assert named | {"/"} == page_files().keys()


def test_no_script_or_style_is_inline() -> None:
    """Nor does any text become markup, or come from elsewhere."""
    assert re.findall(r"<style|style=|\son\w+=|<script(?! type=\"module\" src=)", text("/")) == []
    everything = "".join(text(path) for path in page_files() if path != "/page/page.svg")
    assert re.findall(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|https?://", everything) == []


def test_files_are_short() -> None:
    assert [path for path in page_files() if text(path).count("\n") > 300] == []
