/** What the service reports, in words. */

import { number, plural } from "./dom.js";

const CAUSES = {
  "not hosted": "the NF does not run on this model",
  cores: "too few free cores",
  "SLA of the arrival": "its own SLA would be violated",
  "SLA of a tenant": "the SLA of a tenant would be violated",
  "an SLA, on the NICs that were checked": "an SLA would be violated on the NICs that were checked",
  "out of service": "failed, drained or cordoned",
  "SLA of the arrival even alone": "its SLA is not met even alone",
  "none left": "no NIC of this model is left",
  "SLA too tight to share": "its SLA is too tight to share a NIC",
};

/** Why a NIC does not take an arrival; an unknown cause as it is. */
export const causeWords = (cause) => (Object.hasOwn(CAUSES, cause) ? CAUSES[cause] : String(cause ?? "it fits"));

/** in use, idle, cordoned, draining or failed. */
export function stateOf(nic) {
  if (nic.service !== "up") return String(nic.service);
  return tenantsOf(nic).length ? "in use" : "idle";
}

export const tenantsOf = (nic) => nic.tenants ?? [];

export const coresTaken = (nic) => nic.cores - nic.free_cores;

/** Whether it is predicted to have less throughput than its SLA requires. */
export const belowSla = (tenant) =>
  typeof tenant.predicted_kpps === "number" && typeof tenant.required_kpps === "number" &&
  tenant.predicted_kpps < tenant.required_kpps;

/** "2 NAT, 1 NIDS". */
export function nfsWords(nfs) {
  const counts = new Map();
  for (const nf of nfs) counts.set(nf, (counts.get(nf) ?? 0) + 1);
  return [...counts].sort((one, other) => other[1] - one[1] || (one[0] < other[0] ? -1 : 1))
    .map(([nf, count]) => `${number(count)} ${nf}`).join(", ");
}

const UNITS = { flows: "flows", packet_size: "bytes", mtbr: "matches per MB" };

/** "16,000 flows, 1,500 bytes, 600 matches per MB". */
export function trafficWords(traffic) {
  return Object.entries(traffic ?? {}).map(([key, value]) => `${number(value)} ${UNITS[key] ?? key}`).join(", ");
}

/** "drop up to 10 %", or of a tenant with a rate "loss up to 0 %, 99 % of packets within 400 us". */
export function slaWords(tenant) {
  const lost = typeof tenant.rate_kpps === "number" ? "loss" : "drop";
  const words = [];
  if (typeof tenant.sla_drop === "number") words.push(`${lost} up to ${number(100 * tenant.sla_drop)} %`);
  if (typeof tenant.sla_min_kpps === "number") words.push(`${number(tenant.sla_min_kpps)} kpps or more`);
  if (typeof tenant.sla_latency_us === "number") words.push(`99 % of packets within ${number(tenant.sla_latency_us)} us`);
  return words.join(", ") || "-";
}

/** "600 kpps on 2 cores": the rate that is offered to a tenant and its cores, as far as they are given or chosen. */
export function loadWords({ rate_kpps, cores }) {
  const rate = typeof rate_kpps === "number" ? `${number(rate_kpps)} kpps` : "more than it carries";
  return typeof cores === "number" ? `${rate} on ${plural(cores, "core")}` : rate;
}

/** "12 of 100 Gb/s": what is offered to the tenants of a NIC that have a rate; null where there are none. */
export function offeredWords({ offered_gbps, line_rate_gbps }) {
  if (typeof offered_gbps !== "number") return null;
  const all = typeof line_rate_gbps === "number" ? ` of ${number(line_rate_gbps)}` : "";
  return `${number(offered_gbps)}${all} Gb/s`;
}

const SUBJECTS = { arrive: "arrives", reserve: "is reserved", expire: "expires", group: "arrives as a group", depart: "departs", change: "changes", fail: "fails", drain: "is drained",
  cordon: "is cordoned", uncordon: "is uncordoned", leave: "leaves",
  return: "returns", measured: "is measured" };

/** An event of the log and its answer as a sentence, such as "a (NAT) arrives: placed on nic-1". */
export function eventWords({ event = {}, answer = {} }) {
  const subject = event.id ?? event.nic ?? event.nics?.join(", ") ?? answer.id ?? answer.nic;
  const nf = event.nf ? ` (${event.nf})` : "";
  const verb = SUBJECTS[event.event] ?? String(event.event ?? "event");
  const what = subject === undefined ? verb : `${subject}${nf} ${verb}`;
  return `${what}: ${[outcome(event, answer), ...consequences(event, answer)].join(", ")}`;
}

function outcome(event, answer) {
  if (answer.ok === false) return `refused, ${answer.error}`;
  const nic = ["arrive", "reserve"].includes(event.event) && answer.nic ? ` on ${answer.nic}` : "";
  return `${answer.status ?? "done"}${nic}`;
}

function consequences(event, answer) {
  const moved = (answer.moves ?? []).filter((move) => move.id !== event.id || move.from !== null);
  const counts = [[moved.length, "moved"], [answer.at_risk?.length, "at risk"], [answer.queued?.length, "queued"],
    [answer.rejected?.length, "rejected"]];
  return counts.filter(([count, words]) => count && words !== answer.status)
    .map(([count, words]) => (words === "moved" ? `${plural(count, "tenant")} moved` : `${number(count)} ${words}`));
}
