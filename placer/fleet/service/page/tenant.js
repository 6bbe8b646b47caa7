/** Finds a tenant by its id. */

import { get } from "./api.js";
import { byId, make, name, number, say } from "./dom.js";
import { nicButton, slaVerdict } from "./nic.js";
import { loadWords, trafficWords } from "./words.js";

let finding = new AbortController();

export function startSearch() {
  byId("tenant").addEventListener("submit", (event) => {
    event.preventDefault();
    find(byId("tenant-id").value);
  });
}

async function find(id) {
  finding.abort();
  finding = new AbortController();
  const { signal } = finding;
  byId("tenant-said").className = "said";
  say(byId("tenant-said"), "Searching.");
  try {
    show(id, await get(`v1/tenants/${encodeURIComponent(id)}`, signal));
  } catch (error) {
    if (signal.aborted) return;
    byId("tenant-answer").replaceChildren();
    byId("tenant-said").className = "said bad";
    say(byId("tenant-said"), error.status === 404 ? `No tenant ${id} is placed or queued.` : error.message);
  }
}

function show(id, tenant) {
  const reserved = typeof tenant.reserved_until === "number";
  say(byId("tenant-said"), `${id} is ${reserved ? "reserved" : tenant.status}${tenant.nic ? ` on ${tenant.nic}` : ""}.`);
  const pairs = [["NIC", tenant.nic ? nicButton(tenant.nic) : "none yet"], ["NF", name(tenant.nf)],
    ["Traffic", trafficWords(tenant.traffic) || "-"], ["Offered", loadWords(tenant)], ["SLA", slaVerdict(tenant)],
    ["Predicted", kpps(tenant.predicted_kpps)], ["Required", kpps(tenant.required_kpps)],
    ["Alone", kpps(tenant.solo_kpps)]];
  if (tenant.owner) pairs.splice(2, 0, ["Owner", name(tenant.owner)]);
  if (reserved) pairs.push(["Reserved until", new Date(1000 * tenant.reserved_until).toISOString()]);
  byId("tenant-answer").replaceChildren(...pairs.flatMap(([label, value]) => [make("dt", {}, label),
    make("dd", {}, value)]));
}

const kpps = (value) => (typeof value === "number" ? `${number(value)} kpps` : "-");
