/** Keeps the page up to date: reads, waits for events, reads again. Stops while the tab is hidden or paused. */

import { byId, plural, say } from "./dom.js";

const SHORTEST_MS = 1_000;
const LONGEST_S = 30;

let running = null;
let paused = false;

/** `read` shows the fleet as it is; `wait` returns when there may be something new. */
export function startUpdates(read, wait) {
  const restart = () => {
    stop();
    if (!paused && document.visibilityState === "visible") {
      running = new AbortController();
      follow(read, wait, running.signal);
    }
  };
  byId("again").addEventListener("click", () => { restart(); byId("pause").focus(); });
  byId("pause").addEventListener("click", () => {
    paused = !paused;
    byId("pause").setAttribute("aria-pressed", String(paused));
    if (paused) report("Updates are paused.");
    restart();
  });
  document.addEventListener("visibilitychange", restart);
  restart();
}

function stop() {
  running?.abort();
  running = null;
}

async function follow(read, wait, signal) {
  for (let failures = 0; !signal.aborted; ) {
    try {
      const began = performance.now();
      await read(signal);
      report("Up to date.");
      failures = 0;
      const pause = Math.max(SHORTEST_MS, 3 * (performance.now() - began));
      await Promise.all([wait(signal), sleep(pause, signal)]);
    } catch (error) {
      if (signal.aborted) return;
      if (error.status === 401) return report(error.message, true);
      failures += 1;
      const seconds = Math.min(LONGEST_S, 2 ** failures);
      report(`${error.message} Trying again in ${plural(seconds, "second")}.`, true);
      await sleep(1000 * seconds, signal);
    }
  }
}

/** Report the state of updates; where they failed, offer to try again. */
export function report(words, failed = false) {
  say(byId("state"), words);
  byId("state").className = failed ? "bad" : "soft";
  byId("again").hidden = !failed;
}

function sleep(ms, signal) {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener("abort", () => { clearTimeout(timer); resolve(); }, { once: true });
  });
}
