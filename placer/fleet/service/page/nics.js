/** The list of NICs: pages by the cursor of the service, and a filter, for which as many NICs are read as needed. */

import { get } from "./api.js";
import { byId, cores, keyed, make, name, number, plural, say } from "./dom.js";
import { showNic } from "./nic.js";
import { belowSla, coresTaken, nfsWords, offeredWords, stateOf, tenantsOf } from "./words.js";

const LIMIT = 100;
const ENOUGH = 50;
const MOST_READS = 20;
const TYPING_MS = 250;
const NO_LONGER = [400, 404, 410, 422];
const SIGNS = { "in use": "●", idle: "○", cordoned: "⊘", draining: "◐", failed: "✕" };

/** Where each page up to the shown one starts: its cursor, and how many NICs come before. */
let starts = [{ cursor: null, before: 0 }];
let next = null;
let total = null;
let reading = new AbortController();
let failed = () => {};

/** Listen to filter and paging; `onFailure` is called with errors. */
export function startList(onFailure) {
  failed = onFailure;
  let timer = 0;
  byId("filter-text").addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(() => turnTo([{ cursor: null, before: 0 }]), TYPING_MS);
  });
  byId("filter").addEventListener("submit", (event) => event.preventDefault());
  byId("on").addEventListener("click", () => next && turnTo([...starts, next]));
  byId("back").addEventListener("click", () => starts.length > 1 && turnTo(starts.slice(0, -1)));
}

function turnTo(pages) {
  starts = pages;
  next = null;
  readList(total).catch(failed);
}

/**
 * Read the page that is shown, or the first one if its cursor is no longer valid; returns the version of the fleet.
 * `all`: NICs of the fleet, where known.
 */
export async function readList(all, signal) {
  total = all;
  reading.abort();
  reading = new AbortController();
  const own = reading.signal;
  try {
    return show(await readPage(signal ? AbortSignal.any([signal, own]) : own));
  } catch (error) {
    if (own.aborted) return null;
    if (!NO_LONGER.includes(error.status) || starts.length === 1) throw error;
    starts = starts.slice(0, 1);
    return readList(all, signal);
  }
}

async function readPage(signal) {
  const wanted = byId("filter-text").value.trim().toLowerCase();
  const start = starts.at(-1);
  const page = { wanted, found: [], version: null, read: 0, next: null };
  let cursor = start.cursor;
  for (let reads = 0; reads < MOST_READS; reads += 1) {
    const query = new URLSearchParams(cursor === null ? { limit: LIMIT } : { cursor, limit: LIMIT });
    const answer = await get(`v1/nics?${query}`, signal);
    page.version ??= answer.version;
    page.read += answer.nics.length;
    page.found.push(...answer.nics.filter((nic) => matches(nic, wanted)));
    cursor = answer.cursor ?? null;
    if (cursor === null || !wanted || page.found.length >= ENOUGH) break;
  }
  page.next = cursor === null ? null : { cursor, before: start.before + page.read };
  return page;
}

function matches(nic, wanted) {
  if (!wanted) return true;
  const tenants = tenantsOf(nic);
  const texts = [nic.nic, nic.nic_model, stateOf(nic), tenants.some(belowSla) ? "below SLA" : "",
    ...tenants.flatMap((tenant) => [tenant.nf, tenant.id])];
  return texts.some((text) => String(text).toLowerCase().includes(wanted));
}

function show(page) {
  next = page.next;
  keyed(byId("nics").tBodies[0], page.found, (nic) => nic.nic, create, update);
  byId("on").setAttribute("aria-disabled", String(next === null));
  byId("back").setAttribute("aria-disabled", String(starts.length === 1));
  say(byId("nics-count"), countWords(page));
  return page.version;
}

function countWords({ wanted, found, read }) {
  const { before } = starts.at(-1);
  const of = total > before + read || before ? ` of ${number(Math.max(total, before + read))}` : "";
  const range = `${number(before + 1)} to ${number(before + read)}${of}`;
  if (wanted) {
    const more = next ? " Next searches the others." : "";
    return read ? `${plural(found.length, "match", "matches")} among NICs ${range}.${more}` : "No NIC to search.";
  }
  return read ? `NICs ${range}.` : "No NIC is in use yet.";
}

function create(nic) {
  const button = make("button", { type: "button", class: "link name", "aria-haspopup": "dialog" }, nic.nic);
  button.addEventListener("click", () => showNic(nic.nic));
  const cells = ["spare", "", "", "spare", "spare nfs", ""].map((kind) => make("td", kind ? { class: kind } : {}));
  return make("tr", {}, make("th", { scope: "row" }, button), ...cells);
}

function update(row, nic) {
  const shown = JSON.stringify(nic);
  if (row.shown === shown) return;
  row.shown = shown;
  const [, model, state, taken, offered, nfs, slas] = row.cells;
  const tenants = tenantsOf(nic);
  model.replaceChildren(name(nic.nic_model));
  state.replaceChildren(stateText(stateOf(nic)));
  taken.replaceChildren(cores(coresTaken(nic), nic.cores));
  offered.replaceChildren(offeredWords(nic) ?? "-");
  nfs.replaceChildren(name(nfsWords(tenants.map((tenant) => tenant.nf)) || "-"));
  slas.replaceChildren(slaText(tenants));
}

const stateText = (state) =>
  make("span", { class: `state ${state.replace(" ", "-")}` },
    make("span", { "aria-hidden": "true" }, `${SIGNS[state] ?? "?"} `), state);

function slaText(tenants) {
  const below = tenants.filter(belowSla).length;
  if (below) return make("strong", { class: "bad" }, `${number(below)} of ${number(tenants.length)} below SLA`);
  return make("span", {}, tenants.length ? `${number(tenants.length)} met` : "-");
}
