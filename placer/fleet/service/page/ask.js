/** "Where would it go?": asks for places, and for why other NICs do not take it. Nothing is placed. */

import { post } from "./api.js";
import { byId, make, name, plural, row, say, table } from "./dom.js";
import { nicButton } from "./nic.js";
import { causeWords, nfsWords } from "./words.js";

const TRAFFIC = ["flows", "packet_size", "mtbr"];
const LOAD = ["rate_kpps", "cores", "sla_latency_us"];

let asking = new AbortController();

export function startAsk() {
  byId("ask").addEventListener("submit", (event) => {
    event.preventDefault();
    ask(new FormData(event.target));
  });
}

/** Offer the NFs of the service; where it names none, any name can be typed. */
export function offerNfs(nfs) {
  const select = byId("ask-nf");
  if (select.options.length && String(nfs) === select.dataset.nfs) return;
  const chosen = select.value;
  select.dataset.nfs = String(nfs);
  select.replaceChildren(...nfs.map((nf) => make("option", { value: nf }, nf)));
  if (nfs.includes(chosen)) select.value = chosen;
  const text = byId("ask-nf-text");
  text.hidden = text.disabled = nfs.length > 0;
  select.hidden = select.disabled = nfs.length === 0;
  byId("ask-nf-label").htmlFor = nfs.length ? select.id : text.id;
}

async function ask(form) {
  asking.abort();
  asking = new AbortController();
  const { signal } = asking;
  say(byId("ask-said"), "Asking.");
  byId("ask-said").className = "said";
  try {
    show(form.get("nf"), await post("v1/ask", questionOf(form), signal));
  } catch (error) {
    if (signal.aborted) return;
    byId("ask-answer").replaceChildren();
    byId("ask-said").className = "said bad";
    say(byId("ask-said"), error.message);
  }
}

function questionOf(form) {
  const given = (keys) => Object.fromEntries(
    keys.filter((key) => form.get(key) !== "").map((key) => [key, Number(form.get(key))]),
  );
  return {
    nf: form.get("nf"),
    traffic: given(TRAFFIC),
    ...given(LOAD),
    sla_drop: Number(form.get("sla_drop")) / 100,
    count: Number(form.get("count")),
    top: Number(form.get("top")),
    explain: true,
  };
}

function show(nf, { places, verdicts = [] }) {
  say(byId("ask-said"), placesWords(nf, places));
  const answer = [];
  if (places.length) {
    answer.push(table("Places, the best first", ["NIC", "NIC model", "Opens a NIC", "#Cores", "#Score"],
      places.map(placeRow)));
  }
  const reasons = verdicts.filter((verdict) => verdict.cause);
  if (reasons.length) answer.push(make("h3", {}, "Why not the others"), reasonList(reasons));
  byId("ask-answer").replaceChildren(...answer);
}

function placesWords(nf, places) {
  if (!places.length) return `No NIC takes ${nf}.`;
  const { nic, nic_model } = places[0];
  return `${plural(places.length, "place")} for ${nf}; the best is ${nic ?? `a new ${nic_model}`}.`;
}

function placeRow({ nic, nic_model, opens, cores, score }) {
  return row(nic === null ? "a new NIC" : nicButton(nic), name(nic_model), opens ? "yes" : "no",
    cores ?? null, score ?? null);
}

function reasonList(reasons) {
  return make("ul", { class: "reasons" }, ...reasons.map(({ nic_model, company = [], nics, cause }) => {
    const which = nics ? `${plural(nics, "NIC")} ` : "a new NIC ";
    const beside = company.length ? [" with ", name(nfsWords(company))] : [];
    return make("li", {}, make("strong", {}, causeWords(cause)), ": ", which, "(", name(nic_model), ")", ...beside);
  }));
}
