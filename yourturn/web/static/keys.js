// One key chooses, Enter sends. No single key ever answers, and no key that was meant for a field chooses anything.
import { $, $$, shown, typing } from "./dom.js";
import { current, list, marked, move, picked } from "./list.js";

const on = () => !document.documentElement.classList.contains("keyless");
const places = { i: "/inbox", t: "/tasks", a: "/activity", s: "/stats" };
let going = false;

// The question that keys speak to: the sheet's, else the page's; or the pane's, if it is the one that is marked, and the focus is
// not in another row.
function article() {
  const alone = $("dialog[open] .q") ?? $(".main > .q");
  if (alone) return alone.closest("[inert]") ? null : alone;
  const at = $(".pane:not([inert]) .q");
  return shown(at) && at.dataset.q === marked() && at.dataset.q === (current()?.dataset.id ?? at.dataset.q) ? at : null;
}

function turn(step) {
  const link = $(`[data-turn=${step > 0 ? "j" : "k"}]`);
  if (link) location.assign(link.href); else move(step);
}
function choose(key) {
  if (key === "a" && picked().length) { $("#batch").requestSubmit($(".pickbar .btn.go")); return; }
  const at = article(), button = at && $$(`[data-key=${key}]`, at).find(shown);
  if (button) { button.focus(); aimed = button; return; }
  const row = list && current();
  const radio = row && $$(".quick input[type=radio]", row).find((r) => r.value.startsWith(key === "a" ? "approved" : "rejected"));
  if (radio && shown(radio.nextElementSibling)) { radio.checked = true; radio.focus(); }
}

// --- letters without a field ---

// The field in which somebody writes can be closed or removed under their fingers, or the page replaced. Until they leave a field
// themselves (Escape, Tab, Enter, a click) or pause, what they type is text: it presses nothing.
const PAUSE = 2000, WROTE = "yt:wrote";
let wrote = 0;  // when the last key went into a field that was not left since
const recently = () => Date.now() - wrote < PAUSE;
try { wrote = Number(sessionStorage.getItem(WROTE)); sessionStorage.removeItem(WROTE); } catch { /* not allowed */ }
addEventListener("pagehide", () => { try { if (recently()) sessionStorage.setItem(WROTE, wrote); } catch { /* not allowed */ } });
addEventListener("pointerdown", () => { wrote = 0; }, true);

const command = (e) => e.ctrlKey || e.metaKey || e.altKey;
const leaves = (e) => e.key === "Escape" || e.key === "Tab" || (e.key === "Enter" && (command(e) || e.target.tagName !== "TEXTAREA"));
const writes = (e) => !command(e) && (e.key.length === 1 || ["Enter", "Tab", "Backspace", "Delete"].includes(e.key));
addEventListener("keydown", (e) => {
  if (typing(e.target)) { wrote = leaves(e) ? 0 : Date.now(); return; }
  if (!recently()) { wrote = 0; return; }
  if (!writes(e)) return;
  wrote = Date.now();
  e.preventDefault();
  e.stopImmediatePropagation();
}, true);

// A button that a shortcut chose is pressed by Enter. The space bar belongs to text.
let aimed = null;
addEventListener("focusout", () => { aimed = null; });
addEventListener("keydown", (e) => { if (e.key === " " && e.target === aimed) e.preventDefault(); });

// --- shortcuts ---

const keys = {
  j: () => turn(1),
  k: () => turn(-1),
  a: () => choose("a"),
  r: () => choose("r"),
  e: () => choose("e"),
  x: () => { const row = list && current(); if (row) { $(".pick", row)?.click(); } },
  "/": () => $("[type=search]")?.focus(),
  "?": () => $("#keys")?.showModal(),
};

addEventListener("keydown", (e) => {
  if (e.ctrlKey || e.metaKey || e.altKey || e.isComposing) return;
  if (typing(e.target)) { if (e.key === "Escape" && !e.target.closest("dialog")) e.target.blur(); return; }
  if (!on() || $("#keys")?.open) return;
  if (/^[1-9]$/.test(e.key)) {
    const at = article(), box = at && $$(".opt input", at)[e.key - 1];
    if (box && !box.disabled) { e.preventDefault(); box.focus(); box.checked = box.type === "checkbox" ? !box.checked : true; box.dispatchEvent(new Event("change", { bubbles: true })); }
    return;
  }
  if (going && places[e.key]) { location.assign(places[e.key]); return; }
  going = e.key === "g";
  const sheet = $("dialog.sheet[open]");
  if (sheet && (e.key === "j" || e.key === "k" || e.key === "x" || e.key === "/")) return;
  const run = keys[e.key];
  if (run) { e.preventDefault(); run(); }
});
