/** One NIC with its tenants, in a dialog. It is read again when the fleet changes. */

import { get } from "./api.js";
import { byId, cores, make, name, number, row, say, table } from "./dom.js";
import { belowSla, coresTaken, loadWords, offeredWords, slaWords, stateOf, tenantsOf, trafficWords } from "./words.js";

let shown = null;

export function startNic() {
  byId("nic-close").addEventListener("click", () => byId("nic").close());
  byId("nic").addEventListener("close", () => { shown = null; });
  byId("nic").addEventListener("click", (event) => event.target === byId("nic") && byId("nic").close());
}

/** Open the dialog of a NIC; the focus returns to where it was when the dialog is closed. */
export function showNic(id) {
  shown = id;
  byId("nic-title").replaceChildren(name(id));
  byId("nic-answer").replaceChildren();
  say(byId("nic-said"), "Loading.");
  byId("nic").showModal();
  byId("nic-title").focus();
  return readNic();
}

/** A button that opens a NIC. */
export function nicButton(id) {
  const button = make("button", { type: "button", class: "link name", "aria-haspopup": "dialog" }, id);
  button.addEventListener("click", () => showNic(id));
  return button;
}

/** Read the NIC that is shown, if any. */
export async function readNic(signal) {
  const id = shown;
  if (id === null) return;
  try {
    const answer = await get(`v1/nics/${encodeURIComponent(id)}`, signal);
    if (shown === id) show(typeof answer.nic === "object" ? answer.nic : answer);
  } catch (error) {
    if (signal?.aborted || shown !== id) return;
    byId("nic-answer").replaceChildren();
    say(byId("nic-said"), error.status === 404 ? "The service knows no such NIC." : error.message);
  }
}

function show(nic) {
  const text = JSON.stringify(nic);
  const answer = byId("nic-answer");
  if (answer.firstChild && answer.shown === text) return;
  answer.shown = text;
  const tenants = tenantsOf(nic);
  const below = tenants.filter(belowSla).length;
  say(byId("nic-said"), below ? `${number(below)} of ${number(tenants.length)} tenants are below their SLA.` : "");
  byId("nic-said").className = below ? "bad" : "";
  answer.replaceChildren(facts(nic), tenants.length ? tenantTable(tenants) : make("p", {}, "It has no tenants."));
}

function facts(nic) {
  const pairs = [["Model", name(nic.nic_model)], ["State", stateOf(nic)],
    ["Cores taken", cores(coresTaken(nic), nic.cores)], ["Offered", offeredWords(nic) ?? "-"]];
  return make("dl", { class: "facts" }, ...pairs.flatMap(([label, value]) => [make("dt", {}, label),
    make("dd", {}, value)]));
}

function tenantTable(tenants) {
  const headers = ["Tenant and NF", "SLA", "#Predicted, kpps", "#Required, kpps", "Offered", "Traffic"];
  return table("Tenants", headers, tenants.map(tenantRow));
}

function tenantRow(tenant) {
  const who = make("span", {}, name(tenant.id), name(tenant.nf, "small"));
  const throughput = [tenant.predicted_kpps ?? null, tenant.required_kpps ?? null];
  const offered = make("small", {}, loadWords(tenant));
  return row(who, slaVerdict(tenant), ...throughput, offered, name(trafficWords(tenant.traffic) || "-", "small"));
}

/** Whether the SLA is met, and what it is. */
export function slaVerdict(tenant) {
  const known = typeof tenant.predicted_kpps === "number" && typeof tenant.required_kpps === "number";
  const below = belowSla(tenant);
  const words = below ? "below SLA" : known ? "met" : "not predicted";
  return make("span", { class: "sla" }, make("strong", { class: below ? "bad" : "" }, words), make("small", {}, slaWords(tenant)));
}
