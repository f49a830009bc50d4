// Draws the answers of the outbox: at the question, in its row, in a list above the inbox, and in a strip.
import { $, $$, announce, button, el, fetchFragment, icon, isVisible, strip, toast, wide } from "./dom.js";
import { openLatePage, discardStray, drop, flush, inFlight, retryNow, items, strayItems } from "./outbox.js";
import { fillForm, saveDraft } from "./drafts.js";
import { clock } from "./time.js";

const SAVED = "Saved on this device. Sent when you are back.", TRYING = "Not sent yet, trying again.";
const STRAY = "Not sent. It was for another desk, which was served at this address before.", PAST = "Not sent. This desk was restored from a backup since.";
const loginLink = () => el("a", { href: `/login?next=${encodeURIComponent(location.pathname)}` }, "Sign in");
const LABELS = { late: "Too late", stray: "Not sent" };
const plural = (n, one, more) => `${n} ${n === 1 ? one : more}`;

function statusText(item) {
  if (item.state === "late") return `Too late. ${item.told.lead} ${item.told.rest}${item.told.iso ? `, at ${clock(item.told.iso)}` : ""}.`;
  if (item.state === "stray") return item.restored ? PAST : STRAY;
  if (item.state === "refused") return `Not sent. ${item.told}`;
  if (!navigator.onLine) return SAVED;
  if (item.why === "login") return "Not sent: you were signed out.";
  return item.tries ? TRYING : "";  // the first try is still running
}
function box(item) {
  const text = statusText(item), form = $$(`form[data-q="${item.id}"]`).find(isVisible);
  if (!text) return null;
  const acts = item.state === "late" ? [button("What now?", () => openLatePage(item), "go"), button("Drop it", () => drop(item.id), "plain")]
    : item.state === "stray" ? [...(item.restored ? [el("a", { className: "btn", href: `/questions/${item.id}` }, "Look at it")] : []), button("Drop it", () => discardStray(item), "plain")]
    : [...(item.why === "login" ? [loginLink()] : navigator.onLine && !item.state ? [button("Try now", retryNow)] : []),
      form ? button("Change", () => change(form)) : el("a", { className: "btn", href: `/questions/${item.id}` }, "Change"),
      button(item.state ? "Drop it" : "Take back", () => takeBack(item), "plain")];
  const element = el("div", { className: "unsent", role: "status" }, el("p", { className: "why" }, text), el("p", { className: "what" }, item.words), el("div", { className: "acts" }, ...acts));
  element.dataset.of = item.id;
  element.dataset.says = `${text} ${item.words} ${acts.length}`;
  return element;
}
function placeBox(where, item) {
  const old = $(":scope > .unsent", where), element = item && box(item);
  if (old && element && old.dataset.says === element.dataset.says) return;
  old?.remove();
  if (element) where.append(element);
}

// --- change, take back ---

// A new idempotency key: what is sent next is another answer.
function renewKey(form) {
  const key = $("input[name=key]", form);
  if (key) key.value = `web-${crypto.getRandomValues(new Uint32Array(3)).join("-")}`;
}
// Takes a queued answer back; the form still shows it.
export function change(form, edited = false) {
  const item = drop(form.dataset.answer);
  if (!item) return;
  renewKey(form);
  saveDraft(form);
  if (!edited) ($$("[data-need], .opt input:checked, .say", form)[0])?.focus();
  confirmTakenBack(item, "is not sent. Send what you choose now.");
}
function takeBack(item) {
  drop(item.id);
  for (const form of $$(`form[data-answer="${item.id}"]`)) { renewKey(form); form.reset(); if (form.dataset.q) { fillForm(form, null); saveDraft(form); form.dispatchEvent(new Event("change", { bubbles: true })); } }
  confirmTakenBack(item, "was taken back.");
}
function confirmTakenBack(item, words) {
  const what = item.words.split("\n")[0].slice(0, 60);
  announceAndToast(`${what} ${item.left ? "is taken back, unless it had arrived. Looking…" : words}`);
  if (item.left) checkArrived(item.id, what);
}
// A request that was sent cannot be called back: reports only what is known.
async function checkArrived(id, what) {
  const fragment = await fetchFragment(`/questions/${id}?as=row`).catch(() => null), closed = fragment && $(".result", fragment)?.textContent;
  announceAndToast(closed ? `${id} is closed: ${closed}` : fragment ? `${what} has not arrived so far. If it still does, this page shows it.` : `It is not known yet if ${what} has arrived. This page shows it when it is live again.`);
  dispatchEvent(new CustomEvent("yourturn:taken", { detail: id }));
}
function announceAndToast(text) { toast(text); announce(text); }

// --- everywhere at once ---

// A closed question shows its result; an answer to it is sent at once, and shown if it was too late.
const isOpen = (form) => $(".answer", form) && !form.dataset.closed;

