// Keyboard shortcuts: a key chooses, Enter sends. No single key answers, and no key that was meant for a text field chooses.
import { $, $$, isTextField, isVisible } from "./dom.js";
import { currentRow, list, markedId, move, selectedBoxes } from "./list.js";

const shortcutsOn = () => !document.documentElement.classList.contains("keyless");
const PAGES = { i: "/inbox", t: "/tasks", a: "/activity", s: "/stats" };
let goPressed = false;

// The question to which shortcuts apply: that of the sheet, else of the page; or of the pane, if its row is marked and the focus is
// not in another row.
function currentForm() {
  const alone = $("dialog[open] .q") ?? $(".main > .q");
  if (alone) return alone.closest("[inert]") ? null : alone;
  const element = $(".pane:not([inert]) .q");
  return isVisible(element) && element.dataset.q === markedId() && element.dataset.q === (currentRow()?.dataset.id ?? element.dataset.q) ? element : null;
}

function turn(step) {
  const link = $(`[data-turn=${step > 0 ? "j" : "k"}]`);
  if (link) location.assign(link.href); else move(step);
}
function chooseButton(key) {
  if (key === "a" && selectedBoxes().length) { $("#batch").requestSubmit($(".pickbar .btn.go")); return; }
  const element = currentForm(), button = element && $$(`[data-key=${key}]`, element).find(isVisible);
  if (button) { button.focus(); chosenButton = button; return; }
  const row = list && currentRow();
  const radio = row && $$(".quick input[type=radio]", row).find((r) => r.value.startsWith(key === "a" ? "approved" : "rejected"));
  if (radio && isVisible(radio.nextElementSibling)) { radio.checked = true; radio.focus(); }
}

// --- letters without a field ---

// A text field can be closed or removed, or the page replaced, while a person types in it. Until they leave the field themselves
// (Escape, Tab, Enter, a click) or pause, their keys are text and press nothing.
const WRITING_PAUSE = 2000, WRITING_KEY = "yt:wrote";
let lastKeyAt = 0;  // time of the last key in a text field that was not left since
const wroteRecently = () => Date.now() - lastKeyAt < WRITING_PAUSE;
try { lastKeyAt = Number(sessionStorage.getItem(WRITING_KEY)); sessionStorage.removeItem(WRITING_KEY); } catch { /* not allowed */ }
addEventListener("pagehide", () => { try { if (wroteRecently()) sessionStorage.setItem(WRITING_KEY, lastKeyAt); } catch { /* not allowed */ } });
addEventListener("pointerdown", () => { lastKeyAt = 0; }, true);

const hasModifier = (event) => event.ctrlKey || event.metaKey || event.altKey;
const leavesField = (event) => event.key === "Escape" || event.key === "Tab" || (event.key === "Enter" && (hasModifier(event) || event.target.tagName !== "TEXTAREA"));
const writesText = (event) => !hasModifier(event) && (event.key.length === 1 || ["Enter", "Tab", "Backspace", "Delete"].includes(event.key));
addEventListener("keydown", (event) => {
  if (isTextField(event.target)) { lastKeyAt = leavesField(event) ? 0 : Date.now(); return; }
  if (!wroteRecently()) { lastKeyAt = 0; return; }
  if (!writesText(event)) return;
  lastKeyAt = Date.now();
  event.preventDefault();
  event.stopImmediatePropagation();
}, true);

// Enter presses a button that a shortcut chose. The space bar does not, because it belongs to text.
let chosenButton = null;
addEventListener("focusout", () => { chosenButton = null; });
addEventListener("keydown", (event) => { if (event.key === " " && event.target === chosenButton) event.preventDefault(); });

// --- shortcuts ---

const SHORTCUTS = {
  j: () => turn(1),
  k: () => turn(-1),
  a: () => chooseButton("a"),
  r: () => chooseButton("r"),
  e: () => chooseButton("e"),
  x: () => { const row = list && currentRow(); if (row) { $(".pick", row)?.click(); } },
  "/": () => $("[type=search]")?.focus(),
  "?": () => $("#keys")?.showModal(),
};

addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  if (isTextField(event.target)) { if (event.key === "Escape" && !event.target.closest("dialog")) event.target.blur(); return; }
  if (!shortcutsOn() || $("#keys")?.open) return;
  if (/^[1-9]$/.test(event.key)) {
    const element = currentForm(), box = element && $$(".opt input", element)[event.key - 1];
    if (box && !box.disabled) { event.preventDefault(); box.focus(); box.checked = box.type === "checkbox" ? !box.checked : true; box.dispatchEvent(new Event("change", { bubbles: true })); }
    return;
  }
  if (goPressed && PAGES[event.key]) { location.assign(PAGES[event.key]); return; }
  goPressed = event.key === "g";
  const sheet = $("dialog.sheet[open]");
  if (sheet && (event.key === "j" || event.key === "k" || event.key === "x" || event.key === "/")) return;
  const run = SHORTCUTS[event.key];
  if (run) { event.preventDefault(); run(); }
});
