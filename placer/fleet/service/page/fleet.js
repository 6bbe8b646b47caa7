/** The summary: the whole fleet in numbers, and by NIC model where there is more than one. */

import { byId, cores, keyed, make, name, number, row, say } from "./dom.js";

const sum = (models, key) => models.reduce((total, model) => total + (model[key] ?? 0), 0);

/** NICs that the service knows. */
export const nicsIn = (summary) =>
  ["in_use", "idle", "cordoned", "draining", "failed"].reduce((total, key) => total + sum(summary.by_model, key), 0);

/** Each number with its name, and whether it deserves attention unless it is 0. */
function facts(summary) {
  const models = summary.by_model;
  return [
    { label: "NICs in use", value: sum(models, "in_use") },
    { label: "NICs idle", value: sum(models, "idle") },
    { label: "NICs cordoned", value: sum(models, "cordoned"), bad: "warn" },
    { label: "NICs draining", value: sum(models, "draining"), bad: "warn" },
    { label: "NICs failed", value: sum(models, "failed"), bad: "bad" },
    coresFact(sum(models, "cores_taken"), sum(models, "cores")),
    { label: "Tenants", value: summary.tenants },
    { label: "Queued", value: summary.queued, bad: "warn" },
    { label: "SLA violations seen", value: summary.violations_seen, bad: "bad" },
    { label: "Model version", value: summary.model },
  ];
}

function coresFact(taken, all) {
  const label = `Cores taken: ${number(taken)} of ${number(all)}`;
  return { key: "cores", label, value: all ? Math.round((100 * taken) / all) : 0, unit: " %" };
}

export function showSummary(summary) {
  const create = () => make("div", {}, make("dt"), make("dd"));
  keyed(byId("tiles"), facts(summary), (fact) => fact.key ?? fact.label, create, showFact);
  const models = byId("models");
  models.hidden = summary.by_model.length < 2;
  models.querySelector("tbody").replaceChildren(...summary.by_model.map(modelRow));
}

function showFact(tile, { label, value, unit = "", bad }) {
  tile.className = bad && value > 0 ? bad : "";
  say(tile.firstElementChild, label);
  say(tile.lastElementChild, `${number(value)}${unit}`);
}

function modelRow(model) {
  const numbers = [model.in_use, model.idle, model.cordoned, model.draining, model.failed, model.tenants];
  return row(name(model.nic_model), ...numbers, cores(model.cores_taken, model.cores));
}
