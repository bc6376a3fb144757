// Asks for the token of a server that wants one; it is kept until the tab is closed.

import { keepToken } from "./api.js";
import { el } from "./dom.js";

const dialog = document.getElementById("token");

/** Ask, unless it is being asked for already; then do `onToken`. */
export function askForToken({ wasWrong = false, onToken }) {
  if (dialog.open) return;
  const field = el("input", {
    type: "password",
    id: "token-field",
    required: true,
    autocomplete: "off",
    spellcheck: "false",
  });
  const enter = (event) => {
    event.preventDefault();
    if (!field.value.trim()) return;
    keepToken(field.value.trim());
    dialog.close();
    onToken();
  };
  dialog.replaceChildren(
    el(
      "form",
      { on: { submit: enter } },
      el("h2", { id: "token-title" }, "This server needs a token"),
      wasWrong && el("p", { class: "wrong", role: "alert" }, "The server does not know that token."),
      el("p", { class: "faint" }, "Whoever runs it can give you one. It is kept until you close this tab."),
      el("label", { for: "token-field" }, "Token"),
      field,
      el(
        "div",
        { class: "actions" },
        el("button", { type: "submit", class: "primary" }, "Go on"),
        el("button", { type: "button", on: { click: () => dialog.close() } }, "Cancel"),
      ),
    ),
  );
  dialog.showModal();
  field.focus();
}
