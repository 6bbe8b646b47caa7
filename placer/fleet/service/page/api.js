/** Asks the service. Whatever goes wrong is a `ServiceError` in words. */

import { askForToken, token } from "./token.js";

const PATIENCE_MS = 15_000;
const LONGEST_ERROR = 400;

export class ServiceError extends Error {
  /** `status` is that of the answer; 0 where there was none. */
  constructor(words, status = 0) {
    super(words);
    this.status = status;
  }
}

/** The JSON that `path` answers. */
export async function get(path, signal) {
  return asJson(await answered(path, {}, signal));
}

/** The JSON that is answered to `body`. */
export async function post(path, body, signal) {
  const request = { method: "POST", body: JSON.stringify(body), headers: { "Content-Type": "application/json" } };
  return asJson(await answered(path, request, signal));
}

/** The JSON lines that `path` answers after waiting up to `wait_s` more seconds. */
export async function getLines(path, wait_s, signal) {
  const text = await answered(path, {}, signal, PATIENCE_MS + 1000 * wait_s);
  return text.split("\n").filter((line) => line.trim()).map(asJson);
}

/** The text of the answer; asks for the token as often as it is refused. */
async function answered(path, request, signal, patience_ms = PATIENCE_MS) {
  for (;;) {
    const used = token();
    const [status, text] = await sent(path, request, used, signal, patience_ms);
    if (status < 400) return text;
    if (status !== 401) throw new ServiceError(failure(status, text), status);
    if (used === token() && !(await askForToken(used !== ""))) {
      throw new ServiceError("The service asks for a token, and none was given.", 401);
    }
    signal?.throwIfAborted();
  }
}

async function sent(path, request, used, signal, patience_ms) {
  const late = AbortSignal.timeout(patience_ms);
  const headers = used ? { ...request.headers, Authorization: `Bearer ${used}` } : request.headers;
  const either = signal ? AbortSignal.any([signal, late]) : late;
  try {
    const answer = await fetch(path, { ...request, headers, signal: either, cache: "no-store", redirect: "error" });
    return [answer.status, await answer.text()];
  } catch (error) {
    signal?.throwIfAborted();
    throw new ServiceError(late.aborted ? "The service did not answer in time." : "The service cannot be reached.");
  }
}

function failure(status, text) {
  let words = "";
  try {
    words = String(JSON.parse(text).error ?? "").slice(0, LONGEST_ERROR);
  } catch { /* a proxy answered: its page is not shown */ }
  if (status >= 500) return `The service failed (${status})${words ? `: ${words}` : "."}`;
  return words || `The service refused this (${status}).`;
}

function asJson(text) {
  try {
    return JSON.parse(text);
  } catch {
    throw new ServiceError("The service answered with something that is not JSON.");
  }
}
