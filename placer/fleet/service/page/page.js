/** The fleet on one page: starts the parts, and reads what changes. */

import { get, ServiceError } from "./api.js";
import { offerNfs, startAsk } from "./ask.js";
import { waitForEvents } from "./events.js";
import { nicsIn, showSummary } from "./fleet.js";
import { readNic, startNic } from "./nic.js";
import { readList, startList } from "./nics.js";
import { startSearch } from "./tenant.js";
import { report, startUpdates } from "./updates.js";

/** Version of the fleet in the summary, and in the list of NICs. */
let version = 0;
let logFrom = 1;
let listed = null;

async function read(signal) {
  const summary = await get("v1/summary", signal);
  version = summary.version;
  logFrom = summary.log_from ?? 1;
  showSummary(summary);
  offerNfs(summary.nfs ?? []);
  if (listed === version) return;
  listed = await readList(nicsIn(summary), signal);
  await readNic(signal);
}

/** Wait for events; a service without a log is asked again after a while. */
async function wait(signal) {
  try {
    await waitForEvents(version, logFrom, signal);
  } catch (error) {
    if (!(error instanceof ServiceError) || error.status !== 404) throw error;
    await new Promise((resolve) => { setTimeout(resolve, 10_000); });
  }
}

startAsk();
startNic();
startSearch();
startList((error) => report(error.message, true));
startUpdates(read, wait);
