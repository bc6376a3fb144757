// The dialog for the access token, which is stored until the tab is closed.

import { storeToken } from "./api.js";
import { el } from "./dom.js";

const dialog = document.getElementById("token");

/** Open the dialog unless it is open, and call `onToken` once a token is entered. */
export function promptForToken({ wasInvalid = false, onToken }) {
  if (dialog.open) return;
  const field = el("input", {
    type: "password",
    id: "token-field",
    required: true,
    autocomplete: "off",
    spellcheck: "false",
  });
  const submitToken = (event) => {
    event.preventDefault();
    if (!field.value.trim()) return;
    storeToken(field.value.trim());
    dialog.close();
    onToken();
  };
  dialog.replaceChildren(
    el(
      "form",
      { on: { submit: submitToken } },
      el("h2", { id: "token-title" }, "This server requires a token"),
      wasInvalid && el("p", { class: "error-text", role: "alert" }, "The server rejected this token."),
      el("p", { class: "faint" }, "Ask its operator for one. It is stored until you close this tab."),
      el("label", { for: "token-field" }, "Token"),
      field,
      el(
        "div",
        { class: "actions" },
        el("button", { type: "submit", class: "primary" }, "Continue"),
        el("button", { type: "button", on: { click: () => dialog.close() } }, "Cancel"),
      ),
    ),
  );
  dialog.showModal();
  field.focus();
}