export function drawUnsent() {
  const waiting = items(), seen = new Set();
  for (const form of $$("form[data-q]")) {
    const item = waiting.find((item) => item.id === form.dataset.q), bar = $(".answer", form) ?? $(".q-top", form);
    if (item?.draft && !form.hasAttribute("data-unsent") && !inFlight.has(item.id)) { fillForm(form, item.draft); form.dispatchEvent(new Event("yourturn:filled", { bubbles: true })); }
    placeBox(bar, item && (item.state || isOpen(form)) ? item : null);
    form.toggleAttribute("data-unsent", Boolean($(":scope > .unsent", bar)));
    if (item && isVisible(form)) seen.add(item.id);
  }
  for (const row of $$(".list .row[data-id]")) {
    const item = waiting.find((item) => item.id === row.dataset.id);
    placeBox(row, item && !seen.has(item.id) && (item.state || !row.classList.contains("over")) ? item : null);
    row.classList.toggle("queued", Boolean($(":scope > .unsent", row)));
    if (item) seen.add(item.id);
  }
  const others = strayItems();
  drawOutbox([...waiting.filter((item) => !seen.has(item.id) && statusText(item)), ...others]);
  drawStrips([...waiting, ...others]);
}

// Above the list: answers to questions that the page does not show.
function drawOutbox(left) {
  const list = $(".list"), head = list && $(".list-head", list);
  if (!head) return;
  const old = $("[data-outbox]", list), says = left.map((item) => item.id + item.key + statusText(item)).join();
  if (old?.dataset.says === says) return;
  old?.remove();
  if (!left.length) return;
  const rows = el("ul"), element = el("section", { className: "outbox", "aria-label": "Outbox" }, el("h2", { className: "group" }, "Outbox ", el("span", {}, "answers that have not arrived")), rows);
  for (const item of left) {
    const row = el("li", { className: "row" }, el("span", { className: "kind" }, icon("clock")), el("div", { className: "body" }, el("h3", {}, item.state === "stray" ? item.title : el("a", { href: `/questions/${item.id}` }, item.title)), el("p", { className: "meta" }, el("b", {}, LABELS[item.state] ?? "Queued"), el("span", { className: "nb" }, item.id))));
    row.append(box(item));
    rows.append(row);
  }
  element.dataset.outbox = "";
  element.dataset.says = says;
  head.after(element);
}

function drawStrips(waiting) {
  const late = waiting.filter((item) => item.state && !$$(`form[data-q="${item.id}"] .unsent, [data-late="${item.id}"]`).some(isVisible)).length, open = waiting.filter((item) => !item.state && (item.tries || !navigator.onLine));
  const { live, since } = document.documentElement.dataset, n = open.length, elsewhere = open.filter((item) => !$$(`.unsent[data-of="${item.id}"]`).some(isVisible)).length;
  const saved = n ? ` ${plural(n, "answer waits", "answers wait")} on this device and ${n === 1 ? "is" : "are"} sent when you are back.` : " What you answer is kept on this device and sent when you are back.";
  if (!navigator.onLine) strip("net", `Offline.${saved}`);
  else if (open.some((item) => item.why === "login")) strip("net", "You were signed out. What waits on this device is sent when you are back.", loginLink());
  else if (live === "lost" && since) strip("net", `Not live since ${since}, trying again.${n ? ` ${plural(n, "answer waits", "answers wait")} on this device.` : ""}`, button("Try now", () => { retryNow(); dispatchEvent(new Event("yourturn:connect")); }));
  else if (elsewhere) strip("net", `${plural(elsewhere, "answer is", "answers are")} not sent yet, trying again.`, button("Try now", retryNow));
  else strip("net");
  if (late) strip("late", `${plural(late, "answer", "answers")} could not be sent.`, location.pathname === "/inbox" ? button("Look", () => $(".unsent")?.scrollIntoView({ block: "center" })) : el("a", { href: "/inbox" }, "Look")); else strip("late");
}

for (const type of ["yourturn:outbox", "yourturn:live", "online", "offline"]) addEventListener(type, drawUnsent);
wide.addEventListener("change", drawUnsent);
addEventListener("yourturn:settled", ({ detail: { item, ok, data, seen } }) => {
  const words = ok ? `Sent ${item.id}. ${data.sent}` : data.late ? `${item.id} came too late. ${data.late.lead} ${data.late.rest}${data.late.iso ? `, at ${clock(data.late.iso)}` : ""}.` : `${item.id} was not sent. ${data.error?.message ?? ""}`;
  if (!seen) toast(words, data.late ? button("What now?", () => openLatePage(item), "go") : el("a", { className: "btn go", href: `/questions/${item.id}` }, "Look"));
  announce(words);
});
flush();
