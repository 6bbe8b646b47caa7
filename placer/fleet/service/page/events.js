/** The last events, the newest first, through the log, which answers as soon as there is one. */

import { getLines } from "./api.js";
import { byId, keyed, make, name, number, plural, say } from "./dom.js";
import { eventWords } from "./words.js";

const SHOWN = 50;
const AT_FIRST = 20;
const WAIT_S = 20;
const ANNOUNCED_MS = 3_000;

let after = null;
let seen = 0;
let kept = [];
let unannounced = 0;
let timer = 0;

/**
 * Wait for events and show them; whether there were any. `version`: that of the fleet when it was last read. `logFrom`:
 * the first event that the log still had then.
 */
export async function waitForEvents(version, logFrom, signal) {
  if (version < seen) forget();
  seen = version;
  after = Math.max(after ?? version - AT_FIRST, logFrom - 1);
  const first = kept.length === 0;
  const lines = await getLines(`v1/log?after=${after}&wait_s=${WAIT_S}`, WAIT_S, signal);
  if (!lines.length) return false;
  after = lines.at(-1).number;
  kept = [...lines.slice(-SHOWN).reverse(), ...kept].slice(0, SHOWN);
  show();
  if (!first) announce(lines.length);
  return true;
}

/** The service started anew with another fleet: its log is another one. */
function forget() {
  after = null;
  kept = [];
  byId("events").replaceChildren();
  byId("events").hidden = true;
  byId("events-none").hidden = false;
}

function show() {
  byId("events").hidden = false;
  byId("events-none").hidden = true;
  keyed(byId("events"), kept, (line) => String(line.number), create, () => {});
}

function create(line) {
  const event = make("li", {}, make("span", { class: "soft" }, `${number(line.number)} `), name(eventWords(line)));
  if (["rejected", "at-risk", "failed", "queued"].includes(line.answer?.status)) event.className = "noted";
  return event;
}

/** Say how many events came, not more often than every few seconds. */
function announce(count) {
  unannounced += count;
  if (timer) return;
  timer = setTimeout(() => {
    say(byId("events-said"), `${plural(unannounced, "new event")}. The last: ${eventWords(kept[0])}`);
    [unannounced, timer] = [0, 0];
  }, ANNOUNCED_MS);
}
