/** The bearer token: asked for in a dialog, and kept until the tab is closed. */

import { byId, say } from "./dom.js";

const KEY = "nf-placer token";

/** The token, or "". */
export const token = () => sessionStorage.getItem(KEY) ?? "";

let open = null;

/** Ask for a token, once for all who wait for it; whether one was given. */
export function askForToken(refused) {
  open ??= asked(refused).finally(() => { open = null; });
  return open;
}

function asked(refused) {
  const dialog = byId("token");
  const input = byId("token-text");
  say(byId("token-why"), refused ? "The service did not accept this token." : "The service asks for a token.");
  input.value = "";
  let given = false;
  dialog.querySelector("form").onsubmit = (event) => {
    event.preventDefault();
    sessionStorage.setItem(KEY, input.value);
    given = true;
    dialog.close();
  };
  byId("token-cancel").onclick = () => dialog.close();
  dialog.showModal();
  input.focus();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => { input.value = ""; resolve(given); }, { once: true });
  });
}
